"""Rules between the keys of a deployment file, and between it and the files that it names.

A rule yields (key, what is wrong).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from config.deployments import validation
from config.deployments.model import Deployment, Tableflow, Topic, pascal_case
from config.deployments.ownership_rules import adopted_objects_are_declared, statements_undo_only_their_table
from config.deployments.schedules import more_often, runs_once
from config.deployments.sources import Missing, Sources
from config.exports import cron, windows
from config.forms import zone_problem
from config.toml_model import BadFile

Finding = tuple[str, str]
_MULTI_ZONE_ECKU: Final = 2
#: Tags that every resource gets.
OWN_TAGS: Final = ("project", "stage", "owner")
_MOST_TAGS: Final = 40
#: A test in tests/infra/test_intent.py compares the templates of as many with the limits of AWS.
_MOST_EXPORTS: Final = 50
#: Days for the run itself, which comes after the window's end.
_RUN_DAYS: Final = 1


def names_are_unique(deployment: Deployment, sources: Sources) -> Iterator[Finding]:
    yield from _duplicates("topics", "name", (topic.name for topic in deployment.topics))
    yield from _duplicates("statements", "name", (statement.name for statement in deployment.statements))
    yield from _duplicates("exports", "contract", (export.contract for export in deployment.exports))
    shown = [
        (topic.tableflow.snowflake_table or "").upper() if topic.tableflow else ""
        for topic in deployment.topics
    ]
    yield from _duplicates("topics", "tableflow.snowflake_table", shown)
    buckets = deployment.aws.tableflow_bucket, deployment.aws.lake_bucket
    if buckets[0] and buckets[0] == buckets[1]:
        yield "aws.lake_bucket", "is Tableflow's bucket too, and nobody else may write to that"
    yield from _same_ids("topics", "name", [topic.name for topic in deployment.topics])
    yield from _same_ids("statements", "name", [statement.name for statement in deployment.statements])
    yield from _same_ids("exports", "contract", [export.contract for export in deployment.exports])


def tags_are_allowed(deployment: Deployment, sources: Sources) -> Iterator[Finding]:
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
    confluent = deployment.confluent
    if bool(confluent.environment_id) != bool(confluent.environment_name):
        yield (
            "confluent.environment_id",
            "and environment_name go together: set both for an existing environment, neither for a new one",
        )


def zones_have_units(deployment: Deployment, sources: Sources) -> Iterator[Finding]:
    """Confluent's API refuses it (cmk/v2, max_ecku): a cluster of high availability needs two units."""
    confluent = deployment.confluent
    if (
        confluent.availability == "MULTI_ZONE"
        and confluent.max_ecku is not None
        and confluent.max_ecku < _MULTI_ZONE_ECKU
    ):
        yield (
            "confluent.max_ecku",
            f"is {confluent.max_ecku}, and a cluster of MULTI_ZONE needs {_MULTI_ZONE_ECKU} at least",
        )


def topics_have_one_writer(deployment: Deployment, sources: Sources) -> Iterator[Finding]:
    known = {statement.name for statement in deployment.statements}
    written: dict[str, str] = {}
    for index, topic in enumerate(deployment.topics):
        if topic.statement is None:
            continue
        if topic.statement not in known:
            yield f"topics[{index}].statement", f"{topic.statement} is not a statement of this file"
        elif topic.statement in written:
            first = written[topic.statement]
            yield (
                f"topics[{index}].statement",
                f"{topic.statement} is the statement of topic {first} already, and it creates one topic",
            )
        elif (table := _table(topic.statement, sources)) not in ("", topic.name):
            yield (
                f"topics[{index}].name",
                f"{topic.name} must be {table}, the table that project/flink/{topic.statement}/create.sql "
                "creates",
            )
        written.setdefault(topic.statement, topic.name)
        if topic.datagen:
            yield (
                f"topics[{index}].datagen",
                f"{topic.name} is written by statement {topic.statement}; only one can write it",
            )
        if topic.config:
            yield (
                f"topics[{index}].config",
                f"statement {topic.statement} creates {topic.name}; set this in its create.sql",
            )


def statements_exist(deployment: Deployment, sources: Sources) -> Iterator[Finding]:
    known = [statement.name for statement in deployment.statements]
    for index, statement in enumerate(deployment.statements):
        try:
            sources.statement(statement.name)
        except Missing as missing:
            yield f"statements[{index}].name", str(missing)
        for name in statement.after:
            if name not in known[:index]:
                yield f"statements[{index}].after", f"{name} is not a statement above this one"


