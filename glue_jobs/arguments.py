"""The job's command line, read once into a frozen value. All mistakes are reported together."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta

import attrs

from config.forms import explain_implausible_day
from glue_jobs.errors import BadInput
from glue_jobs.platform import ARGUMENTS, DEFAULT_ARGUMENTS, REQUIRED_ARGUMENTS

#: Why an instant can't be in the future.
_WHY_PAST = {"as-of": "a window must be over", "complete-until": "nobody knows yet which events will come"}
#: Values of `only`.
MISSING = "missing"
PUBLISHED = "published"
_SWITCHES = ("dry-run", "accept-fewer-events", "accept-window-change", "probe", "prepare-table")
#: Glue adds this argument itself.
_JOB_RUN_ID = "JOB_RUN_ID"


@attrs.frozen
class Arguments:
    """Times are in UTC. `table` is empty if it has the name of the contract's topic, `first_day` is None if
    the contract's day applies, `region` is empty if that of the environment applies, `partitions` is 0 if it
    isn't known, `tableflow_secret` is empty if the table is in Glue, `catalog_uri` if that secret has it,
    `proxy` if there is none, `windows` if the run takes every window that needs it, `only` if it takes all of
    `windows`, and `job_run_id` is None outside Glue.
    """

    export: str
    as_of: datetime
    database: str
    bucket: str
    prefix: str
    warehouse: str
    aggregates_database: str
    pseudonym_secret: str
    time_limit: timedelta
    table: str
    first_day: date | None
    dry_run: bool
    accept_fewer_events: bool
    region: str
    probe: bool
    prepare_table: bool
    accept_window_change: bool
    partitions: int
    complete_until: datetime | None
    tableflow_secret: str
    catalog_uri: str
    proxy: str
    windows: str
    only: str
    job_run_id: str | None


def parse(argv: Sequence[str], *, now: datetime) -> Arguments:
    """Raises BadInput with all mistakes. Unknown arguments are ignored, because Glue adds some."""
    values = dict(DEFAULT_ARGUMENTS) | _parse_pairs(argv)
    mistakes = [
        f"--{name} is missing ({ARGUMENTS[name]})" for name in REQUIRED_ARGUMENTS if not values.get(name)
    ]
    as_of = _parse_instant("as-of", values, now, mistakes)
    complete_until = _parse_instant("complete-until", values, now, mistakes)
    minutes = _parse_number("time-limit-minutes", values, 10_080, mistakes)
    partitions = _parse_number("partitions", values, 100_000, mistakes) if values["partitions"] else 0
    first_day = _parse_day(values["first-day"], mistakes)
    mistakes += [
        f"--{name} is {values[name]!r}; say true or false"
        for name in _SWITCHES
        if values[name] not in ("true", "false")
    ]
    mistakes += _explain_only(values)
    if values.get("bucket") and not re.fullmatch(r"[a-z0-9][a-z0-9-]{1,61}[a-z0-9]", values["bucket"]):
        mistakes.append(
            f"--bucket {values['bucket']!r} is not a bucket name (lower case, digits and hyphens, no dots)"
        )
    if mistakes or as_of is None:
        raise BadInput("EXP-ARGUMENTS", "; ".join(mistakes))
    return Arguments(
        export=values["export"],
        as_of=as_of,
        database=values["database"],
        bucket=values["bucket"],
        prefix=values["prefix"].strip("/"),
        warehouse=values["warehouse"] or f"s3://{values['bucket']}/warehouse",
        aggregates_database=values["aggregates-database"],
        pseudonym_secret=values["pseudonym-secret"],
        time_limit=timedelta(minutes=minutes),
        table=values["table"],
        first_day=first_day,
        dry_run=values["dry-run"] == "true",
        accept_fewer_events=values["accept-fewer-events"] == "true",
        region=values["region"],
        probe=values["probe"] == "true",
        prepare_table=values["prepare-table"] == "true",
        accept_window_change=values["accept-window-change"] == "true",
        partitions=partitions,
        complete_until=complete_until,
        tableflow_secret=values["tableflow-secret"],
        catalog_uri=values["catalog-uri"],
        proxy=values["proxy"],
        windows=values["windows"],
        only=values["only"],
        job_run_id=values.get(_JOB_RUN_ID) or None,
    )


def _explain_only(values: Mapping[str, str]) -> list[str]:
    only = values["only"]
    if only not in ("", MISSING, PUBLISHED):
        return [f"--only is {only!r}; say {MISSING} or {PUBLISHED}"]
    if only and not values["windows"]:
        return ["--only needs --windows"]
    return []


def is_run_of_glue(argv: Sequence[str]) -> bool:
    return bool(_parse_pairs(argv).get(_JOB_RUN_ID))


def _parse_pairs(argv: Sequence[str]) -> dict[str, str]:
    values = {}
    for index, word in enumerate(argv):
        name, equals, value = word.removeprefix("--").partition("=")
        if word.startswith("--") and (name in ARGUMENTS or name == _JOB_RUN_ID):
            next_word = argv[index + 1] if index + 1 < len(argv) else ""
            values[name] = value if equals else next_word
    return values


def _parse_instant(
    name: str, values: Mapping[str, str], now: datetime, mistakes: list[str]
) -> datetime | None:
    text = values.get(name, "")
    if not text:
        return None
    try:
        local = datetime.fromisoformat(text)
        instant = local.astimezone(UTC)
    except (ValueError, OverflowError):  # in the years 1 and 9999, an offset may exceed the calendar
        mistakes.append(f"--{name} {text!r} is not a time; write it like 2026-11-16T06:00:00Z")
        return None
    if local.tzinfo is None:
        mistakes.append(f"--{name} {text!r} has no offset; write it like 2026-11-16T06:00:00Z or …+01:00")
        return None
    if instant > now + timedelta(minutes=5):
        mistakes.append(
            f"--{name} {text} is in the future (it is {now:%Y-%m-%dT%H:%M:%SZ} now); {_WHY_PAST[name]}"
        )
    return instant


def _parse_number(name: str, values: Mapping[str, str], most: int, mistakes: list[str]) -> int:
    text = values[name]
    if text.isascii() and text.isdecimal() and 1 <= int(text) <= most:
        return int(text)
    mistakes.append(f"--{name} is {text!r}; say a whole number from 1 to {most}")
    return 1


def _parse_day(text: str, mistakes: list[str]) -> date | None:
    if not text:
        return None
    try:
        day = date.fromisoformat(text)
    except ValueError:
        mistakes.append(f"--first-day {text!r} is not a day; write it like 2026-01-05")
        return None
    if wrong := explain_implausible_day(day):
        mistakes.append(f"--first-day: {wrong}")
    return day
