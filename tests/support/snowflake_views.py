"""What the Snowflake simulator must have for a resource's properties, in the form of confluent_views.py."""

from __future__ import annotations

import json
import re

from simulators.snowflake.account import SYSTEM_ROLES
from simulators.snowflake.model import Domain
from tests.support.lake_environment import NAMESPACE


def _new(account, base, domain):
    known = {known_object for kind, known_object in base if kind == domain.value}
    things = (
        item
        for item in account.account._objects.values()
        if item.domain is domain and item.label not in SYSTEM_ROLES
    )
    return [thing for thing in things if ".".join(thing.name) not in known]


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
        return [_is_ours(new_object, given) for new_object in _new(account, base, domain)], [True]

    return view


def _schema(account, base, given):
    """Check that the schema's owner may grant on future tables."""
    found = [
        (_is_ours(new_schema, given), new_schema.name[0], new_schema.managed_access)
        for new_schema in _new(account, base, Domain.SCHEMA)
    ]
    return found, [(True, given["database"], True)]


def _warehouse(account, base, given):
    found = [
        (
            _is_ours(new_warehouse, given),
            new_warehouse.size,
            new_warehouse.auto_suspend,
            new_warehouse.auto_resume,
            new_warehouse.is_running(account.clock.time()),
        )
        for new_warehouse in _new(account, base, Domain.WAREHOUSE)
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
            _is_ours(new_user, given),
            new_user.type,
            new_user.default_role,
            new_user.default_warehouse,
            new_user.default_namespace,
            new_user.secondary_roles,
            [key.fingerprint for key in new_user.keys.values()],
        )
        for new_user in _new(account, base, Domain.USER)
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
            _is_ours(new_volume, given),
            new_volume.allow_writes,
            [(location.base_url, location.role_arn) for location in new_volume.locations],
        )
        for new_volume in _new(account, base, Domain.VOLUME)
    ]
    return found, [(True, False, [(given["base_url"], given["role_arn"])])]


def _integration(account, base, given):
    found = [
        (
            _is_ours(new_integration, given),
            new_integration.enabled,
            new_integration.role_arn,
            new_integration.namespace,
            new_integration.refresh_seconds,
            new_integration.catalog_uri,
            new_integration.catalog_name,
            new_integration.signing_region,
        )
        for new_integration in _new(account, base, Domain.INTEGRATION)
    ]
    catalog = (f"https://glue.{given['region']}.amazonaws.com/iceberg", given["account_id"], given["region"])
    return found, [(True, True, given["role_arn"], given["namespace"], given["refresh_seconds"], *catalog)]


def _trust(account, base, given):
    return account.objects() - base, set()


def _table(account, base, given):
    found = [
        (
            _is_ours(new_iceberg_table, given),
            new_iceberg_table.name[:2],
            new_iceberg_table.volume,
            new_iceberg_table.catalog,
            new_iceberg_table.namespace,
            new_iceberg_table.catalog_table,
            new_iceberg_table.auto_refresh,
        )
        for new_iceberg_table in _new(account, base, Domain.ICEBERG_TABLE)
    ]
    sources = (given["volume"],), (given["integration"],), NAMESPACE, given["table"]
    return found, [(True, (given["database"], given["schema"]), *sources, True)]


def _view(account, base, given):
    """Check that the view is secure and shows the columns that the table has, and no others."""
    found = [
        (_is_ours(new_view, given), new_view.secure, {column.name for column in new_view.columns})
        for new_view in _new(account, base, Domain.VIEW)
    ]
    columns = {column.upper() for column in given["columns"]} - {"LATER"}
    return found, [(True, True, columns)]


def _linked(account, base, given):
    """Leave out write access: the simulator refuses a database that may write."""
    found = [
        (
            _is_ours(new_database, given),
            new_database.link.volume,
            new_database.link.catalog,
            new_database.link.seconds,
            new_database.link.allowed,
        )
        for new_database in _new(account, base, Domain.DATABASE)
    ]
    return found, [
        (True, (given["volume"],), (given["integration"],), given["sync_seconds"], given["namespaces"])
    ]


VIEWS = {
    "snowflake_trust": _trust,
    "snowflake_iceberg_table": _table,
    "snowflake_view": _view,
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
