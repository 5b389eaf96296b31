"""`lakeferry export list --stage`: each export with its schedule, last run, and the state of its windows."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

import attrs

from config.deployments.export_model import Export
from config.exports import cron
from config.exports.window_ranges import write_ranges
from lakeferry.deployment.context import open_context
from lakeferry.exports import job_runs
from lakeferry.exports.deployed import DeployedExport, find_export
from lakeferry.exports.job_runs import EndedRun
from lakeferry.output import Output, find_program_name

#: How many windows of each export are shown.
_NEWEST: Final = 10
_IN_PARALLEL: Final = 8


@attrs.frozen
class ListedWindow:
    """`state` is that of the manifest (complete, empty, incomplete), `skipped` for a window that was empty
    and needs no file, or `missing`. `generation` and `rows` are None without a manifest.
    """

    window: str
    state: str
    generation: int | None = None
    rows: int | None = None


@attrs.frozen
class ListedExport:
    """`windows` are the newest first, and `older` is how many are not listed. `missing` are all windows that
    are over and have no file, oldest first, as ranges.
    """

    deployed: DeployedExport
    settings: Export
    last: EndedRun | None
    next_run: datetime | None
    windows: list[ListedWindow]
    older: int
    missing: str

    def document(self) -> dict[str, Any]:
        contract = self.deployed.contract
        last = self.last
        run = {"id": last.job_run.id, "began": last.job_run.started, "state": last.state} if last else None
        return {
            "name": contract.name,
            "title": contract.title,
            "topic": contract.source.topic,
            "version": contract.version,
            "cron": self.settings.cron,
            "zone": self.settings.zone,
            "last": run,
            "next_run": self.next_run,
            "windows": [attrs.asdict(window) for window in self.windows],
            "older": self.older,
            "missing": self.missing,
        }


def list_exports(output: Output, stage: str, *, everything: bool) -> dict[str, Any]:
    """With `everything`, list all windows. Raises CommandFailed if an export isn't deployed."""
    with open_context(stage) as ctx:
        exports = []
        with output.step(f"Reading the exports of {ctx.deployment.prefix}"):
            for settings in ctx.deployment.exports:
                exports.append(_read_export(find_export(ctx, settings.contract), settings, everything))
        for export in exports:
            _show(output, export)
        if not exports:
            output.print(f"The deployment file of stage {stage} has no exports.")
        output.print(f"Next: {_describe_next(stage, exports)}")
        return {"exports": [export.document() for export in exports], "broken": []}


def _read_export(export: DeployedExport, settings: Export, everything: bool) -> ListedExport:
    closed = [window.label for window in export.list_closed()]
    published = export.list_labels("manifests")
    skipped = export.list_labels("skipped")
    labels = sorted({*closed, *published, *skipped}, reverse=True)
    shown = labels if everything else labels[:_NEWEST]
    missing = [label for label in closed if label not in published and label not in skipped]

    def read_window(label: str) -> ListedWindow:
        if label not in published:
            return ListedWindow(label, "skipped" if label in skipped else "missing")
        stored = export.objects.read(f"{export.locate_folder('manifests')}{label}.json")
        if stored is None:  # somebody has just taken it back
            return ListedWindow(label, "missing")
        manifest = stored.document
        return ListedWindow(label, manifest["status"], manifest["generation"], manifest["rows"]["rows"])

    with ThreadPoolExecutor(_IN_PARALLEL) as pool:
        windows = list(pool.map(read_window, shown))
    return ListedExport(
        deployed=export,
        settings=settings,
        last=job_runs.read_last_run(export),
        next_run=cron.parse(settings.cron, settings.zone).after(export.now),
        windows=windows,
        older=len(labels) - len(shown),
        missing=write_ranges(missing, closed),
    )


def _show(output: Output, export: ListedExport) -> None:
    contract = export.deployed.contract
    settings = export.settings
    output.print(
        f"{contract.name}: {contract.title}, version {contract.version} of the contract in this clone"
    )
    last = export.last
    began = f"{last.job_run.started:%Y-%m-%d %H:%M} UTC {last.state}" if last else "none"
    local = export.next_run.astimezone(ZoneInfo(settings.zone)) if export.next_run else None
    due = f"{local:%Y-%m-%d %H:%M} {settings.zone}" if local else "never"
    output.print(f"  schedule {settings.cron} {settings.zone} · last run {began} · next run {due}")
    rows = [
        [
            window.window,
            window.state,
            "" if window.generation is None else str(window.generation),
            "" if window.rows is None else f"{window.rows:,}",
        ]
        for window in export.windows
    ]
    if rows:
        output.table(["window", "state", "generation", "rows"], rows)
    if export.older:
        output.print(f"  {export.older} older windows: --all lists them")
    output.print("")


def _describe_next(stage: str, exports: Sequence[ListedExport]) -> str:
    name = find_program_name()
    for export in exports:
        if export.missing:
            words = f"{export.deployed.name} --stage {stage} --windows {export.missing}"
            return f"`{name} export backfill {words}` publishes missing windows"
    return f"`{name} status --stage {stage}` shows whether tables, runs and mails are healthy"
