"""How the file came to be: what was left out, how to open it, what it was made from, and who answers for it."""

from __future__ import annotations

from typing import Any

from exports.contract import Column, Contract, Filter
from glue_jobs.contract import code_version
from glue_jobs.delivery.manifest import File, WindowResult
from glue_jobs.delivery.report import wording
from glue_jobs.delivery.report.markup import Html, bullets, joined, prose, said, table, tag, verbatim
from glue_jobs.delivery.report.page import Limits, Section, more
from glue_jobs.delivery.report.summary import until


def left_out(result: WindowResult, limits: Limits) -> Section:
    contract, text = result.contract, limits.text
    dropped = [column for column in contract.column if not column.delivered]
    columns = [_dropped(column, text) for column in dropped[: limits.items]]
    filters = [_filter(one, text) for one in contract.filter[: limits.items]]
    body = [_heading("Rows"), *_rows_by_outcome(result, text)]
    if result.counts["groups"]:
        body.append(_groups(result, text))
    if filters:
        body += [_heading("Filters"), bullets(filters), more(len(filters), len(contract.filter), "filters", "the contract")]
    body.append(_heading("Columns"))
    if columns:
        body += [bullets(columns), more(len(columns), len(dropped), "columns", "datapackage.json")]
    body.append(tag("p", prose("A field of the source that is not among the columns above never leaves it.")))
    return Section("left-out", "What was left out on purpose", body)


def opening(result: WindowResult, limits: Limits) -> Section:
    delivery = result.contract.delivery
    separator = _SEPARATORS[delivery.delimiter]
    steps = [_excel(separator) if delivery.dialect == "excel" else _machine(separator)]
    steps += [prose(_PACKED)] if delivery.gzip else []
    steps += [prose(f"Columns are separated by {separator}s, decimals have a point, and no number has thousands separators.")]
    steps += [prose("Days are written as 2026-11-09 and times as 2026-11-09T13:05:00.000000Z, where Z means UTC.")]
    steps += [_missing(delivery.null_text), _guard(), _order(result.contract, limits)]
    return Section("opening", "How to open the file", [bullets(steps)])


def making(result: WindowResult, limits: Limits) -> Section:
    files = [_file(file) for file in result.files[: limits.items]]
    grid = table("files", prose("Files and their checksums"), ["File", "Size", "Rows", "SHA-256"], files, numeric={1, 2})
    facts = [part for name, value in _facts(result, limits.text) for part in (tag("dt", prose(name)), tag("dd", value))]
    body = [tag("dl", *facts, class_="facts"), grid, more(len(files), len(result.files), "files", "the manifest")]
    return Section("making", "How this was made", body)


def asking(result: WindowResult, limits: Limits) -> Section:
    sentence = said(
        "Ask {owner}. Say that it is about the export {export}, window {window}, run {run}.",
        owner=tag("bdi", prose(result.contract.owner, limits.text)),
        export=tag("code", prose(result.contract.name)),
        window=tag("code", prose(result.window.label)),
        run=tag("code", prose(result.run_id)),
    )
    offline = prose("This page is complete in itself: it works offline and loads nothing from anywhere.")
    return Section("asking", "Whom to ask", [tag("p", sentence), tag("p", offline, class_="soft")])


def _dropped(column: Column, text: int) -> Html:
    return said("{title}: {what}", title=prose(column.title, text), what=prose(column.description, text))


def _filter(one: Filter, text: int) -> Html:
    return said("{why} Only kept: {where}", why=prose(one.reason, text), where=tag("code", verbatim(one.where, text)))


def _heading(text: str) -> Html:
    return tag("h3", prose(text))


def _rows_by_outcome(result: WindowResult, text: int) -> list[Html]:
    if withheld := result.counts["withheld"]:
        return [tag("p", prose(withheld))]
    by_line = result.contract.explode or result.contract.aggregate
    return [_events_by_outcome(result, text), *([_lines_by_outcome(result, text)] if by_line else [])]


def _events_by_outcome(result: WindowResult, text: int) -> Html:
    contract, events = result.contract, result.counts["events"]
    outcomes = [("outside_window", prose("happened outside this window"))]
    if rule := contract.deduplicate:
        key = prose(", ".join(rule.key), text)
        which = prose("later" if rule.keep == "latest" else "earlier")
        outcomes.append(("duplicates", said("gave way to a {which} event of the same {key}", which=which, key=key)))
        outcomes.append(("unkeyed", said("had no value for {key}", key=key)))
    outcomes.append(("undated", prose(f"had no credible time (none, before {contract.source.earliest}, or in the future)")))
    outcomes.append(("filtered", prose("were left out by a filter")))
    outcomes.append(("kept", prose("were kept for this file")))
    caption = f"What became of the {wording.count(events['in_table'], 'event')} in the source table"
    rows = [[what, prose(wording.number(events[name]))] for name, what in outcomes]
    return table("events", prose(caption), ["Events that", "Count"], rows, numeric={1})


def _lines_by_outcome(result: WindowResult, text: int) -> Html:
    contract, lines = result.contract, result.counts["lines"]
    array = prose(contract.explode.array, text) if contract.explode else None
    how = said("Each item of {array} is a line.", array=array) if array else Html("")
    outcomes = [("filtered", "were left out by a filter")]
    if contract.aggregate and contract.aggregate.people:
        outcomes.append(("suppressed", "belong to groups that are too small to be shown"))
    outcomes.append(("delivered", "count in the groups of the file" if contract.aggregate else "are rows of the file"))
    caption = said("What became of the {amount} of these events. {how}", amount=prose(_lines(lines)), how=how)
    rows = [[prose(what), prose(wording.number(lines[name]))] for name, what in outcomes]
    return table("lines", caption, ["Lines that", "Count"], rows, numeric={1})


