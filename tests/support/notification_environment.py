"""A bucket, topics and an event bus in memory that can fail or kill their caller at any call, and runs of
exports to report.
"""

from __future__ import annotations

import copy
import io
import itertools
import json
from datetime import UTC, datetime, timedelta

from botocore.exceptions import ClientError, ConnectTimeoutError, ReadTimeoutError

from dev.docs import samples
from lambdas.contract import RECIPIENT
from lambdas.notifications.announcement import Announcer
from lambdas.notifications.mail_links import Links
from lambdas.notifications.mailer import Notifier
from lambdas.notifications.outcome import ExportSettings
from lambdas.shared.event_bus import EventBus
from lambdas.shared.log import open_log
from lambdas.shared.s3 import Objects
from lambdas.shared.sns import SnsTopics
from tests.support.resource_environment import ManualClock

ANALYSTS = "arn:aws:sns:eu-west-1:111122223333:weekly-sales"
ENGINEERS = "arn:aws:sns:eu-west-1:111122223333:alarms"
BUCKET = "lake-bucket"
_RECORD = samples.run_record()
SALES = ExportSettings(
    "weekly_sales", "lakeferry-dev-weekly_sales", ANALYSTS, "Europe/Berlin", "0 7 ? * MON *"
)
MONDAY = datetime(2026, 11, 16, 6, 0, 9, tzinfo=UTC)
_invocations = itertools.count(1)
#: Faults of a call: no effect, an effect without a response, a refusal, or the death of the caller.
FAULTS = ("refused", "not sent", "no answer", "killed before", "killed after")


class Killed(BaseException):
    """The function's process ends here."""


class Wire:
    """Counts calls. `faults` has the fault of a call by its number."""

    def __init__(self):
        self.calls = 0
        self.faults = {}
        self.names = []

    def carry(self, name, effect):
        fault = self.faults.get(self.calls)
        self.calls += 1
        self.names.append(name)
        if fault == "refused":
            raise ClientError(
                {"Error": {"Code": "AccessDenied"}, "ResponseMetadata": {"HTTPStatusCode": 403}}, name
            )
        if fault == "not sent":
            raise ConnectTimeoutError(endpoint_url="https://aws")
        if fault == "killed before":
            raise Killed
        answer = effect()
        if fault == "no answer":
            raise ReadTimeoutError(endpoint_url="https://aws")
        if fault == "killed after":
            raise Killed
        return answer


class MemoryBucket:
    """Implements three calls of S3, with conditions on writes. `on_write` can act as another writer."""

    def __init__(self, wire):
        self.wire = wire
        self.objects = {}
        self.version = 0
        self.on_write = lambda: None

    def put(self, key, document):
        self.version += 1
        self.objects[key] = (
            json.dumps(document, default=lambda value: value.isoformat()).encode(),
            f'"{self.version}"',
        )

    def get_object(self, **asked):
        return self.wire.carry("GetObject", lambda: self._get(asked["Key"]))

    def _get(self, key):
        if key not in self.objects:
            raise ClientError({"Error": {"Code": "NoSuchKey"}}, "GetObject")
        content, etag = self.objects[key]
        return {"Body": io.BytesIO(content), "ETag": etag}

    def put_object(self, **asked):
        return self.wire.carry(
            "PutObject", lambda: self._put(asked["Key"], asked["Body"], asked.get("IfMatch"))
        )

    def _put(self, key, body, etag):
        self.on_write()
        if self.objects.get(key, (b"", None))[1] != etag:
            raise ClientError({"Error": {"Code": "PreconditionFailed"}}, "PutObject")
        self.version += 1
        self.objects[key] = (body, f'"{self.version}"')
        return {"ETag": f'"{self.version}"'}

    def head_object(self, **asked):
        return self.wire.carry("HeadObject", lambda: self._get(asked["Key"]))

    def generate_presigned_url(self, _, **asked):
        parameters = asked["Params"]
        seconds = asked["ExpiresIn"]
        return f"https://bucket.s3.example.com/{parameters['Key']}?X-Amz-Expires={seconds}&X-Amz-Signature=0a"

    def list_objects_v2(self, **asked):
        return self.wire.carry(
            "ListObjectsV2", lambda: self._list(asked["Prefix"], asked.get("StartAfter", ""))
        )

    def _list(self, prefix, after):
        keys = sorted(key for key in self.objects if key.startswith(prefix) and key > after)
        return {"Contents": [{"Key": key, "LastModified": datetime.now(UTC)} for key in keys]}


class MemoryTopics:
    """Collects `mails` as (topic, subject, body) in the order of sending, and the recipient of each.

    `refused` are recipients to whom no mail can be sent.
    """

    def __init__(self, wire):
        self.wire = wire
        self.mails = []
        self.recipients = []
        self.refused = set()

    def publish(self, **asked):
        return self.wire.carry("Publish", lambda: self._send(asked))

    def _send(self, asked):
        recipient = asked["MessageAttributes"].get(RECIPIENT, {}).get("StringValue", "")
        if recipient in self.refused:
            raise ClientError(
                {"Error": {"Code": "InvalidParameter"}, "ResponseMetadata": {"HTTPStatusCode": 400}},
                "Publish",
            )
        self.mails.append((asked["TopicArn"], asked["Subject"], asked["Message"]))
        self.recipients.append(recipient)

    def subjects(self, topic=ANALYSTS):
        return [subject for to, subject, _ in self.mails if to == topic]

    def bodies(self, topic=ANALYSTS):
        return [body for to, _, body in self.mails if to == topic]


