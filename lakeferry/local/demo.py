"""`lakeferry demo`: write events into Tableflow's tables and export them with the real job, without any
account.
"""

from __future__ import annotations

import os
import shlex
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import attrs
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.glue import GlueCatalog
from pyspark.sql import SparkSession

from config.deployments.flink_origins import derive_schema, with_origins
from config.deployments.lineage import Unknown
from config.deployments.sources import Sources
from config.exports import check, contracts, topic_schema
from config.exports.avro_document import build_document
from config.exports.check import Judge
from config.exports.contract import Contract
from config.exports.windows import find_window, window_at
from config.project import PROJECT
from config.toml_model import BadFile
from glue_jobs.runs import RunRecord
from glue_jobs.session import start
from lakeferry.errors import CommandFailed
from lakeferry.local import export as exporting
from lakeferry.local import results
from lakeferry.local.demo_aws import TABLEFLOW_BUCKET, start_fresh_demo
from lakeferry.local.judge import open_judge
from lakeferry.local.target import ExportTarget, require_writable, shorten_path
from lakeferry.output import Output, find_program_name
from simulators.data import generators
from simulators.data.events import EventsError, read_json_lines, to_records
from simulators.tableflow.avro import SchemaError
from simulators.tableflow.kafka import Record
from simulators.tableflow.topic import Topic, load_topic
from simulators.tableflow.writer import Tableflow, TableLocation

_SEED = 20261116
_START = datetime(2026, 11, 2, tzinfo=UTC)
_END = datetime(2026, 11, 16, tzinfo=UTC)
_AS_OF = datetime(2026, 11, 16, 6, tzinfo=UTC)
#: Three whole days of New York, where the exchange is.
_TRADES_START = datetime(2026, 11, 13, 5, tzinfo=UTC)
_TRADES_END = datetime(2026, 11, 16, 5, tzinfo=UTC)
_COMMITS = 8


@attrs.frozen
class DemoOptions:
    """The command's options."""

    events: Path | None
    topic: str | None
    schema: Path | None
    ignore_unknown_fields: bool
    export: str | None
    as_of: datetime | None
    out: Path
    master: str


@attrs.frozen
class Source:
    """A topic with its records, and the times of its first and last event."""

    topic: Topic
    records: list[Record]
    first: datetime
    last: datetime


def demo(output: Output, options: DemoOptions) -> dict[str, Any]:
    """Run the demo and return its document. Raises CommandFailed."""
    started = time.monotonic()
    if options.as_of and options.as_of > datetime.now(UTC):
        message = f"--as-of {options.as_of:%Y-%m-%dT%H:%M:%SZ} is in the future, and a window must have ended"
        raise CommandFailed("EXP-ARGUMENTS", message, "Give a time in the past; nothing was read or written")
    own_events = options.events or options.topic or options.schema
    sources = _read_events(options) if own_events else _generate_events(output)
    with open_judge() as judge:
        chosen = _load_contracts(options, sources, judge)
    require_writable(options.out)
    with exporting.open_spark(output, options.master):
        records = _export_all(output, options, sources, chosen)
    return _report(output, options, records, time.monotonic() - started)


def _export_all(
    output: Output, options: DemoOptions, sources: dict[str, Source], chosen: dict[str, Contract]
) -> list[RunRecord]:
    records = []
    with start_fresh_demo() as target, ThreadPoolExecutor(1) as background:
        session = background.submit(
            start, target.warehouse
        )  # takes seconds; meanwhile the tables are written
        _write_sources(output, target, sources)
        for name, contract in chosen.items():
            job_options = _build_job_options(options, name, contract, sources[contract.source.topic])
            record = _export(output, target, contract, job_options, session.result())
            exporting.download(target, record, options.out)
            records.append(record)
    return records


def _generate_events(output: Output) -> dict[str, Source]:
    with output.step("Generating sales and trades"):
        sales = load_topic(PROJECT / "topics" / "sales_orders.avsc")
        trades = load_topic(PROJECT / "topics" / "stock_trades.avsc")
        mix = generators.SalesMix(orders=12_000)
        orders = generators.generate_sales_orders(mix, seed=_SEED, start=_START, end=_END)
        traded = generators.generate_stock_trades(60_000, seed=_SEED, start=_TRADES_START, end=_TRADES_END)
    output.info(f"events   {len(orders):,} sales orders and {len(traded):,} trades (generated)")
    return {
        "sales_orders": Source(sales, orders, _START, _AS_OF),
        "stock_trades": Source(trades, traded, _TRADES_START, _AS_OF),
    }