def _lines(lines: dict[str, Any]) -> str:
    return wording.count(lines["of_kept_events"], "line")


def _groups(result: WindowResult, text: int) -> Html:
    groups, rule = result.counts["groups"], result.contract.aggregate
    if rule is None or rule.people is None:
        why = (rule.without_people if rule else "") or ""
        return tag("p", said("No group was left out: {why}", why=prose(why, text)))
    left = f"{wording.count(groups['suppressed'], 'group')} {'was' if groups['suppressed'] == 1 else 'were'} left out"
    reason = f"Groups of fewer than {rule.smallest_group} people are left out, and another one where there is only one such group"
    return tag("p", prose(f"{left}. {reason}, so that nobody can be recognised. Totals are of the groups shown."))


_SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab"}


def _excel(separator: str) -> Html:
    return prose(
        "In Excel, open the file with a double click; a mark at its beginning tells Excel that it is UTF-8. Where everything "
        f"lands in one column, because your Excel expects another separator, choose Data, From Text/CSV, {separator}, and the "
        "region English (United States). There you can also make columns text, so that Excel keeps leading zeros."
    )


def _machine(separator: str) -> Html:
    return prose(
        "The file is UTF-8 without a mark at its beginning, as programs want it. In Excel, choose Data, From Text/CSV, "
        f"the origin 65001: Unicode (UTF-8), and {separator}."
    )


_PACKED = "It is compressed with gzip. Unpack it first (7-Zip on Windows, a double click on a Mac, gunzip elsewhere)."


def _missing(null_text: str) -> Html:
    if not null_text:
        return prose("A cell with nothing in it has no value; two quotation marks with nothing between them are an empty text.")
    shown = tag("code", verbatim(null_text, 20))
    return said("{text} stands for a value that is missing; in quotation marks it is a text like any other.", text=shown)


def _guard() -> Html:
    return said(
        "A text that a spreadsheet might run as a formula has an apostrophe ({sign}) in front. That is one that begins, after "
        "blanks and quotation marks, with {signs} (also in full width) or with a control character. The same goes for what "
        "follows a comma, semicolon, tab or line end inside a text, because some spreadsheets begin a cell there. For the exact "
        "text, take one apostrophe away where such a text follows it. Numbers are never changed.",
        sign=tag("code", prose("'")),
        signs=joined([tag("code", prose(sign)) for sign in "=+-@"], " "),
    )


def _order(contract: Contract, limits: Limits) -> Html:
    by = ", ".join(contract.delivery.order_by[: limits.items])
    return said("Rows are ordered by {by}, then by the other columns.", by=prose(by, limits.text))


def _facts(result: WindowResult, text: int) -> list[tuple[str, Html]]:
    contract, pinned = result.contract, result.table
    topic, name = prose(contract.source.topic), tag("code", prose(f"{pinned.database}.{pinned.name}", text))
    version = said("{name}, version {version}", name=tag("code", prose(contract.name)), version=prose(str(contract.version)))
    facts = [
        ("Source", said("topic {topic}, table {name}", topic=topic, name=name)),
        ("Snapshot", prose(f"{pinned.snapshot_id}, written on {wording.instant(pinned.committed_at, 'UTC')}")),
        ("Window", _bounds(result, text)),
        ("Contract", version),
        ("Contract's SHA-256", tag("code", prose(contract.sha256))),
        ("Code", tag("code", prose(code_version()))),
        ("Run", tag("code", prose(result.run_id))),
        ("Content's SHA-256", tag("code", prose(result.stats.content_sha256))),
    ]
    return facts + _more_facts(result, text)


def _bounds(result: WindowResult, text: int) -> Html:
    window = result.window
    hours = (window.end - window.start).total_seconds() / 3600
    # A window of odd hours is one in which clocks changed.
    length = f"{hours:g} hours" if hours % 24 else wording.count(int(hours / 24), "day")
    bounds = f"from {window.start:%Y-%m-%d %H:%M} UTC to before {window.end:%Y-%m-%d %H:%M} UTC, {length}"
    field = tag("code", prose(result.contract.source.event_time, text))
    return said("{bounds}, by {field}", bounds=prose(bounds), field=field)


def _more_facts(result: WindowResult, text: int) -> list[tuple[str, Html]]:
    """Those that not every file has."""
    facts = []
    if limit := until(result):
        facts.append(("May change until", prose(limit)))
    if result.key_version:
        key = tag("code", verbatim(result.key_version, text))
        facts.append(("Pseudonyms", said("HMAC-SHA-256 with the secret key of version {key}", key=key)))
    if before := result.previous_window:
        run = tag("code", prose(before["run_id"]))
        facts.append(("Compared with", said("{window}, run {run}", window=prose(wording.label(before["window"])), run=run)))
    if result.aggregate_table:
        facts.append(("Also kept as", said("table {name}", name=tag("code", prose(result.aggregate_table, text)))))
    return facts


def _file(file: File) -> list[Html]:
    rows = "" if file.rows is None else wording.number(file.rows)
    name = file.key.rpartition("/")[2]
    return [verbatim(name, 120), prose(wording.size(file.size)), prose(rows), tag("code", prose(file.sha256))]
