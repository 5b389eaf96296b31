"""Secrets Manager in memory, as strict about versions and labels as AWS documents, and AWS's part in a
rotation.

A label is on one version at a time, and a secret has 20 at most (AWS's user guide, "Quotas": staging labels
attached across all versions of a secret). A token is a version's id and is written once. Moving AWSCURRENT
also moves AWSPREVIOUS. RotateSecret labels a version without a value, and is refused while another rotation
is in progress.
"""

from __future__ import annotations

import itertools
from datetime import UTC, datetime

from botocore.exceptions import ClientError

CURRENT = "AWSCURRENT"
PREVIOUS = "AWSPREVIOUS"
PENDING = "AWSPENDING"
DAY = 86400.0
LABELS = 20
STEPS = ("createSecret", "setSecret", "testSecret", "finishSecret")
_numbers = itertools.count(1)


class Held:
    """One secret.

    `versions` has [value or None, labels, created] by id; `history` has when each version became current.
    """

    def __init__(self, name, tags):
        self.name = name
        self.tags = tags
        self.arn = f"arn:aws:secretsmanager:eu-west-1:111122223333:secret:{name}-AbCdEf"
        self.versions = {}
        self.history = []
        self.enabled = True
        self.deleted = False
        self.days = 30
        self.rotated = None

    def labelled(self, label):
        return next(
            (version_id for version_id, (_, labels, _) in self.versions.items() if label in labels), None
        )

    def labels(self):
        return [label for _, labels, _ in self.versions.values() for label in labels]

    def value(self, label):
        found = self.labelled(label)
        return self.versions[found][0] if found else None


class StagedSecrets:
    """`clock` is AWS's.

    `on_call` receives each call and makes it, so that a test can fail before or after it. `rotation_tokens`
    has the parameter of each value that was put.
    """

    def __init__(self, clock, on_call=lambda operation, call: call()):
        self._clock = clock
        self._on_call = on_call
        self.all = {}
        self.ever = set()
        self.rotation_tokens = []

    # Called by tests

    def new(self, name, value=None, **tags):
        held = self.all[name] = self.all[f"arn:{name}"] = Held(name, tags)
        self.all[held.arn] = held
        if value is not None:
            self._put(held, token(), value, [CURRENT])
        return held

    def start(self, name, version=None):
        """Start a rotation as RotateSecret does, and return its version.

        A rotation in progress is tried again, as AWS does.
        """
        held = self.all[name]
        pending = held.labelled(PENDING)
        if pending and pending != held.labelled(CURRENT):
            return pending
        version = version or token()
        self._label(held, PENDING, held.versions.setdefault(version, [None, set(), self._clock.time()]))
        return version

    def ended(self, name, version):
        """End a rotation after its four steps, as AWS does."""
        held = self.all[name]
        held.versions[version][1].discard(PENDING)
        held.rotated = self._clock.time()

    def detach(self, name):
        """Remove AWSPENDING, as somebody can do by hand."""
        for _, labels, _ in self.all[name].versions.values():
            labels.discard(PENDING)

    # Called by the function, through boto3

    def describe_secret(self, **asked):
        return self._on_call("DescribeSecret", lambda: self._describe(self._find(asked, deleted=True)))

    def get_secret_value(self, **asked):
        return self._on_call("GetSecretValue", lambda: self._get(self._find(asked), asked))

    def put_secret_value(self, **asked):
        def put():
            stages = asked.get("VersionStages", [CURRENT])
            self.rotation_tokens.append(asked.get("RotationToken"))
            return self._put(self._find(asked), asked["ClientRequestToken"], asked["SecretString"], stages)

        return self._on_call("PutSecretValue", put)

    def update_secret_version_stage(self, **asked):
        return self._on_call("UpdateSecretVersionStage", lambda: self._update(self._find(asked), asked))

    def list_secret_version_ids(self, **asked):
        def listed():
            versions = self._find(asked).versions.items()
            shown = [
                {"VersionId": version, "VersionStages": sorted(labels), "CreatedDate": moment(created)}
                for version, (_, labels, created) in versions
                if labels or asked.get("IncludeDeprecated")
            ]
            return {"Versions": shown}

        return self._on_call("ListSecretVersionIds", listed)

    def _find(self, asked, deleted=False):
        held = self.all.get(asked["SecretId"])
        if held is None:
            raise refused("ResourceNotFoundException")
        if held.deleted and not deleted:
            raise refused("InvalidRequestException")
        return held

    def _describe(self, held):
        rotated = {"LastRotatedDate": moment(held.rotated)} if held.rotated else {}
        due = (
            held.rotated or min((created for _, _, created in held.versions.values()), default=0)
        ) + held.days * DAY
        return {
            "ARN": held.arn,
            "Name": held.name,
            "RotationEnabled": held.enabled,
            "RotationRules": {"AutomaticallyAfterDays": held.days},
            "NextRotationDate": moment(due),
            "VersionIdsToStages": {
                version_id: sorted(labels) for version_id, (_, labels, _) in held.versions.items() if labels
            },
            "Tags": [{"Key": key, "Value": value} for key, value in held.tags.items()],
            **rotated,
            **({"DeletedDate": moment(self._clock.time())} if held.deleted else {}),
        }

    def _get(self, held, asked):
        version = asked.get("VersionId") or held.labelled(asked.get("VersionStage", CURRENT))
        value, labels, created = held.versions.get(version, (None, (), 0))
        if value is None:
            raise refused("ResourceNotFoundException")
        return {
            "VersionId": version,
            "SecretString": value,
            "VersionStages": sorted(labels),
            "CreatedDate": moment(created),
        }

    def _put(self, held, version, value, stages):
        there = held.versions.get(version)
        if there and there[0] is not None:
            if there[0] != value:
                raise refused("ResourceExistsException")
            return {"VersionId": version}
        one = held.versions.setdefault(version, [None, set(), 0])
        one[0], one[2] = value, self._clock.time()
        self.ever.add(value)
        for stage in stages:
            self._label(held, stage, one)
        if held.labelled(CURRENT) is None:
            self._label(held, CURRENT, one)
        return {"VersionId": version}

    def _update(self, held, asked):
        stage = asked["VersionStage"]
        to = asked.get("MoveToVersionId")
        away = asked.get("RemoveFromVersionId")
        if any(part is not None and part not in held.versions for part in (to, away)):
            raise refused("ResourceNotFoundException")
        now = held.labelled(stage)
        if now is not None and now != to and away != now:
            raise refused("InvalidParameterException")
        if to is None:
            held.versions[away][1].discard(stage)
        else:
            self._label(held, stage, held.versions[to])
        return {"Name": held.name}

    def _label(self, held, stage, one):
        before = held.labelled(stage)
        if before is not None and held.versions[before] is one:
            return
        if before is not None:
            held.versions[before][1].discard(stage)
        elif len(held.labels()) == LABELS:
            raise refused("LimitExceededException")
        one[1].add(stage)
        if stage == CURRENT:
            held.history.append(
                (self._clock.time(), next(key for key, value in held.versions.items() if value is one))
            )
            if before is not None:
                self._label(held, PREVIOUS, held.versions[before])


def token():
    """Return a new token. Each run of the tests has the same tokens."""
    return f"{next(_numbers):08d}-0000-4000-8000-000000000000"


def moment(seconds):
    return datetime.fromtimestamp(seconds, UTC)


def refused(code):
    return ClientError({"Error": {"Code": code, "Message": "as AWS documents it"}}, "Operation")
