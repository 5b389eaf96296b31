"""A function's environment, read once, at the edge."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from lambdas import contract
from lambdas.confluent.client import CONTROL_PLANE
from lambdas.core import errors
from lambdas.core.errors import LakeferryError


@attrs.frozen
class Settings:
    project: str
    stage: str
    ledger_table: str
    cloud_key_secret: str
    confluent_url: str
    catalog_url: str


def read(environment: Mapping[str, str]) -> Settings:
    """Raises LakeferryError that names all missing variables."""
    wanted = (contract.PROJECT, contract.STAGE, contract.LEDGER_TABLE, contract.CLOUD_KEY_SECRET)
    if missing := [name for name in wanted if not environment.get(name)]:
        raise LakeferryError(errors.SETTINGS, f"{', '.join(missing)} not set")
    return Settings(
        project=environment[contract.PROJECT],
        stage=environment[contract.STAGE],
        ledger_table=environment[contract.LEDGER_TABLE],
        cloud_key_secret=environment[contract.CLOUD_KEY_SECRET],
        confluent_url=environment.get(contract.CONFLUENT_URL) or CONTROL_PLANE,
        catalog_url=environment.get(contract.CATALOG_URL, ""),
    )
