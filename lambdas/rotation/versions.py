"""The versions of a secret with their staging labels, and which of their keys may be revoked.

A replaced key may be revoked when its grace period is over, which begins when the next version becomes
current. Of that time, this is assumed:

- the last rotation: the time that Secrets Manager stores
- an earlier one: PENDING_LIFE after the version was created, the latest time at which it can have become
  current
- one that took longer than PENDING_LIFE: its version has a label with the time just before it became current,
  and PENDING_LIFE counts from that time

Keys older than the previous one were replaced when the previous version became current, or earlier.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import attrs

from config.aws_denials import DENIED
from lambdas import contract
from lambdas.rotation import errors as rotation_errors
from lambdas.shared.aws import FINAL, raise_instead, translate_aws_errors
from lambdas.shared.errors import ErrorKind, Refused
from lambdas.shared.redaction import Secret
from lambdas.shared.secrets import CURRENT, PREVIOUS, Fields, parse_fields, reveal_fields

if TYPE_CHECKING:
    from mypy_boto3_secretsmanager import SecretsManagerClient

DAY: Final = 86400.0
#: Seconds after which a pending version gets a label with the time before it becomes current, and no longer
#: stops revocation.
PENDING_LIFE: Final = DAY
PENDING: Final = "AWSPENDING"
_STAGES: Final = frozenset({CURRENT, PREVIOUS, PENDING})
_TIME_LABEL: Final = "LAKEFERRY-SINCE-"
#: The beginning of the label of a version that is about to become current without a rotation.
_REPLACING: Final = "LAKEFERRY-REPLACING-"
_MISSING: Final = "ResourceNotFoundException"
_RATE: Final = re.compile(r"rate\((\d+) (hour|day)s?\)")
_SECONDS: Final = {"hour": 3600.0, "day": DAY}


@attrs.frozen
class Version:
    """A version of a secret, and its fields. `created` is in seconds since 1970."""

    id: str
    created: float
    fields: Fields = attrs.field(repr=False)

    @property
    def texts(self) -> dict[str, str]:
        """Return the fields that aren't secret."""
        return {name: value for name, value in self.fields.items() if isinstance(value, str)}

    def get_text(self, name: str) -> str:
        """Return the value of a field that isn't secret; "" if there is none."""
        return self.texts.get(name, "")

    def get_secret(self, name: str) -> Secret:
        """Return the value of a field whose name says that it is secret; an empty Secret if there is none."""
        value = self.fields.get(name, "")
        return value if isinstance(value, Secret) else Secret(value)


@attrs.frozen
class Described:
    """A secret without its values.

    Times are in seconds since 1970; `rotation_interval` is in seconds.
    """

    arn: str
    name: str
    stages: Mapping[str, tuple[str, ...]]
    enabled: bool
    deleted: bool
    last_rotated: float | None
    next_rotation: float | None
    rotation_interval: float | None
    tags: Mapping[str, str]

    def labelled(self, stage: str) -> str:
        """Return the id of the version with this label; "" if none has it."""
        return next((version for version, stages in self.stages.items() if stage in stages), "")


