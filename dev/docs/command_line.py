"""command-line.md and errors.md: from typer's commands, the arguments of the job and the error catalogue."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Any, Final

import attrs
import typer

from config.project import DEFAULT_STAGE
from dev.docs import markdown
from dev.docs.markdown import format_code
from glue_jobs.platform import ARGUMENTS, DEFAULT_ARGUMENTS, REQUIRED_ARGUMENTS
from lakeferry import __main__, errors
from lakeferry.cli import app
from lakeferry.cli.app import Declared
from lakeferry.errors import Entry
from lakeferry.local import query, target

#: Shared options that only some commands take.
_SOMETIMES: Final = ("stage", "yes")
_KINDS: Final = {"Path": "PATH", "bool": "", "str": "TEXT", "int": "NUMBER", "float": "NUMBER"}
_INTRO: Final = """\
A command writes its results to standard output, and progress, questions, warnings and errors to standard error:
`lakeferry plan > plan.txt` and `lakeferry logs watch | grep ERROR` work. With `--json` the results are one JSON document, `ok`
first, in place of the text. A spinner is shown on a terminal only. Errors and exit codes: [Error codes](errors.md).

After `make setup` (which `make demo` and `make test` do too) the command is `.venv/bin/lakeferry`; after
`source .venv/bin/activate` it is `lakeferry`."""
_SHARED: Final = """\
Write these options after the command. A command that doesn't use `--stage` or `--yes` refuses them. If standard
error is not a terminal, commands show no spinner and never prompt.

