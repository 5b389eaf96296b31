"""manifest-and-run-record.md: every key that the job writes, with its meaning and an example."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from dev.docs import markdown, samples
from dev.docs.markdown import format_code

#: Objects whose keys come from the data.
_MAPS: Final = {
    "source.offsets": "<partition>",
    "membership": "<key>",
    "totals": "<column>",
    "previous_window.totals": "<column>",
    "previous_window.last_with_rows.totals": "<column>",
    "phases": "<phase>",
}
_LONGEST = 70

_MANIFEST: Final = {
    "format": "Version of this document's format. It increases when a key changes its meaning or is removed.",
    "export": "The contract's name.",
    "title": "The contract's title.",
    "status": (
        "`complete`; `empty`: no rows; `incomplete`: published before it was known that the table has all "
        "its events."
    ),
    "completeness": "How it is known that the table had all events up to the window's end, or why it was not known.",
    "run_id": "The run that published what is visible.",
    "contract.version": "The contract's version.",
    "contract.sha256": "SHA-256 of the contract's text.",
    "code_version": "Version, and a hash of the sources that wrote the file.",
    "generation": "1 for the first publication of the window, one more for each restatement.",
    "generations[].generation": "Every publication of this window, oldest first.",
    "generations[].run_id": "Its run. The files of former generations stay in the bucket under this id.",
    "generations[].published_at": "When it was published.",
    "generations[].table_uuid": "Iceberg's identity of the table that it was made from.",
    "published_at": "When this manifest was written.",
    "window.label": "Day, ISO week, month or quarter: 2026-11-15, 2026-W46, 2026-11, 2026-Q4.",
    "window.every": "The length of windows.",
    "window.zone": "The time zone whose midnights bound the window.",
    "window.start": "First instant of the window, in UTC.",
    "window.end": "First instant after the window, in UTC.",
    "membership.<key>": (
        "The contract's keys that decide to which window an event belongs. A run compares them with its own."
    ),
    "deduplicate_key[]": "The fields that identify what an event is about.",
    "source.topic": "The Kafka topic.",
    "source.table": "Glue database and Iceberg table.",
    "source.table_uuid": "Iceberg's identity of the table; another one means that the table was recreated.",
    "source.snapshot_id": "The one snapshot that everything was read from.",
    "source.committed_at": "When that snapshot was committed.",
    "source.offsets.<partition>.min": "Least offset among the events that were read for this window, by Kafka partition.",
    "source.offsets.<partition>.max": "Greatest offset among them.",
    "rows.events.in_table": "Events in the snapshot. All of them are in one of the following counts.",
    "rows.events.duplicates": "Events that were left out because another event with the same key counts.",
    "rows.events.outside_window": "Events of other windows.",
    "rows.events.filtered": "Events that a filter on events left out.",
    "rows.events.kept": "Events that the file is made of.",
    "rows.events.invalid_event_time": "Events whose time is missing or invalid; set aside.",
    "rows.events.null_key": "Events in which a part of the deduplication key is missing or blank; set aside.",
    "rows.lines.of_kept_events": "Items of the kept events' arrays; without an array, the kept events.",
    "rows.lines.filtered": "Lines that a filter on lines left out.",
    "rows.lines.suppressed": "Lines in groups too small to be shown.",
    "rows.lines.delivered": "Lines in the file, or in the groups of the file.",
    "rows.groups.shown": "In an aggregate, groups in the file. `groups` is null otherwise.",
    "rows.groups.suppressed": "Groups left out because they are about too few people.",
    "rows.rows": "Rows in the file, counted in the finished file.",
    "rows.withheld": (
        "Why `rows.events` and `rows.lines` are null: they would reveal the size of a group that is too "
        "small to be shown. Null otherwise."
    ),
    "files[].role": "`data` (the CSV file), `parquet`, `jsonl`, `xlsx`, `datapackage` or `report`.",
    "files[].key": "The object's key in the bucket.",
    "files[].size": "Bytes as stored.",
    "files[].sha256": "SHA-256 of the bytes as stored.",
    "files[].rows": "Rows of a file with rows; null for others.",
    "content_sha256": "SHA-256 of header and records, whatever their compression.",
    "form.dialect": "The contract's dialect.",
    "form.delimiter": "What separates cells.",
    "form.gzip": "Whether the file is compressed.",
    "form.null_text": "What stands for a missing value.",
    "headline[].column": "Columns that the contract names as headline numbers.",
    "headline[].title": "The column's title.",
    "headline[].per": (
        "The column that holds the unit, where it varies: there is then a number for each unit. Null "
        "otherwise."
    ),
    "headline[].unit": "Its unit, or null.",
    "headline[].total": "Its sum. Numbers are text, because JSON has no decimals.",
    "totals.<column>.sum": (
        "Sum of a numeric column over the rows of the file; absent if the column does not add up. Where "
        "the unit varies, by column and unit, as in "
        "`sales EUR`. Rows without a unit are in `sales` and a blank, those whose unit is an empty text in "
        '`sales ""`.'
    ),
    "totals.<column>.min": "Its least value; null where there is none. Where the unit varies, only sums are given.",
    "totals.<column>.max": "Its greatest value, likewise.",
    "checks[].id": (
        "The check's id; `<column>_not_empty` and `<column>_allowed` come from the columns themselves, "
        "`rows_are_unique` from the unique key."
    ),
    "checks[].severity": "`warn` or `block`.",
    "checks[].message": "What is wrong when it fails.",
    "checks[].failed": "Rows that violate it; 0 or 1 for a check of the file as a whole.",
    "checks[].of": "`rows`: `failed` counts rows; `file`: the check is about the file.",
    "checks[].tolerated": "How many rows may violate it (`at_most_percent`).",
    "checks[].found": "What was found, where a number alone doesn't say it. Null otherwise.",
    "checks[].unknown": "Why the check could not be made; null if it was.",
    "checks[].passed": (
        "Whether no more rows violate it than may; null if the check could not be made. In a manifest, only a "
        "check of severity `warn` can have failed."
    ),
    "notes[]": "Sentences for the reader: what was cut, replaced, or is too much for Excel.",
    "accepted.sentences[]": "The last of the notes: what somebody accepted so that the window could be published.",
    "accepted.neighbours[]": "Published windows that follow other rules of the contract, if that was accepted.",
    "pseudonyms.key_version": (
        "Version of the secret that the pseudonyms come from; those of two versions can't be compared. "
        "`pseudonyms` is null without hashed columns."
    ),
    "previous_window.window": (
        "The latest earlier window that was already published when this one was published. The report "
        "compares with it. Null if there was none."
    ),
    "previous_window.run_id": "Its run.",
    "previous_window.contract_version": "The contract's version at that time.",
    "previous_window.rows": "Its rows.",
    "previous_window.totals.<column>": (
        "Its sums; where the unit varies, by column and unit, as in `sales EUR`. If the contract has "
        "changed, only headline numbers of the same version and unit."
    ),
    "previous_window.last_with_rows.window": "Where that window is empty: the latest one before it that isn't.",
    "previous_window.last_with_rows.run_id": "Its run.",
    "previous_window.last_with_rows.contract_version": "The contract's version at that time.",
    "previous_window.last_with_rows.rows": "Its rows.",
    "previous_window.last_with_rows.totals.<column>": "Its sums.",
    "aggregate_table": "The Iceberg table that keeps the aggregate, or null.",
    "fence[]": (
        "Decides between two runs: when the snapshot became current, when the run started, its id. The "
        "later one wins."
    ),
}
_RUN: Final = {
    "id": "The run's id; it sorts by time and is part of the keys of the run's files.",
    "export": "The contract's name.",
    "as_of": "The instant up to which windows counted as closed.",
    "started_at": "When it started.",
    "expires_at": (
        "After this moment, the run publishes nothing more. A run that has not ended ten minutes later "
        "counts as dead, and the next run removes its files."
    ),
    "job_run_id": (
        "The id of the Glue job run; null for a run outside Glue. The mail about a job run finds the "
        "record by it."
    ),
    "state": (
        "`running`; `done`; `blocked` or `failed`: the state of the first window that was blocked or "
        "failed, or `failed` if the run could not start."
    ),
    "reason": "Code, what happened and what to do; null if the run succeeded.",
    "ended_at": "When it ended; null while it runs, or if it died.",
    "windows[].window": "The window's label.",
    "windows[].state": (
        "`published`; `unchanged`: what is visible is right; `superseded`: by a run with a later snapshot; "
        "`skipped`: empty; `dry_run`; `incomplete`: waits for data; `blocked`; `failed`."
    ),
    "windows[].reason": "Why it waits, was blocked or failed; null otherwise.",
    "windows[].status": (
        "This key and the next eight, down to `notes`, are those of the [manifest](#manifest) that is visible. "
        "In a dry run, they are those of the manifest that would be written."
    ),
    "windows[].completeness": "How it is known that the table has all events of the window, or why it is not known.",
    "windows[].generation": "The generation that is visible.",
    "windows[].run_id": "The run whose files are visible.",
    "windows[].rows": "Counts of events, lines, groups and rows.",
    "windows[].headline": "Headline numbers.",
    "windows[].files": "The files.",
    "windows[].checks": "Results of the checks.",
    "windows[].notes": "Sentences for the reader.",
    "windows[].inputs_sha256": (
        "A hash of all that decided what was done: files of the table that can hold the window's events, "
        "contract, key and code. While it stays the same, the window isn't computed again."
    ),
    "windows[].code": "The [error code](errors.md). Only windows that were blocked or failed have this key and the next four.",
    "windows[].remedy": "What to do.",
    "windows[].exit_code": "The [exit code](errors.md#exit-codes) of a command that ends with this error.",
    "windows[].stops": "Whether the error stopped the run, so that later windows were not computed.",
    "windows[].may_be_published": (
        "True if S3 didn't answer the write of the manifest, so that the manifest may still appear. Other "
        "runs keep the window's files until ten minutes after `ended_at`."
    ),
    "windows[].seconds": "How long the window took. Later runs use it to estimate whether they have enough time for the window.",
    "working_on": (
        "The window in progress; null between windows and at the end. If a run dies, it was working on "
        "this one."
    ),
    "windows_left": "Windows that the run planned and didn't begin, because its time was over or because it stopped.",
    "phases.<phase>": (
        "Seconds over all windows in `look for changes`, `look at partitions`, `compute`, `verify`, "
        "`write other formats`, `publish` and `keep aggregate`; without the phases that no window had."
    ),
    "asked": (
        "`windows` and `only`, the arguments of a run that was asked for certain windows; null for a run of every window "
        "that needs it."
    ),
    "host": "The machine, its boot and the namespace of process numbers, which identify a dead process.",
    "pid": "The process.",
    "code_version": "Version, and a hash of the sources.",
}
_INTRO: Final = """\
A run writes two kinds of JSON documents to the bucket. The manifest of a window says which files are published and what they
contain: programs that read files start from it. The run record says what a run did with each window: it is for operators."""
_ABOUT_MANIFEST: Final = """\
`<prefix>/<export>/manifests/<window>.json` describes the published file of a window. The run writes it last, by a conditional
write. A file that no manifest names is not published. `make demo` copies each manifest to
`out/<export>/<window>/manifest.json`. How to read files by it: [From the bucket](../for-analysts.md#from-the-bucket)."""
_ABOUT_RUN: Final = """\
The run writes `<prefix>/<export>/runs/<id>.json` before anything else, before each window and at the end, also if it is blocked
or fails."""


def build_page() -> str:
    run = [samples.run_record()]
    repeated = ("rows", "headline", "files", "checks", "notes")
    return markdown.format_page(
        "Manifest and run record",
        _INTRO,
        _describe("Manifest", _ABOUT_MANIFEST, samples.manifests(), _MANIFEST),
        _describe("Run record", _ABOUT_RUN, run, _RUN, opaque=repeated),
    )


def _describe(
    title: str,
    about: str,
    documents: list[dict[str, Any]],
    meanings: dict[str, str],
    opaque: tuple[str, ...] = (),
) -> str:
    """Return the section of a document. `opaque` names keys of windows that another section explains.

    Raises LookupError for a key without a meaning.
    """
    examples = _examples(documents, {f"windows[].{name}" for name in opaque})
    if differing := examples.keys() ^ meanings.keys():
        raise LookupError(
            f"keys of the {title.lower()} and keys described differ: {', '.join(sorted(differing))}"
        )
    rows = [
        (format_code(path), meaning, format_code(_json(examples[path]))) for path, meaning in meanings.items()
    ]
    table = markdown.format_table(["key", "meaning", "example"], rows)
    return f"## {title}\n\n{about}\n\n{table}"


def _examples(documents: list[dict[str, Any]], opaque: set[str]) -> dict[str, Any]:
    """Return the first value of each key that isn't null.

    A null that is an object in another document is left out.
    """
    examples: dict[str, Any] = {}
    for document in documents:
        for path, value in _leaves(document, "", opaque):
            examples[path] = value if examples.get(path) is None else examples[path]
    return {
        path: value
        for path, value in examples.items()
        if not any(longer.startswith(f"{path}.") for longer in examples)
    }


def _leaves(value: Any, path: str, opaque: set[str]) -> Iterator[tuple[str, Any]]:
    if path in opaque:
        yield path, "…"
    elif isinstance(value, dict):
        for name, below in value.items():
            key = _MAPS.get(path, str(name))
            yield from _leaves(below, f"{path}.{key}" if path else key, opaque)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item, f"{path}[]", opaque)
    else:
        yield path, value


def _json(value: Any) -> str:
    text = (
        json.dumps(value, ensure_ascii=False, default=lambda instant: instant.isoformat())
        if value != "…"
        else value
    )
    return text if len(text) <= _LONGEST else f'{text[: _LONGEST - 2]}…"'
