"""The surroundings of a resource's lifecycle in tests: a manual clock, AWS in memory, and the calls of
CloudFormation.
"""

from __future__ import annotations

import itertools
import json

from botocore.exceptions import ClientError

from lambdas.custom_resources import provider
from lambdas.custom_resources.provider import Deployment, Lifecycle
from lambdas.custom_resources.registry import RESOURCE_TYPES
from lambdas.custom_resources.state import StateStore, Versioned
from lambdas.shared.clock import Deadline
from lambdas.shared.log import open_log
from lambdas.shared.secrets import SecretStore

ACCOUNT = "111122223333"
REGION = "eu-west-1"
WORK_SECONDS = 90
#: What a vendor may answer instead of its role or user, and no role may trust.
NO_PRINCIPALS = (
    "*",
    "arn:aws:iam::999988887777:root",
    "arn:aws:iam::999988887777:role/*",
    "arn:aws:iam::*:role/vendor",
    "999988887777",
    "arn:aws:sts::999988887777:assumed-role/vendor/session",
    "arn:aws:iam::999988887777:role/vendor\n",
    "glue.amazonaws.com",
)
START = 1_790_000_000.0
_numbers = itertools.count(1)


class ManualClock:
    """Advances only by `sleep`.

    `on_sleep` is called with the seconds, so that a vendor's clock advances too.
    """

    def __init__(self, on_sleep=lambda seconds: None):
        self.now = START
        self.slept = []
        self.on_sleep = on_sleep

    def time(self):
        return self.now

    def sleep(self, seconds):
        self.slept.append(seconds)
        self.now += seconds
        self.on_sleep(seconds)


class MemoryDocuments:
    """Stores documents as DynamoDB does: as JSON, and only over the version that was read.

    While `dead` is set, each write raises it: a killed function writes nothing.
    """

    def __init__(self):
        self.rows = {}
        self.dead = None

    def read(self, key):
        text, version = self.rows.get(key, ("{}", 0))
        return Versioned(json.loads(text), version)

    def write(self, key, document, over, expires):
        if self.dead:
            raise self.dead
        if self.rows.get(key, ("", 0))[1] != over:
            return False
        self.rows[key] = (json.dumps(document), over + 1)
        return True

    def read_all(self):
        return (json.loads(text) for text, _ in self.rows.values())


class MemorySecrets:
    """Implements two calls of Secrets Manager. `values` has the JSON of each existing secret, None for one
    without a value.

    It keeps no earlier values; StagedSecrets does.
    """

    def __init__(self, **values):
        self.values = dict(values)
        self.tokens = set()
        self.ever = [value for value in values.values() if value]
        self.fail_next = None

    def get_secret_value(self, **asked):
        value = self.values.get(asked["SecretId"])
        if value is None or asked.get("VersionStage", "AWSCURRENT") != "AWSCURRENT":
            raise _error("ResourceNotFoundException", "GetSecretValue")
        return {"SecretString": value}

    def put_secret_value(self, **asked):
        if self.fail_next:
            code = self.fail_next
            self.fail_next = None
            raise _error(code, "PutSecretValue")
        if asked["SecretId"] not in self.values:
            raise _error("ResourceNotFoundException", "PutSecretValue")
        if asked["ClientRequestToken"] not in self.tokens:
            self.tokens.add(asked["ClientRequestToken"])
            self.values[asked["SecretId"]] = asked["SecretString"]
            self.ever.append(asked["SecretString"])

    def fields(self, secret_id):
        return json.loads(self.values[secret_id])


class StackStates:
    """The state of CloudFormation's stacks, as a test sets it."""

    def __init__(self):
        self.status = "UPDATE_IN_PROGRESS"
        self.creating = True

    def is_forward(self, stack_id):
        return self.status in ("CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS")

    def is_rolling_back(self, stack_id):
        return "ROLLBACK" in self.status

    def is_creating(self, stack_id, logical_id):
        return self.creating


class Invocations:
    """Calls one deployment's Lambda functions. Each call is an invocation with its own deadline and its own
    client.

    The log goes to `log`. `answers` has what CloudFormation received: answers and errors.
    """

    def __init__(self, connect, clock=None, secrets=None, types=RESOURCE_TYPES, log=None):
        self.clock = clock or ManualClock()
        self.documents = MemoryDocuments()
        self.secrets = secrets or MemorySecrets()
        self.stacks = StackStates()
        self.log = log
        self.answers = []
        self._connect = connect
        self._types = types
        self._deployment = Deployment("lakeferry", "test")

    def lifecycle(self):
        deadline = Deadline(self.clock, self.clock.time() + WORK_SECONDS)
        store = SecretStore(self.secrets)
        return Lifecycle(
            deployment=self._deployment,
            states=StateStore(self.documents, self.clock),
            stacks=self.stacks,
            secrets=store,
            vendors=dict.fromkeys(
                ("confluent", "snowflake"), lambda: self._connect(deadline, self.clock, store)
            ),
            deadline=deadline,
            log=open_log(self.log),
            types=self._types,
        )

    def on_event(self, event):
        return self._kept(lambda given: provider.on_event(given, self.clock.time(), self._types), event)

    def is_complete(self, event):
        return self._kept(self.lifecycle().is_complete, event)

    def _kept(self, work, event):
        try:
            answer = work(event)
        except Exception as error:
            self.answers.append(f"{error!r} {error}")
            raise
        self.answers.append(json.dumps(answer))
        return answer


class Resource:
    """Treats a custom resource as CloudFormation and the provider framework do."""

    def __init__(self, invocations, kind, logical_id, stack="lake", **properties):
        self.invocations = invocations
        self.stack_id = (
            f"arn:aws:cloudformation:{REGION}:{ACCOUNT}:stack/{stack}/11111111-2222-3333-4444-555555555555"
        )
        self.kind = kind
        self.logical_id = logical_id
        self.properties = properties
        self.physical_id = ""
        self.outputs = {}

    def event(self, verb, old=None, **changed):
        event = {
            "RequestType": verb,
            "RequestId": f"request-{next(_numbers)}",
            "StackId": self.stack_id,
            "LogicalResourceId": self.logical_id,
            "ResourceProperties": {"ServiceToken": "arn:token", "kind": self.kind, **self.properties},
            **changed,
        }
        if verb != "Create":
            event.setdefault("PhysicalResourceId", self.physical_id)
        if old is not None:
            event["OldResourceProperties"] = {"ServiceToken": "arn:token", "kind": self.kind, **old}
        return event

    def run(self, event, every=5, most=2000):
        """Call `on_event`, then `is_complete` until it is complete.

        Raises the error that CloudFormation would receive.
        """
        answer = self.invocations.on_event(event)
        known = {**event, **answer}
        for _ in range(most):
            done = self.invocations.is_complete(known)
            if done["IsComplete"]:
                self.outputs = done.get("Data", {})
                return answer["PhysicalResourceId"]
            self.invocations.clock.sleep(every)
        raise AssertionError("never complete")

    def create(self):
        self.physical_id = self.run(self.event("Create"))
        return self.outputs

    def update(self, **properties):
        old = self.properties
        self.properties = {**self.properties, **properties}
        before = self.physical_id
        self.physical_id = self.run(self.event("Update", old))
        if self.physical_id != before:
            self.run(
                {
                    **self.event("Delete", PhysicalResourceId=before),
                    "ResourceProperties": {"kind": self.kind, **old},
                }
            )
        return self.outputs

    def delete(self):
        return self.run(self.event("Delete"))


def _error(code, operation):
    return ClientError({"Error": {"Code": code, "Message": "as the test wants"}}, operation)
