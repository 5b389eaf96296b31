"""command-line.md and job-arguments.md: from typer's own model of the commands, and from what the job takes."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Any

import attrs
import typer

from glue_jobs.contract import ARGUMENTS, DEFAULT_ARGUMENTS, REQUIRED_ARGUMENTS
from lakeferry import __main__
from lakeferry.cli import app
from lakeferry.cli.app import Declared
from lakeferry.local import iceberg_catalog, target
from tools.docs import markdown
from tools.docs.markdown import code

TITLE = "Command line"
JOB_TITLE = "Job arguments"
#: Shared options that stand after a command only where it has a use for them.
_SOMETIMES = ("stage", "yes")
_KINDS = {"Path": "PATH", "bool": "", "str": "TEXT", "int": "NUMBER", "float": "NUMBER"}
_INTRO = """\
A command writes its results to standard output, and progress, questions, warnings and errors to standard error:
`lakeferry plan > plan.txt` and `lakeferry logs watch | grep ERROR` work. With `--json` the results are one JSON document, `ok`
first, in place of the text. A spinner is shown on a terminal only. Errors and exit codes: [Error codes](errors.md).

After `make setup` (which `make demo` and `make test` do too) the command is `.venv/bin/lakeferry`; after
`source .venv/bin/activate` it is `lakeferry`."""
_SHARED = """\
They stand before the command or after it. A command that has no use for `--stage` or `--yes` refuses them. What stands after the
command wins, then what stands before it, then the variable, then the default. Where standard error is no terminal, nothing
moves and nothing is asked.

With `--json`, whatever happens, one document stands on standard output. `ok` is whether the command did what it was asked to,
`code` is `DONE` or the [error's code](errors.md), `request_id` is this call. A command that is done adds what it has to say under
keys of its own. One that failed says `message`, `why`, `hint`, `docs` (the page about this code), `details` and `exit_code`."""
_COMPLETION = """\
Bash, zsh, fish and PowerShell complete commands, options, stages and error codes. Once for the shell that you use:

```sh
lakeferry --install-completion
```

It adds a line to the shell's own start file, and works in shells that are opened afterwards. `lakeferry --show-completion` prints
the same, for those who keep such files themselves. The command has to be on the path as `lakeferry`, as it is after
`source .venv/bin/activate`."""
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
    group = typer.main.get_command(__main__.app)
    sections = [_section(path, command) for path, command in leaves(group)]
    environment = f"## Environment variables\n\n{_variables()}\n\n{_ENVIRONMENT}"
    return markdown.page(TITLE, _INTRO, _shared(group), *sections, f"## Shell completion\n\n{_COMPLETION}", environment)


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


def _shared(group: Any) -> str:
    names = [one.name for one in app.shared_options()]
    rows = [(_written(one), one.help) for one in group.params if one.name in names]
    return f"## Options of all commands\n\n{_SHARED}\n\n" + markdown.table(["option", "meaning"], rows)


def _section(path: str, command: Any) -> str:
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    shared = {one.name for one in app.shared_options()}
    takes = [code(one.opts[0]) for one in command.params if one.name in _SOMETIMES]
    options = [one for one in command.params if one.param_type_name == "option" and one.name not in shared]
    words = [f"lakeferry {path}", *[one.name.upper() for one in arguments]]
    words += [f"{one.opts[0]} {_kind(one)}" for one in options if one.required]
    rows = [(code(one.name.upper()), "**required**", one.help) for one in arguments]
    rows += [(_written(one), _default(one), one.help) for one in options]
    usage = markdown.block("text", " ".join([*words, "[OPTIONS]"]))
    parts = [f"## lakeferry {path}", command.help, usage]
    parts += [markdown.table(["option", "default", "meaning"], rows)] if rows else []
    parts += [f"Takes {' and '.join(takes)} too."] if takes else []
    return "\n\n".join([*parts, *_promised(command.callback.declared)])


def _promised(declared: Declared) -> Iterator[str]:
    exits = ", ".join(map(str, declared.exits))
    yield f"Exit codes: {exits} ([what they mean](errors.md#exit-codes)). With `--json`, beside what all commands say:"
    yield markdown.table(["key", "meaning"], [(code(name), meaning) for name, meaning in declared.json_keys.items()])


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
    defaults = {field.name: field.default for field in attrs.fields(target.ExportTarget)}
    rows = [
        (code(variable), "" if defaults[name] is attrs.NOTHING else code(str(defaults[name])), _VARIABLES[name])
        for name, variable in target.VARIABLES.items()
    ]
    key = "The secret with a Tableflow key, for `lakeferry query --catalog tableflow`."
    stage = (code(app.STAGE_VARIABLE), code(app.STAGE), "The stage, where no `--stage` is given.")
    return markdown.table(["variable", "default", "meaning"], [*rows, (code(iceberg_catalog.VARIABLE), "", key), stage])


def _job_default(name: str) -> str:
    if name in REQUIRED_ARGUMENTS:
        return "**required**"
    return "`s3://<bucket>/warehouse`" if name == "warehouse" else code(DEFAULT_ARGUMENTS[name])
