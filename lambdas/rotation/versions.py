"""The versions of a secret with their staging labels, and which of their keys may be revoked by now.

A key may be revoked once the grace is over since it was replaced. Nobody writes down when that was, so it is bounded: the
current version became current when Secrets Manager ended its rotation, and no later than PENDING_LIFE after it was created. An
older version, of a rotation that failed for a while, gets a label with the time before it becomes current, and the bound counts
from there. The key before the previous one was replaced before that one was.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import attrs

from lambdas import contract
from lambdas.rotation import errors as rotation_errors
from lambdas.shared.aws import DENIED, FINAL, aws_call, raise_instead
from lambdas.shared.errors import ErrorRow, Refused
from lambdas.shared.redaction import Secret
from lambdas.shared.secrets import NOT_SECRET

if TYPE_CHECKING:
    from mypy_boto3_secretsmanager import SecretsManagerClient

CURRENT: Final = "AWSCURRENT"
PREVIOUS: Final = "AWSPREVIOUS"
PENDING: Final = "AWSPENDING"
_MARK: Final = "LAKEFERRY-SINCE-"
_MISSING: Final = "ResourceNotFoundException"
_RATE: Final = re.compile(r"rate\((\d+) (hour|day)s?\)")
_SECONDS: Final = {"hour": 3600.0, "day": 86400.0}


@attrs.frozen
class Version:
    """`created` is in seconds since 1970. `guarded` keeps what must not be shown out of logs and errors."""

    id: str
    created: float
    fields: Mapping[str, str] = attrs.field(repr=False)
    guarded: Mapping[str, Secret] = attrs.field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        guarded = {name: Secret(value) for name, value in self.fields.items() if name not in NOT_SECRET}
        object.__setattr__(self, "guarded", guarded)

    def text(self, name: str) -> str:
        """The field's value; "" where there is none."""
        return self.fields.get(name, "")


@attrs.frozen
class Described:
    """What Secrets Manager says of a secret without its values. Times are seconds since 1970; `every` is the schedule's."""

    arn: str
    name: str
    stages: Mapping[str, tuple[str, ...]]
    enabled: bool
    deleted: bool
    last_rotated: float | None
    next_rotation: float | None
    every: float | None
    tags: Mapping[str, str]

    def labelled(self, stage: str) -> str:
        """The id of the version that has this label; "" where none has."""
        return next((version for version, stages in self.stages.items() if stage in stages), "")


@attrs.frozen
class SecretVersions:
    """One secret's."""

    client: SecretsManagerClient
    secret_id: str

    def describe(self) -> Described:
        with aws_call(f"describing secret {self.secret_id}"):
            described = self.client.describe_secret(SecretId=self.secret_id)
        return Described(
            arn=str(described.get("ARN", self.secret_id)),
            name=str(described.get("Name", self.secret_id)),
            stages={version: tuple(stages) for version, stages in (described.get("VersionIdsToStages") or {}).items()},
            enabled=bool(described.get("RotationEnabled")),
            deleted=described.get("DeletedDate") is not None,
            last_rotated=_seconds(described.get("LastRotatedDate")),
            next_rotation=_seconds(described.get("NextRotationDate")),
            every=_every(described.get("RotationRules") or {}),
            tags={str(tag.get("Key")): str(tag.get("Value")) for tag in described.get("Tags") or []},
        )

    def read(self, version: str) -> Version | None:
        """By its id. None where there is no such version, or it has no value. Raises Refused where it isn't a JSON object."""
        return self._read(version) if version else None

    def put_pending(self, token: str, fields: Mapping[str, str], rotation_token: Secret | None) -> None:
        """Written once: the same token with another value is refused. Raises Refused where nothing was written."""
        extra = {"RotationToken": rotation_token.reveal()} if rotation_token else {}
        text = json.dumps(dict(fields), sort_keys=True)
        with self._calling("storing the new value of", rotation_errors.NOT_STORED):
            self.client.put_secret_value(
                SecretId=self.secret_id, ClientRequestToken=token, SecretString=text, VersionStages=[PENDING], **extra
            )

    def make_current(self, token: str, replaced: str) -> None:
        """Only over the version that is current as far as the caller knows. Raises Refused where another one is."""
        with self._calling("making a version current of", rotation_errors.NOT_MOVED):
            self.client.update_secret_version_stage(
                SecretId=self.secret_id, VersionStage=CURRENT, MoveToVersionId=token, RemoveFromVersionId=replaced
            )

    def mark(self, token: str, now: float) -> None:
        """A label with the time: nothing that readers know of changes."""
        with self._calling("marking a version of", rotation_errors.NOT_MOVED):
            self.client.update_secret_version_stage(
                SecretId=self.secret_id, VersionStage=f"{_MARK}{int(now)}", MoveToVersionId=token
            )

    def give_up(self, token: str) -> None:
        """Takes the label of the version that is being rotated to."""
        with self._calling("taking a label from a version of", rotation_errors.NOT_MOVED):
            self.client.update_secret_version_stage(SecretId=self.secret_id, VersionStage=PENDING, RemoveFromVersionId=token)

    def unlabelled(self) -> Iterator[Version]:
        """Those that Secrets Manager still has, though no label leads to them."""
        parameters: dict[str, Any] = {"SecretId": self.secret_id, "IncludeDeprecated": True}
        while True:
            with aws_call(f"listing the versions of secret {self.secret_id}"):
                page = self.client.list_secret_version_ids(**parameters)
            for listed in page.get("Versions") or []:
                if not listed.get("VersionStages") and (version := self.read(str(listed["VersionId"]))):
                    yield version
            if not page.get("NextToken"):
                return
            parameters["NextToken"] = page["NextToken"]

    def _read(self, version: str) -> Version | None:
        try:
            with aws_call(f"reading secret {self.secret_id}"), raise_instead((_MISSING,), KeyError):
                response = self.client.get_secret_value(SecretId=self.secret_id, VersionId=version)
        except KeyError:
            return None
        text = response.get("SecretString")
        if not text:
            return None
        fields = _fields(text)
        if fields is None:
            raise Refused(rotation_errors.FIELDS, f"version {version} of secret {self.secret_id} is not a JSON object")
        return Version(version, _seconds(response["CreatedDate"]) or 0.0, fields)

    @contextmanager
    def _calling(self, doing: str, row: ErrorRow) -> Iterator[None]:
        what = f"{doing} secret {self.secret_id}"
        with aws_call(what), raise_instead(FINAL | DENIED, lambda code: Refused(row, f"{what}: {code}")):
            yield


