"""errors.md: every error with its cause and what to do, from the catalogue; and what each exit code means."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from lakeferry import errors
from lakeferry.errors import Entry
from tools.docs import markdown
from tools.docs.markdown import code

TITLE: Final = "Error codes"
_INTRO: Final = """\
An error has a code that doesn't change, one sentence that says what happened, and what to do. On a terminal:

```text
EXP-TABLE-MISSING  the Glue catalog has no table lkc-abc123.sales_orders
→ Check the database (the Kafka cluster's id) and that Tableflow and its Glue integration are on for the topic
  docs/reference/errors.md#exp-table-missing
```

`lakeferry explain EXP-TABLE-MISSING` shows its entry on the terminal; `lakeferry explain` alone lists all codes. With `--json`,
standard output holds the same as one document: [Options of all commands](command-line.md#options-of-all-commands). The error of
a window is also in the [run's record](run-record.md). Whatever happens, a run publishes a window completely or not at all.
Messages never contain a secret or a value of the data."""
_EXIT_INTRO: Final = """\
With several windows, the exit code is that of the worst one; windows that could be published are. An entry below names the exit
code of a command that ends with it, where that is not 1. An unknown option or a missing argument is exit code 2 too. `make setup`
ends with 0 or 3."""
#: Of the commands, and of the job (`python -m glue_jobs.export`), which has fewer.
_EXITS: Final = (
    (errors.DONE, "done", "done; also where a window waits for data"),
    (errors.FAILED, "failed: the source, the data, AWS or a bug", "the same"),
    (errors.WRONG_INPUT, "wrong input: options, a contract, a file of events, SQL", "arguments or the contract"),
    (errors.NOT_SET_UP, "not ready: this machine is not set up (run `make setup`), or `lakeferry doctor` found a ✗", ""),
    (errors.CHANGES, "there are changes: `lakeferry plan --check`", ""),
    (errors.LATER, "not yet: every window waits for newer data; try again later", ""),
    (errors.STOPPED, "stopped by Ctrl-C", ""),
    (errors.KEPT_BACK, "blocked: a check or the scan for personal data blocked a window", "the same"),
)
_INTROS: Final = {
    "resources": """\
These end a `cdk deploy` or `cdk destroy`. CloudFormation shows one line: the code, what was being done to which resource, what
the vendor said with its HTTP status and its own request id, and what to do. What may pass by itself is retried first, so an error
here has lasted. The function's log in CloudWatch has the same, and every retry before it.""",
    "rotation": """\
These end a step of a rotation, or what an operator asked of it ([Rotate keys](../how-to/rotate.md)). Secrets Manager notes them
in CloudTrail as `RotationFailed`; the function's log in CloudWatch has the whole message. Whatever fails, the current key stays
as it is and readers notice nothing. What a vendor says has a code of its own from the section above.""",
    "notifications": """\
These end an invocation of the function that mails how an export ended. Lambda tries it twice more, within minutes; then the event
goes to the dead-letter queue (`DeadLettersUrl` of the exports' stack), which keeps it for two weeks, and an alarm goes off. To
send its mails, invoke the function with the event, which is the body of the queue's message. Mails that went out already are not
sent again.""",
    "monitoring": """\
These are in the log of the monitoring function only. A metric that could not be measured is missing, and after two checks its
alarm goes off.""",
}


def text() -> str:
    rows = [(code(str(number)), of_command, of_job) for number, of_command, of_job in _EXITS]
    exits = f"## Exit codes\n\n{_EXIT_INTRO}\n\n" + markdown.table(["exit code", "`lakeferry …`", "the job"], rows)
    return markdown.page(TITLE, _INTRO, exits, *(_part(part, title) for part, title in errors.PARTS.items()))


def _part(part: str, title: str) -> str:
    entries = ["\n\n".join(_lines(entry)) for entry in errors.catalogue().values() if entry.part == part]
    return "\n\n".join([f"## {title}", *filter(None, [_INTROS.get(part)]), *entries])


def _lines(entry: Entry) -> Iterator[str]:
    yield f"### {entry.code}"
    ends = f" Exit code {entry.exit_code}." if entry.exit_code != errors.FAILED else ""
    yield f"**{entry.title}.** {entry.cause}{ends}"
    yield f"→ {entry.remedy}"
