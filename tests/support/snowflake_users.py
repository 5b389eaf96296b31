"""A user of Snowflake with its secret, as `user` creates them, for tests that change one of the two."""

from __future__ import annotations

import json

from lambdas.shared.secrets import reveal_fields
from lambdas.snowflake import secret_fields
from lambdas.snowflake.secret_fields import Connection
from tests.support.snowflake_context import OWN, pair, result, row, script

GIVEN = {"secret": "reader", "role": "reader", "warehouse": "W", "namespace": "SALES.PUBLIC"}
SETTINGS = (
    'TYPE=SERVICE DEFAULT_SECONDARY_ROLES=() DEFAULT_ROLE="READER" DEFAULT_WAREHOUSE="W" '
    'DEFAULT_NAMESPACE="SALES"."PUBLIC"'
)
AS_WANTED = {
    "TYPE": "SERVICE",
    "DEFAULT_SECONDARY_ROLES": "[]",
    "DEFAULT_ROLE": "READER",
    "DEFAULT_WAREHOUSE": "W",
    "DEFAULT_NAMESPACE": "SALES.PUBLIC",
}


def held(of=None, name=OWN, **given):
    """Return what the secret has after the user is created."""
    to = Connection("myorg-acct", name, "127.0.0.1", "reader", "W", "SALES.PUBLIC")
    return json.dumps({**reveal_fields(secret_fields.build_fields(of or pair(), to)), **given})


def described(**properties):
    every = {
        **AS_WANTED,
        "RSA_PUBLIC_KEY_FP": pair().fingerprint,
        "RSA_PUBLIC_KEY_2_FP": "null",
        **properties,
    }
    return result(*({"property": name, "value": text} for name, text in every.items()))


def there(server, **answers):
    return script(server, **{"SHOW USERS": result(row()), "DESC USER": described(), **answers})


def kept(held_context):
    return held_context.secrets.client.fields("reader")