class MemoryBus:
    """Collects the details of `events` in the order of putting. `code` is that of an entry that EventBridge
    refuses."""

    def __init__(self, wire):
        self.wire = wire
        self.events = []
        self.code = ""

    def put_events(self, **asked):
        return self.wire.carry("PutEvents", lambda: self._put(asked["Entries"]))

    def _put(self, entries):
        if self.code:
            return {"FailedEntryCount": 1, "Entries": [{"ErrorCode": self.code}]}
        for entry in entries:
            self.events.append((entry["Source"], entry["DetailType"], json.loads(entry["Detail"])))
        return {"FailedEntryCount": 0, "Entries": [{"EventId": "1"}]}

    def details(self):
        return [detail for _, _, detail in self.events]


class MemoryGlue:
    """Returns job runs. `runs` has Glue's response for each."""

    def __init__(self):
        self.runs = {}

    def get_job_run(self, **asked):
        return {"JobRun": self.runs[asked["RunId"]]}


class NotificationEnvironment:
    def __init__(self):
        self.wire = Wire()
        self.clock = ManualClock()
        self.log = io.StringIO()
        self.clock.now = (MONDAY + timedelta(minutes=3)).timestamp()
        self.bucket, self.topics, self.glue = MemoryBucket(self.wire), MemoryTopics(self.wire), MemoryGlue()
        self.bus = MemoryBus(self.wire)
        self.exports = {SALES.name: SALES}
        self.signer = None

    def run(self, record, number=1):
        """Store the record of a run, and Glue's response about it. Return Glue's id."""
        self.bucket.put(
            f"exports/{record['export']}/runs/{record['id']}.json", record | {"job_run_id": f"jr_{number}"}
        )
        started_at = datetime.fromisoformat(str(record["started_at"]))
        self.glue.runs[f"jr_{number}"] = {
            "StartedOn": started_at - timedelta(seconds=40),
        }
        return f"jr_{number}"

    def publish(self, manifest):
        """Store a window's manifest."""
        self.bucket.put(
            f"exports/{manifest['export']}/manifests/{manifest['window']['label']}.json", manifest
        )

    def notifier(self, invocation):
        return Notifier(
            objects=Objects(self.bucket, BUCKET),
            topics=SnsTopics(self.topics),
            glue=self.glue,
            clock=self.clock,
            log=open_log(self.log),
            exports=self.exports,
            alarm_topic=ENGINEERS,
            links=Links(BUCKET, "eu-west-1", "exports"),
            notices="notices",
            invocation=invocation,
            signer=self.signer,
            announce=self.announcer().announce,
        )

    def announcer(self):
        return Announcer(
            objects=Objects(self.bucket, BUCKET),
            bus=EventBus(self.bus),
            clock=self.clock,
            log=open_log(self.log),
            project="lakeferry",
            stage="dev",
            links=Links(BUCKET, "eu-west-1", "exports"),
            notices="notices",
        )

    def deliver(self, number=1, state="SUCCEEDED", *, job=SALES.job, invocation=None):
        """Invoke the function with Glue's event: once more where `invocation` is given, as Lambda does after
        a failure.
        """
        self.notifier(invocation or str(next(_invocations))).job_ended(job, f"jr_{number}", state)


def record(*windows, weeks=0, state="done", reason=None, mark="5a0c9e12"):
    """Return a run's record, `weeks` after the samples' Monday.

    Like the job, it copies the error of a window to the run.
    """
    made = copy.deepcopy(_RECORD)
    began = MONDAY + timedelta(weeks=weeks)
    times = {"as_of": began, "started_at": began, "expires_at": began + timedelta(hours=1), "ended_at": began}
    made |= {name: time.isoformat() for name, time in times.items()}
    if first := next((window for window in windows if window.get("exit_code")), None):
        state = first["state"]
        reason = f"{first['code']}  {first['reason']}. {first['remedy']}"
    return made | {
        "id": f"{began:%Y%m%dT%H%M%SZ}-{mark}",
        "windows": list(windows),
        "state": state,
        "reason": reason,
    }


def published(window="2026-W46", generation=1, state="published", **changed):
    made = copy.deepcopy(_RECORD["windows"][0])
    return made | {"window": window, "generation": generation, "state": state} | changed


def incomplete(window="2026-W46"):
    return copy.deepcopy(_RECORD["windows"][1]) | {"window": window}


def blocked(window="2026-W46", **changed):
    return copy.deepcopy(_RECORD["windows"][2]) | {"window": window} | changed


def failed(
    window="2026-W46",
    code="EXP-EMPTY",
    reason='window 2026-W46 has no rows, and on_empty is "fail"',
    **changed,
):
    made = {"window": window, "state": "failed", "code": code, "reason": reason, "remedy": "Check the source"}
    return made | {"exit_code": 1, "stops": False} | changed
