"""CDK's provider framework around two functions of ours, without rights to make log groups that nobody would remove."""

from __future__ import annotations

from typing import Final

from aws_cdk import CfnElement, Duration, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import custom_resources as resources
from constructs import Construct

from lambdas import contract
from stacks.base import LakeferryStack
from stacks.constructs.acknowledged import acknowledge
from stacks.constructs.function import OwnFunction, log_group, writes
from stacks.constructs.statements import of_any_version, role

_OF_FRAMEWORK: Final = ("framework-isComplete", "framework-onTimeout")
_WAITER: Final = (
    "The waiter of CDK's provider framework. Its input holds the address that CloudFormation waits at, which nobody should "
    "read in a log or a trace; what it waits for is logged by the function that it calls."
)
_VERSIONS: Final = (
    "CDK's provider framework may call its own functions and the two that it stands before, and of these any version; "
    "there is one version of each."
)


class WaitingProvider(Construct):
    """What a custom resource's service token leads to: `on_event` once, then `is_complete` until it says so."""

    def __init__(self, stack: LakeferryStack, name: str, *, on_event: OwnFunction, is_complete: OwnFunction) -> None:
        super().__init__(stack, name)
        logs = log_group(self, "Logs", stack)
        service = iam.ServicePrincipal("lambda.amazonaws.com")
        roles = [
            role(self, part, trusts=service, purpose="CDK's provider framework", statements=[writes(logs)])
            for part in ("OnEventRole", "CompleteRole")
        ]
        self._provider = resources.Provider(
            self,
            "Framework",
            on_event_handler=on_event.function,
            is_complete_handler=is_complete.function,
            query_interval=Duration.seconds(contract.QUERY_INTERVAL_SECONDS),
            total_timeout=Duration.seconds(contract.TOTAL_TIMEOUT_SECONDS),
            log_group=logs,
            framework_on_event_role=roles[0],
            framework_complete_and_timeout_role=roles[1],
            disable_waiter_state_machine_logging=True,
        )
        acknowledge(self, _WAITER, "AwsSolutions-SF1", "AwsSolutions-SF2")
        called = [on_event.arn, is_complete.arn, *[self._framework_arn(name) for name in _OF_FRAMEWORK]]
        acknowledge(self, _VERSIONS, *[of_any_version(stack, arn) for arn in called])

    @property
    def service_token(self) -> str:
        return self._provider.service_token

    def _framework_arn(self, name: str) -> str:
        function = self._provider.node.find_child(name).node.default_child
        assert CfnElement.is_cfn_element(function)
        return f"<{Stack.of(self).get_logical_id(function)}.Arn>"  # type: ignore[arg-type]
