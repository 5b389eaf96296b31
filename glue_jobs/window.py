"""Export one window, unless it is up to date: compute, upload, verify, describe and publish it."""

from __future__ import annotations

import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from functools import cached_property, partial
from typing import Any

import attrs

from config.exports.contract import Contract
from config.exports.windows import Window, find_kind
from glue_jobs.aggregate_table import is_table_current
from glue_jobs.borders import REMEDY
from glue_jobs.completeness import Verdict
from glue_jobs.delivery import cleanup, comparisons, counts, csv, descriptions, manifest, notes
from glue_jobs.delivery.counts import ReadCounts
from glue_jobs.delivery.excel_limits import require_rows
from glue_jobs.delivery.formats.write import write_formats
from glue_jobs.delivery.losses import accept_loss
from glue_jobs.delivery.manifest import INCOMPLETE, Accepted, Fence, File, Manifest, WindowResult
from glue_jobs.delivery.multipart import CsvFormat, StoredFile, write_file
from glue_jobs.delivery.publish import (
    PUBLISHED,
    SKIPPED,
    SUPERSEDED,
    UNCHANGED,
    Leftovers,
    Publication,
    WindowLocation,
    require_no_newer_contract,
)
from glue_jobs.delivery.verify import FileStats, verify_file
from glue_jobs.errors import Blocked, DataProblem, ExportError
from glue_jobs.failing import find_failing_expressions, name_expressions
from glue_jobs.platform import compute_code_version
from glue_jobs.rows import WindowFrame
from glue_jobs.run_context import RunContext
from glue_jobs.runs import describe_outcome
from glue_jobs.store import ObjectBody, translate_aws_errors
from glue_jobs.window_checks import require_clean, run_checks


