"""How old keys are, and how long their rotation has been overdue. Their values are not read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol

import attrs

from lambdas.monitoring import errors as monitoring_errors
from lambdas.monitoring.remembered import DAY
from lambdas.shared.aws import told
from lambdas.shared.errors import LakeferryError

_CURRENT: Final = "AWSCURRENT"


class Secrets(Protocol):
    def describe_secret(self, **asked: Any) -> Any: ...

    def list_secret_version_ids(self, **asked: Any) -> Any: ...


@attrs.frozen
class Keys:
    """Secrets are named by name or ARN."""

    client: Secrets
    now: Callable[[], float]

    def age_days(self, secret: str) -> float:
        with told(f"asking for the versions of secret {secret}"):
            versions = self.client.list_secret_version_ids(SecretId=secret)["Versions"]
        for version in versions:
            if _CURRENT in version.get("VersionStages", []):
                return (self.now() - float(version["CreatedDate"].timestamp())) / DAY
        raise LakeferryError(monitoring_errors.NO_VALUE, f"secret {secret}")

    def overdue_days(self, secret: str) -> float:
        """0 where no rotation is due. Secrets Manager leaves the date in the past where rotation keeps failing
        (DescribeSecret, NextRotationDate)."""
        with told(f"describing secret {secret}"):
            described = self.client.describe_secret(SecretId=secret)
        due = described.get("NextRotationDate") if described.get("RotationEnabled") else None
        return max(0.0, self.now() - float(due.timestamp())) / DAY if due else 0.0


def name_of(arn: str) -> str:
    """As people call it: without the six characters that Secrets Manager adds."""
    name = arn.rsplit(":secret:", 1)[-1]
    return name[:-7] if len(name) > 7 and name[-7] == "-" else name