def schemas_exist(deployment: Deployment, sources: Sources) -> Iterator[Finding]:
    for index, topic in enumerate(deployment.topics):
        key = f"topics[{index}]"
        try:
            schema = sources.schema(topic)
        except Missing as missing:
            yield f"{key}.schema", str(missing)
            continue
        if schema is None and topic.datagen == "schema":
            yield (
                f"{key}.datagen",
                f"data is made from the topic's schema, and project/topics/{topic.name}.avsc doesn't exist",
            )
        elif schema is None and topic.tableflow and not topic.datagen and not topic.statement:
            yield (
                f"{key}.tableflow",
                f"{topic.name} has no schema, and Tableflow refuses such a topic. "
                f"Add project/topics/{topic.name}.avsc, or datagen",
            )


def write_modes_match_cleanup_policies(deployment: Deployment, sources: Sources) -> Iterator[Finding]:
    for index, topic in enumerate(deployment.topics):
        if topic.tableflow is None:
            continue
        key = f"topics[{index}].tableflow.write_mode"
        options = _options(topic, sources)
        if options.get("changelog.mode") == "retract":
            yield (
                key,
                f"statement {topic.statement} writes a changelog of retractions, which Tableflow refuses",
            )
            continue
        policy = _policy(topic, options)
        mode = "UPSERT" if "compact" in policy or options.get("changelog.mode") == "upsert" else "APPEND"
        if mode != topic.tableflow.write_mode:
            yield (
                key,
                f"can't be {topic.tableflow.write_mode}: with cleanup.policy={policy} Tableflow writes in "
                f"mode {mode}",
            )


def storage_is_readable(deployment: Deployment, sources: Sources) -> Iterator[Finding]:
    for index, topic in enumerate(deployment.topics):
        if (table := topic.tableflow) is None:
            continue
        if table.storage == "managed" and table.in_glue:
            yield (
                f"topics[{index}].tableflow.in_glue",
                "must be false: Tableflow registers no table of managed storage in Glue. Or use storage = "
                '"own_bucket"',
            )
        if "DELTA" in table.formats:
            yield (
                f"topics[{index}].tableflow.formats",
                "can't have DELTA: Glue, Athena, exports and Snowflake read the Iceberg table, and nothing "
                "that is deployed reads a Delta table. Leave formats out",
            )
        shown = [topic.name for topic in deployment.tables_in_glue]
        if table.storage == "own_bucket" and not table.in_glue and shown:
            yield (
                f"topics[{index}].tableflow.in_glue",
                f"can't be false while {shown[0]} is in Glue: Tableflow's catalog integration is the whole "
                "cluster's, and shows every table in your bucket. Set it to false for all topics, or leave "
                "it out",
            )


def snowflake_can_read_tables(deployment: Deployment, sources: Sources) -> Iterator[Finding]:
    for index, topic in enumerate(deployment.topics):
        if topic.tableflow and topic.tableflow.snowflake_table:
            yield from (
                (f"topics[{index}].tableflow.snowflake_table", why)
                for why in _not_shown(deployment, topic.tableflow)
            )
    if deployment.uses_snowflake and not deployment.tables_in_glue:
        yield (
            "snowflake",
            "has no tables to read: no topic is a table in Glue. Set enabled = false, or add "
            "[topics.tableflow]",
        )


def snowflake_names_differ_from_the_deployers(deployment: Deployment, sources: Sources) -> Iterator[Finding]:
    if deployment.snowflake is None:
        return
    given = deployment.snowflake
    for key, own, deployers in (
        ("user_name", given.user_name, given.user),
        ("warehouse", given.warehouse, given.deployer_warehouse),
    ):
        if own and own.upper() == deployers.upper():
            yield (
                f"snowflake.{key}",
                f"{own} is the deployer's, which exists already and stays after `lakeferry destroy`",
            )


