"""What the Snowflake simulator must have for a resource's properties, in the form of confluent_views.py."""

from __future__ import annotations

import json
import re

from simulators.snowflake.account import SYSTEM_ROLES
from simulators.snowflake.model import Domain
from tests.support.lake_environment import NAMESPACE


def _new(account, base, domain):
    known = {each for kind, each in base if kind == domain.value}
    things = (
        each
        for each in account.account._objects.values()
        if each.domain is domain and each.label not in SYSTEM_ROLES
    )
    return [each for each in things if ".".join(each.name) not in known]


#: The pattern of our names, and the comment that marks our objects.
_OWN = re.compile(r"LAKEFERRY_TEST_EU_WEST_1_IT_[0-9A-F]{8}")
_MARK = re.compile(r"lakeferry lakeferry-test-eu-west-1-it-[0-9a-f]{8}")


def _is_ours(each, given):
    """Return whether an object has our comment, and the given name or one of ours."""
    named = each.label == given["name"] if given.get("name") else _OWN.fullmatch(each.label)
    return bool(named and _MARK.fullmatch(each.comment))


def _marked(domain):
    """Return a view for objects that have no other property than their name."""

    def view(account, base, given):
        return [_is_ours(each, given) for each in _new(account, base, domain)], [True]

    return view


def _schema(account, base, given):
    """Check that the schema's owner may grant on future tables."""
    found = [
        (_is_ours(each, given), each.name[0], each.managed_access)
        for each in _new(account, base, Domain.SCHEMA)
    ]
    return found, [(True, given["database"], True)]


def _warehouse(account, base, given):
    found = [
        (
            _is_ours(each, given),
            each.size,
            each.auto_suspend,
            each.auto_resume,
            each.is_running(account.clock.time()),
        )
        for each in _new(account, base, Domain.WAREHOUSE)
    ]
    sizes = {"XSMALL": "X-Small", "MEDIUM": "Medium"}
    return found, [(True, sizes[given["size"]], given.get("auto_suspend_seconds", 60), True, False)]


def _grant(account, base, given):
    """Check future tables for a grant on all tables: the schema has no others here."""
    new = account.objects() - base
    if given["on"] == "SCHEMA":
        return new, {("GRANT", f"USAGE ON SCHEMA {given['name']} TO {given['to_role']}")}
    return new, {("FUTURE GRANT", f"SELECT ON ICEBERG TABLE IN {given['name']} TO {given['to_role']}")}


def _user(account, base, given):
    """Check that the user's only key is the secret's, and that no role but the named one is active."""
    held = json.loads(account.secrets.values[given["secret"]])
    found = [
        (
            _is_ours(each, given),
            each.type,
            each.default_role,
            each.default_warehouse,
            each.default_namespace,
            each.secondary_roles,
            [key.fingerprint for key in each.keys.values()],
        )
        for each in _new(account, base, Domain.USER)
    ]
    wanted = (
        True,
        "SERVICE",
        given["role"],
        given["warehouse"],
        given["namespace"],
        False,
        [held["fingerprint"]],
    )
    login = [held[name] for name in ("user", "role", "warehouse", "namespace")]
    return (found, login), ([wanted], [given[name] for name in ("name", "role", "warehouse", "namespace")])


def _volume(account, base, given):
    found = [
        (
            _is_ours(each, given),
            each.allow_writes,
            [(location.base_url, location.role_arn) for location in each.locations],
        )
        for each in _new(account, base, Domain.VOLUME)
    ]
    return found, [(True, False, [(given["base_url"], given["role_arn"])])]


def _integration(account, base, given):
    found = [
        (
            _is_ours(each, given),
            each.enabled,
            each.role_arn,
            each.namespace,
            each.refresh_seconds,
            each.catalog_uri,
            each.catalog_name,
            each.signing_region,
        )
        for each in _new(account, base, Domain.INTEGRATION)
    ]
    catalog = (f"https://glue.{given['region']}.amazonaws.com/iceberg", given["account_id"], given["region"])
    return found, [(True, True, given["role_arn"], given["namespace"], given["refresh_seconds"], *catalog)]


def _trust(account, base, given):
    return account.objects() - base, set()


def _table(account, base, given):
    found = [
        (
            _is_ours(each, given),
            each.name[:2],
            each.volume,
            each.catalog,
            each.namespace,
            each.catalog_table,
            each.auto_refresh,
        )
        for each in _new(account, base, Domain.ICEBERG_TABLE)
    ]
    sources = (given["volume"],), (given["integration"],), NAMESPACE, given["table"]
    return found, [(True, (given["database"], given["schema"]), *sources, True)]


def _linked(account, base, given):
    """Leave out write access: the simulator refuses a database that may write."""
    found = [
        (_is_ours(each, given), each.link.volume, each.link.catalog, each.link.seconds, each.link.allowed)
        for each in _new(account, base, Domain.DATABASE)
    ]
    return found, [
        (True, (given["volume"],), (given["integration"],), given["sync_seconds"], given["namespaces"])
    ]


VIEWS = {
    "snowflake_trust": _trust,
    "snowflake_iceberg_table": _table,
    "snowflake_linked_database": _linked,
    "snowflake_warehouse": _warehouse,
    "snowflake_database": _marked(Domain.DATABASE),
    "snowflake_schema": _schema,
    "snowflake_role": _marked(Domain.ROLE),
    "snowflake_grant": _grant,
    "snowflake_user": _user,
    "snowflake_external_volume": _volume,
    "snowflake_catalog_integration": _integration,
}