@attrs.frozen
class SecretVersions:
    """The versions of one secret."""

    client: SecretsManagerClient
    secret_id: str

    def describe(self) -> Described:
        with translate_aws_errors(f"describing secret {self.secret_id}"):
            described = self.client.describe_secret(SecretId=self.secret_id)
        stages_by_version = described.get("VersionIdsToStages") or {}
        return Described(
            arn=str(described.get("ARN", self.secret_id)),
            name=str(described.get("Name", self.secret_id)),
            stages={version: tuple(stages) for version, stages in stages_by_version.items()},
            enabled=bool(described.get("RotationEnabled")),
            deleted=described.get("DeletedDate") is not None,
            last_rotated=_to_seconds(described.get("LastRotatedDate")),
            next_rotation=_to_seconds(described.get("NextRotationDate")),
            rotation_interval=_parse_interval(described.get("RotationRules") or {}),
            tags={str(tag.get("Key")): str(tag.get("Value")) for tag in described.get("Tags") or []},
        )

    def read(self, version: str) -> Version | None:
        """Return a version by its id; None if there is none or it has no value.

        Raises Refused unless it is a JSON object.
        """
        if not version:
            return None
        try:
            with (
                translate_aws_errors(f"reading secret {self.secret_id}"),
                raise_instead((_MISSING,), KeyError),
            ):
                response = self.client.get_secret_value(SecretId=self.secret_id, VersionId=version)
        except KeyError:
            return None
        text = response.get("SecretString")
        if not text:
            return None
        try:
            fields = parse_fields(text)
        except ValueError:
            raise Refused(
                rotation_errors.FIELDS, f"version {version} of secret {self.secret_id} is not a JSON object"
            ) from None
        return Version(version, _to_seconds(response["CreatedDate"]) or 0.0, fields)

    def put_pending(self, token: str, fields: Fields, rotation_token: Secret | None) -> None:
        """Write the pending value.

        Raises Refused if nothing was written, for example because the token has another value.
        """
        extra = {"RotationToken": rotation_token.reveal()} if rotation_token else {}
        text = json.dumps(reveal_fields(fields), sort_keys=True)
        with self._translate_errors("storing the new value of", rotation_errors.NOT_STORED):
            self.client.put_secret_value(
                SecretId=self.secret_id,
                ClientRequestToken=token,
                SecretString=text,
                VersionStages=[PENDING],
                **extra,
            )

    def replace_current(self, fields: Fields, replaced: str) -> None:
        """Write a new version, and make it current instead of `replaced`, which the caller read.

        Raises Refused if a third one is current. The new version then has no label, and AWS removes it.
        """
        text = json.dumps(reveal_fields(fields), sort_keys=True)
        token = str(uuid.uuid4())
        label = f"{_REPLACING}{token}"
        with self._translate_errors("storing the new value of", rotation_errors.NOT_STORED):
            self.client.put_secret_value(
                SecretId=self.secret_id,
                ClientRequestToken=token,
                SecretString=text,
                VersionStages=[label],
            )
        try:
            self.make_current(token, replaced)
        finally:
            self._remove_label(token, label)

    def make_current(self, token: str, replaced: str) -> None:
        """Make version `token` current instead of `replaced`, which the caller read.

        Raises Refused if a third one is current.
        """
        with self._translate_errors("making a version current of", rotation_errors.NOT_MOVED):
            self.client.update_secret_version_stage(
                SecretId=self.secret_id,
                VersionStage=CURRENT,
                MoveToVersionId=token,
                RemoveFromVersionId=replaced,
            )

    def label_time(self, token: str, now: float) -> None:
        """Label a version with the time. This doesn't affect clients that read the secret."""
        with self._translate_errors("labelling a version of", rotation_errors.NOT_MOVED):
            self.client.update_secret_version_stage(
                SecretId=self.secret_id, VersionStage=f"{_TIME_LABEL}{int(now)}", MoveToVersionId=token
            )

    def remove_old_times(self, stages: Mapping[str, tuple[str, ...]]) -> None:
        """Remove the time labels of versions that aren't current, previous or pending: a secret can have at
        most 20 labels.
        """
        for version, labels in stages.items():
            if not _STAGES.isdisjoint(labels):
                continue
            for label in labels:
                if label.startswith(_TIME_LABEL):
                    self._remove_label(version, label)

    def give_up(self, token: str) -> None:
        """Abandon the pending version by removing its label."""
        self._remove_label(token, PENDING)

    def list_other_versions(self) -> Iterator[Version]:
        """Yield the other versions that Secrets Manager still has: those that aren't current, previous or
        pending.
        """
        for entry in self._list_versions():
            if not _STAGES.isdisjoint(entry.get("VersionStages") or ()):
                continue
            version = self.read(str(entry["VersionId"]))
            if version:
                yield version

    def read_created_time(self, version: str) -> float | None:
        """Return when a version was created, in seconds since 1970, even if it has no value; None if AWS
        doesn't say.
        """
        for entry in self._list_versions():
            if entry.get("VersionId") == version:
                return _to_seconds(entry.get("CreatedDate"))
        return None

    def _list_versions(self) -> Iterator[Mapping[str, Any]]:
        parameters: dict[str, Any] = {"SecretId": self.secret_id, "IncludeDeprecated": True}
        while True:
            with translate_aws_errors(f"listing the versions of secret {self.secret_id}"):
                page = self.client.list_secret_version_ids(**parameters)
            yield from page.get("Versions") or []
            if not page.get("NextToken"):
                return
            parameters["NextToken"] = page["NextToken"]

    def _remove_label(self, version: str, label: str) -> None:
        with self._translate_errors("removing a label of a version of", rotation_errors.NOT_MOVED):
            self.client.update_secret_version_stage(
                SecretId=self.secret_id, VersionStage=label, RemoveFromVersionId=version
            )

    @contextmanager
    def _translate_errors(self, doing: str, kind: ErrorKind) -> Iterator[None]:
        action = f"{doing} secret {self.secret_id}"
        with (
            translate_aws_errors(action),
            raise_instead(FINAL | DENIED, lambda answer: Refused(kind, f"{action}: {answer}")),
        ):
            yield


