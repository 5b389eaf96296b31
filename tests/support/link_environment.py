"""A opener for links over a bucket in memory, with published windows, keys, and a log."""

from __future__ import annotations

import io
import json

from dev.docs import samples
from lambdas.links.ledger import Ledger
from lambdas.links.opening import LinkedExport, LinkOpener
from lambdas.shared.link_tokens import KeyRing, Link, ReplacedKey
from lambdas.shared.log import open_log
from lambdas.shared.redaction import Secret
from lambdas.shared.s3 import Objects
from tests.support.notification_environment import BUCKET, MemoryBucket, Wire
from tests.support.resource_environment import ManualClock

EXPORT = "weekly_sales"
WINDOW = "2026-W46"
ANN = "a" * 16
BEN = "b" * 16
AUDIENCE = "lakeferry-dev"
DAYS = 14
DOWNLOADS = 3
NOW = 1_790_000_000
KEY = Secret("k" * 64)
OLD_KEY = Secret("o" * 64)
LINK = Link(EXPORT, WINDOW, 1, ANN)


class LinkEnvironment:
    def __init__(self):
        self.bucket = MemoryBucket(Wire())
        self.clock = ManualClock()
        self.clock.now = NOW
        self.stream = io.StringIO()
        self.keys = KeyRing(AUDIENCE, KEY, (ReplacedKey(OLD_KEY, NOW + DAYS * 86400),))
        self.recipients = {ANN, BEN}
        self.downloads = DOWNLOADS
        self.asked_again = 0
        self.publish(samples.manifests()[0])

    @property
    def objects(self):
        return Objects(self.bucket, BUCKET)

    @property
    def ledger(self):
        return Ledger(self.objects, "links")

    @property
    def opener(self):
        return LinkOpener(
            objects=self.objects,
            ledger=self.ledger,
            read_keys=self._read_keys,
            exports={EXPORT: LinkedExport(frozenset(self.recipients), self.downloads)},
            prefix="exports",
            deployment=AUDIENCE,
            clock=self.clock,
            log=open_log(self.stream),
        )

    def _read_keys(self, newer):
        self.asked_again += newer
        return self.keys

    def publish(self, manifest):
        """Write a manifest, its files, and the record of its run."""
        folder = f"exports/{manifest['export']}"
        label = manifest["window"]["label"]
        self.bucket.put(f"{folder}/manifests/{label}.json", manifest)
        for file in manifest["files"]:
            self.bucket.put(file["key"], {})
        window = {"window": label, "generation": manifest["generation"], "files": manifest["files"]}
        self.bucket.put(f"{folder}/runs/{manifest['run_id']}.json", {"windows": [window]})

    def publish_again(self):
        """Publish a second generation of the window, by another run."""
        first = samples.manifests()[0]
        run = "20261117T060009Z-77aa88bb"
        text = json.dumps(first).replace(first["run_id"], run)
        second = json.loads(text) | {"generation": 2}
        second["generations"] = [*first["generations"], {"generation": 2, "run_id": run}]
        self.publish(second)

    def sign(self, link=LINK, *, keys=None, now=None, days=DAYS):
        return (keys or self.keys).sign(link, now=self.clock.time() if now is None else now, days=days)

    def list_log(self):
        return [json.loads(line) for line in self.stream.getvalue().splitlines()]

    def list_reasons(self):
        return [entry["Reason"] for entry in self.list_log() if entry["message"] == "refused"]
