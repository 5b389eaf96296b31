"""The questions of `lakeferry init`: their defaults, the check of each answer, and the file that remembers
the answers.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import attrs

from config.deployments import validation
from config.deployments.model import Deployment
from config.deployments.source_model import Source
from config.exports import cron
from config.forms import find_zone_problem
from config.toml_model import Form

#: Answers with a special meaning.
NEW = "new"
NONE = "none"
EXAMPLE = "example"
KEEP = "as they are"
EXAMPLE_TOPICS: Final = ("stock_trades", "stock_trades_with_totals")
Answers = Mapping[str, str]


@attrs.frozen
class Question:
    """A question of `lakeferry init`. `check` returns what is wrong with an answer, or None."""

    key: str
    text: str
    check: Callable[[str], str | None]
    default: str


def _allow_word(word: str, form: Form) -> Callable[[str], str | None]:
    either = Form(f"{re.escape(word)}|{form.pattern}", f"{word}, or {form.description}")
    return either.problem


def _check_tables(text: str) -> str | None:
    form = validation.CATALOG_URI if "://" in text else validation.GLUE_DATABASE
    return form.problem(text)


def _check_key(text: str) -> str | None:
    return validation.SECRET_NAME.problem(text) if text else "name the secret that has the key, never the key"


def _check_topics(text: str) -> str | None:
    if text in (EXAMPLE, KEEP):
        return None
    return _check_all(text, validation.topic_name) or (
        None if split_names(text) else "name at least one topic"
    )


def _schedule(text: str) -> str | None:
    if re.fullmatch(r"([01]?[0-9]|2[0-3]):[0-5][0-9]", text):
        return None
    problem = cron.problem(text)
    return f"{problem}. A time like 06:00 is valid too" if problem else None


def _check_addresses(text: str) -> str | None:
    return _check_all(text, validation.mail_address)


def _check_addresses_or_none(text: str) -> str | None:
    return None if text == NONE else _check_addresses(text)


def _check_bucket(text: str) -> str | None:
    return validation.bucket_name(text) if text else "name the bucket: it is in the location of each table"


def _check_all(text: str, check: Callable[[str], str | None]) -> str | None:
    return next((problem for name in split_names(text) if (problem := check(name))), None)


_TEAM: Final = "engineers@example.com"
QUESTIONS: Final = (
    Question(
        "tables",
        "Do you have Tableflow tables already? Name their Glue database, or, if Confluent stores them, its "
        "REST Catalog Endpoint (https://…), or none",
        _check_tables,
        NONE,
    ),
    Question("bucket", "The bucket that these tables are in", _check_bucket, ""),
    Question(
        "tableflow_key", "Name of the secret with a Tableflow API key that may read them", _check_key, ""
    ),
    Question("name", "What is the deployment called?", validation.NAME.problem, "lakeferry"),
    Question("owner", "Who owns it: a team or a role?", validation.tag_value, "data-platform team"),
    Question("region", "AWS region of the deployment and the Kafka cluster", validation.region, "eu-west-1"),
    Question(
        "environment",
        "Confluent environment: new, or the id of an existing one",
        _allow_word(NEW, validation.ENVIRONMENT_ID),
        NEW,
    ),
    Question(
        "environment_name",
        "Its name in Confluent",
        Form(r".{1,64}", "a name of 1 to 64 characters").problem,
        "",
    ),
    Question(
        "cluster",
        "Kafka cluster: new, or the id of an existing one",
        _allow_word(NEW, validation.CLUSTER_ID),
        NEW,
    ),
    Question(
        "snowflake", "Snowflake account, or none", _allow_word(NONE, validation.SNOWFLAKE_ACCOUNT), NONE
    ),
    Question(
        "topics",
        "Topics: example (trades from Datagen), or names separated by commas",
        _check_topics,
        EXAMPLE,
    ),
    Question(
        "schedule",
        "When exports run: a time like 06:00, or a cron expression with six fields",
        _schedule,
        "06:00",
    ),
    Question("zone", "In which time zone?", find_zone_problem, "UTC"),
    Question(
        "recipients",
        "Mail addresses that receive mails about files (separated by commas), or none",
        _check_addresses_or_none,
        _TEAM,
    ),
    Question(
        "engineers", "Mail addresses that receive alarms (separated by commas)", _check_addresses, _TEAM
    ),
)


def split_names(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def has_tables(answers: Answers) -> bool:
    """Return whether the tables exist, so that only exports are deployed."""
    return answers["tables"] != NONE


def has_tables_at_confluent(answers: Answers) -> bool:
    return "://" in answers["tables"]


def applies(question: Question, answers: Answers) -> bool:
    """Return whether the question applies, given these answers: only an existing environment has a name and
    may have a cluster, and with existing tables nothing is created at Confluent and Snowflake.
    """
    in_environment = not has_tables(answers) and answers["environment"] != NEW
    match question.key:
        case "bucket":
            return has_tables(answers) and not has_tables_at_confluent(answers)
        case "tableflow_key":
            return has_tables_at_confluent(answers)
        case "environment" | "snowflake":
            return not has_tables(answers)
        case "environment_name":
            return in_environment
        case "cluster":
            return in_environment or has_tables_at_confluent(answers)
    return True


def suggest_region(answers: Answers) -> str:
    """Return the default of the region: that of the tables, if their answer says it."""
    if has_tables_at_confluent(answers) and not _check_tables(answers["tables"]):
        return answers["tables"].split(".")[1]
    return answers["region"]


def uses_existing_cluster(answers: Answers) -> bool:
    """Return whether topics of a cluster that exists become tables."""
    return not has_tables(answers) and NEW not in (answers["environment"], answers["cluster"])


def list_problems(answers: Answers) -> list[tuple[str, str]]:
    """Return the key and the problem of every invalid answer."""
    checked = [
        (question.key, question.check(answers[question.key]))
        for question in QUESTIONS
        if applies(question, answers)
    ]
    problems = [(key, problem) for key, problem in checked if problem]
    if has_tables_at_confluent(answers) and answers["cluster"] == NEW:
        problems.append(("cluster", "name the cluster whose tables these are, lkc-…"))
    if has_tables(answers) and answers["topics"] == EXAMPLE:
        problems.append(("topics", "name the tables to export, separated by commas: the example has its own"))
    if uses_existing_cluster(answers) and answers["topics"] == EXAMPLE:
        what = "name topics of the cluster, separated by commas: the example has its own cluster"
        problems.append(("topics", what))
    elif not uses_existing_cluster(answers):
        wrong = _check_all(answers["topics"], validation.new_topic_name)
        problems += [("topics", wrong)] if wrong and answers["topics"] not in (EXAMPLE, KEEP) else []
    return problems


def choose_defaults(remembered: Answers, existing: Deployment | None) -> dict[str, str]:
    """Return the default answers: those of the existing file, else the remembered ones, else those of the
    questions.
    """
    answers = {question.key: question.default for question in QUESTIONS}
    if region := os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION"):
        answers["region"] = region
    return answers | dict(remembered) | (_read_answers(existing) if existing else {})


def _read_answers(deployment: Deployment) -> dict[str, str]:
    first = deployment.exports[0] if deployment.exports else None
    of_export = (
        {"schedule": first.cron, "zone": first.zone, "recipients": _join(first.recipients)} if first else {}
    )
    confluent = deployment.confluent
    account = deployment.snowflake.account if deployment.snowflake and deployment.uses_snowflake else NONE
    return {
        "name": deployment.identity.name,
        "owner": deployment.identity.owner,
        "region": deployment.aws.region,
        "tables": NONE,
        "bucket": "",
        "tableflow_key": "",
        "environment": (confluent.environment_id if confluent else None) or NEW,
        "environment_name": (confluent.environment_name if confluent else None) or "",
        "cluster": (confluent.cluster_id if confluent else None) or NEW,
        "snowflake": account,
        "topics": KEEP if deployment.topics else EXAMPLE,
        "engineers": _join(deployment.alerts.engineers),
        **_read_source(deployment.source),
        **of_export,
    }


def _read_source(source: Source | None) -> dict[str, str]:
    """Return the answers that describe `[source]`."""
    if source and source.glue:
        return {"tables": source.glue.database, "bucket": source.glue.bucket}
    if source and source.catalog:
        catalog = source.catalog
        return {
            "tables": catalog.uri,
            "cluster": catalog.cluster_id,
            "tableflow_key": catalog.key_secret,
        }
    return {}


def _join(addresses: list[str]) -> str:
    return ", ".join(addresses) or NONE


def load_answers(file: Path) -> dict[str, str]:
    """Return the remembered answers that are still valid, {} if there is no such file."""
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    questions = {question.key: question for question in QUESTIONS}
    items = document.items() if isinstance(document, dict) else ()
    return {
        name: str(text)
        for name, text in items
        if name in questions and not questions[name].check(str(text)) and text != KEEP
    }


def save_answers(file: Path, answers: Answers) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(dict(answers), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
