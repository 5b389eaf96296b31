"""CDK's provider framework around one function of ours, without rights to make log groups that nobody would remove."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from aws_cdk import Duration
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import custom_resources as resources
from constructs import Construct

from deployments.model import Deployment
from lambdas import contract
from stacks.constructs.function import PythonFunction, log_group, writes
from stacks.constructs.statements import TRACE, Statement, acknowledge, any_version, role

_FRAMEWORK: Final = ("framework-onEvent", "framework-isComplete", "framework-onTimeout")
_WAITER: Final = (
    "The waiter of CDK's provider framework. Its input holds the address that CloudFormation waits at, which nobody should "
    "read in a log or a trace; what it waits for is logged by the function that it calls."
)
_VERSIONS: Final = (
    "CDK's provider framework may call its own functions and the one that it stands before, and of these any version; "
    "there is one version of each."
)


class WaitingProvider(Construct):
    """What a custom resource's service token leads to.

    The framework calls the function once to name the resource, then again and again until it is complete: two roles for that
    would differ in nothing that either doesn't need.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        deployment: Deployment,
        handler: str,
        purpose: str,
        environment: Mapping[str, str],
        statements: Sequence[Statement],
    ) -> None:
        super().__init__(scope, id)
        self.function = PythonFunction(
            self,
            "Function",
            deployment=deployment,
            handler=handler,
            purpose=purpose,
            environment=environment,
            statements=statements,
        )
        logs = log_group(self, "Logs", days=deployment.aws.log_retention_days)
        service = iam.ServicePrincipal("lambda.amazonaws.com")
        on_event, complete = (
            role(self, part, trusts=service, purpose="CDK's provider framework", statements=[writes(logs), TRACE])
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
        functions = [_framework_function(provider, name) for name in _FRAMEWORK]
        acknowledge(self, _WAITER, "AwsSolutions-SF1", "AwsSolutions-SF2")
        called = [self.function.arn, *[function.attr_arn for function in functions]]
        acknowledge(self, _VERSIONS, *[any_version(self, arn) for arn in called])
        self.service_token: str = provider.service_token


def _framework_function(provider: resources.Provider, name: str) -> lambda_.CfnFunction:
    """Return one of the framework's functions, with the log format and tracing of ours, which CDK has no option for."""
    function = provider.node.find_child(name).node.default_child
    assert isinstance(function, lambda_.CfnFunction)
    function.add_property_override("LoggingConfig.LogFormat", "JSON")
    function.add_property_override("TracingConfig.Mode", "Active")
    return function