def exports_match_topics(deployment: Deployment, sources: Sources) -> Iterator[Finding]:
    topics = {topic.name: topic for topic in deployment.topics}
    for index, export in enumerate(deployment.exports):
        plain = sources.plain_contract(export.contract)
        topic = topics.get(plain.source.topic) if plain else None
        if plain and topic is None:
            yield (
                f"exports[{index}].contract",
                f"{export.contract} reads {plain.source.topic}, which is not a topic of this file",
            )
        elif topic and not (topic.tableflow and topic.tableflow.in_glue):
            yield (
                f"exports[{index}].contract",
                f"{export.contract} reads {topic.name}, which is not a table in Glue",
            )
        yield from (
            (f"exports[{index}].contract", message)
            for message in _mistakes(export.contract, topic, deployment, sources)
        )
        if plain and export.keep_days <= plain.window.restate_for_days:
            # A window without its files counts as damaged, and each run would publish it again.
            yield (
                f"exports[{index}].keep_days",
                f"{export.contract} would still check windows whose files were removed after "
                f"{export.keep_days} days (restate_for_days = {plain.window.restate_for_days}). Keep files "
                "for longer",
            )


def exports_fit_into_policies(deployment: Deployment, sources: Sources) -> Iterator[Finding]:
    """Limit the exports: SQS takes ten conditions in a policy, one for each rule of 16 exports, and IAM
    10,240 characters.
    """
    if len(deployment.exports) > _MOST_EXPORTS:
        yield (
            "exports",
            f"there are {len(deployment.exports)}, and a deployment can have {_MOST_EXPORTS}: the policies "
            "of the dead-letter queue and of the function that sends mails grow with each export, and AWS "
            "limits them. Put the others into a second deployment file",
        )


def mails_reach_somebody_once(deployment: Deployment, sources: Sources) -> Iterator[Finding]:
    if not deployment.alerts.engineers:
        yield "alerts.engineers", "is empty: alarms and the AWS budget need at least one address"
    yield from _same_addresses("alerts.engineers", deployment.alerts.engineers)
    for index, export in enumerate(deployment.exports):
        yield from _same_addresses(f"exports[{index}].recipients", export.recipients)


def budget_exists_in_region(deployment: Deployment, sources: Sources) -> Iterator[Finding]:
    region = deployment.aws.region
    if deployment.alerts.budget and region in validation.NO_BUDGETS:
        yield (
            "alerts.budget",
            f"can't be true: CloudFormation has no budgets in {region}. Leave it out; AWS Budgets in the "
            "console work for the whole account",
        )


def boundary_is_in_account(deployment: Deployment, sources: Sources) -> Iterator[Finding]:
    boundary = deployment.aws.permissions_boundary
    account = deployment.aws.account
    if boundary and account and boundary.split(":")[4] not in (account, "aws"):
        yield (
            "aws.permissions_boundary",
            f"is a policy of another account, and the deployment is for {account}",
        )


def grace_is_shorter_than_rotation(deployment: Deployment, sources: Sources) -> Iterator[Finding]:
    rotation = deployment.rotation
    if rotation.grace_days >= rotation.every_days:
        yield (
            "rotation.grace_days",
            f"must be less than every_days ({rotation.every_days}): the next rotation needs the slot of "
            "the replaced key",
        )


def rows_outlive_windows(deployment: Deployment, sources: Sources) -> Iterator[Finding]:
    """Require rows to be kept: a window that is published again after Tableflow removed rows would silently
    lack them.
    """
    topics = {topic.name: (index, topic) for index, topic in enumerate(deployment.topics)}
    for export in deployment.exports:
        contract = sources.plain_contract(export.contract)
        index, topic = topics.get(contract.source.topic, (0, None)) if contract else (0, None)
        if contract is None or topic is None or topic.tableflow is None or topic.tableflow.rows_days is None:
            continue
        length = windows.longest_days(contract.window.every)
        restated = contract.window.restate_for_days
        needed = length + restated + _RUN_DAYS
        if topic.tableflow.rows_days < needed:
            yield (
                f"topics[{index}].tableflow.rows_days",
                f"must be at least {needed}: export {export.contract} publishes a window of {length} days "
                f"again for {restated} days after its end (window.restate_for_days in "
                f"project/exports/{export.contract}.toml), and rows that Tableflow has removed by then "
                "would be missing from the file",
            )


