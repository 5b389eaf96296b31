"""Removes what is left over in AWS outside of stacks. What is gone already counts as removed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import attrs
from botocore.exceptions import ClientError

from lakeferry.deployment.context import DeploymentContext
from lakeferry.inventory import Item
from lambdas.custom_resources.cleanup import Cleaner

#: Days for which AWS keeps a key of KMS, or a pseudonymisation key, that was deleted: the fewest that it allows.
_DAYS: Final = 7
_GONE: Final = ("NotFound", "NoSuch", "DoesNotExist", "NonExistent", "NonExistentQueue", "NotFoundException")


@attrs.frozen
class Aws:
    """`gone` may be asked again and again. Raises ClientError, BotoCoreError, LakeferryError."""

    ctx: DeploymentContext

    def gone(self, item: Item) -> bool:
        try:
            return _REMOVED[item.kind](self, item) is not False
        except ClientError as error:
            code = str(error.response.get("Error", {}).get("Code", ""))
            if any(sign in code for sign in _GONE):
                return True
            raise

    def _client(self, service: str) -> Any:
        return self.ctx.client(service)

    @property
    def _leftovers(self) -> Cleaner:
        return Cleaner(self.ctx.client, self.ctx.account, self.ctx.deadline)

    def _bucket(self, item: Item) -> bool:
        if not self._leftovers.bucket(item.name):
            return False
        self._client("s3").delete_bucket(Bucket=item.name, ExpectedBucketOwner=self.ctx.account)
        return True

    def _database(self, item: Item) -> bool:
        return self._leftovers.glue_database(item.name)

    def _pseudonyms(self, item: Item) -> None:
        """It can be had back for a week: what it has made of names can't be read without it."""
        self._client("secretsmanager").delete_secret(SecretId=item.id, RecoveryWindowInDays=_DAYS)

    def _key(self, item: Item) -> None:
        self._client("kms").schedule_key_deletion(KeyId=item.id, PendingWindowInDays=_DAYS)

    def _role(self, item: Item) -> None:
        iam = self._client("iam")
        for page in iam.get_paginator("list_attached_role_policies").paginate(RoleName=item.name):
            for policy in page["AttachedPolicies"]:
                iam.detach_role_policy(RoleName=item.name, PolicyArn=policy["PolicyArn"])
        for page in iam.get_paginator("list_role_policies").paginate(RoleName=item.name):
            for name in page["PolicyNames"]:
                iam.delete_role_policy(RoleName=item.name, PolicyName=name)
        iam.delete_role(RoleName=item.name)

    def _rule(self, item: Item) -> None:
        events = self._client("events")
        ids = [one["Id"] for one in events.list_targets_by_rule(Rule=item.name)["Targets"]]
        if ids:
            events.remove_targets(Rule=item.name, Ids=ids)
        events.delete_rule(Name=item.name)


def _call(service: str, operation: str, parameter: str, **more: Any) -> Callable[[Aws, Item], Any]:
    """One call with the item's id."""

    def remove(aws: Aws, item: Item) -> None:
        getattr(aws.ctx.client(service), operation)(**{parameter: item.id}, **more)

    return remove


def _schedule(aws: Aws, item: Item) -> None:
    aws.ctx.client("scheduler").delete_schedule(Name=item.name, GroupName=item.where[0])


def _table(aws: Aws, item: Item) -> None:
    aws.ctx.client("glue").delete_table(DatabaseName=item.where[0], Name=item.name)


def _alarm(aws: Aws, item: Item) -> None:
    aws.ctx.client("cloudwatch").delete_alarms(AlarmNames=[item.name])


def _dashboard(aws: Aws, item: Item) -> None:
    aws.ctx.client("cloudwatch").delete_dashboards(DashboardNames=[item.name])


def _budget(aws: Aws, item: Item) -> None:
    aws.ctx.client("budgets").delete_budget(AccountId=aws.ctx.account, BudgetName=item.name)


#: What removes each kind, in the order in which they let go of one another. False: there is more to do.
_REMOVED: Final[dict[str, Callable[[Aws, Item], Any]]] = {
    "schedule": _schedule,
    "schedule_group": _call("scheduler", "delete_schedule_group", "Name"),
    "event_rule": Aws._rule,
    "glue_job": _call("glue", "delete_job", "JobName"),
    "glue_security_configuration": _call("glue", "delete_security_configuration", "Name"),
    "state_machine": _call("stepfunctions", "delete_state_machine", "stateMachineArn"),
    "function": _call("lambda", "delete_function", "FunctionName"),
    "alarm": _alarm,
    "dashboard": _dashboard,
    "budget": _budget,
    "topic": _call("sns", "delete_topic", "TopicArn"),
    "queue": _call("sqs", "delete_queue", "QueueUrl"),
    "athena_named_query": _call("athena", "delete_named_query", "NamedQueryId"),
    "athena_workgroup": _call("athena", "delete_work_group", "WorkGroup", RecursiveDeleteOption=True),
    "glue_table": _table,
    "glue_database": Aws._database,
    "bucket": Aws._bucket,
    "dynamodb_table": _call("dynamodb", "delete_table", "TableName"),
    # As CloudFormation deletes them: a name that is kept for recovery could not be used again for weeks.
    "secret": _call("secretsmanager", "delete_secret", "SecretId", ForceDeleteWithoutRecovery=True),
    "pseudonymisation_secret": Aws._pseudonyms,
    "role": Aws._role,
    "log_group": _call("logs", "delete_log_group", "logGroupName"),
    "kms_key": Aws._key,
    "pseudonymisation_kms_key": Aws._key,
}
ORDER: Final = tuple(_REMOVED)
