"""How old the keys are that readers get. Their values are not looked at."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol

import attrs

from lambdas.core.aws import told
from lambdas.core.errors import LakeferryError
from lambdas.watch import error_rows
from lambdas.watch.sights import DAY

_CURRENT: Final = "AWSCURRENT"


class Secrets(Protocol):
    def list_secret_version_ids(self, **asked: Any) -> Any: ...


@attrs.frozen
class Keys:
    client: Secrets
    now: Callable[[], float]

    def age_days(self, arn: str) -> float:
        with told(f"asking for the versions of secret {arn}"):
            versions = self.client.list_secret_version_ids(SecretId=arn)["Versions"]
        for version in versions:
            if _CURRENT in version.get("VersionStages", []):
                return (self.now() - float(version["CreatedDate"].timestamp())) / DAY
        raise LakeferryError(error_rows.NO_VALUE, f"secret {arn}")


def name_of(arn: str) -> str:
    """As people call it: without the six characters that Secrets Manager adds."""
    name = arn.rsplit(":secret:", 1)[-1]
    return name[:-7] if len(name) > 7 and name[-7] == "-" else name
