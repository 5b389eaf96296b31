"""The outcome of a run: its record, the news about each window and about the run, and further facts for the
mail.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, Final

import attrs

from config.exports import contracts, cron
from config.exports.contract import Contract
from config.toml_model import BadFile
from lambdas.notifications.attachments import Attachment
from lambdas.shared.aws import translate_aws_errors
from lambdas.shared.s3 import Objects

if TYPE_CHECKING:
    from mypy_boto3_glue import GlueClient

#: Used instead of a window's label for news about a whole run; no window has this label.
RUN: Final = "run"

COMPLETE: Final = "complete"
EMPTY: Final = "empty"
INCOMPLETE: Final = "incomplete"
BLOCKED: Final = "blocked"
FAILED: Final = "failed"
RECOVERED: Final = "recovered"
#: The state of a whole run without a failure: no news unless there was a failure before.
FINE: Final = "fine"

#: States after which a recovery is news.
FAILURE_STATES: Final = (BLOCKED, FAILED)
DIED: Final = "EXP-DIED"
_VISIBLE: Final = ("published", "unchanged", "superseded")
_CODE: Final = re.compile(r"[A-Z]+(?:-[A-Z]+)+")
_UNKNOWN: Final = "EXP-INTERNAL"
#: Glue's error message after the job ended with sys.exit("CODE  reason").
_MESSAGE_OF_JOB: Final = re.compile(r"SystemExit: (EXP(?:-[A-Z]+)+)  (.+)")


@attrs.frozen
class RunOutcome:
    """News about one window, or about the run as a whole.

    `window` is the window's label, or RUN. `identity` is equal for the same news from several runs.
    `document` is the window's part of the run's record.
    """

    export: str
    window: str
    state: str
    identity: str
    run_id: str
    code: str = ""
    reason: str = ""
    remedy: str = ""
    document: Mapping[str, Any] = attrs.Factory(dict)

    @property
    def is_bad(self) -> bool:
        return self.state in (INCOMPLETE, *FAILURE_STATES) and not self.has_file

    @property
    def has_file(self) -> bool:
        """Return whether there are files to download."""
        return bool(self.document.get("files"))


def read_record(record: Mapping[str, Any]) -> list[RunOutcome]:
    """Return the news in a record: about each window, in the run's order, then about the run itself."""
    windows = [news for window in record.get("windows", []) if (news := _read_window(record, window))]
    return [*windows, _read_run(record)]


def describe_dead_run(export: str, run_id: str, message: str = "") -> RunOutcome:
    """Return the news about a run that wrote no record, or whose record has no end.

    `message` is Glue's error message. It is passed on only if the job wrote it: one of Spark may quote data.
    """
    code = DIED
    reason = "the run ended without a reason"
    remedy = "Look at the job's log, then run again"
    if written := _MESSAGE_OF_JOB.fullmatch(message):
        code, reason = written.groups()
        remedy = ""  # the reason ends with it
    return RunOutcome(export, RUN, FAILED, f"failed-{run_id}", run_id, code, reason, remedy)


def _read_run(record: Mapping[str, Any]) -> RunOutcome:
    export = record["export"]
    run_id = record["id"]
    if record["state"] == "running":
        return describe_dead_run(export, run_id)
    code, _, what = str(record.get("reason") or "").partition("  ")
    of_windows = [window.get("code") for window in record.get("windows", []) if window.get("exit_code")]
    if record["state"] in FAILURE_STATES and code not in of_windows:
        return RunOutcome(export, RUN, FAILED, f"failed-{run_id}", run_id, _require_known_code(code), what)
    return RunOutcome(export, RUN, FINE, FINE, run_id)


def _read_window(record: Mapping[str, Any], window: Mapping[str, Any]) -> RunOutcome | None:
    """Return the news about a window; None if its state is no news, for example in a dry run."""
    common = {"export": record["export"], "window": str(window["window"]), "run_id": record["id"]}
    state = window["state"]
    reason = str(window.get("reason") or "")
    if state in _VISIBLE:
        status = window["status"] if window["status"] in (COMPLETE, EMPTY, INCOMPLETE) else COMPLETE
        return RunOutcome(
            **common, state=status, identity=f"published-{window['generation']}", document=window
        )
    if state == "skipped":
        return RunOutcome(**common, state=EMPTY, identity="skipped", document={**window, "files": []})
    if state == INCOMPLETE:
        return RunOutcome(**common, state=INCOMPLETE, identity=INCOMPLETE, reason=reason)
    if state in FAILURE_STATES:
        code = _require_known_code(str(window.get("code") or ""))
        remedy = str(window.get("remedy") or "")
        return RunOutcome(
            **common, state=state, identity=f"{state}-{code}", code=code, reason=reason, remedy=remedy
        )
    return None


def _require_known_code(code: str) -> str:
    return code if _CODE.fullmatch(code) else _UNKNOWN


