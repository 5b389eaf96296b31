"""The objects of a deployment in AWS: its stacks, their resources, and resources outside of stacks that can
only be its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property, partial
from typing import Any, Final

import attrs
from botocore.exceptions import BotoCoreError, ClientError

from lakeferry.deployment import stacks
from lakeferry.deployment.context import DeploymentContext
from lakeferry.inventory import aws_kinds
from lakeferry.inventory.aws_kinds import AwsKind
from lakeferry.inventory.aws_listing import AwsResource, Tags, list_pages
from lakeferry.inventory.known import read_known
from lakeferry.inventory.model import AWS, ORPHAN, Item, Ownership, Verdict, orphaned, retained, unknown
from lakeferry.inventory.ownership import StackHistory, decide_by_stack, stack_items
from lakeferry.inventory.recognition import matches
from lambdas import contract
from lambdas.custom_resources.cleanup import is_table_in, list_own_tables, lists_all_tables
from lambdas.shared.aws import answer_to
from lambdas.shared.errors import LakeferryError
from lambdas.shared.redaction import redact

_BY_HAND: Final = "created manually: the deployment file names it"
_ITS_KEY: Final = "encrypts the secret that the deployment file names"
_KEEP: Final = 'on_destroy = "keep" in the deployment file'
_NOT_PROVED: Final = (
    "others use its bucket too, and nothing proves that this deployment enabled Tableflow for it: it stays"
)
_UNVERIFIED: Final = "name matches this deployment, but ownership can't be verified; check it manually"
_MAY_HIDE: Final = (
    "Lake Formation may hide tables in it: if a data lake administrator finds it empty, delete it manually"
)
_TAGGED: Final = "has the deployment's tags, but no name of the deployment; check it manually"
_GIVEN_DATABASE: Final = "an integration of somebody else fills it: confluent.glue_database"
_OF_FUNCTION: Final = "/aws/lambda/"
_STACK_NAME: Final = "aws:cloudformation:stack-name"
_STACK_ID: Final = "aws:cloudformation:stack-id"
#: Prefix of the physical ids of the resources that empty a Glue database when their stack is deleted.
_CLEANED: Final = f"{contract.CLEANUP_ID}:glue_database:"
_EMPTIED: Final = f"{contract.CLEANUP_ID}:bucket:"
_CLUSTER: Final = re.compile(r"lkc-[a-z0-9]+")


def list_items(ctx: DeploymentContext, history: StackHistory) -> list[Item]:
    """Return all items, with one of verdict UNKNOWN for each kind that can't be listed.

    Raises CommandFailed.
    """
    listing = _Listing(ctx, history)
    items = list(stack_items(ctx, history))
    for kind in listing.kinds:
        items += _list_guarded(kind.name, partial(listing.of_kind, kind))
    buckets = [item.name for item in items if item.kind == "bucket"]
    items += listing.existing_buckets()
    aggregates = [item for item in items if item.kind == "glue_database" and item.name]
    items += _list_guarded("glue_table", lambda: listing.glue_tables(aggregates, buckets))
    items += _list_guarded("tagged", lambda: listing.tagged(items))
    return items


def _list_guarded(kind: str, read: Callable[[], Iterator[Item]]) -> list[Item]:
    try:
        return list(read())
    except ClientError as error:
        return [unknown(AWS, kind, redact(answer_to(error)))]
    except BotoCoreError as error:
        return [unknown(AWS, kind, type(error).__name__)]
    except LakeferryError as error:
        return [unknown(AWS, kind, error.what)]


@attrs.frozen
class _Listing:
    ctx: DeploymentContext
    history: StackHistory

    @cached_property
    def kinds(self) -> list[AwsKind]:
        return aws_kinds.list_aws_kinds(self.ctx.deployment)

    def of_kind(self, kind: AwsKind) -> Iterator[Item]:
        for resource in kind.find(self.ctx):
            resource_kind = next(
                (other_kind for other_kind in self.kinds if other_kind.name == resource.kind), kind
            )
            if ownership := self._decide_ownership(resource_kind, resource):
                yield ownership.item(AWS, resource_kind.name, resource.name, resource.id, resource.parents)

    def glue_tables(self, aggregates: list[Item], buckets: list[str]) -> Iterator[Item]:
        """Yield the tables of the aggregates' databases, and Tableflow's databases (named after Kafka
        clusters) with theirs.
        """
        for item in aggregates:
            for table in self._list_tables(item.name):
                yield attrs.evolve(
                    item, kind="glue_table", name=table["Name"], id=table["Name"], parents=(item.name,)
                )
        ownership = self._keep_data(self._own_by_part("confluent"))
        own_buckets = [*buckets, *self._list_emptied_buckets()]
        databases = [
            database["Name"]
            for page in list_pages(self.ctx, "glue", "get_databases")
            for database in page["DatabaseList"]
        ]
        for database in filter(_CLUSTER.fullmatch, databases):
            tables = list(self._list_tables(database))
            deployment_tables = [table for table in tables if self._is_own_table(table, own_buckets)]
            if not deployment_tables and not self._was_to_be_cleaned(database):
                continue
            foreign = [table["Name"] for table in tables if table not in deployment_tables]
            shared = retained(
                f"it also has tables that are not this deployment's: {', '.join(foreign)[:200]}"
            )
            if database in self._given_databases:
                of_database = retained(_GIVEN_DATABASE)
            else:
                of_database = shared if foreign else self._require_full_view(ownership)
            yield of_database.item(AWS, "glue_database", database)
            for table in deployment_tables:
                yield ownership.item(AWS, "glue_table", table["Name"], table["Name"], (database,))
        yield from self._list_doubtful_tables(databases)

    @cached_property
    def _given_databases(self) -> frozenset[str]:
        """The databases that an integration of somebody else fills, by the file and by the deployed stacks:
        the file may have been edited since.
        """
        outputs = [stack.outputs for stack in (*self.history.current, *self.history.deleted)]
        named = [output["GlueDatabase"] for output in outputs if "GlueDatabase" in output]
        return frozenset(filter(None, [self.ctx.deployment.existing_glue_database, *named]))

    def _list_doubtful_tables(self, databases: Iterable[str]) -> Iterator[Item]:
        """Yield the tables in a bucket that others use too which have a name of the file, and which perhaps
        somebody else's Tableflow writes.
        """
        bucket = self._shared_bucket
        if not bucket or not self.history.had(f"{self.ctx.deployment.prefix}-confluent"):
            return
        names = {topic.table for topic in self.ctx.deployment.tables_in_glue} - self._proved_tables
        for database in filter(_CLUSTER.fullmatch, databases):
            for table in self._list_tables(database):
                if table["Name"] in names and is_table_in(table, bucket):
                    yield retained(_NOT_PROVED).item(
                        AWS, "glue_table", table["Name"], table["Name"], (database,)
                    )

    def existing_buckets(self) -> Iterator[Item]:
        """Yield the buckets that the deployment uses and didn't create. What it wrote to them stays."""
        deployment = self.ctx.deployment
        if not self.history.had(f"{deployment.prefix}-data"):
            return
        if bucket := deployment.aws.existing_lake_bucket:
            why = f"it existed before. What the deployment wrote is below {deployment.lake_root}, and stays"
            yield retained(why).item(AWS, "bucket", bucket)
        if bucket := deployment.aws.existing_tableflow_bucket:
            why = "it existed before. The files of the deployment's tables stay in it"
            yield retained(why).item(AWS, "bucket", bucket)

    def _is_own_table(self, table: Mapping[str, Any], own_buckets: Iterable[str]) -> bool:
        """Return whether its files are in a bucket of the deployment. A bucket that exists may have tables of
        others: there, a resource of the deployment must have enabled Tableflow for it.
        """
        if any(is_table_in(table, bucket) for bucket in own_buckets):
            return True
        return table["Name"] in self._proved_tables and is_table_in(table, self._shared_bucket)

    @property
    def _shared_bucket(self) -> str:
        """Return the bucket of the tables that others may use too, "" if the deployment has its own."""
        return self.ctx.deployment.aws.existing_tableflow_bucket or ""

    @cached_property
    def _proved_tables(self) -> frozenset[str]:
        """The tables in that bucket for whose topics the deployment enabled Tableflow, as the states of its
        resources say. Raises LakeferryError.
        """
        proved: set[str] = set()
        for stack in self.history.current if self._shared_bucket else ():
            states = [resource.state for resource in read_known(self.ctx, stack) if resource.state]
            proved |= list_own_tables(states, self._shared_bucket)
        return frozenset(proved)

    def _require_full_view(self, ownership: Ownership) -> Ownership:
        """Return the ownership of a database that shows only the deployment's tables.

        Lake Formation may hide others in it.
        """
        is_left = ownership.verdict is Verdict.ORPHANED
        return retained(_MAY_HIDE) if is_left and not self._lists_all_tables else ownership

    @cached_property
    def _lists_all_tables(self) -> bool:
        return lists_all_tables(self.ctx.client("lakeformation"))

    def tagged(self, listed: list[Item]) -> Iterator[Item]:
        """Yield the resources with the deployment's tags that are of none of the kinds and in no stack."""
        deployment = self.ctx.deployment.identity
        filters = [
            {"Key": "project", "Values": [deployment.name]},
            {"Key": "stage", "Values": [deployment.stage]},
        ]
        in_stacks = {resource.physical_id for _, resource in self.history.resources()}
        known_ids = {item.id for item in listed} | {item.name for item in listed} | in_stacks
        for page in list_pages(self.ctx, "resourcegroupstaggingapi", "get_resources", TagFilters=filters):
            for mapping in page["ResourceTagMappingList"]:
                arn = mapping["ResourceARN"]
                name = re.split("[:/]", mapping["ResourceARN"])[-1]
                # The tagging API returns deleted resources for a while.
                is_deleted = any(
                    matches(kind.recognition.generated, name) or matches(kind.recognition.truncated, name)
                    for kind in self.kinds
                )
                if not is_deleted and not {arn, name, arn.split(":", 5)[5]} & known_ids:
                    yield retained(_TAGGED).item(AWS, arn.split(":")[2], name, arn)

    def _decide_ownership(self, kind: AwsKind, resource: AwsResource) -> Ownership | None:
        if kind.type == "AWS::SecretsManager::Secret" and resource.name in self._created_by_hand:
            return retained(_BY_HAND)
        if kind.type == "AWS::KMS::Key" and resource.id == self._key_of_pseudonym_secret:
            return retained(_ITS_KEY)
        ownership = self._find_in_stacks(kind, resource)
        if ownership is None or ownership.owner == ORPHAN:
            ownership = self._decide_outside_stacks(kind, resource, ownership)
        if ownership is None:
            return None
        return _mark_pending(kind, resource, self._keep_data(ownership) if kind.is_data else ownership)

    @property
    def _created_by_hand(self) -> list[str]:
        deployment = self.ctx.deployment
        names = [
            deployment.confluent.cloud_key_secret if deployment.confluent else None,
            deployment.aws.pseudonym_secret,
            deployment.snowflake.key_secret if deployment.snowflake else None,
        ]
        return [name for name in names if name]

    @cached_property
    def _key_of_pseudonym_secret(self) -> str:
        """Return the id of the secret's KMS key, "" for none.

        The key may have this deployment's tags, if it created the key.
        """
        client = self.ctx.client("secretsmanager")
        name = self.ctx.deployment.aws.pseudonym_secret
        try:
            key = client.describe_secret(SecretId=name).get("KmsKeyId", "") if name else ""
        except client.exceptions.ResourceNotFoundException:
            return ""
        return str(key).rpartition("/")[2]

    def _find_in_stacks(self, kind: AwsKind, resource: AwsResource) -> Ownership | None:
        """Return the ownership by the stacks.

        A log group that Lambda created has the owner of its function.
        """
        ownership = self.history.ownership(kind.type, resource.id)
        if ownership is None and resource.name.startswith(_OF_FUNCTION):
            return self.history.ownership("AWS::Lambda::Function", resource.name.removeprefix(_OF_FUNCTION))
        return ownership

    def _decide_outside_stacks(
        self, kind: AwsKind, resource: AwsResource, former: Ownership | None
    ) -> Ownership | None:
        """Decide by name, description and tags. `former` is the ownership of a resource that a stack had."""
        orphan = former or orphaned("no stack has it")
        recognition = kind.recognition
        if matches(recognition.generated, resource.name):
            return None if self._belongs_to_another(resource.tags()) else orphan
        if matches(recognition.truncated, resource.name):
            if self._belongs_to_another(resource.tags()):
                return None
            return orphan if former or self._is_tagged(resource.tags()) else retained(_UNVERIFIED)
        if matches(recognition.custom, resource.name):
            is_described = recognition.description and re.search(
                recognition.description, resource.description
            )
            if (is_described and not recognition.needs_tags) or self._is_tagged(resource.tags()):
                return orphan
            anybodys = recognition.custom == ".*"
            return None if anybodys or self._belongs_to_another(resource.tags()) else retained(_UNVERIFIED)
        return former

    def _is_tagged(self, tags: Tags) -> bool:
        deployment = self.ctx.deployment.identity
        has_deployment_tags = (tags.get("project"), tags.get("stage")) == (deployment.name, deployment.stage)
        return (has_deployment_tags or _STACK_NAME in tags) and not self._belongs_to_another(tags)

    def _belongs_to_another(self, tags: Tags) -> bool:
        """Return whether tags name another deployment, another stack, or a stack of another region."""
        deployment = self.ctx.deployment.identity
        stack = tags.get(_STACK_NAME, "")
        region = (tags.get(_STACK_ID) or ":::").split(":")[3]
        return (
            (tags.get("project", deployment.name), tags.get("stage", deployment.stage))
            != (deployment.name, deployment.stage)
            or (bool(stack) and stack not in stacks.list_names(self.ctx))
            or (bool(region) and region != self.ctx.region)
        )

    def _keep_data(self, ownership: Ownership) -> Ownership:
        """Return orphaned data as retained if the deployment file says to keep data."""
        keep = ownership.verdict is Verdict.ORPHANED and self.ctx.deployment.keeps_data
        return retained(_KEEP, ORPHAN) if keep else ownership

    def _own_by_part(self, part: str) -> Ownership:
        name = f"{self.ctx.deployment.prefix}-{part}"
        return next(
            (decide_by_stack(stack) for stack in self.history.current if stack.name == name),
            orphaned("no stack has it"),
        )

    def _list_tables(self, database: str) -> Iterator[dict[str, Any]]:
        client = self.ctx.client("glue")
        try:
            for page in client.get_paginator("get_tables").paginate(DatabaseName=database):
                yield from page["TableList"]
        except client.exceptions.EntityNotFoundException:
            return

    def _was_to_be_cleaned(self, database: str) -> bool:
        return any(
            resource.physical_id == f"{_CLEANED}{database}"
            for _, resource in self.history.resources(_CLEANED)
        )

    def _list_emptied_buckets(self) -> list[str]:
        """Return the buckets that stacks emptied.

        They may not exist any more, while tables with files in them do.
        """
        return [
            resource.physical_id.removeprefix(_EMPTIED) for _, resource in self.history.resources(_EMPTIED)
        ]


def _mark_pending(kind: AwsKind, resource: AwsResource, ownership: Ownership) -> Ownership:
    if not resource.pending:
        return ownership
    if kind.deletes_itself:
        return attrs.evolve(ownership, verdict=Verdict.RETAINED, why=f"pending deletion: {resource.pending}")
    if ownership.verdict is Verdict.ORPHANED:
        return attrs.evolve(
            ownership, why=f"pending deletion: {resource.pending}. Nothing else can have its name until then"
        )
    return ownership
