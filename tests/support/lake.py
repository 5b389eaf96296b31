"""A lake for tests: tables as Tableflow writes them, exports by the real job, and their results.

One embedded AWS and one Spark session serve the whole run (see conftest.py); each `Lake` has a bucket, a
cluster and a secret of its own. Events have dates in 2024, so no test depends on the day it runs.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import itertools
import json
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import attrs
import boto3
from pyiceberg.catalog.glue import GlueCatalog
from pyspark.sql import SparkSession

from glue_jobs import arguments, export, runs
from lakeferry.local.target import ExportTarget
from simulators.aws.server import EmbeddedAws
from simulators.tableflow.kafka import Log, Record, Sent
from simulators.tableflow.topic import Topic, load_topic
from simulators.tableflow.writer import Tableflow, TableLocation

ROOT = Path(__file__).resolve().parents[2]
SALES = load_topic(ROOT / "project" / "topics" / "sales_orders.avsc")
TRADES = load_topic(ROOT / "project" / "topics" / "stock_trades.avsc")
#: The pseudonymisation key of every lake. Test data doesn't contain it by chance, as it could contain 1, 2,
#: 3, ….
KEY = hashlib.sha256(b"the pseudonymisation key of the tests").digest()

#: The ISO week that most tests export, 2024-W10 in UTC, and a time after its end.
WEEK = "2024-W10"
MONDAY = datetime(2024, 3, 4, tzinfo=UTC)
AS_OF = datetime(2024, 3, 11, 6, tzinfo=UTC)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_numbers = itertools.count(1)


@attrs.define
class Lake:
    """A bucket with tables. `folder` receives the test's contracts."""

    aws: EmbeddedAws
    spark: SparkSession
    folder: Path
    target: ExportTarget
    flow: Tableflow
    s3: Any
    _logs: dict[str, Log] = attrs.field(factory=dict)

    def commit(
        self,
        topic: Topic,
        *values: dict[str, Any] | None,
        at: datetime = MONDAY,
        keys: Sequence[bytes | None] | None = None,
        mode: str = "append",
        files: int | None = None,
    ) -> None:
        """Append events to the topic's table in one commit; the first commit creates the table.

        Kafka's timestamps start with `at` and increase by a millisecond.
        """
        self.flow.create_table(topic, mode)
        if values:
            self.flow.append(topic.name, self.records(topic, *values, at=at, keys=keys), files)

    def records(
        self,
        topic: Topic,
        *values: dict[str, Any] | None,
        at: datetime = MONDAY,
        keys: Sequence[bytes | None] | None = None,
    ) -> list[Record]:
        """Return the records that Kafka has after these were sent. Offsets continue from call to call."""
        first = (at - _EPOCH) // timedelta(milliseconds=1)
        named = keys or [_key(topic, value) for value in values]
        sent = [Sent(first + n, key, value) for n, (key, value) in enumerate(zip(named, values, strict=True))]
        return self._logs.setdefault(topic.name, Log(topic.name, 3)).append(sent)

    def export(self, contract: str, *words: str, as_of: datetime = AS_OF, **around: Any) -> Run:
        """Run a shipped contract by its name, or another by its text.

        `around` goes to export.run. Raises ExportError.
        """
        name = self.write_contract(contract) if "\n" in contract else contract
        args = ["--export", name, "--as-of", as_of.isoformat(), *self.target.arguments(), *words]
        parsed = arguments.parse(args, now=max(as_of, runs.utc_now()))
        return Run(self, export.run(parsed, **{"spark": self.spark, "on_phase": _silent} | around))

    def write_contract(self, text: str) -> str:
        """Write a contract and return the path for the job's argument."""
        path = self.folder / f"contract_{next(_numbers)}.toml"
        path.write_text(text, encoding="utf-8")
        return str(path)

    def keys(self, below: str = "") -> list[str]:
        """Return the keys in the bucket that receives the files."""
        pages = self.s3.get_paginator("list_objects_v2").paginate(Bucket=self.target.bucket, Prefix=below)
        return [item["Key"] for page in pages for item in page.get("Contents", [])]

    def read(self, key: str) -> bytes:
        return self.s3.get_object(Bucket=self.target.bucket, Key=key)["Body"].read()

    def published(self, name: str = "things") -> list[str]:
        """Return the labels of the published windows."""
        folder = f"{self.target.prefix}/{name}/manifests/"
        return [key.removeprefix(folder).removesuffix(".json") for key in self.keys(folder)]


