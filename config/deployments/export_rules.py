"""Rules about exports: their topics, their contracts and their schedules. They are rules like those of
rules.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from config.deployments.confluent_model import Topic
from config.deployments.model import Deployment
from config.deployments.shared_rules import find_rows_problem, find_schedule_problem
from config.deployments.sources import Missing, Sources
from config.toml_model import BadFile

Finding = tuple[str, str]
#: A test in tests/infra/test_intent.py compares the templates of as many with the limits of AWS.
_MOST_EXPORTS: Final = 50


def exports_match_topics(deployment: Deployment, sources: Sources) -> Iterator[Finding]:
    """The export's topic is in the file and a table in Glue or in Confluent's storage, and the contract fits
    the topic's schema.
    """
    topics = {topic.name: topic for topic in deployment.topics}
    for index, export in enumerate(deployment.exports):
        plain = sources.plain_contract(export.contract)
        topic = topics.get(plain.source.topic) if plain else None
        if plain and topic is None:
            yield (
                f"exports[{index}].contract",
                f"{export.contract} reads {plain.source.topic}, which is not a topic of this file",
            )
        elif topic and topic not in (*deployment.tables_in_glue, *deployment.managed_tables):
            yield (
                f"exports[{index}].contract",
                f"{export.contract} reads {topic.name}, which is no table that exports can read. Add "
                "[topics.tableflow] to the topic, without in_glue = false",
            )
        yield from (
            (f"exports[{index}].contract", message)
            for message in _list_mistakes(export.contract, topic, deployment, sources)
        )
        if plain and export.keep_days <= plain.window.restate_for_days:
            # A window without its files counts as damaged, and each run would publish it again.
            yield (
                f"exports[{index}].keep_days",
                f"{export.contract} would still check windows whose files were removed after "
                f"{export.keep_days} days (restate_for_days = {plain.window.restate_for_days}). Keep files "
                "for longer",
            )


def _list_mistakes(
    contract: str, topic: Topic | None, deployment: Deployment, sources: Sources
) -> Iterator[str]:
    """Yield the mistakes of a contract's file.

    It is checked against the topic's schema if that can be read.
    """
    from config.deployments import flink_origins, lineage  # noqa: PLC0415 - importing sqlglot takes a while, and not every command has exports

    why = ""
    try:
        schema = flink_origins.find_schema(topic, sources, deployment) if topic else None
    except Missing:
        schema = None
    except lineage.Unknown as unknown:
        schema = None
        why = f", and its statement doesn't show what schema Flink will register: {unknown}"
    if topic in deployment.tables and schema is None:
        command = f"lakeferry topics import {topic.name} --stage {deployment.identity.stage}"
        remedy = (
            f"`{command}` writes it from the table"
            if deployment.source or (topic.existing and deployment.uses_existing_cluster)
            else f"Write the Avro schema of its values to project/topics/{topic.name}.avsc, as Schema "
            f"Registry has it for subject {topic.name}-value, or name a file with schema = …"
        )
        yield f"columns can't be checked: topic {topic.name} has no schema file{why}. {remedy}"
    try:
        sources.contract(contract, schema)
    except BadFile as bad:
        yield from (f"{bad.name}, {problem}" for problem in bad.problems)


def exports_fit_into_policies(deployment: Deployment, sources: Sources) -> Iterator[Finding]:
    """There are 50 exports at most, because policies grow with each export, and AWS limits them.

    SQS takes ten conditions in a policy, one for each rule of 16 exports, and IAM 10,240 characters.
    """
    if len(deployment.exports) > _MOST_EXPORTS:
        yield (
            "exports",
            f"there are {len(deployment.exports)}, and a deployment can have {_MOST_EXPORTS}: the policies "
            "of the dead-letter queue and of the function that sends mails grow with each export, and AWS "
            "limits them. Put the others into a second deployment file",
        )


def rows_outlive_windows(deployment: Deployment, sources: Sources) -> Iterator[Finding]:
    """For each export of the topic, `rows_days` is at least the length of a window in days, plus the days for
    which it is published again, plus one.

    A window that is published again after Tableflow removed rows would silently lack them.
    """
    topics = {topic.name: (index, topic) for index, topic in enumerate(deployment.topics)}
    for export in deployment.exports:
        contract = sources.plain_contract(export.contract)
        if contract is None or contract.source.topic not in topics:
            continue
        index, topic = topics[contract.source.topic]
        if topic.tableflow and (problem := find_rows_problem(contract, topic.tableflow)):
            yield f"topics[{index}].tableflow.rows_days", problem


def exports_run_again_for_each_window(deployment: Deployment, sources: Sources) -> Iterator[Finding]:
    """`cron` starts an export at least twice before its next window ends, so that a window that failed or had
    to wait is tried again.

    A run that fails, or finds that the table is behind, has no other retry.
    """
    for index, export in enumerate(deployment.exports):
        contract = sources.plain_contract(export.contract)
        problem = find_schedule_problem(contract, export.cron, export.zone) if contract else None
        if problem:
            yield f"exports[{index}].cron", problem


#: SNS allows 200 filter policies on a topic (Amazon SNS endpoints and quotas).
_MOST_LINKED: Final = 100


def links_open_nothing_personal(deployment: Deployment, sources: Sources) -> Iterator[Finding]:
    """With `link_days`, `link_keeps` names each column of the contract with the treatment `keep`, and no
    other. A link opens for everybody who has the mail.
    """
    for index, export in enumerate(deployment.exports):
        contract = sources.plain_contract(export.contract)
        if export.link_days is None or contract is None:
            continue
        kept = [column.name for column in contract.column if column.keeps_personal]
        unnamed = [name for name in kept if name not in export.link_keeps]
        if unnamed:
            yield (
                f"exports[{index}].link_days",
                f"{export.contract} keeps personal data in {', '.join(unnamed)}, and a link opens for "
                "everybody who has the mail. If they may all read it, name the columns as link_keeps. "
                "Otherwise leave link_days out, and name who may read as readers",
            )
        yield from (
            (
                f"exports[{index}].link_keeps",
                f"{name} is no column of {export.contract} that keeps its values",
            )
            for name in export.link_keeps
            if name not in kept
        )


def linked_recipients_fit_into_topics(deployment: Deployment, sources: Sources) -> Iterator[Finding]:
    """An export with `link_days` has 100 recipients at most, because each needs a filter policy of SNS and a
    mail of their own.
    """
    for index, export in enumerate(deployment.exports):
        if export.link_days and len(export.recipients) > _MOST_LINKED:
            yield (
                f"exports[{index}].recipients",
                f"there are {len(export.recipients)}, and with link_days an export can have {_MOST_LINKED}. "
                "Name a mailing list, or leave link_days out",
            )
