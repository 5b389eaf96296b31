"""A function's environment, read once, at the edge."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from lambdas import contract
from lambdas.confluent.client import CONTROL_PLANE
from lambdas.shared import errors
from lambdas.shared.errors import LakeferryError


@attrs.frozen
class Settings:
    """What a vendor needs is "" where it isn't set: a stack that uses one vendor only sets that one's variables."""

    project: str
    stage: str
    ledger_table: str
    cloud_key_secret: str
    confluent_url: str
    catalog_url: str
    snowflake_account: str
    snowflake_user: str
    snowflake_role: str
    snowflake_warehouse: str
    snowflake_secret: str
    snowflake_url: str


def read(environment: Mapping[str, str]) -> Settings:
    """Raises LakeferryError that names all missing variables among those that every function needs."""
    wanted = (contract.PROJECT, contract.STAGE, contract.LEDGER_TABLE)
    _require({name: environment.get(name, "") for name in wanted})
    return Settings(
        project=environment[contract.PROJECT],
        stage=environment[contract.STAGE],
        ledger_table=environment[contract.LEDGER_TABLE],
        cloud_key_secret=environment.get(contract.CLOUD_KEY_SECRET, ""),
        confluent_url=environment.get(contract.CONFLUENT_URL) or CONTROL_PLANE,
        catalog_url=environment.get(contract.CATALOG_URL, ""),
        snowflake_account=environment.get(contract.SNOWFLAKE_ACCOUNT, ""),
        snowflake_user=environment.get(contract.SNOWFLAKE_USER, ""),
        snowflake_role=environment.get(contract.SNOWFLAKE_ROLE, ""),
        snowflake_warehouse=environment.get(contract.SNOWFLAKE_WAREHOUSE, ""),
        snowflake_secret=environment.get(contract.SNOWFLAKE_SECRET, ""),
        snowflake_url=environment.get(contract.SNOWFLAKE_URL, ""),
    )


def require_confluent(read: Settings) -> None:
    """Raises LakeferryError that names what Confluent's resources lack."""
    _require({contract.CLOUD_KEY_SECRET: read.cloud_key_secret})


def require_snowflake(read: Settings) -> None:
    """Raises LakeferryError that names all that Snowflake's resources lack."""
    _require(
        {
            contract.SNOWFLAKE_ACCOUNT: read.snowflake_account,
            contract.SNOWFLAKE_USER: read.snowflake_user,
            contract.SNOWFLAKE_ROLE: read.snowflake_role,
            contract.SNOWFLAKE_WAREHOUSE: read.snowflake_warehouse,
            contract.SNOWFLAKE_SECRET: read.snowflake_secret,
        }
    )


def _require(given: Mapping[str, str]) -> None:
    if missing := [name for name, value in given.items() if not value]:
        raise LakeferryError(errors.SETTINGS, f"{', '.join(missing)} not set")