@attrs.frozen
class Run:
    """The result of an export. Methods take a window's label; without one, the run must have one window."""

    lake: Lake
    record: runs.RunRecord

    def window(self, label: str | None = None) -> dict[str, Any]:
        found = [window for window in self.record.windows if label in (None, window["window"])]
        assert len(found) == 1, f"windows of the run: {self.record.windows}"
        return found[0]

    def state(self, label: str | None = None) -> str:
        return self.window(label)["state"]

    def manifest(self, label: str | None = None) -> dict[str, Any]:
        window = self.window(label)
        key = f"{self.lake.target.prefix}/{self.record.export}/manifests/{window['window']}.json"
        assert key in self.lake.keys(key), f"nothing is published: {window}"
        return json.loads(self.lake.read(key))

    def files(self, role: str, label: str | None = None) -> list[bytes]:
        """Return the contents of the manifest's files with a role: data, datapackage or report."""
        return [self.lake.read(file["key"]) for file in self.manifest(label)["files"] if file["role"] == role]

    def csv(self, label: str | None = None) -> bytes:
        (content,) = self.files("data", label)
        return content

    def cells(self, label: str | None = None) -> list[dict[str, str]]:
        """Return the file's records as Python's csv reads them."""
        return list(csv.DictReader(io.StringIO(self.csv(label).decode("utf-8-sig"), newline=""), strict=True))

    def column(self, name: str, label: str | None = None) -> list[str]:
        return [row[name] for row in self.cells(label)]


def new_lake(aws: EmbeddedAws, spark: SparkSession, folder: Path) -> Lake:
    """Create a lake. The environment must lead to `aws`."""
    number = next(_numbers)
    target = ExportTarget(
        bucket=f"lake-{number}", database=f"lkc-t{number}", aggregates_database=f"aggregates_{number}"
    )
    # Tests commit whole tables. Those of completeness take this back.
    target = attrs.evolve(target, complete_until=runs.utc_now())
    s3 = boto3.client("s3")
    s3.create_bucket(Bucket=target.bucket, CreateBucketConfiguration={"LocationConstraint": aws.region})
    target = attrs.evolve(target, pseudonym_secret=f"pseudonyms-{number}", embedded_url=aws.url)
    secret = json.dumps({"key": base64.b64encode(KEY).decode()})
    boto3.client("secretsmanager").create_secret(Name=target.pseudonym_secret, SecretString=secret)
    catalog = GlueCatalog(
        "lake",
        client=None,
        **{"glue.skip-name-validation": "true", "s3.endpoint": aws.url, "s3.region": aws.region},
    )
    return Lake(
        aws,
        spark,
        folder,
        target,
        Tableflow(catalog, TableLocation(target.bucket, cluster_id=target.database)),
        s3,
    )


def topic_of(
    *fields: Sequence[Any], name: str = "things", key: str | None = "id", time: str | None = "at"
) -> Topic:
    """Return a topic of (name, Avro type) or (name, type, default) fields. `id` and `at` are added."""
    own = [] if key is None else [(key, ["null", "string"], None)]
    own += [] if time is None else [(time, ["null", _TIMESTAMP], None)]
    made = [dict(zip(("name", "type", "default"), part, strict=False)) for part in (*own, *fields)]
    return Topic(name, {"type": "record", "name": "Thing", "fields": made}, key, time)


_TIMESTAMP = {"type": "long", "logicalType": "timestamp-micros"}


def column(name: str, type_: str = "text", **more: Any) -> dict[str, Any]:
    return {"name": name, "type": type_, "title": name, "description": name} | more


def contract(*columns: dict[str, Any], name: str = "things", **sections: Any) -> str:
    """The text of a contract for the topic `things`. A section given by name is merged with the usual one;
    None leaves it out, a list (filter, check) stands as it is."""
    usual: dict[str, Any] = {
        "name": name,
        "version": 1,
        "title": name,
        "description": name,
        "owner": "tests",
        "grain": "one row a thing",
        "source": {"topic": "things", "event_time": "at"},
        "window": {"every": "iso_week", "zone": "UTC", "from": MONDAY.date()},
        "deduplicate": {"key": ["id"]},
        "delivery": {"order_by": [columns[0]["name"]], "dialect": "machine"},
        "column": list(columns),
    }
    for section, given in sections.items():
        before = usual.get(section, {})
        usual[section] = before | given if isinstance(given, dict) and isinstance(before, dict) else given
    return "".join(f"{key} = {_toml(value)}\n" for key, value in usual.items() if value is not None)


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(each)}" for key, each in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, date):
        return value.isoformat()
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(topic: Topic, value: dict[str, Any] | None) -> bytes | None:
    found = value.get(topic.key_field) if value and topic.key_field else None
    return None if found is None else str(found).encode(errors="surrogatepass")


def _silent(_window: str, _phase: str) -> None:
    """Ignore the phases of a run."""
