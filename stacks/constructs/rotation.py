"""Rotation of a stack's keys: one function, a schedule for each secret that starts once the secret is filled, and one schedule
by which replaced keys are revoked when their grace is over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

from lambdas import contract
from stacks.base import LakeferryStack
from stacks.constructs.function import OwnFunction
from stacks.constructs.on_schedule import OnSchedule
from stacks.constructs.secrets import SecretsOfStack
from stacks.constructs.statements import Statement, allow
from stacks.constructs.vendor_resources import Made

_STEPS: Final = ("DescribeSecret", "GetSecretValue", "PutSecretValue", "UpdateSecretVersionStage", "ListSecretVersionIds")
#: Within which a rotation that is due may begin.
_WINDOW: Final = "4h"
#: When replaced keys are looked for whose grace is over. An unanswered call is tried again after six hours.
_REVOKE: Final = "15 0/6 * * ? *"


class Rotation(Construct):
    def __init__(
        self,
        stack: LakeferryStack,
        name: str,
        secrets: SecretsOfStack,
        *,
        environment: Mapping[str, str],
        statements: Sequence[Statement] = (),
    ) -> None:
        super().__init__(stack, name)
        self._stack = stack
        rotation = stack.deployment.rotation
        own = allow("RotateOwnSecrets", [f"secretsmanager:{step}" for step in _STEPS], secrets.arns)
        self._function = OwnFunction(
            stack,
            f"{name}Function",
            handler=contract.ROTATE,
            purpose=f"{name}: replaces keys in four steps",
            environment={
                contract.ROTATION_KEEP: str(rotation.keep),
                contract.ROTATION_GRACE_DAYS: str(rotation.grace_days),
                **environment,
            },
            statements=[own, secrets.may_use_key(), *statements],
            timeout_seconds=contract.ROTATION_TIMEOUT_SECONDS,
        )
        self._revoking = OnSchedule(
            stack,
            f"{name}Schedule",
            self._function,
            cron=_REVOKE,
            purpose="Revokes replaced keys when their grace is over",
            event={"operation": contract.REVOKE_EXPIRED, "secrets": secrets.arns},
        )

    def follow(self, name: str, secret_arn: str, *filled: Made) -> None:
        """Not before `filled`: until then there is no key to replace, or no right to replace it."""
        permission = lambda_.CfnPermission(
            self,
            f"{name}Permission",
            action="lambda:InvokeFunction",
            function_name=self._function.arn,
            principal="secretsmanager.amazonaws.com",
            source_account=self._stack.account,
            source_arn=secret_arn,
        )
        schedule = secretsmanager.CfnRotationSchedule(
            self,
            name,
            secret_id=secret_arn,
            rotation_lambda_arn=self._function.arn,
            rotate_immediately_on_update=False,
            rotation_rules=secretsmanager.CfnRotationSchedule.RotationRulesProperty(
                schedule_expression=f"rate({self._stack.deployment.rotation.every_days} days)", duration=_WINDOW
            ),
        )
        schedule.node.add_dependency(permission, *[made.resource for made in filled])
        self._revoking.node.add_dependency(schedule)
