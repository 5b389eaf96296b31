"""What a mail says beside the news: the export's title and owner, the window's bounds, what came before, what comes next."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import attrs

from exports import contract as contracts
from exports.toml_model import BadFile
from lambdas.notifications.outcome import RUN, News
from lambdas.shared import cron
from lambdas.shared.s3 import Objects

#: Windows that are looked through for one with rows.
_LOOKED_AT: Final = 10


@attrs.frozen
class Told:
    """What the deployment says of an export, from the function's environment."""

    name: str
    job: str
    topic: str
    zone: str
    cron: str = ""


@attrs.frozen
class Facts:
    """`manifest` is that of the news' window, where it says the same as the news; `last` that of the latest window with rows
    before it, or before now."""

    title: str
    owner: str
    zone: str
    next_run: datetime | None
    manifest: Mapping[str, Any] = attrs.Factory(dict)
    last: Mapping[str, Any] = attrs.Factory(dict)

    def change(self, number: Mapping[str, Any]) -> tuple[Decimal, str] | None:
        """By how many percent a number of the headline differs from the window's before, and which that was."""
        before = self.manifest.get("previous_window") or {}
        figure = f"{number.get('column')} {number.get('unit') or ''}" if number.get("per") else str(number.get("column"))
        old = (before.get("totals") or {}).get(figure) or "0"
        try:
            return (Decimal(str(number["total"])) / Decimal(old) - 1) * 100, before["window"]
        except (InvalidOperation, ZeroDivisionError):
            return None


def gather(objects: Objects, prefix: str, told: Told, news: News, now: float) -> Facts:
    """Raises LakeferryError where the bucket can't be asked."""
    title, owner = _of_contract(told.name)
    folder = f"{prefix}/{told.name}/manifests/"
    manifest = objects.read(f"{folder}{news.place}.json") if news.place != RUN else None
    same = manifest is not None and manifest.document.get("generation") == news.document.get("generation")
    return Facts(
        title=title,
        owner=owner,
        zone=told.zone,
        next_run=next_run(told, now),
        manifest=manifest.document if manifest and same else {},
        last=_last(objects, folder, news.place) if not news.has_file or news.state == "empty" else {},
    )


def next_run(told: Told, now: float) -> datetime | None:
    return cron.parse(told.cron, told.zone).after(datetime.fromtimestamp(now, UTC)) if told.cron else None


@functools.cache
def _of_contract(name: str) -> tuple[str, str]:
    """Title and owner; the contract ships with the function, but a mail has to go out without it too."""
    try:
        contract = contracts.load(name)
    except BadFile:
        return name, ""
    return contract.title, contract.owner


def _last(objects: Objects, folder: str, place: str) -> Mapping[str, Any]:
    """The manifest of the latest window with rows, up to `place` where that is a window."""
    labels = [listed.key.removeprefix(folder).removesuffix(".json") for listed in objects.list(folder)]
    earlier = [label for label in labels if place == RUN or label < place]
    for label in sorted(earlier, reverse=True)[:_LOOKED_AT]:
        found = objects.read(f"{folder}{label}.json")
        if found and found.document.get("rows", {}).get("rows"):
            return found.document
    return {}