With `--json`, standard output always has exactly one document. `ok` says whether the command succeeded,
`code` is `DONE` or the [error's code](errors.md), `request_id` identifies this call. A command that succeeded
adds the keys listed below; one that failed adds `message`, `why`, `hint`, `docs` (the page about this code),
`details` and `exit_code`."""
_COMPLETION: Final = """\
Bash, zsh, fish and PowerShell complete commands, options, stages and error codes. Run this once in the shell that you use:

```sh
lakeferry --install-completion
```

It adds a line to the shell's start file, and works in shells that you open afterwards. `lakeferry --show-completion` prints
the same text, if you edit the file yourself. The path must contain the command as `lakeferry`, as it does after `source
.venv/bin/activate`."""
_ENVIRONMENT: Final = """\
Without the first two, `lakeferry export run` and `lakeferry query` work in the embedded AWS with the data of the last demo.
Credentials, region and endpoints of AWS come from the usual variables and profiles: set both `AWS_REGION` (read by Spark's
Iceberg) and `AWS_DEFAULT_REGION` (read by Python), and no `AWS_ENDPOINT_URL` for the real AWS."""
_VARIABLES: Final = {
    "bucket": "The bucket that receives the files.",
    "database": "The Glue database of the Tableflow tables: the Kafka cluster's id.",
    "prefix": "The prefix of the files in the bucket.",
    "pseudonym_secret": "Name or ARN of the secret with the pseudonymisation key.",
    "aggregates_database": "The Glue database for aggregates that are kept as tables.",
}
_JOB_INTRO: Final = """\
`python -m glue_jobs.export` takes these arguments, as `--name value` or `--name=value`. The run of a Glue job passes the same
([Run an export](../how-to/run-an-export.md)). `lakeferry export run` passes those that it has an option or a
[variable](#environment-variables) for. The job ignores other arguments, because Glue adds some of its own."""
_ERRORS_INTRO: Final = """\
An error has a code that doesn't change, one sentence that says what happened, and what to do. On a terminal:

```text
EXP-TABLE-MISSING  the Glue catalog has no table lkc-abc123.sales_orders
→ Check the database (the Kafka cluster's id) and that Tableflow and its Glue integration are on for the topic
  docs/reference/errors.md#exp-table-missing
```

`lakeferry explain EXP-TABLE-MISSING` shows its entry on the terminal; `lakeferry explain` alone lists all
codes. With `--json`, standard output holds the same as one document: [Options of all
commands](command-line.md#options-of-all-commands). The error of a window is also in the [run's
record](manifest-and-run-record.md#run-record). Whatever happens, a run publishes a window completely or not at all. Messages never
contain a secret or a value of the data."""
_EXIT_INTRO: Final = """\
A run with several windows publishes those that can be published. If some are blocked or fail, it ends with the highest of their
exit codes. An entry below names the exit code of a command that ends with this error, unless it is 1. A command with an unknown
option or without a required argument ends with 2. `make setup` ends with 0 or 3."""
#: Exit code, its meaning for commands, and its meaning for the job (`python -m glue_jobs.export`), which has
#: fewer.
_EXITS: Final = (
    (errors.DONE, "done", "done; also where a window waits for data"),
    (errors.FAILED, "failed: the source, the data, AWS or a bug", "the same"),
    (
        errors.WRONG_INPUT,
        "wrong input: options, a contract, a file of events, SQL",
        "arguments or the contract",
    ),
    (
        errors.NOT_SET_UP,
        "not ready: this machine is not set up (run `make setup`), nobody is logged in to AWS, or "
        "`lakeferry doctor` or `lakeferry deploy` found that something is missing",
        "",
    ),
    (errors.CHANGES, "there are changes: `lakeferry plan --check`", ""),
    (
        errors.LATER,
        "not yet: every window waits for newer data, or something else is in progress; try again later",
        "",
    ),
    (errors.STOPPED, "stopped by Ctrl-C", ""),
    (
        errors.BLOCKED,
        "blocked: a check, the scan for personal data or another rule blocked a window, or "
        "`lakeferry destroy`, `lakeferry forget` or `lakeferry deploy --repair` was refused",
        "a window is blocked",
    ),
)
_PART_INTROS: Final = {
    "resources": """\
These end a `cdk deploy` or `cdk destroy`. CloudFormation shows one line: the code, what was being done to
which resource, what the vendor said with its HTTP status and its own request id, and what to do. Errors that
may be temporary are retried first, so an error here has persisted. The function's log in CloudWatch has the
same, and every retry before it.""",
    "rotation": """\
These end a step of a rotation, or what an operator asked of it ([Rotate keys](../how-to/rotate.md)). Secrets
Manager notes them in CloudTrail as `RotationFailed`; the function's log in CloudWatch has the whole message.
Whatever fails, the current key stays as it is and readers notice nothing. What a vendor says has a code of
its own from the section above.""",
    "notifications": """\
These end an invocation of the function that mails how an export ended. Lambda tries it twice more, within
minutes; then the event goes to the dead-letter queue (`DeadLettersUrl` of the exports' stack), which keeps it
for two weeks, and an alarm goes off. To send its mails, invoke the function with the event, which is the body
of the queue's message. Mails that went out already are not sent again.""",
    "monitoring": """\
These are in the log of the monitoring function only. A metric that could not be measured is missing, and
after two checks its alarm goes off.""",
}


def build_commands_page() -> str:
    group = typer.main.get_command(__main__.app)
    sections = [_describe_command(path, command) for path, command in leaves(group)]
    environment = f"## Environment variables\n\n{_describe_variables()}\n\n{_ENVIRONMENT}"
    return markdown.format_page(
        "Command line",
        _INTRO,
        _describe_shared_options(),
        *sections,
        environment,
        _describe_job(),
        f"## Shell completion\n\n{_COMPLETION}",
    )


def leaves(group: Any) -> Iterator[tuple[str, Any]]:
    """Yield the words and the command of each command that isn't a group."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from ((f"{name} {below}", leaf) for below, leaf in leaves(command))
        else:
            yield name, command


def _describe_shared_options() -> str:
    rows = [(_spell_option(option), option.help) for option in app.SHARED_OPTIONS.values()]
    return f"## Options of all commands\n\n{_SHARED}\n\n" + markdown.format_table(["option", "meaning"], rows)


def _describe_command(path: str, command: Any) -> str:
    arguments = [param for param in command.params if param.param_type_name == "argument"]
    takes = [format_code(param.opts[0]) for param in command.params if param.name in _SOMETIMES]
    options = [
        param
        for param in command.params
        if param.param_type_name == "option" and param.name not in app.SHARED_OPTIONS
    ]
    words = [f"lakeferry {path}"]
    words += [
        argument.name.upper() if argument.required else f"[{argument.name.upper()}]" for argument in arguments
    ]
    words += [f"{option.opts[0]} {_name_kind(option)}" for option in options if option.required]
    rows = [
        (format_code(argument.name.upper()), "**required**" if argument.required else "", argument.help)
        for argument in arguments
    ]
    rows += [(_spell_option(option), _show_default(option), option.help) for option in options]
    usage = markdown.format_block("text", " ".join([*words, "[OPTIONS]"]))
    parts = [f"## lakeferry {path}", command.help, usage]
    parts += [markdown.format_table(["option", "default", "meaning"], rows)] if rows else []
    parts += [f"Also takes {' and '.join(takes)}."] if takes else []
    return "\n\n".join([*parts, *_describe_results(command.callback.declared)])


def _describe_results(declared: Declared) -> Iterator[str]:
    exits = ", ".join(map(str, declared.exits))
    yield (
        f"Exit codes: {exits} ([what they mean](errors.md#exit-codes)). With `--json`, the document has these "
        "keys, and those of all commands:"
    )
    yield markdown.format_table(
        ["key", "meaning"], [(format_code(name), meaning) for name, meaning in declared.json_keys.items()]
    )


def _spell_option(option: Any) -> str:
    kind = _name_kind(option)
    return ", ".join(format_code(f"{word} {kind}".strip()) for word in (*option.opts, *option.secondary_opts))


def _name_kind(option: Any) -> str:
    if issubclass(option.type_descriptor.annotation, StrEnum):
        return " | ".join(option.type_descriptor.annotation)
    return _KINDS[option.type_descriptor.annotation.__name__]


def _show_default(option: Any) -> str:
    if option.required:
        return "**required**"
    return format_code(str(option.default)) if option.default not in (None, False, "") else ""


def _describe_variables() -> str:
    defaults = {field.name: field.default for field in attrs.fields(target.ExportTarget)}
    rows = [
        (
            format_code(variable),
            "" if defaults[name] is attrs.NOTHING else format_code(str(defaults[name])),
            _VARIABLES[name],
        )
        for name, variable in target.VARIABLES.items()
    ]
    key = "The secret with a Tableflow key, for `lakeferry query --catalog tableflow`."
    stage = (
        format_code(app.STAGE_VARIABLE),
        format_code(DEFAULT_STAGE),
        "The stage, if `--stage` is not given.",
    )
    return markdown.format_table(
        ["variable", "default", "meaning"], [*rows, (format_code(query.TABLEFLOW_SECRET), "", key), stage]
    )


def _describe_job() -> str:
    rows = [
        (format_code(f"--{name}"), _show_job_default(name), meaning) for name, meaning in ARGUMENTS.items()
    ]
    table = markdown.format_table(["argument", "default", "meaning"], rows)
    return f"## Arguments of the job\n\n{_JOB_INTRO}\n\n{table}"


def _show_job_default(name: str) -> str:
    if name in REQUIRED_ARGUMENTS:
        return "**required**"
    return "`s3://<bucket>/warehouse`" if name == "warehouse" else format_code(DEFAULT_ARGUMENTS[name])


def build_errors_page() -> str:
    rows = [(format_code(str(number)), of_command, of_job) for number, of_command, of_job in _EXITS]
    exits = f"## Exit codes\n\n{_EXIT_INTRO}\n\n" + markdown.format_table(
        ["exit code", "`lakeferry …`", "the job"], rows
    )
    return markdown.format_page(
        "Error codes",
        _ERRORS_INTRO,
        exits,
        *(_describe_part(part, title) for part, title in errors.PARTS.items()),
    )


def _describe_part(part: str, title: str) -> str:
    entries = [
        "\n\n".join(_describe_error(entry))
        for entry in errors.load_catalogue().values()
        if entry.part == part
    ]
    return "\n\n".join([f"## {title}", *filter(None, [_PART_INTROS.get(part)]), *entries])


def _describe_error(entry: Entry) -> Iterator[str]:
    yield f"### {entry.code}"
    ends = f" Exit code {entry.exit_code}." if entry.exit_code != errors.FAILED else ""
    yield f"**{entry.title}.** {entry.cause}{ends}"
    yield f"→ {entry.remedy}"