def parse_time_labels(stages: Iterable[str]) -> list[float]:
    """Return the times in those of a version's labels that `label_time` wrote."""
    times = []
    for stage in stages:
        seconds = stage.removeprefix(_TIME_LABEL)
        if stage.startswith(_TIME_LABEL) and seconds.isdigit():
            times.append(float(seconds))
    return times


def _to_seconds(value: Any) -> float | None:
    if isinstance(value, datetime):
        return value.timestamp()
    return None if value is None else float(value)


def _parse_interval(rules: Mapping[str, Any]) -> float | None:
    """Return the seconds between rotations; None for a cron schedule, whose next date Secrets Manager
    returns.
    """
    days = rules.get("AutomaticallyAfterDays")
    if days:
        return float(days) * DAY
    rate = _RATE.fullmatch(str(rules.get("ScheduleExpression", "")))
    return float(rate[1]) * _SECONDS[rate[2]] if rate else None


@attrs.frozen
class Policy:
    """How many keys are valid, and for how long after they were replaced.

    `keep` keys are valid between two rotations, and one more during a rotation. `grace` is the grace period
    in seconds.
    """

    keep: int = contract.KEYS_KEPT
    grace: float = contract.GRACE_DAYS * DAY


@attrs.frozen
class RotationContext:
    """The versions of a secret while keys are rotated or revoked.

    `token` is the id of the version that becomes current; `pending` is None while this version has no value.
    """

    versions: SecretVersions
    described: Described
    token: str
    current: Version
    previous: Version | None
    pending: Version | None
    policy: Policy
    now: Callable[[], float]

    @property
    def labelled(self) -> list[Version]:
        return [version for version in (self.current, self.pending, self.previous) if version]

    @property
    def is_rotating(self) -> bool:
        """Return whether a rotation may be running. Secrets Manager labels the pending version before the
        first step.

        The label stays after a rotation that failed, so only that of a young version says that one is
        running. Replaced keys must not stay valid for as long as rotation fails. A version of unknown age
        doesn't keep them valid either: only keys that are neither current nor pending, and whose grace is
        over, are revoked.
        """
        label = self.described.labelled(PENDING)
        if label in ("", self.current.id):
            return False
        created = self.pending.created if self.pending else self.versions.read_created_time(label)
        return created is not None and self.now() < created + PENDING_LIFE

    def require_same_labels(self) -> None:
        """Raise Refused if a rotation has begun or ended since this was read."""
        if self.versions.describe().stages != self.described.stages:
            raise Refused(rotation_errors.CHANGED, f"secret {self.described.name}")

    def needs_time_label(self, pending: Version) -> bool:
        """Return whether the version is so old that it becomes current later than is assumed
        without a label.
        """
        return self.now() > self._compute_known_since(pending) + PENDING_LIFE

    @property
    def previous_is_revocable(self) -> bool:
        return (
            self.now()
            >= self._compute_latest_replacement(self.current, self.described.last_rotated) + self.policy.grace
        )

    @property
    def older_are_revocable(self) -> bool:
        """Return whether keys older than the previous one may be revoked.

        Before the first rotation, no key has been replaced.
        """
        return (
            self.previous is None
            or self.now() >= self._compute_latest_replacement(self.previous, None) + self.policy.grace
        )

    def _compute_latest_replacement(self, successor: Version, rotated: float | None) -> float:
        """Return the latest time at which `successor` can have become current."""
        if rotated is not None and rotated >= successor.created:
            return rotated
        return self._compute_known_since(successor) + PENDING_LIFE

    def _compute_known_since(self, version: Version) -> float:
        labels = self.described.stages.get(version.id, ())
        return max([version.created, *parse_time_labels(labels)])


def read_context(
    versions: SecretVersions, described: Described, token: str, policy: Policy, now: Callable[[], float]
) -> RotationContext:
    """Read the context of a rotation.

    Without `token`, the pending version is the one with the label. Raises Refused.
    """
    current = versions.read(described.labelled(CURRENT))
    if current is None:
        raise Refused(rotation_errors.EMPTY, f"secret {described.name} has no current value")
    previous = versions.read(described.labelled(PREVIOUS))
    pending = versions.read(token or described.labelled(PENDING))
    if pending is not None and pending.id == current.id:
        pending = None
    return RotationContext(versions, described, token, current, previous, pending, policy, now)
