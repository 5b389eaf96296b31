"""What `lakeferry init` asks: each question with its default, what an answer may be, and where it is remembered."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import attrs

from deployments import validation
from deployments.model import Deployment
from exports import cron
from exports.contract import zone_problem

#: Answers that stand for something else than themselves.
NEW, NONE, EXAMPLE, KEEP = "new", "none", "example", "as they are"
Answers = Mapping[str, str]


@attrs.frozen
class Question:
    """`wrong` says what is wrong with an answer, or None."""

    key: str
    asks: str
    wrong: Callable[[str], str | None]
    default: str


def _form(pattern: str, form: str) -> Callable[[str], str | None]:
    return lambda text: None if re.fullmatch(pattern, text) else f"{text[:60]!r} must be {form}"


def _environment(text: str) -> str | None:
    return None if text == NEW else _form(r"env-[a-z0-9]+", f"{NEW}, or an environment's id like env-abc123")(text)


def _account(text: str) -> str | None:
    pattern = r"[A-Za-z0-9]+(?:[._-][A-Za-z0-9]+)*"
    return None if text == NONE else _form(pattern, f"{NONE}, or an account's name like myorganization-myaccount")(text)


def _topics(text: str) -> str | None:
    if text in (EXAMPLE, KEEP):
        return None
    return _all(text, validation.topic_name) or (None if names(text) else "name at least one topic")


def _schedule(text: str) -> str | None:
    if re.fullmatch(r"([01]?[0-9]|2[0-3]):[0-5][0-9]", text):
        return None
    problem = cron.problem(text)
    return f"{problem}. A time like 06:00 will do too" if problem else None


def _addresses(text: str) -> str | None:
    return _all(text, validation.mail_address)


def _addresses_or_none(text: str) -> str | None:
    return None if text == NONE else _addresses(text)


def _all(text: str, wrong: Callable[[str], str | None]) -> str | None:
    return next((problem for name in names(text) if (problem := wrong(name))), None)


_NAME: Final = "2 to 20 small letters, digits and hyphens, a letter first"
_TEAM: Final = "engineers@example.com"
QUESTIONS: Final = (
    Question("name", "What is the deployment called?", _form(validation.NAME, _NAME), "lakeferry"),
    Question("owner", "Who owns it: a team or a role?", validation.tag_value, "data-platform team"),
    Question("region", "AWS region, also that of the Kafka cluster", validation.region, "eu-west-1"),
    Question("environment", "Confluent environment: new, or the id of one that exists", _environment, NEW),
    Question("environment_name", "Its name in Confluent", _form(r".{1,64}", "a name"), ""),
    Question("snowflake", "Snowflake account, or none", _account, NONE),
    Question("topics", "Topics: example (trades that Datagen makes), or names with commas", _topics, EXAMPLE),
    Question("schedule", "When exports run: a time like 06:00, or six fields of cron", _schedule, "06:00"),
    Question("zone", "In which time zone?", zone_problem, "UTC"),
    Question("recipients", "Who gets the files by mail (commas), or none", _addresses_or_none, _TEAM),
    Question("engineers", "Who gets alarms (commas)", _addresses, _TEAM),
)


def names(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def is_asked(question: Question, answers: Answers) -> bool:
    """An environment that is made has no name yet."""
    return question.key != "environment_name" or answers["environment"] != NEW


def wrong(answers: Answers) -> list[tuple[str, str]]:
    """(key, what is wrong) of every answer that can't be used."""
    asked = [question for question in QUESTIONS if is_asked(question, answers)]
    found = [(question.key, question.wrong(answers[question.key])) for question in asked]
    return [(key, problem) for key, problem in found if problem]


def defaults(remembered: Answers, existing: Deployment | None) -> dict[str, str]:
    """The file's own answers, else those of the last time, else ours."""
    ours = {question.key: question.default for question in QUESTIONS}
    if region := os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION"):
        ours["region"] = region
    return ours | dict(remembered) | (_of_file(existing) if existing else {})


def _of_file(deployment: Deployment) -> dict[str, str]:
    first = deployment.exports[0] if deployment.exports else None
    of_export = {"schedule": first.cron, "zone": first.zone, "recipients": _listed(first.recipients)} if first else {}
    account = deployment.snowflake.account if deployment.snowflake and deployment.uses_snowflake else NONE
    return {
        "name": deployment.identity.name,
        "owner": deployment.identity.owner,
        "region": deployment.aws.region,
        "environment": deployment.confluent.environment_id or NEW,
        "environment_name": deployment.confluent.environment_name or "",
        "snowflake": account,
        "topics": KEEP if deployment.topics else EXAMPLE,
        "engineers": _listed(deployment.alerts.engineers),
        **of_export,
    }


def _listed(addresses: list[str]) -> str:
    return ", ".join(addresses) or NONE


def remembered(file: Path) -> dict[str, str]:
    """Of the last time; empty where there was none. What can't be an answer any more is left out."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    known = {question.key: question for question in QUESTIONS}
    items = found.items() if isinstance(found, dict) else ()
    return {name: str(text) for name, text in items if name in known and not known[name].wrong(str(text)) and text != KEEP}


def remember(file: Path, answers: Answers) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(dict(answers), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
