"""What a run's record says that is worth telling: about each window, and about the run as a whole."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import attrs

#: The place of what concerns a run as a whole; no window has such a label.
RUN: Final = "run"

COMPLETE: Final = "complete"
EMPTY: Final = "empty"
LATE: Final = "late"
BLOCKED: Final = "blocked"
FAILED: Final = "failed"
RECOVERED: Final = "recovered"
#: Of a run as a whole: nothing to tell, unless something was wrong before.
FINE: Final = "fine"

#: Worse than late, so that its end is news too.
TROUBLE: Final = (BLOCKED, FAILED)
DIED: Final = "EXP-DIED"
_VISIBLE: Final = ("published", "unchanged", "superseded")
_CODE: Final = re.compile(r"[A-Z]+(?:-[A-Z]+)+")
_UNKNOWN: Final = "EXP-INTERNAL"


@attrs.frozen
class News:
    """`identity` is the same for the same thing told by several runs. `document` is the window's, from the run's record.

    `has_file` says whether what it tells of has files to be fetched.
    """

    export: str
    place: str
    state: str
    identity: str
    run_id: str
    as_of: str = ""
    code: str = ""
    reason: str = ""
    remedy: str = ""
    document: Mapping[str, Any] = attrs.Factory(dict)

    @property
    def is_bad(self) -> bool:
        return self.state in (LATE, *TROUBLE) and not self.has_file

    @property
    def has_file(self) -> bool:
        return bool(self.document.get("files"))


def of_record(record: Mapping[str, Any]) -> list[News]:
    """In the order in which the run met it; about the run itself at the end."""
    windows = [news for window in record.get("windows", []) if (news := _of_window(record, window))]
    return [*windows, _of_run(record)]


def of_dead_run(export: str, run_id: str, as_of: str = "") -> News:
    """A run that wrote no record, or none of its end."""
    reason = "the run ended without a word"
    return News(export, RUN, FAILED, f"failed-{run_id}", run_id, as_of, DIED, reason, "Look into the job's log, then run again")


def _of_run(record: Mapping[str, Any]) -> News:
    export, run_id, as_of = record["export"], record["id"], str(record.get("as_of", ""))
    if record["state"] == "running":
        return of_dead_run(export, run_id, as_of)
    code, _, what = str(record.get("reason") or "").partition("  ")
    of_windows = [window.get("code") for window in record.get("windows", []) if window.get("exit_code")]
    if record["state"] in TROUBLE and code not in of_windows:
        return News(export, RUN, FAILED, f"failed-{run_id}", run_id, as_of, _known(code), what)
    return News(export, RUN, FINE, FINE, run_id, as_of)


def _of_window(record: Mapping[str, Any], window: Mapping[str, Any]) -> News | None:
    """None where the window's state is no news to anybody, as in a dry run."""
    common = {"export": record["export"], "place": str(window["window"]), "run_id": record["id"], "as_of": str(record["as_of"])}
    state, reason = window["state"], str(window.get("reason") or "")
    if state in _VISIBLE:
        status = window["status"] if window["status"] in (COMPLETE, EMPTY, LATE) else COMPLETE
        return News(**common, state=status, identity=f"published-{window['generation']}", document=window)
    if state == "skipped":
        return News(**common, state=EMPTY, identity="skipped", document={**window, "files": []})
    if state == LATE:
        return News(**common, state=LATE, identity=LATE, reason=reason)
    if state in TROUBLE:
        code = _known(str(window.get("code") or ""))
        remedy = str(window.get("remedy") or "")
        return News(**common, state=state, identity=f"{state}-{code}", code=code, reason=reason, remedy=remedy)
    return None


def _known(code: str) -> str:
    return code if _CODE.fullmatch(code) else _UNKNOWN
