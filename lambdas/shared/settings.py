"""The settings of the functions: each field is an environment variable.

A stack writes them with `to_environment`, and the function's handler reads them with `from_environment`. A
field without a default is required.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Self

import attrs

from lambdas import contract
from lambdas.shared import errors
from lambdas.shared.errors import LakeferryError

_VARIABLE: Final = "variable"
_SET_BY_LAMBDA: Final = "set_by_lambda"


def _declare_required(name: str, *, set_by_lambda: bool = False) -> Any:
    return attrs.field(metadata={_VARIABLE: name, _SET_BY_LAMBDA: set_by_lambda})


def _declare_optional(name: str) -> Any:
    return attrs.field(default="", metadata={_VARIABLE: name, _SET_BY_LAMBDA: False})


@attrs.frozen(kw_only=True)
class FunctionSettings:
    """All values are text. In a stack they may contain CDK tokens."""

    def to_environment(self) -> dict[str, str]:
        """Return the variables that have a value, but for those that Lambda sets itself."""
        environment = {}
        for field in attrs.fields(type(self)):
            value = getattr(self, field.name)
            if value and not field.metadata[_SET_BY_LAMBDA]:
                environment[field.metadata[_VARIABLE]] = value
        return environment

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Self:
        """Raise LakeferryError that names all variables that are missing or empty."""
        values = {}
        missing = []
        for field in attrs.fields(cls):
            name = field.metadata[_VARIABLE]
            if environment.get(name):
                values[field.name] = environment[name]
            elif field.default is attrs.NOTHING:
                missing.append(name)
        if missing:
            raise LakeferryError(errors.SETTINGS, f"{', '.join(missing)} not set")
        return cls(**values)


@attrs.frozen(kw_only=True)
class ResourceSettings(FunctionSettings):
    """Settings of the functions that create, update and delete the objects of either vendor."""

    project: str = _declare_required(contract.PROJECT)
    stage: str = _declare_required(contract.STAGE)
    state_table: str = _declare_required(contract.STATE_TABLE)


@attrs.frozen(kw_only=True)
class ConfluentSettings(FunctionSettings):
    """Settings of the functions that call Confluent with the Cloud API key. The URLs are of simulators."""

    cloud_key_secret: str = _declare_required(contract.CLOUD_KEY_SECRET)
    proxy: str = _declare_optional(contract.PROXY)
    confluent_url: str = _declare_optional(contract.CONFLUENT_URL)
    catalog_url: str = _declare_optional(contract.CATALOG_URL)


@attrs.frozen(kw_only=True)
class SnowflakeSettings(FunctionSettings):
    """Settings of the function that creates Snowflake's objects. The URL is that of a simulator."""

    account: str = _declare_required(contract.SNOWFLAKE_ACCOUNT)
    user: str = _declare_required(contract.SNOWFLAKE_USER)
    role: str = _declare_required(contract.SNOWFLAKE_ROLE)
    warehouse: str = _declare_required(contract.SNOWFLAKE_WAREHOUSE)
    key_secret: str = _declare_required(contract.SNOWFLAKE_SECRET)
    proxy: str = _declare_optional(contract.PROXY)
    snowflake_url: str = _declare_optional(contract.SNOWFLAKE_URL)


@attrs.frozen(kw_only=True)
class RotationSettings(FunctionSettings):
    """Settings of the functions that rotate keys. Only Confluent's has a Cloud API key."""

    keep: str = _declare_optional(contract.ROTATION_KEEP)
    link_days: str = _declare_optional(contract.LINK_DAYS)
    grace_days: str = _declare_optional(contract.ROTATION_GRACE_DAYS)
    proxy: str = _declare_optional(contract.PROXY)
    state_table: str = _declare_optional(contract.STATE_TABLE)
    cloud_key_secret: str = _declare_optional(contract.CLOUD_KEY_SECRET)
    confluent_url: str = _declare_optional(contract.CONFLUENT_URL)
    catalog_url: str = _declare_optional(contract.CATALOG_URL)
    snowflake_url: str = _declare_optional(contract.SNOWFLAKE_URL)


@attrs.frozen(kw_only=True)
class NotificationSettings(FunctionSettings):
    """`settings` is s3://bucket/key of the exports; `topic_arns` is the common beginning of the ARNs of their
    SNS topics.
    """

    project: str = _declare_required(contract.PROJECT)
    stage: str = _declare_required(contract.STAGE)
    bucket: str = _declare_required(contract.LAKE_BUCKET)
    prefix: str = _declare_required(contract.LAKE_PREFIX)
    notices: str = _declare_required(contract.NOTICES_PREFIX)
    settings: str = _declare_required(contract.SETTINGS)
    region: str = _declare_required("AWS_REGION", set_by_lambda=True)
    topic_arns: str = _declare_optional(contract.TOPIC_ARNS)
    mail_sender: str = _declare_optional(contract.MAIL_SENDER)
    mail_configuration_set: str = _declare_optional(contract.MAIL_CONFIGURATION_SET)
    alarm_topic: str = _declare_optional(contract.ALARM_TOPIC)
    link_secret: str = _declare_optional(contract.LINK_SECRET)
    link_url: str = _declare_optional(contract.LINK_URL)
    deployment: str = _declare_optional(contract.DEPLOYMENT)


@attrs.frozen(kw_only=True)
class LinkSettings(FunctionSettings):
    """Settings of the function that opens links. `settings` is s3://bucket/key of the exports."""

    bucket: str = _declare_required(contract.LAKE_BUCKET)
    prefix: str = _declare_required(contract.LAKE_PREFIX)
    links: str = _declare_required(contract.LINKS_PREFIX)
    settings: str = _declare_required(contract.SETTINGS)
    secret: str = _declare_required(contract.LINK_SECRET)
    deployment: str = _declare_required(contract.DEPLOYMENT)


@attrs.frozen(kw_only=True)
class MonitoringSettings(FunctionSettings):
    """`settings` is s3://bucket/key of the tables, exports and secrets. What is "" isn't measured."""

    project: str = _declare_required(contract.PROJECT)
    stage: str = _declare_required(contract.STAGE)
    bucket: str = _declare_required(contract.LAKE_BUCKET)
    prefix: str = _declare_required(contract.LAKE_PREFIX)
    settings: str = _declare_required(contract.SETTINGS)
    cluster: str = _declare_optional(contract.CLUSTER)
    topic_arns: str = _declare_optional(contract.TOPIC_ARNS)
    proxy: str = _declare_optional(contract.PROXY)
    metrics_key: str = _declare_optional(contract.CLOUD_KEY_SECRET)
    confluent_url: str = _declare_optional(contract.CONFLUENT_URL)
    tableflow_secret: str = _declare_optional(contract.TABLEFLOW_SECRET)
    table_reader_secret: str = _declare_optional(contract.TABLE_READER_SECRET)
    catalog_uri: str = _declare_optional(contract.CATALOG_URI)
    catalog_cluster: str = _declare_optional(contract.CATALOG_CLUSTER)
    state_table: str = _declare_optional(contract.STATE_TABLE)
    snowflake_schema: str = _declare_optional(contract.SNOWFLAKE_SCHEMA)
    snowflake_secret: str = _declare_optional(contract.SNOWFLAKE_SECRET)
    snowflake_url: str = _declare_optional(contract.SNOWFLAKE_URL)
    snowflake_state_table: str = _declare_optional(contract.SNOWFLAKE_STATE_TABLE)
