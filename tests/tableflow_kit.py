"""What the tests of the Tableflow writer share: topics and a writer over a catalog in memory."""

from __future__ import annotations

from pathlib import Path

from local_catalog import LocalCatalog
from pyiceberg.catalog import load_catalog

from simulators.tableflow.kafka import Log, Sent
from simulators.tableflow.topic import Topic, load_topic
from simulators.tableflow.writer import Place, Tableflow

ROOT = Path(__file__).resolve().parents[1]
TRADES = load_topic(ROOT / "topics" / "stock_trades.avsc")
SALES = load_topic(ROOT / "topics" / "sales_orders.avsc")


def writer(folder, naming="DEFAULT"):
    return Tableflow(LocalCatalog(), Place(str(folder), naming=naming, scheme="file"))


def glue_catalog(aws):
    """PyIceberg's catalog over the Glue of an embedded AWS, as its root."""
    keys = {"client.access-key-id": "test", "client.secret-access-key": "test", "client.region": aws.server.region}
    endpoints = {"glue.endpoint": aws.server.url, "s3.endpoint": aws.server.url}
    return load_catalog("lake", type="glue", **{"glue.skip-name-validation": "true", **endpoints, **keys})


def topic_of(*fields, name="things"):
    """A topic of (name, type) or (name, type, default) fields."""
    made = [dict(zip(("name", "type", "default"), each, strict=False)) for each in fields]
    return Topic(name, {"type": "record", "name": "Thing", "fields": made})


def sent(key, value, time=1_793_610_000_000):
    return Sent(time, key.encode(), value)


def numbered(count, start=0):
    """Records whose field `n` counts up, ten keys in turn."""
    return Log("things", 6).append(sent(f"k{n % 10}", {"n": n}, 1_793_610_000_000 + n) for n in range(start, start + count))


def files_below(folder):
    return {each.name for each in Path(folder).rglob("*") if each.is_file()}