@attrs.define(slots=False)  # for `cached_property`
class WindowExport:
    """One try to export one window of a run."""

    run: RunContext
    window: Window
    #: Whether the window is published, and its rows may be missing from the table of aggregates.
    _may_lack_aggregate: bool = attrs.field(default=False, init=False)

    @property
    def may_be_published(self) -> bool:
        """Whether the window may be published although this try failed. A later run must then check it,
        regardless of its age.
        """
        return self._publication.may_be_visible or self._may_lack_aggregate

    @property
    def contract(self) -> Contract:
        return self.run.contract

    @cached_property
    def location(self) -> WindowLocation:
        return self.run.location(self.window)

    @cached_property
    def _leftovers(self) -> dict[str, Leftovers]:
        """What runs left in this window, by their ids."""
        return self.run.listing.leftovers(self.window.label)

    @cached_property
    def _publication(self) -> Publication:
        return Publication(self.location, self.run.record, self.run.clock)

    def export(self) -> dict[str, Any]:
        """Return the window's document for the run's record.

        If an error stops it, it removes the files that it wrote, unless they may be visible.
        """
        run = self.run
        run.record.require_time(run.clock())
        with self._phase("look for changes"):
            current = self._read_current()
            self._clean_up(current)
            inputs = self._hash_inputs()
        require_no_newer_contract(current, self.contract.version)
        self._require_fitting_borders()
        document = self._describe_if_up_to_date(current, inputs)
        if document is not None and document["status"] != INCOMPLETE:
            return document
        verdict = self._judge_completeness(current)
        if document is not None and not verdict.is_complete:
            return document
        if not verdict.is_complete and self.contract.window.on_incomplete_source != "publish":
            return self._describe_incomplete(verdict)
        try:
            document = self._compute_and_publish(verdict)
        except BaseException:
            if not self._publication.may_be_visible:
                # The first error is the one to report. The next run removes what is left.
                with suppress(ExportError):
                    self._discard_files()
            raise
        finally:
            with suppress(Exception):  # the first error is the one to report
                run.spark().catalog.clearCache()  # the groups of an aggregate
        if document["state"] in (PUBLISHED, UNCHANGED, SKIPPED):
            document["inputs_sha256"] = inputs
        return document

    def _phase(self, name: str) -> AbstractContextManager[None]:
        return self.run.phase(self.window, name)

    def _read_current(self) -> Manifest | None:
        """Return the visible manifest."""
        stored = self.location.current()
        return stored[0] if stored else None

    def _clean_up(self, current: Manifest | None) -> None:
        """Remove what runs that are over left in this window, as far as it can't become visible."""
        removed = cleanup.clean_window(
            self.location, current, self._leftovers, self.run.record.id, self.run.clock()
        )
        for run_id in removed:
            del self._leftovers[run_id]

    def _discard_files(self) -> None:
        cleanup.discard_files(self.location, self.run.record.id)

    def _hash_inputs(self) -> str:
        """Return a hash of everything that determines the rows. While it is the same, so are they."""
        parts = [
            self.run.table.uuid,
            self.run.query.files.digest(self.window),
            self.contract.sha256,
            self.run.key_version,
            compute_code_version(),
        ]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def _require_fitting_borders(self) -> None:
        """Raises Blocked also for a window that is up to date: its neighbour may have failed in the run that
        published it.
        """
        borders = self.run.borders.get(self.window.label, [])
        if borders and not self.run.accept_window_change:
            raise Blocked("EXP-WINDOW-CHANGED", "; ".join(border.what for border in borders), REMEDY)

    def _describe_if_up_to_date(self, current: Manifest | None, inputs: str) -> dict[str, Any] | None:
        """Return the document of a window that was computed from the same inputs, and whose files and
        aggregate are present.

        None if it must be computed.
        """
        label = self.window.label
        before = self.run.computed.get(label, {})
        if before.get("inputs_sha256") != inputs:
            return None
        if label in self.run.borders:  # accepted in this run, which the manifest must say
            return None
        if current is None:
            is_skipped = before["state"] == SKIPPED and label in self.run.listing.labels("skipped")
            return before if is_skipped else None
        if before["run_id"] != current["run_id"] or not self.run.listing.has_files(current):
            return None
        if self.run.aggregates and not is_table_current(self.run.aggregated, current):
            return None
        return self._describe(UNCHANGED, current) | {"inputs_sha256": inputs}

    def _judge_completeness(self, current: Manifest | None) -> Verdict:
        """Return whether the table has all events of the window. Raises DataProblem if it may begin too late.

        What was known when the window was published stays true: the table has not lost events of the window
        unnoticed.
        """
        if current is not None and manifest.was_complete(current, self.window, self.run.table):
            return Verdict(True, current["completeness"])
        completeness = self.run.completeness
        with self._phase("look at partitions"):
            verdict = completeness.of(self.window)
            if not verdict.is_complete or completeness.is_stated(self.window):
                return verdict
            missing = self.run.replacement.explain_missing(self.window, current)
        if missing and self.contract.window.on_incomplete_source != "publish":
            raise DataProblem("EXP-TABLE-REPLACED", f"window {self.window.label}: {missing}")
        return Verdict(False, missing) if missing else verdict

    def _describe_incomplete(self, verdict: Verdict) -> dict[str, Any]:
        """Return the document of a window that is not published yet. Raises DataProblem if it should be."""
        if self.contract.window.on_incomplete_source == "fail":
            raise DataProblem("EXP-SOURCE-INCOMPLETE", f"window {self.window.label}: {verdict.evidence}")
        return {"window": self.window.label, "state": "incomplete", "reason": verdict.evidence}

    def _compute_and_publish(self, verdict: Verdict) -> dict[str, Any]:
        earlier = self._read_earlier_manifests()
        frame, stored = self._write_rows()
        result = self._verify(verdict, stored, earlier)
        empty = result.stats.rows == 0
        on_empty = self.contract.window.on_empty
        if empty and on_empty == "fail":
            raise DataProblem("EXP-EMPTY", f'window {self.window.label} has no rows, and on_empty is "fail"')
        current = self._read_current()
        result = attrs.evolve(result, accepted=self._find_accepted(current))
        result = accept_loss(current, result, accept=self.run.accept_fewer_events)
        result = attrs.evolve(result, notes=[*result.notes, *result.accepted.sentences])
        if self.run.dry_run:
            self._discard_files()
            return self._describe("dry_run", self._build_manifest(result))
        # A published window that has become empty is published again as empty. Skipping it would leave its
        # rows visible.
        if empty and on_empty == "skip" and current is None:
            self._discard_files()
            if not verdict.is_complete:
                return self._describe_incomplete(verdict)
            self.location.mark_skipped(self.run.record.id)
            return self._describe(SKIPPED, self._build_manifest(result))
        formats = self._write_formats(stored, result.stats)
        return self._publish(attrs.evolve(result, files=[*result.files, *formats]), frame)

    def _read_earlier_manifests(self) -> list[Manifest]:
        """Return the manifests of published windows before this one, the latest first: that with which the
        report compares, and those with which checks do.
        """
        run = self.run
        published = [document["window"] for document in run.record.windows if document["state"] == PUBLISHED]
        labels = {
            label
            for label in (*run.listing.labels("manifests"), *published)
            if label < self.window.label and find_kind(label) == find_kind(self.window.label)
        }
        count = max(1, comparisons.count_windows(self.contract))
        stored = [
            WindowLocation(run.bucket, self.contract.name, label).current()
            for label in sorted(labels, reverse=True)[:count]
        ]
        return [found[0] for found in stored if found]

    def _write_rows(self) -> tuple[WindowFrame, StoredFile]:
        """Compute and upload the rows."""
        run = self.run
        folder = self.location.run_folder(run.record.id)
        ending = ".csv.gz" if self.contract.delivery.gzip else ".csv"
        key = f"{folder}{self.contract.name}_{self.window.label}{ending}"
        query = run.query.window(self.window)
        with self._phase("compute"), name_expressions(partial(find_failing_expressions, query)):
            frame = query.rows()
            form = CsvFormat(
                self.contract.columns, self.contract.delivery, frame.hashed_on_write, run.query.key
            )
            stored = write_file(frame.frame, frame.partitions, run.bucket, key, form)
        self._abort_repeated_uploads()
        return frame, stored

    def _abort_repeated_uploads(self) -> None:
        """Abort uploads that S3 began twice, because boto3 repeats a request without an answer."""
        bucket = self.run.bucket
        for unfinished, upload_id in bucket.uploads(self.location.run_folder(self.run.record.id)):
            bucket.abort(unfinished, upload_id)

    def _write_formats(self, stored: StoredFile, stats: FileStats) -> list[File]:
        """Write and verify the files of other formats, from the CSV file."""
        if not self.contract.delivery.also:
            return []
        with self._phase("write other formats"):
            files = write_formats(
                self.run.bucket, self.contract, stored, stats.rows, frozenset(stats.inexact)
            )
        self._abort_repeated_uploads()
        return files

    def _verify(self, verdict: Verdict, stored: StoredFile, earlier: list[Manifest]) -> WindowResult:
        """Read the file back, compare it with what was counted, and check it.

        Raises Inconsistent if counts differ, Blocked if the file may not be published.
        """
        run = self.run
        contract = self.contract
        with self._phase("verify"), ThreadPoolExecutor(1) as pool:
            # Only this thread uses Spark, because Spark's settings belong to a thread. Another one reads the
            # file meanwhile.
            reading = pool.submit(self._read_back, stored)
            read = self._count_read()
            stats = reading.result()
            is_aggregate = contract.aggregate is not None
            counted = counts.reconcile(read, stored.report, stats, aggregated=is_aggregate)
            counts.require_valid(read, contract.source.max_invalid_percent, self.window.label)
            checks = run_checks(run, stored.report, stats, earlier, is_complete=verdict.is_complete)
        require_clean(self.window.label, contract, stats, checks)
        require_rows(contract, stats.rows, self.window.label)
        previous = earlier[0] if earlier else None
        return WindowResult(
            contract=contract,
            window=self.window,
            table=run.table,
            run_id=run.record.id,
            status=_name_status(verdict, stats),
            completeness=verdict.evidence,
            counts=counted,
            events=read.inside,
            offsets=stored.report.offsets,
            stats=stats,
            checks=checks,
            notes=notes.write_notes(contract, stats, stored.report.cut, stored.report.replaced),
            files=[File("data", stats.key, stats.size, stats.sha256, stats.rows)],
            key_version=run.key_version,
            previous_window=manifest.find_comparable(previous, contract) if previous else None,
            aggregate_table=run.aggregates.name if run.aggregates else None,
        )

    def _read_back(self, stored: StoredFile) -> FileStats:
        bucket = self.run.bucket
        contract = self.contract
        with translate_aws_errors(f"reading back s3://{bucket.name}/{stored.key}"):
            body = ObjectBody(bucket.s3, bucket.name, stored.key, bucket.pause)
            header = csv.build_header(contract.columns, contract.delivery)
            # Texts that are cut or replaced may become equal, in rows that don't follow each other.
            is_sorted = not (stored.report.cut or stored.report.replaced)
            return verify_file(stored.key, body, stored.parts, contract, header, is_sorted=is_sorted)

    def _count_read(self) -> ReadCounts:
        query = self.run.query
        return ReadCounts(
            in_table=query.event_count,
            whole_table=self.contract.window.filter_stage == "after_deduplication",
            **query.window(self.window).count_read(),
        )

    def _find_accepted(self, current: Manifest | None) -> Accepted:
        """Return what was accepted for the published generation, and what is accepted now."""
        borders = self.run.borders.get(self.window.label, [])
        sentences = [f"{border.what[0].upper()}{border.what[1:]}. That was accepted." for border in borders]
        neighbours = (border.neighbour for border in borders)
        return manifest.read_accepted(current, self.contract).with_neighbours(neighbours, sentences)

    def _publish(self, result: WindowResult, frame: WindowFrame) -> dict[str, Any]:
        with self._phase("publish"):
            described = descriptions.write_descriptions(self.location, result)
            result = attrs.evolve(result, files=[*result.files, *described])
            outcome = self._publication.publish(self._build_manifest(result))
            if outcome.state != PUBLISHED:
                self._discard_files()
            else:
                if outcome.manifest["generation"] == 1:
                    self.location.unmark_skipped()
                with suppress(ExportError):  # the next run removes what is left
                    self._clean_up(outcome.manifest)
        aggregates = self.run.aggregates
        if aggregates and frame.groups is not None and outcome.state != SUPERSEDED:
            self._may_lack_aggregate = True
            with self._phase("keep aggregate"):
                aggregates.write(self.location, self.window, outcome.manifest, frame.groups)
            self._may_lack_aggregate = False
        return self._describe(outcome.state, outcome.manifest)

    def _build_manifest(self, result: WindowResult) -> Manifest:
        run = self.run
        now = run.clock()
        run.record.require_time(now)
        fence = Fence(run.table.current_since, run.record.started_at, run.record.id)
        return manifest.build_manifest(result, fence, now)

    def _describe(self, state: str, visible: Manifest) -> dict[str, Any]:
        return describe_outcome(self.window.label, state, visible)


def _name_status(verdict: Verdict, stats: FileStats) -> str:
    if not verdict.is_complete:
        return INCOMPLETE
    return "complete" if stats.rows else "empty"
