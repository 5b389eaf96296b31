"""Rules between the keys of a deployment file, and between it and the files that it names.

A rule yields (key, what is wrong).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from config.deployments import validation
from config.deployments.account_rules import (
    buckets_are_created_or_exist,
    keys_are_in_region,
    network_is_complete,
)
from config.deployments.confluent_model import Tableflow
from config.deployments.existing_rules import (
    errors_have_a_topic_of_their_own,
    existing_cluster_has_no_test_data,
    existing_cluster_is_not_changed,
    existing_topics_are_not_changed,
    somebody_may_create_catalog_integration,
)
from config.deployments.export_rules import (
    exports_fit_into_policies,
    exports_match_topics,
    exports_run_again_for_each_window,
    linked_recipients_fit_into_topics,
    links_open_nothing_personal,
    rows_outlive_windows,
)
from config.deployments.model import Deployment, to_pascal_case
from config.deployments.ownership_rules import (
    adopted_objects_are_declared,
    dropped_tables_have_no_readers,
    statements_undo_only_their_table,
)
from config.deployments.people_rules import (
    aggregates_in_snowflake_have_names,
    people_in_athena_see_columns_only,
    people_in_snowflake_are_named_once,
    views_have_a_schema_of_their_own,
)
from config.deployments.source_rules import source_is_only_read, tables_have_one_origin
from config.deployments.sources import Sources
from config.deployments.topic_rules import (
    schemas_exist,
    statements_exist,
    storage_is_readable,
    topics_have_one_writer,
    write_modes_match_cleanup_policies,
)

Finding = tuple[str, str]
_MULTI_ZONE_ECKU: Final = 2
#: Tags that every resource gets.
OWN_TAGS: Final = ("project", "stage", "owner")
_MOST_TAGS: Final = 40


def names_are_unique(deployment: Deployment, sources: Sources) -> Iterator[Finding]:
    """The names of topics, statements, exports and Snowflake tables are unique.
    No two topics, statements or exports become one id in the templates, as `trades_2` and `trades2` both
    become `Trades2`.
    """
    yield from _find_duplicates("topics", "name", (topic.name for topic in deployment.topics))
    yield from _find_duplicates("statements", "name", (statement.name for statement in deployment.statements))
    yield from _find_duplicates("exports", "contract", (export.contract for export in deployment.exports))
    snowflake_tables = []
    for topic in deployment.topics:
        table = topic.tableflow.snowflake_table if topic.tableflow else None
        snowflake_tables.append((table or "").upper())
    yield from _find_duplicates("topics", "tableflow.snowflake_table", snowflake_tables)
    yield from _find_same_ids("topics", "name", [topic.name for topic in deployment.topics])
    yield from _find_same_tables(deployment)
    yield from _find_same_ids("statements", "name", [statement.name for statement in deployment.statements])
    yield from _find_same_ids("exports", "contract", [export.contract for export in deployment.exports])


def tags_are_allowed(deployment: Deployment, sources: Sources) -> Iterator[Finding]:
    """No tag is called `project`, `stage` or `owner`, which Lakeferry sets, or begins with `aws:`. Names of
    tags have letters, digits, blanks and . : / = + @ _ -, and differ in more than capitals.
    """
    tags = deployment.identity.tags
    first: dict[str, str] = {}
    for name in tags:
        if wrong := validation.tag_name(name):
            yield f"deployment.tags.{name}", wrong
        if (same := first.setdefault(name.lower(), name)) != name:
            yield (
                f"deployment.tags.{name}",
                f"differs from {same} in capitals only, and IAM takes both for one tag. Remove one",
            )
        if name.lower() in OWN_TAGS or name.lower().startswith("aws:"):
            yield f"deployment.tags.{name}", "is taken: Lakeferry sets this tag, or it is AWS's own"
    if len(tags) > _MOST_TAGS:
        yield (
            "deployment.tags",
            f"there are {len(tags)}, and AWS allows {_MOST_TAGS} besides those that Lakeferry sets",
        )


def environment_has_id_and_name(deployment: Deployment, sources: Sources) -> Iterator[Finding]:
    """`environment_id` and `environment_name` are both set, or neither."""
    confluent = deployment.confluent
    if confluent is not None and bool(confluent.environment_id) != bool(confluent.environment_name):
        yield (
            "confluent.environment_id",
            "and environment_name go together: set both for an existing environment, neither for a new one",
        )


def zones_have_units(deployment: Deployment, sources: Sources) -> Iterator[Finding]:
    """`max_ecku` is 2 at least where `availability` is MULTI_ZONE.

    Confluent's API refuses less (cmk/v2, max_ecku): a cluster of high availability needs two units.
    """
    confluent = deployment.confluent
    if (
        confluent is not None
        and confluent.availability == "MULTI_ZONE"
        and confluent.max_ecku is not None
        and confluent.max_ecku < _MULTI_ZONE_ECKU
    ):
        yield (
            "confluent.max_ecku",
            f"is {confluent.max_ecku}, and a cluster of MULTI_ZONE needs {_MULTI_ZONE_ECKU} at least",
        )


def snowflake_can_read_tables(deployment: Deployment, sources: Sources) -> Iterator[Finding]:
    """A table in Snowflake needs `[snowflake]`, Glue and write mode APPEND."""
    for index, topic in enumerate(deployment.topics):
        if topic.tableflow and topic.tableflow.snowflake_table:
            yield from (
                (f"topics[{index}].tableflow.snowflake_table", why)
                for why in _list_obstacles(deployment, topic.tableflow)
            )
    if deployment.uses_snowflake and not deployment.tables_in_glue:
        yield (
            "snowflake",
            "has no tables to read: no topic is a table in Glue. Set enabled = false, or add "
            "[topics.tableflow]",
        )


def snowflake_names_differ_from_the_deployers(deployment: Deployment, sources: Sources) -> Iterator[Finding]:
    """User and warehouse of the readers aren't the deployer's."""
    if deployment.snowflake is None:
        return
    snowflake = deployment.snowflake
    for key, readers, deployers in (
        ("user_name", snowflake.user_name, snowflake.user),
        ("warehouse", snowflake.warehouse, snowflake.deployer_warehouse),
    ):
        if readers and readers.upper() == deployers.upper():
            yield (
                f"snowflake.{key}",
                f"{readers} is the deployer's, which exists already and stays after `lakeferry destroy`",
            )


def mails_reach_somebody_once(deployment: Deployment, sources: Sources) -> Iterator[Finding]:
    """`engineers` has an address, and no list has an address twice."""
    if not deployment.alerts.engineers:
        yield "alerts.engineers", "is empty: alarms and the AWS budget need at least one address"
    yield from _find_same_addresses("alerts.engineers", deployment.alerts.engineers)
    for index, export in enumerate(deployment.exports):
        yield from _find_same_addresses(f"exports[{index}].recipients", export.recipients)


def identity_covers_sender(deployment: Deployment, sources: Sources) -> Iterator[Finding]:
    """The identity of `[mail]` is the sender's address, its domain, or a domain above that."""
    mail = deployment.mail
    if mail is None:
        return
    identity = mail.verified_identity
    domain = mail.address.rpartition("@")[2].lower()
    if identity == mail.address or f".{domain}".endswith(f".{identity.lower()}"):
        return
    yield (
        "mail.identity",
        f"{identity} does not cover the sender {mail.address}. Name the address or its domain, or "
        "leave it out",
    )