def _read_events(options: DemoOptions) -> dict[str, Source]:
    if options.events is None or not options.topic:
        raise CommandFailed("DEMO-TOPIC", "--events and --topic go together")
    try:
        topic = _load_topic(options, options.topic)
        values = read_json_lines(options.events, topic, ignore_unknown=options.ignore_unknown_fields)
    except OSError as error:
        message = f"{options.events} can't be read: {error.strerror}"
        raise CommandFailed("DEMO-FILE", message) from None
    except SchemaError as error:
        raise CommandFailed(
            "DEMO-SCHEMA", str(error), "Give a valid Avro schema with --schema FILE"
        ) from None
    except EventsError as error:
        hint = (
            "Correct them and run the command again; --ignore-unknown-fields leaves out fields that the "
            "schema doesn't have. The format, and how to convert CSV: "
            "docs/how-to/write-an-export-contract.md#run-it-on-your-own-events"
        )
        raise CommandFailed("DEMO-EVENTS", str(error), hint) from None
    if not values:
        raise CommandFailed("DEMO-EVENTS", f"{options.events} has no events", "Give at least one line")
    now = datetime.now(UTC)
    records = to_records(topic, values, now)
    times = [datetime.fromtimestamp(record.timestamp / 1000, UTC) for record in records]
    return {topic.name: Source(topic, records, min(times), max(times))}


def _load_topic(options: DemoOptions, name: str) -> Topic:
    """Return the topic with the schema of its file, or with the one that Flink will register for it. Raises
    CommandFailed, SchemaError.
    """
    files = {path.stem: path for path in sorted((PROJECT / "topics").glob("*.avsc"))}
    if options.schema or name in files:
        return load_topic(options.schema or files[name], name)
    try:
        schema = derive_schema(name, Sources(PROJECT, check.NOT_JUDGED))
    except Unknown as unknown:
        hint = f"Give its Avro schema with --schema FILE. project/topics/ has: {', '.join(files)}"
        message = f"project/topics/ has no schema of {name}: {unknown}"
        raise CommandFailed("DEMO-SCHEMA", message, hint) from None
    return Topic(name, build_document(schema.type, name))


def _load_contracts(options: DemoOptions, sources: dict[str, Source], judge: Judge) -> dict[str, Contract]:
    """Return the exports to run by name or path, checked against the schema of their topic."""
    names = [options.export] if options.export else contracts.names()
    chosen = {}
    for name in names:
        try:
            contract = contracts.load(name)
            if contract.source.topic in sources:
                schema = topic_schema.from_avro(
                    sources[contract.source.topic].topic.schema, contract.source.topic
                )
                schema = with_origins(schema, Sources(PROJECT, check.NOT_JUDGED))
                file = Path(name) if name.endswith(".toml") else PROJECT / "exports" / f"{name}.toml"
                chosen[name] = check.check_file(file, schema, judge)
            elif options.export:
                topic = contract.source.topic
                hint = (
                    f"It reads {topic}: give events of it with --events FILE --topic {topic}. These are "
                    f"of {', '.join(sources)}"
                )
                raise CommandFailed("DEMO-EXPORT", f"{name} does not fit these events", hint)
        except BadFile as bad:
            raise CommandFailed("EXP-CONTRACT", str(bad)) from None
    if not chosen:
        hint = "Name one with --export, for instance the path of your own contract"
        raise CommandFailed(
            "DEMO-EXPORT", f"no contract in project/exports/ reads {', '.join(sources)}", hint
        )
    return chosen


def _write_sources(output: Output, target: ExportTarget, sources: dict[str, Source]) -> None:
    started = time.monotonic()
    flow = Tableflow(_open_catalog(target), TableLocation(TABLEFLOW_BUCKET, cluster_id=target.database))
    for source in sources.values():
        with output.step(f"Writing {source.topic.name} as Tableflow does"):
            flow.materialise(source.topic, source.records, commits=min(_COMMITS, len(source.records)))
    names = " and ".join(f"{target.database}.{name}" for name in sources)
    output.info(f"tables   {names} in Iceberg, as Tableflow writes them ({time.monotonic() - started:.0f} s)")


