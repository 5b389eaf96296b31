"""What Snowflake's simulator must hold for given properties, as confluent_views.py tells for Confluent's."""

from __future__ import annotations

import json

from simulators.snowflake.account import SYSTEM_ROLES
from simulators.snowflake.model import Domain


def _new(account, base, domain):
    known = {each for kind, each in base if kind == domain.value}
    things = (each for each in account.account._objects.values() if each.domain is domain and each.label not in SYSTEM_ROLES)
    return [each for each in things if ".".join(each.name) not in known]


def _labels(domain):
    """For things that are their name alone: the chosen one, or our own."""

    def view(account, base, given):
        found = [each.label for each in _new(account, base, domain)]
        chosen = given.get("name")
        return found, [chosen] if chosen else [label for label in found[:1] if label.startswith("LAKEFERRY_TEST_")]

    return view


def _warehouse(account, base, given):
    found = [
        (each.size, each.auto_suspend, each.label == given.get("name", each.label))
        for each in _new(account, base, Domain.WAREHOUSE)
    ]
    sizes = {"XSMALL": "X-Small", "MEDIUM": "Medium"}
    return found, [(sizes[given["size"]], given.get("auto_suspend_seconds", 60), True)]


def _grant(account, base, given):
    """Of all tables in a schema, the future ones: there are no others here."""
    new = account.objects() - base
    if given["on"] == "SCHEMA":
        return new, {("GRANT", f"USAGE ON SCHEMA {given['name']} TO {given['to_role']}")}
    return new, {("FUTURE GRANT", f"SELECT ON ICEBERG TABLE IN {given['name']} TO {given['to_role']}")}


def _user(account, base, given):
    """The user's one key is that of the secret, and no other role than the named one acts by itself."""
    held = json.loads(account.secrets.values[given["secret"]])
    found = [
        (
            each.label,
            each.type,
            each.default_role,
            each.default_namespace,
            each.secondary_roles,
            [key.fingerprint for key in each.keys.values()],
        )
        for each in _new(account, base, Domain.USER)
    ]
    return found, [(held["user"], "SERVICE", given["role"], given["namespace"], False, [held["fingerprint"]])]


def _volume(account, base, given):
    found = [
        (each.allow_writes, [(place.base_url, place.role_arn) for place in each.locations])
        for each in _new(account, base, Domain.VOLUME)
    ]
    return found, [(False, [(given["base_url"], given["role_arn"])])]


def _integration(account, base, given):
    found = [(each.role_arn, each.namespace, each.refresh_seconds) for each in _new(account, base, Domain.INTEGRATION)]
    return found, [(given["role_arn"], given["namespace"], given["refresh_seconds"])]


def _trust(account, base, given):
    return account.objects() - base, set()


def _table(account, base, given):
    found = [(each.label, each.catalog_table, each.auto_refresh) for each in _new(account, base, Domain.ICEBERG_TABLE)]
    return found, [(given["name"], given["table"], True)]


def _linked(account, base, given):
    found = [(each.label, each.link.seconds, each.link.allowed) for each in _new(account, base, Domain.DATABASE)]
    return found, [(given["name"], given["sync_seconds"], given["namespaces"])]


VIEWS = {
    "snowflake_trust": _trust,
    "snowflake_iceberg_table": _table,
    "snowflake_linked_database": _linked,
    "snowflake_warehouse": _warehouse,
    "snowflake_database": _labels(Domain.DATABASE),
    "snowflake_schema": _labels(Domain.SCHEMA),
    "snowflake_role": _labels(Domain.ROLE),
    "snowflake_grant": _grant,
    "snowflake_user": _user,
    "snowflake_external_volume": _volume,
    "snowflake_catalog_integration": _integration,
}
