"""The vendors' clients of one invocation, each made when a resource first asks for it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from lambdas.confluent.client import Confluent
from lambdas.custom_resources import registry
from lambdas.handlers import settings
from lambdas.handlers.settings import Settings
from lambdas.shared.clock import Deadline
from lambdas.shared.http import Session
from lambdas.shared.secrets import SecretStore
from lambdas.snowflake import secret_fields, sql
from lambdas.snowflake.client import Login, Snowflake


def connections(read: Settings, store: SecretStore, deadline: Deadline) -> Mapping[str, Callable[[], Any]]:
    """By vendor. What a vendor's variables and secrets lack is told when that vendor is asked for."""
    return {
        registry.CONFLUENT: functools.cache(lambda: _confluent(read, store, deadline)),
        registry.SNOWFLAKE: functools.cache(lambda: _snowflake(read, store, deadline)),
    }


def _confluent(read: Settings, store: SecretStore, deadline: Deadline) -> Confluent:
    settings.require_confluent(read)
    key = store.read_key(read.cloud_key_secret)
    return Confluent(Session(deadline), deadline.clock, key, read.confluent_url, read.catalog_url)


def _snowflake(read: Settings, store: SecretStore, deadline: Deadline) -> Snowflake:
    settings.require_snowflake(read)
    key = secret_fields.read_pair(store, read.snowflake_secret)
    role, warehouse = sql.named(read.snowflake_role), sql.named(read.snowflake_warehouse)
    login = Login(read.snowflake_account, read.snowflake_user, role, warehouse)
    return Snowflake(Session(deadline), deadline.clock, login, key, read.snowflake_url)