def _open_catalog(target: ExportTarget) -> Catalog:
    if not target.embedded_url:
        raise RuntimeError("the demo runs in the embedded AWS only")
    # PyIceberg's S3 client doesn't read the environment; Spark's does.
    options = {"s3.endpoint": target.embedded_url, "s3.region": os.environ["AWS_REGION"]}
    return GlueCatalog("lake", client=None, **{"glue.skip-name-validation": "true"}, **options)


def _build_job_options(options: DemoOptions, name: str, contract: Contract, source: Source) -> list[str]:
    job_options = ["--export", name, "--as-of", _as_of(options, contract, source).isoformat()]
    return (
        [*job_options, "--first-day", find_first_day(contract, source).isoformat()]
        if options.events
        else job_options
    )


def find_first_day(contract: Contract, source: Source) -> date:
    """Return the day of the first event in the contract's zone, so that no empty windows precede it; not
    before `from`.
    """
    return max(contract.window.first, source.first.astimezone(ZoneInfo(contract.window.zone)).date())


def _export(
    output: Output, target: ExportTarget, contract: Contract, job_options: list[str], session: SparkSession
) -> RunRecord:
    started = time.monotonic()
    name = contract.name
    record = exporting.run(output, target, job_options, f"export   {name}", session)
    count = len(record.windows)
    failed = sum(1 for window in record.windows if window.get("exit_code"))
    windows = f"{count} window" if count == 1 else f"{count} windows"
    if failed:
        windows += f", {failed} of them not published"
    output.info(f"export   {name}: {windows} ({time.monotonic() - started:.0f} s)")
    if not record.windows and find_window(contract.window.first, contract.window).end > record.as_of:
        output.print(
            f"No window of {name} had ended by {record.as_of:%Y-%m-%d %H:%M} UTC: its windows begin on "
            f"{contract.window.first} (window.from). For earlier events, copy the contract and set an "
            "earlier day."
        )
    elif not record.windows:
        output.print(
            f"No window had ended by {record.as_of:%Y-%m-%d %H:%M} UTC. Is --as-of late enough? If the "
            "events are older,"
        )
        output.print(
            "does the schema say which field is their time, like `lakeferry:time` in "
            "project/topics/sales_orders.avsc?"
        )
    return record


def _as_of(options: DemoOptions, contract: Contract, source: Source) -> datetime:
    """Return when the window of the last event ends, but not a time in the future."""
    if options.as_of:
        return options.as_of
    if not options.events:
        return _AS_OF
    end = window_at(source.last, contract.window).end
    return min(end, datetime.now(UTC))


def _report(output: Output, options: DemoOptions, records: list[RunRecord], seconds: float) -> dict[str, Any]:
    rows: list[list[str]] = []
    for record in records:
        rows += results.summarize(record)
    output.print("")
    output.table(["export", "window", "state", "rows", "totals"], rows)
    for record in records:
        for line in results.describe_left_out(record):
            output.print(line)
    for record in records:
        for note in results.list_notes(record):
            output.print(note)
    output.print(f"\n{seconds:.0f} s.")
    shown: list[tuple[str, str]] = []
    for record in records:
        published = [window for window in record.windows if window["state"] == "published"]
        shown += [(record.export, str(window["window"])) for window in published]
    if shown:
        output.print(
            "CSV, manifest, data dictionary and report of each published window are in "
            f"{shorten_path(options.out)}/"
        )
        report = options.out.joinpath(*max(shown), "report.html")
        output.print(f"Open {shorten_path(report)} in a browser.")
    output.print(f"Next: {find_program_name()} query {shlex.quote(_build_example_query(options))}")
    for record in records:
        if failure := results.find_failure(record):
            raise failure
    return {
        "out": str(options.out),
        "seconds": round(seconds, 1),
        "runs": [attrs.asdict(record) for record in records],
    }


def _build_example_query(options: DemoOptions) -> str:
    """Return a query that the demo's tables can answer."""
    if options.topic is None or options.topic == "sales_orders":
        return "SELECT status, count(*) FROM sales_orders GROUP BY 1"
    return f'FROM "{options.topic}" LIMIT 3'
