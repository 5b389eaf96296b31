"""Announce each published generation of a window: one event on EventBridge's default bus, of which rules make
a message in Slack, a call of a webhook, or the start of another job.

An event is put at least once. A marker in S3 records what was announced, so an event of Glue that comes twice
makes one announcement. The marker is written after EventBridge accepted the event: if that write is lost, or
two invocations run at once, the event is put again, with the same id.

A generation that a later one has replaced is not announced: the run of the later one announces that.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

import attrs
import cattrs

from lambdas import contract
from lambdas.notifications import errors as notification_errors
from lambdas.notifications import message, outcome
from lambdas.notifications.mail_links import Links
from lambdas.notifications.mailer import Marker
from lambdas.notifications.outcome import ExportSettings, Facts, RunOutcome
from lambdas.shared.clock import Clock
from lambdas.shared.errors import LakeferryError, Transient
from lambdas.shared.event_bus import EventBus
from lambdas.shared.log import Log
from lambdas.shared.s3 import Objects

EVENTS: Final = "events"
#: The version of the detail. A receiver may rely on its fields; new ones may be added without a new version.
VERSION: Final = "1"
#: Limits of lists. EventBridge accepts 256 kB for an event.
MAX_FILES: Final = 50
MAX_SENTENCES: Final = 20


@attrs.frozen
class Announcer:
    """`notices` is the S3 prefix of the markers."""

    objects: Objects
    bus: EventBus
    clock: Clock
    log: Log
    project: str
    stage: str
    links: Links
    notices: str

    def announce(self, export: ExportSettings, news: RunOutcome) -> None:
        """Put an event about a generation that was not announced yet. Raises LakeferryError."""
        if not news.document.get("generation"):
            return
        key = f"{self.notices}/{export.name}/{news.window}/{EVENTS}.json"
        stored = self.objects.read(key)
        marker = cattrs.structure(stored.document, Marker) if stored else Marker()
        if marker.pending_state(news) is None:
            return
        facts = outcome.gather_facts(self.objects, self.links.prefix, export, news, self.clock.time())
        if not facts.manifest:
            self.log.info("not announced: the manifest has another generation", marker=key, run=news.run_id)
            return
        detail = describe_window(self.project, self.stage, self.links, news, facts)
        try:
            self.bus.put(contract.EVENT_SOURCE, contract.EVENT_TYPE, detail)
        except LakeferryError as error:
            raise Transient(notification_errors.EVENT_NOT_SENT, error.what) from None
        self.objects.write(key, attrs.asdict(marker.after(news)), over=stored.etag if stored else None)
        self.log.info("announced", marker=key, id=detail["id"])


def describe_window(project: str, stage: str, links: Links, news: RunOutcome, facts: Facts) -> dict[str, Any]:
    """Return the detail of the event, from the window's manifest. Texts are cleaned as in mails."""
    manifest = facts.manifest
    window = manifest["window"]
    files = message.select_files(manifest)
    failed = [check for check in manifest.get("checks") or [] if message.has_failed(check)]
    notes = [_quote(note) for note in manifest.get("notes") or []]
    summary = [_quote(line).rstrip(".") for line in message.list_summary(news, facts)]
    generation = int(manifest["generation"])
    run_id = message.to_one_line(manifest["run_id"])
    return {
        "version": VERSION,
        "id": f"{project}-{stage}/{news.export}/{window['label']}/{generation}/{run_id}",
        "project": project,
        "stage": stage,
        "export": news.export,
        "title": _quote(facts.title),
        "state": news.state,
        "text": " ".join(f"{line}." for line in summary),
        "window": {
            "label": _quote(window["label"]),
            "start": _format_instant(window["start"], window["zone"]),
            "end": _format_instant(window["end"], window["zone"]),
            "zone": window["zone"],
        },
        "generation": generation,
        "rows": int((manifest.get("rows") or {}).get("rows") or 0),
        "headline": [_describe_number(number, facts) for number in manifest.get("headline") or []],
        "checks": [_describe_check(check) for check in failed[:MAX_SENTENCES]],
        "notes": notes[:MAX_SENTENCES],
        "run_id": run_id,
        "published_at": manifest.get("published_at"),
        "files": [_describe_file(links, file) for file in files[:MAX_FILES]],
        "files_left_out": max(0, len(files) - MAX_FILES),
    }


def _quote(text: object) -> str:
    """Return text as in mails, without characters that JSON escapes: EventBridge's input transformers put the
    values of an event into JSON as they are.
    """
    return message.quote_line(text).replace('"', "'").replace("\\", "/")


def _format_instant(instant: str, zone: str) -> str:
    return datetime.fromisoformat(instant).astimezone(ZoneInfo(zone)).isoformat()


def _describe_number(number: Mapping[str, Any], facts: Facts) -> dict[str, Any]:
    change = facts.change(number)
    percent = f"{change[0]:+f}" if change else None
    return {
        "title": _quote(number["title"]),
        "unit": _quote(number["unit"]) if number.get("unit") else None,
        "total": message.quote_number(number["total"]),
        "change_percent": percent,
        "compared_with": _quote(change[1]) if change else None,
    }


def _describe_check(check: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": _quote(check["id"]),
        "severity": _quote(check["severity"]),
        "message": _quote(check["message"]),
        "rows": int(check.get("failed") or 0) if check.get("of") == "rows" else None,
    }


def _describe_file(links: Links, file: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "role": file["role"],
        "bucket": links.bucket,
        "key": file["key"],
        "size": int(file.get("size") or 0),
        "sha256": file.get("sha256"),
        "url": links.page(file["key"]),
    }