#: Maximum number of manifests that are read to find a window with rows.
_MANIFESTS: Final = 10


@attrs.frozen
class ExportSettings:
    """The settings of an export in the deployment.

    `recipients` has the ids of recipients who get mails of their own. If it is empty, all get the same one.
    `topic` is "" if SES sends the mails; `addresses` then has the address of each of the recipients.
    """

    name: str
    job: str
    topic: str
    zone: str
    cron: str = ""
    recipients: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    link_days: int = 0


@attrs.frozen
class Facts:
    """`manifest` is the window's manifest, if it has the same generation as the news.

    `last` is the manifest of the latest window with rows: of those before the window, or of all for news
    about a whole run. `attached` has the files that the mail carries.
    """

    title: str
    owner: str
    zone: str
    next_run: datetime | None
    manifest: Mapping[str, Any] = attrs.Factory(dict)
    last: Mapping[str, Any] = attrs.Factory(dict)
    attached: Sequence[Attachment] = ()

    def change(self, number: Mapping[str, Any]) -> tuple[Decimal, str] | None:
        """Return the change of a headline number from the window before, in percent with one decimal, and
        that window's label; None if there is none, or if it can't be shown.
        """
        before = self.manifest.get("previous_window") or {}
        figure = (
            f"{number.get('column')} {number.get('unit') or ''}"
            if number.get("per")
            else str(number.get("column"))
        )
        old = (before.get("totals") or {}).get(figure) or "0"
        try:
            percent = (Decimal(str(number["total"])) / Decimal(old) - 1) * 100
            return percent.quantize(Decimal("0.1")) + 0, before["window"]  # + 0: there is no -0.0
        except (InvalidOperation, ZeroDivisionError):
            return None


def gather_facts(
    objects: Objects, prefix: str, export: ExportSettings, news: RunOutcome, now: float
) -> Facts:
    """Collect the facts. Raises LakeferryError if the bucket can't be read."""
    contract = read_contract(export.name)
    folder = f"{prefix}/{export.name}/manifests/"
    manifest = objects.read(f"{folder}{news.window}.json") if news.window != RUN else None
    if manifest is not None and manifest.document.get("generation") != news.document.get("generation"):
        manifest = None
    return Facts(
        title=contract.title if contract else export.name,
        owner=contract.owner if contract else "",
        zone=export.zone,
        next_run=next_run(export, now),
        manifest=manifest.document if manifest else {},
        last=_find_last_manifest(objects, folder, news.window)
        if not news.has_file or news.state == "empty"
        else {},
    )


def next_run(export: ExportSettings, now: float) -> datetime | None:
    return (
        cron.parse(export.cron, export.zone).after(datetime.fromtimestamp(now, UTC)) if export.cron else None
    )


@functools.cache
def read_contract(name: str) -> Contract | None:
    """Return None if the contract can't be read: the mail is then sent with the export's name alone."""
    try:
        return contracts.load(name)
    except BadFile:
        return None


def _find_last_manifest(objects: Objects, folder: str, window: str) -> Mapping[str, Any]:
    """Return the manifest of the latest window with rows, before `window` unless that is RUN."""
    labels = [listed.key.removeprefix(folder).removesuffix(".json") for listed in objects.list(folder)]
    earlier = [label for label in labels if window == RUN or label < window]
    for label in sorted(earlier, reverse=True)[:_MANIFESTS]:
        stored = objects.read(f"{folder}{label}.json")
        if stored and stored.document.get("rows", {}).get("rows"):
            return stored.document
    return {}


#: A run's id begins with the time when its record was created.
_ID_TIME: Final = "%Y%m%dT%H%M%SZ"
#: Maximum difference between the clocks of Glue and of its workers.
_SKEW: Final = timedelta(seconds=90)


@attrs.frozen
class JobRun:
    """A run of a Glue job. `message` is Glue's error message, empty if there is none."""

    id: str
    started: datetime
    message: str = ""

    @property
    def run_id(self) -> str:
        """Return an id for a run without a record. It sorts by time among the ids of records."""
        return f"{self.started:{_ID_TIME}}-{self.id[:40]}"


def get_job_run(glue: GlueClient, job: str, job_run_id: str) -> JobRun:
    with translate_aws_errors(f"getting run {job_run_id} of job {job}"):
        run = glue.get_job_run(JobName=job, RunId=job_run_id)["JobRun"]
    return JobRun(job_run_id, run["StartedOn"].astimezone(UTC), run.get("ErrorMessage", ""))


def find_record(objects: Objects, folder: str, run: JobRun) -> dict[str, Any] | None:
    """Return the record that has the job run's id: normally the first one created after the job run
    started.
    """
    for listed in objects.list(folder, after=f"{folder}{run.started - _SKEW:{_ID_TIME}}"):
        stored = objects.read(listed.key)
        if stored and stored.document.get("job_run_id") == run.id:
            return stored.document
    return None
