"""command-line.md and job-arguments.md: from typer's own model of the commands, and from what the job takes."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Any

import attrs
import typer

from glue_jobs.contract import ARGUMENTS, DEFAULT_ARGUMENTS, REQUIRED_ARGUMENTS
from lakeferry import __main__ as command_line
from lakeferry import tableflow_catalog, world
from lakeferry.reference import markdown
from lakeferry.reference.markdown import code

TITLE = "Command line"
JOB_TITLE = "Job arguments"
_KINDS = {"Path": "PATH", "bool": "", "str": "TEXT"}
_INTRO = """\
People read standard error, programs read standard output: with `--json` a command writes one JSON document there, `ok` first.
Progress is shown on a terminal only. Errors: [Error codes](errors.md), [Exit codes](exit-codes.md).

After `make setup` (which `make demo` and `make test` do too) the command is `.venv/bin/lakeferry`; after
`source .venv/bin/activate` it is `lakeferry`."""
_ENVIRONMENT = """\
Without any of the first two, `lakeferry export run` and `lakeferry query` work in the embedded AWS with what the last demo left.
Credentials, region and endpoints of AWS come from the usual variables and profiles: set both `AWS_REGION` (read by Spark's
Iceberg) and `AWS_DEFAULT_REGION` (read by Python), and no `AWS_ENDPOINT_URL` for the real AWS."""
_VARIABLES = {
    "bucket": "The bucket that receives the files.",
    "database": "The Glue database of the Tableflow tables: the Kafka cluster's id.",
    "prefix": "Where in the bucket.",
    "pseudonym_secret": "Name or ARN of the secret with the pseudonymisation key.",
    "aggregates_database": "The Glue database for aggregates that are kept as tables.",
}
_JOB_INTRO = """\
What `python -m glue_jobs.export` takes, as `--name value` or `--name=value`. A Glue job run passes the same. Arguments that
aren't listed are passed over, because Glue adds some of its own. `lakeferry export run` gives the job those that it has an
option or a [variable](command-line.md#environment-variables) for."""


def text() -> str:
    group = typer.main.get_command(command_line.app)
    sections = [_section(path, command) for path, command in leaves(group)]
    return markdown.page(TITLE, _INTRO, *sections, f"## Environment variables\n\n{_variables()}\n\n{_ENVIRONMENT}")


def job_text() -> str:
    rows = [(code(f"--{name}"), _job_default(name), meaning) for name, meaning in ARGUMENTS.items()]
    return markdown.page(JOB_TITLE, _JOB_INTRO, markdown.table(["argument", "default", "meaning"], rows))


def leaves(group: Any) -> Iterator[tuple[str, Any]]:
    """(words, command) of each command that does something."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from ((f"{name} {below}", leaf) for below, leaf in leaves(command))
        else:
            yield name, command


def _section(path: str, command: Any) -> str:
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    options = [one for one in command.params if one.param_type_name == "option"]
    words = [f"lakeferry {path}", *[one.name.upper() for one in arguments]]
    words += [f"{one.opts[0]} {_kind(one)}" for one in options if one.required]
    rows = [(code(one.name.upper()), "**required**", one.help) for one in arguments]
    rows += [(_written(one), _default(one), one.help) for one in options]
    usage = markdown.block("text", " ".join([*words, "[OPTIONS]"]))
    return f"## lakeferry {path}\n\n{command.help}\n\n{usage}\n\n" + markdown.table(["option", "default", "meaning"], rows)


def _written(option: Any) -> str:
    kind = _kind(option)
    return ", ".join(code(f"{word} {kind}".strip()) for word in option.opts)


def _kind(option: Any) -> str:
    if issubclass(option.type_descriptor.annotation, StrEnum):
        return " | ".join(option.type_descriptor.annotation)
    return _KINDS[option.type_descriptor.annotation.__name__]


def _default(option: Any) -> str:
    if option.required:
        return "**required**"
    return code(str(option.default)) if option.default not in (None, False, "") else ""


def _variables() -> str:
    defaults = {field.name: field.default for field in attrs.fields(world.World)}
    rows = [
        (code(variable), "" if defaults[name] is attrs.NOTHING else code(str(defaults[name])), _VARIABLES[name])
        for name, variable in world._VARIABLES.items()
    ]
    key = "The secret with a Tableflow key, for `lakeferry query --catalog tableflow`."
    return markdown.table(["variable", "default", "meaning"], [*rows, (code(tableflow_catalog.VARIABLE), "", key)])


def _job_default(name: str) -> str:
    if name in REQUIRED_ARGUMENTS:
        return "**required**"
    return "`s3://<bucket>/warehouse`" if name == "warehouse" else code(DEFAULT_ARGUMENTS[name])