def budget_exists_in_region(deployment: Deployment, sources: Sources) -> Iterator[Finding]:
    """`budget` isn't true in a region in which CloudFormation has no budgets."""
    region = deployment.aws.region
    if deployment.alerts.budget and region in validation.NO_BUDGETS:
        yield (
            "alerts.budget",
            f"can't be true: CloudFormation has no budgets in {region}. Leave it out; AWS Budgets in the "
            "console work for the whole account",
        )


def boundary_is_in_account(deployment: Deployment, sources: Sources) -> Iterator[Finding]:
    """`permissions_boundary` is a policy of the account that `account` names, or AWS's own."""
    boundary = deployment.aws.permissions_boundary
    account = deployment.aws.account
    if boundary and account and boundary.split(":")[4] not in (account, "aws"):
        yield (
            "aws.permissions_boundary",
            f"is a policy of another account, and the deployment is for {account}",
        )


def grace_is_shorter_than_rotation(deployment: Deployment, sources: Sources) -> Iterator[Finding]:
    """`grace_days` is less than `every_days`."""
    rotation = deployment.rotation
    if rotation.grace_days >= rotation.every_days:
        yield (
            "rotation.grace_days",
            f"must be less than every_days ({rotation.every_days}): the next rotation needs the slot of "
            "the replaced key",
        )


