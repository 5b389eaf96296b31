"""errors.md and a page for each error code below errors/, with its cause and what to do; and exit-codes.md."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import typer

from lakeferry import __main__ as command_line
from lakeferry import console
from lakeferry.reference import known_errors, markdown
from lakeferry.reference.commands import leaves
from lakeferry.reference.known_errors import Known
from lakeferry.reference.markdown import code

TITLE = "Error codes"
EXIT_TITLE = "Exit codes"
#: Where the pages of the codes are, below docs/reference.
FOLDER: Final = "errors"
_LINK: Final = re.compile(r"\]\((?!\w+://)")
_INTRO = """\
An error has a code that doesn't change, one sentence that says what happened, and what to do. On a terminal:

```text
EXP-TABLE-MISSING  the Glue catalog has no table lkc-abc123.sales_orders
→ Check the database (the Kafka cluster's id) and that Tableflow and its Glue integration are on for the topic
  docs/reference/errors/exp-table-missing.md
```

`lakeferry explain EXP-TABLE-MISSING` shows the page on the terminal; `lakeferry explain` alone lists all codes. With `--json`,
standard output holds the same as one document: [Options of all commands](command-line.md#options-of-all-commands). The trouble of
a window also stands in the [run's record](run-record.md). Whatever happens, a run publishes a window whole or not at all.
Messages never hold a secret or a value of the data."""

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

_INTROS: Final = {
    known_errors.RESOURCES: _OF_RESOURCES,
    known_errors.ROTATION: _OF_ROTATION,
    known_errors.MAILS: _OF_MAILS,
    known_errors.WATCH: _OF_WATCH,
}

#: What each exit code means: of the commands, and of the job (`python -m glue_jobs.export`), which has fewer.
_EXITS = [
    (console.DONE, "done", "done; also where a window waits for data"),
    (console.FAILED, "failed: the source, the data, AWS or a bug", "the same"),
    (console.WRONG_INPUT, "wrong input: options, a contract, a file of events, SQL", "arguments or the contract"),
    (console.NOT_SET_UP, "not ready: this machine is not set up (run `make setup`), or `lakeferry doctor` found a ✗", ""),
    (console.CHANGES, "there are changes: `lakeferry plan --check`", ""),
    (console.LATER, "not yet: every window waits for newer data; try again later", ""),
    (console.STOPPED, "stopped by Ctrl-C", ""),
    (console.KEPT_BACK, "kept back: a check or the scan for personal data blocked a window", "the same"),
]


def text() -> str:
    """Raises LookupError where an error is raised that nobody explains, or explained that nobody raises."""
    if differing := [*known_errors.unexplained(), *known_errors.never_raised()]:
        raise LookupError(f"codes that are raised and codes that are explained differ: {', '.join(differing)}")
    rooms = dict.fromkeys((known_errors.EXPORTS, known_errors.COMMANDS, *_INTROS))
    return markdown.page(TITLE, _INTRO, *(_room(room) for room in rooms))


def pages() -> dict[str, str]:
    """By file name, below docs/reference."""
    there = [words for words, _ in leaves(typer.main.get_command(command_line.app))]
    return {f"{FOLDER}/{known.page}": _page(known, there) for known in known_errors.by_code().values()}


def exit_text() -> str:
    rows = [(code(str(number)), of_command, of_job) for number, of_command, of_job in _EXITS]
    return markdown.page(
        EXIT_TITLE,
        "With several windows, the exit code is that of the worst one; windows that could be published are. "
        "Which code of an error leads to which exit code stands in [Error codes](errors.md).",
        markdown.table(["exit code", "`lakeferry …`", "the job"], rows),
        "An option that doesn't exist, or a missing argument, is exit code 2 too. Set-up (`make setup`) ends with 0 or 3.",
    )


def _room(room: str) -> str:
    entries = [
        f"### {known.code}\n\n{known.what}: [why, and what to do]({FOLDER}/{known.page})."
        for known in known_errors.by_code().values()
        if known.room == room
    ]
    return "\n\n".join([f"## {room}", *filter(None, [_INTROS.get(room, "")]), *entries])


def _page(known: Known, there: list[str]) -> str:
    return markdown.page(known.code, f"{known.what}.", *(_LINK.sub("](../", part) for part in _parts(known, there)))


def _parts(known: Known, there: list[str]) -> Iterator[str]:
    yield f"**Why.** {known.why}"
    yield f"**What to do.** {known.fix}"
    if known.ends_commands:
        yield f"**Exit code** of a command that ends with it: {' or '.join(map(str, known.exits))} ([Exit codes](exit-codes.md))."
    if commands := known.commands(there):
        links = [f"[`lakeferry {words}`](command-line.md#lakeferry-{words.replace(' ', '-')})" for words in commands]
        yield f"**Commands.** {', '.join(links)}"
    yield f"**Raised in** {', '.join(code(place) for place in known.places)}."
    yield f"All codes: [{TITLE}](errors.md#{known.code.lower()})."
