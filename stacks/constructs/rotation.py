"""Rotation of a stack's keys: one function, a rotation schedule for each secret, and a schedule that revokes
replaced keys after their grace period."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs
from aws_cdk import Duration, Stack
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct, IDependable

from lambdas import contract
from lambdas.shared.settings import RotationSettings
from stacks.constructs.function import WITHOUT_DEAD_LETTERS, FunctionSchedule, PythonFunction
from stacks.constructs.mail import alarm_on_dead_letters, create_dead_letter_queue, find_alarm_topic
from stacks.constructs.runtime import BadProps, Runtime
from stacks.constructs.secrets import Secret, StackSecrets
from stacks.constructs.statements import Statement, acknowledge, allow
from stacks.constructs.vendor import VendorProvider, may_read_states

_STEPS: Final = (
    "secretsmanager:DescribeSecret",
    "secretsmanager:GetSecretValue",
    "secretsmanager:PutSecretValue",
    "secretsmanager:UpdateSecretVersionStage",
    "secretsmanager:ListSecretVersionIds",
)
#: The window in which a rotation may start.
_WINDOW: Final = "4h"
#: The longest that a key may be used.
_LONGEST_DAYS: Final = 365
#: When replaced keys are revoked, if their grace period is over. What a failed call left, the next one does
#: six hours later.
_REVOKE: Final = "15 0/6 * * ? *"


class KeyRotation(Construct):
    """Rotates keys of a vendor, or keys that no vendor has: these have no `provider`. `settings` says how the
    function reaches the vendor.

    Of each secret, `keep` keys are valid between two rotations; a replaced key is revoked after `grace_days`.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        runtime: Runtime,
        secrets: StackSecrets,
        provider: VendorProvider | None,
        settings: RotationSettings,
        keep: int = contract.KEYS_KEPT,
        grace_days: int = int(contract.GRACE_DAYS),
        statements: Sequence[Statement] = (),
    ) -> None:
        super().__init__(scope, id)
        self._grace_days = grace_days
        dead_letters = create_dead_letter_queue(self, "Undelivered")
        alarm_on_dead_letters(
            self,
            "UndeliveredAlarm",
            queue=dead_letters,
            topic=find_alarm_topic(self, "AlarmTopic", runtime),
            name=f"{self._alarm_prefix}RevocationsUndelivered",
            what="A call that revokes replaced keys",
        )
        self._function = PythonFunction(
            self,
            "Function",
            runtime=runtime,
            handler=contract.ROTATE,
            purpose=f"{id}: replaces keys in four steps",
            environment=attrs.evolve(
                settings,
                keep=str(keep),
                grace_days=str(grace_days),
                state_table=provider.states.table_name if provider else "",
            ).to_environment(),
            # To compare the organization or account of each login with that of the objects.
            statements=[
                allow("RotateOwnSecrets", _STEPS, secrets.arns),
                secrets.may_use_key(),
                *([may_read_states(provider.states.table_arn)] if provider else []),
                *statements,
            ],
            timeout_seconds=contract.ROTATION_TIMEOUT_SECONDS,
        )
        acknowledge(
            self._function,
            "Secrets Manager repeats a rotation that failed, and the next scheduled call revokes what a "
            "failed one left; an alarm reports each failure. A kept event would name a rotation that ended.",
            *WITHOUT_DEAD_LETTERS,
        )
        self._revocation = FunctionSchedule(
            self,
            "Revocation",
            function=self._function,
            cron=_REVOKE,
            purpose="Revokes replaced keys when their grace is over",
            dead_letters=dead_letters,
            event={"operation": contract.REVOKE_EXPIRED, "secrets": secrets.arns},
        )

    @property
    def _alarm_prefix(self) -> str:
        """Return the beginning of an alarm's name. Another provider of the stack has a rotation too."""
        stack = Stack.of(self)
        parents = self.node.path.removeprefix(stack.node.path).split("/")[:-1]
        return f"{stack.stack_name}-{''.join(parents)}"

    def rotate(self, secret: Secret, *filled_by: IDependable, every: Duration) -> None:
        """Rotate a secret after `filled_by`: before, there is no key to replace, or no permission to replace
        it.

        Raises BadProps unless `every` is whole days, and more than the days of grace: the next rotation needs
        the slot of the replaced key.
        """
        hours = every.to_hours()
        if hours % 24 or not self._grace_days * 24 < hours <= _LONGEST_DAYS * 24:
            raise BadProps(
                f"{secret.name} can't rotate every {hours:g} hours: say whole days, more than "
                f"{self._grace_days}, for which a replaced key stays valid, and at most {_LONGEST_DAYS}"
            )
        permission = lambda_.CfnPermission(
            self,
            f"{secret.id}Permission",
            action="lambda:InvokeFunction",
            function_name=self._function.arn,
            principal="secretsmanager.amazonaws.com",
            source_account=Stack.of(self).account,
            source_arn=secret.arn,
        )
        schedule = secretsmanager.CfnRotationSchedule(
            self,
            secret.id,
            secret_id=secret.arn,
            rotation_lambda_arn=self._function.arn,
            rotate_immediately_on_update=False,
            rotation_rules=secretsmanager.CfnRotationSchedule.RotationRulesProperty(
                schedule_expression=f"rate({hours // 24:g} days)", duration=_WINDOW
            ),
        )
        schedule.node.add_dependency(permission, *filled_by)
        self._revocation.node.add_dependency(schedule)