Rule = Callable[[Deployment, Sources], Iterable[Finding]]
RULES: Final[tuple[Rule, ...]] = (
    tables_have_one_origin,
    source_is_only_read,
    names_are_unique,
    tags_are_allowed,
    environment_has_id_and_name,
    existing_cluster_is_not_changed,
    existing_topics_are_not_changed,
    existing_cluster_has_no_test_data,
    somebody_may_create_catalog_integration,
    errors_have_a_topic_of_their_own,
    zones_have_units,
    topics_have_one_writer,
    statements_exist,
    statements_undo_only_their_table,
    dropped_tables_have_no_readers,
    adopted_objects_are_declared,
    schemas_exist,
    write_modes_match_cleanup_policies,
    storage_is_readable,
    snowflake_can_read_tables,
    snowflake_names_differ_from_the_deployers,
    people_in_snowflake_are_named_once,
    aggregates_in_snowflake_have_names,
    views_have_a_schema_of_their_own,
    people_in_athena_see_columns_only,
    exports_match_topics,
    exports_fit_into_policies,
    mails_reach_somebody_once,
    identity_covers_sender,
    budget_exists_in_region,
    boundary_is_in_account,
    network_is_complete,
    keys_are_in_region,
    buckets_are_created_or_exist,
    grace_is_shorter_than_rotation,
    rows_outlive_windows,
    exports_run_again_for_each_window,
    links_open_nothing_personal,
    linked_recipients_fit_into_topics,
)
#: For commands that write the schemas: contracts can't be checked before.
RULES_WITHOUT_SCHEMAS: Final = tuple(rule for rule in RULES if rule is not exports_match_topics)


def _find_duplicates(table: str, key: str, names: Iterable[str]) -> Iterator[Finding]:
    seen: set[str] = set()
    for index, name in enumerate(names):
        if name and name in seen:
            yield f"{table}[{index}].{key}", f"{name} is used twice"
        seen.add(name)


def _find_same_ids(table: str, key: str, names: Iterable[str]) -> Iterator[Finding]:
    seen: dict[str, str] = {}
    for index, name in enumerate(names):
        first = seen.setdefault(to_pascal_case(name), name)
        if first != name:
            same = f"become the same id ({to_pascal_case(name)}) in the templates"
            yield f"{table}[{index}].{key}", f"{name} and {first} {same}. Rename one"


def _find_same_tables(deployment: Deployment) -> Iterator[Finding]:
    first: dict[str, str] = {}
    for index, topic in enumerate(deployment.topics):
        same = first.setdefault(topic.table, topic.name)
        if same != topic.name:
            yield (
                f"topics[{index}].name",
                f"{topic.name} and {same} differ in capitals only, and would be one table ({topic.table}) in "
                "Glue. Keep one",
            )


def _find_same_addresses(key: str, addresses: Iterable[str]) -> Iterator[Finding]:
    seen: set[str] = set()
    for address in addresses:
        if address.lower() in seen:
            yield key, f"has {address} twice. Remove one"
        seen.add(address.lower())


def _list_obstacles(deployment: Deployment, table: Tableflow) -> Iterator[str]:
    if not deployment.uses_snowflake:
        yield "there is no [snowflake], or it is not enabled"
    if not table.in_glue:
        yield "Snowflake finds tables through Glue, and this one is not in Glue"
    if table.write_mode == "UPSERT":
        yield "Tableflow may write equality deletes to a table of upserts, and Snowflake can't read those"