def marks(stages: Iterable[str]) -> list[float]:
    """The times of `mark` among a version's labels."""
    labels = (stage.removeprefix(_MARK) for stage in stages if stage.startswith(_MARK))
    return [float(text) for text in labels if text.isdigit()]


def _fields(text: str) -> dict[str, str] | None:
    try:
        return {str(name): str(value) for name, value in json.loads(text).items()}
    except (ValueError, AttributeError):
        return None


def _seconds(value: Any) -> float | None:
    if isinstance(value, datetime):
        return value.timestamp()
    return None if value is None else float(value)


def _every(rules: Mapping[str, Any]) -> float | None:
    """None for a schedule by cron, whose next date Secrets Manager tells."""
    if days := rules.get("AutomaticallyAfterDays"):
        return float(days) * _SECONDS["day"]
    rate = _RATE.fullmatch(str(rules.get("ScheduleExpression", "")))
    return float(rate[1]) * _SECONDS[rate[2]] if rate else None


DAY: Final = 86400.0
#: Seconds after which a version is marked before it is made current.
PENDING_LIFE: Final = DAY


@attrs.frozen
class Policy:
    """`keep` keys live between two rotations, one more during one; `grace` is in seconds."""

    keep: int = contract.KEYS_KEPT
    grace: float = contract.GRACE_DAYS * DAY


@attrs.frozen
class RotationContext:
    """`token` names the version that is being rotated to; `pending` is None while that has no value."""

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
        """Secrets Manager labels the version that it rotates to before it calls the first step."""
        return self.described.labelled(PENDING) not in ("", self.current.id)

    def require_same_labels(self) -> None:
        """Raises Refused where a rotation has begun or ended since this was read."""
        if self.versions.describe().stages != self.described.stages:
            raise Refused(rotation_errors.CHANGED, f"secret {self.described.name}")

    def needs_mark(self, pending: Version) -> bool:
        """It would become current so late that its age no longer tells when."""
        return self.now() > self._known_since(pending) + PENDING_LIFE

    @property
    def previous_may_go(self) -> bool:
        return self.now() >= self._replaced_by(self.current, self.described.last_rotated) + self.policy.grace

    @property
    def older_may_go(self) -> bool:
        """Keys that no label leads to. Before the first rotation nothing was ever replaced."""
        return self.previous is None or self.now() >= self._replaced_by(self.previous, None) + self.policy.grace

    def _replaced_by(self, successor: Version, rotated: float | None) -> float:
        """The latest instant at which `successor` can have become current."""
        return rotated if rotated is not None and rotated >= successor.created else self._known_since(successor) + PENDING_LIFE

    def _known_since(self, version: Version) -> float:
        return max([version.created, *marks(self.described.stages.get(version.id, ()))])


def read_context(
    versions: SecretVersions, described: Described, token: str, policy: Policy, now: Callable[[], float]
) -> RotationContext:
    """`token` is "" where no rotation is meant: then what is pending is whatever has the label. Raises Refused."""
    current = versions.read(described.labelled(CURRENT))
    if current is None:
        raise Refused(rotation_errors.EMPTY, f"secret {described.name} has no current value")
    previous = versions.read(described.labelled(PREVIOUS))
    pending = versions.read(token or described.labelled(PENDING))
    if pending is not None and pending.id == current.id:
        pending = None
    return RotationContext(versions, described, token, current, previous, pending, policy, now)