def exports_run_again_for_each_window(deployment: Deployment, sources: Sources) -> Iterator[Finding]:
    """Require two runs before the next window ends: a run that fails, or finds that the table is behind, has
    no other retry.
    """
    for index, export in enumerate(deployment.exports):
        contract = sources.plain_contract(export.contract)
        if contract is None or cron.problem(export.cron) or zone_problem(export.zone):
            continue
        if runs_once(cron.parse(export.cron, export.zone), contract.window):
            yield (
                f"exports[{index}].cron",
                f"starts {export.contract} only once before its next window ends, so a window that fails "
                "or has to wait for data "
                "comes a whole window late. Start it more often, for example with "
                f'"{more_often(export.cron, contract.window)}"',
            )


RULES: Final[tuple[Callable[[Deployment, Sources], Iterable[Finding]], ...]] = (
    names_are_unique,
    tags_are_allowed,
    environment_has_id_and_name,
    zones_have_units,
    topics_have_one_writer,
    statements_exist,
    statements_undo_only_their_table,
    adopted_objects_are_declared,
    schemas_exist,
    write_modes_match_cleanup_policies,
    storage_is_readable,
    snowflake_can_read_tables,
    snowflake_names_differ_from_the_deployers,
    exports_match_topics,
    exports_fit_into_policies,
    mails_reach_somebody_once,
    budget_exists_in_region,
    boundary_is_in_account,
    grace_is_shorter_than_rotation,
    rows_outlive_windows,
    exports_run_again_for_each_window,
)


def _duplicates(table: str, key: str, names: Iterable[str]) -> Iterator[Finding]:
    seen: set[str] = set()
    for index, name in enumerate(names):
        if name and name in seen:
            yield f"{table}[{index}].{key}", f"{name} is used twice"
        seen.add(name)


def _same_ids(table: str, key: str, names: Iterable[str]) -> Iterator[Finding]:
    seen: dict[str, str] = {}
    for index, name in enumerate(names):
        first = seen.setdefault(pascal_case(name), name)
        if first != name:
            same = f"become the same id ({pascal_case(name)}) in the templates"
            yield f"{table}[{index}].{key}", f"{name} and {first} {same}. Rename one"


def _same_addresses(key: str, addresses: Iterable[str]) -> Iterator[Finding]:
    seen: set[str] = set()
    for address in addresses:
        if address.lower() in seen:
            yield key, f"has {address} twice. Remove one"
        seen.add(address.lower())


def _table(statement: str, sources: Sources) -> str:
    try:
        return sources.statement(statement).table
    except Missing:
        return ""


def _options(topic: Topic, sources: Sources) -> dict[str, str]:
    """Return the table options of the statement that creates the topic; none if there is no statement, or no
    file of it.
    """
    try:
        return sources.statement(topic.statement).options if topic.statement else {}
    except Missing:
        return {}


def _policy(topic: Topic, options: dict[str, str]) -> str:
    return (
        options.get("kafka.cleanup-policy", "delete")
        if topic.statement
        else topic.config.get("cleanup.policy", "delete")
    )


def _not_shown(deployment: Deployment, table: Tableflow) -> Iterator[str]:
    if not deployment.uses_snowflake:
        yield "there is no [snowflake], or it is not enabled"
    if not table.in_glue or table.storage == "managed":
        yield "Snowflake finds tables through Glue, and this one is not in Glue"
    if table.write_mode == "UPSERT":
        yield "Tableflow may write equality deletes to a table of upserts, and Snowflake can't read those"


def _mistakes(contract: str, topic: Topic | None, deployment: Deployment, sources: Sources) -> Iterator[str]:
    """Yield the mistakes of a contract's file.

    It is checked against the topic's schema if that can be read.
    """
    from config.deployments import flink_origins  # noqa: PLC0415 - importing sqlglot takes a while, and not every command has exports

    try:
        schema = sources.schema(topic) if topic else None
        schema = flink_origins.with_origins(schema, sources, deployment) if schema else None
    except Missing:
        schema = None
    if topic and topic.tableflow and schema is None:
        why = (
            f", because statement {topic.statement} creates it and Flink derives its schema"
            if topic.statement
            else ""
        )
        yield (
            f"columns can't be checked: topic {topic.name} has no schema file{why}. "
            f"Write the Avro schema of its values to project/topics/{topic.name}.avsc, "
            f"as Schema Registry has it for subject {topic.name}-value, or name a file with schema = …"
        )
    try:
        sources.contract(contract, schema)
    except BadFile as bad:
        yield from (f"{bad.name}, {problem}" for problem in bad.problems)
