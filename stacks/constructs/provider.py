"""CDK's provider framework around one function.

It may not create log groups, because nothing would delete them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from aws_cdk import Duration
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import custom_resources as resources
from constructs import Construct

from lambdas import contract
from stacks.constructs.function import (
    UNRESERVED,
    WITHOUT_DEAD_LETTERS,
    PythonFunction,
    log_group,
    may_write,
)
from stacks.constructs.network import may_run_functions, place_function
from stacks.constructs.runtime import Runtime
from stacks.constructs.statements import (
    ONLY_ITS_OWN,
    TRACE,
    Statement,
    acknowledge,
    any_version,
    create_role,
)

_FRAMEWORK: Final = ("framework-onEvent", "framework-isComplete", "framework-onTimeout")
_WAITER: Final = (
    "The waiter of CDK's provider framework. Its input contains the address of CloudFormation's response, "
    "which must not be in a log or a trace; the function that it calls logs the progress."
)
_ANSWERED: Final = (
    "CloudFormation and CDK's provider framework wait for each answer, and the deployment fails without one. "
    "Events contain the address of CloudFormation's response, which must not be in a queue."
)
_VERSIONS: Final = (
    "CDK's provider framework may call any version of its own functions and of its handler; there is one "
    "version of each."
)


class WaitingProvider(Construct):
    """The provider behind a custom resource's service token.

    The framework calls the function once to name the resource, then repeatedly until it is complete.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        runtime: Runtime,
        handler: str,
        purpose: str,
        environment: Mapping[str, str],
        statements: Sequence[Statement],
    ) -> None:
        super().__init__(scope, id)
        self.function = PythonFunction(
            self,
            "Function",
            runtime=runtime,
            handler=handler,
            purpose=purpose,
            environment=environment,
            statements=statements,
        )
        logs = log_group(self, "Logs", runtime=runtime)
        service = iam.ServicePrincipal("lambda.amazonaws.com")
        on_event, complete = (
            create_role(
                self,
                part,
                trusts=service,
                purpose="CDK's provider framework",
                statements=[may_write(logs), TRACE, *may_run_functions(runtime.network)],
            )
            for part in ("OnEventRole", "IsCompleteRole")
        )
        provider = resources.Provider(
            self,
            "Framework",
            on_event_handler=self.function.function,
            is_complete_handler=self.function.function,
            query_interval=Duration.seconds(contract.QUERY_INTERVAL_SECONDS),
            total_timeout=Duration.seconds(contract.TOTAL_TIMEOUT_SECONDS),
            log_group=logs,
            framework_on_event_role=on_event,
            framework_complete_and_timeout_role=complete,
            disable_waiter_state_machine_logging=True,
        )
        functions = [_find_framework_function(provider, name) for name in _FRAMEWORK]
        for function in functions:
            place_function(function, runtime.network)
            function.memory_size = runtime.lambda_memory_mb
        acknowledge(
            self, _WAITER, "AwsSolutions-SF1", "AwsSolutions-SF2", "Serverless-StepFunctionStateMachineXray"
        )
        acknowledge(self, _ANSWERED, *WITHOUT_DEAD_LETTERS)
        acknowledge(self, UNRESERVED, "NIST.800.53.R5-LambdaConcurrency")
        acknowledge(self, ONLY_ITS_OWN, "NIST.800.53.R5-IAMNoInlinePolicy")
        called = [self.function.arn, *[function.attr_arn for function in functions]]
        acknowledge(self, _VERSIONS, *[any_version(self, arn) for arn in called])
        self.service_token: str = provider.service_token


def _find_framework_function(provider: resources.Provider, name: str) -> lambda_.CfnFunction:
    """Return one of the framework's functions, with JSON logs and tracing, for which CDK has no option."""
    function = provider.node.find_child(name).node.default_child
    assert isinstance(function, lambda_.CfnFunction)
    function.add_property_override("LoggingConfig.LogFormat", "JSON")
    function.tracing_config = lambda_.CfnFunction.TracingConfigProperty(mode="Active")
    return function
