"""Topics, and a Tableflow writer with a catalog in memory."""

from __future__ import annotations

from pathlib import Path

from pyiceberg.catalog import load_catalog

from simulators.tableflow.kafka import Log, Sent
from simulators.tableflow.topic import Topic, load_topic
from simulators.tableflow.writer import Tableflow, TableLocation
from tests.support.local_catalog import LocalCatalog

ROOT = Path(__file__).resolve().parents[2]
TRADES = load_topic(ROOT / "project" / "topics" / "stock_trades.avsc")
SALES = load_topic(ROOT / "project" / "topics" / "sales_orders.avsc")


def writer(folder, naming="DEFAULT"):
    return Tableflow(LocalCatalog(), TableLocation(str(folder), naming=naming, scheme="file"))


def glue_catalog(aws):
    """Return PyIceberg's catalog over the Glue of an embedded AWS, with the root user's credentials."""
    keys = {
        "client.access-key-id": "test",
        "client.secret-access-key": "test",
        "client.region": aws.server.region,
    }
    endpoints = {"glue.endpoint": aws.server.url, "s3.endpoint": aws.server.url}
    return load_catalog("lake", type="glue", **{"glue.skip-name-validation": "true", **endpoints, **keys})


def topic_of(*fields, name="things"):
    """Return a topic of (name, type) or (name, type, default) fields."""
    made = [dict(zip(("name", "type", "default"), field, strict=False)) for field in fields]
    return Topic(name, {"type": "record", "name": "Thing", "fields": made})


def sent(key, value, time=1_793_610_000_000):
    return Sent(time, key.encode(), value)


def numbered(count, start=0):
    """Return records whose field `n` counts up, with ten keys in turn."""
    return Log("things", 6).append(
        sent(f"k{n % 10}", {"n": n}, 1_793_610_000_000 + n) for n in range(start, start + count)
    )


def files_below(folder):
    return {entry.name for entry in Path(folder).rglob("*") if entry.is_file()}
