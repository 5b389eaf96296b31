"""errors.md: every error code that the sources can raise, with its cause and what to do; and exit-codes.md."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from glue_jobs import errors, spark_errors
from lakeferry import console
from lakeferry.bootstrap import ROOT
from lakeferry.reference import causes, markdown
from lakeferry.reference.markdown import code
from lambdas.core.errors import ErrorRow
from lambdas.notification import error_rows as notification
from lambdas.resources.reference import all_errors
from lambdas.rotation import error_rows as rotation
from lambdas.watch import error_rows as watch

TITLE = "Error codes"
EXIT_TITLE = "Exit codes"
_PACKAGES = ("glue_jobs", "lakeferry")
_HERE = Path(__file__).parent
_CODE = re.compile(r"[A-Z]{2,}(-[A-Z]+)*")
_INTRO = """\
An error has a code that doesn't change, one sentence that says what happened, and what to do. On a terminal:

```text
EXP-TABLE-MISSING  the Glue catalog has no table lkc-abc123.sales_orders
→ Check the database (the Kafka cluster's id) and that Tableflow and its Glue integration are on for the topic
  docs/reference/errors.md#exp-table-missing
```

With `--json`, standard output holds the same as one document: `ok` (false), `code`, `message`, `hint`, `docs`, `details`,
`exit_code`. The trouble of a window also stands in the [run's record](run-record.md). Whatever happens, a run publishes a window
whole or not at all. Messages never hold a secret or a value of the data."""

_OF_RESOURCES = """\
These end a `cdk deploy` or `cdk destroy`. CloudFormation shows one line: the code, what was being done to which resource, what
the vendor said with its HTTP status and its own request id, the likely cause and what to do. What may pass by itself is waited
for first, so an error here has lasted. The function's log in CloudWatch holds the same, and every wait before it."""

_OF_ROTATION = """\
These end a step of a rotation, or what an operator asked of it ([Rotate keys](../how-to/rotate.md)). Secrets Manager notes them
in CloudTrail as `RotationFailed`; the function's log in CloudWatch holds the whole message. Whatever fails, the current key
stays as it is and readers notice nothing. What a vendor says comes with a code of its own from the section above."""

_OF_MAILS = """\
These end an invocation of the function that tells what came of an export. Lambda tries it twice more; then it lies in the
dead-letter queue, and an alarm says so. What could not be told is told by the next look, once an hour."""

_OF_WATCH = """\
These stand in the watch's log only. A metric that could not be had is missing, and after two looks its alarm goes off."""

#: What each exit code means: of the commands, and of the job (`python -m glue_jobs.export`), which has fewer.
_EXITS = [
    (console.DONE, "done", "done; also where a window waits for data"),
    (console.FAILED, "failed: the source, the data, AWS or a bug", "the same"),
    (console.WRONG_INPUT, "wrong input: options, a contract, a file of events, SQL", "arguments or the contract"),
    (console.NOT_SET_UP, "this machine is not set up: run `make setup`", ""),
    (console.LATER, "not yet: every window waits for newer data; try again later", ""),
    (console.STOPPED, "stopped by Ctrl-C", ""),
    (console.KEPT_BACK, "kept back: a check or the scan for personal data blocked a window", "the same"),
]


def text() -> str:
    codes = in_sources()
    if differing := codes.keys() ^ (causes.EXPORT.keys() | causes.COMMANDS.keys()):
        raise LookupError(f"codes in the sources and codes explained in causes.py differ: {', '.join(sorted(differing))}")
    return markdown.page(
        TITLE,
        _INTRO,
        _section("Exports", causes.EXPORT, codes),
        _section("Commands", causes.COMMANDS, codes),
        _rows("Resources of a deployment", _OF_RESOURCES, all_errors()),
        _rows("Rotation", _OF_ROTATION, sorted(rotation.ERRORS)),
        _rows("Notices about exports", _OF_MAILS, sorted(notification.ERRORS)),
        _rows("The watch", _OF_WATCH, sorted(watch.ERRORS)),
    )


def exit_text() -> str:
    rows = [(code(str(number)), of_command, of_job) for number, of_command, of_job in _EXITS]
    return markdown.page(
        EXIT_TITLE,
        "With several windows, the exit code is that of the worst one; windows that could be published are. "
        "Which code of an error leads to which exit code stands in [Error codes](errors.md).",
        markdown.table(["exit code", "`lakeferry …`", "the job"], rows),
        "An option that doesn't exist, or a missing argument, is exit code 2 too. Set-up (`make setup`) ends with 0 or 3.",
    )


def in_sources(root: Path = ROOT) -> dict[str, set[int]]:
    """The codes that the sources name, with the exit codes that each can lead to."""
    found: dict[str, set[int]] = {}
    for file in (file for package in _PACKAGES for file in sorted((root / package).rglob("*.py"))):
        if _HERE not in file.parents:
            for name, exits in _of_file(ast.parse(file.read_text(encoding="utf-8"))):
                found.setdefault(name, set()).update(exits)
    for _, kind, name, _, _ in spark_errors._KNOWN:
        if name in found:
            found[name].add(kind.exit_code)
    return found


def _of_file(tree: ast.Module) -> Iterator[tuple[str, set[int]]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "-" in node.value and _CODE.fullmatch(node.value):
            yield node.value, set()
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield from _of_call(node.func.id, node.args)


def _of_call(name: str, arguments: list[ast.expr]) -> Iterator[tuple[str, set[int]]]:
    """An error that is made right here, so that both its code and its exit code can be read."""
    if name == "CommandFailed" and len(arguments) > 1 and isinstance(arguments[1], ast.Constant):
        exit_name = arguments[0]
        exits = {getattr(console, exit_name.id)} if isinstance(exit_name, ast.Name) and exit_name.id.isupper() else set()
        yield str(arguments[1].value), exits
    kind = getattr(errors, name, None)
    if isinstance(kind, type) and issubclass(kind, errors.ExportError) and isinstance(arguments[0], ast.Constant):
        yield str(arguments[0].value), {kind.exit_code}


def _rows(title: str, intro: str, rows: Sequence[ErrorRow]) -> str:
    parts = [f"## {title}", intro]
    for row in rows:
        parts.append(f"### {row.code}\n\n{row.title}.\n\n**Why.** {row.cause}\n\n**What to do.** {row.remedy}")
    return "\n\n".join(parts)


def _section(title: str, explained: dict[str, tuple[str, str]], codes: dict[str, set[int]]) -> str:
    parts = [f"## {title}"]
    for name, (cause, remedy) in sorted(explained.items()):
        exits = " or ".join(map(str, sorted(codes[name]))) or str(console.FAILED)
        parts.append(f"### {name}\n\n**Why.** {cause}\n\n**What to do.** {remedy}\n\nExit code {exits}.")
    return "\n\n".join(parts)
