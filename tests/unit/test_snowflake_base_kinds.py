"""Warehouse, database, schema, role: found by name, ours by the comment, and changed only where they
differ.
"""

from __future__ import annotations

import attrs
import pytest

from lambdas.shared.errors import BadProperties, LakeferryError, NotFound, Refused, ResourceMissing
from lambdas.shared.resource import Context
from lambdas.snowflake import lookup
from lambdas.snowflake.resources import catalog_integration, database, iceberg_table, role, schema, warehouse
from tests.support.snowflake_context import (
    MARK,
    MISSING,
    NAME,
    OWN,
    ROLE_ARN,
    context,
    result,
    row,
    script,
    spec,
    written,
)

SIZED = {"size": "X-Small", "auto_suspend": "60", "auto_resume": "true"}
#: Resource type, properties, beginning of the SHOW statement, its row, and the object id.
OBJECTS = {
    "warehouse": (warehouse, {}, "SHOW WAREHOUSES", row(**SIZED), OWN),
    "database": (database, {}, "SHOW DATABASES", row(), OWN),
    "schema": (schema, {"database": "SALES"}, "SHOW SCHEMAS", row(options="MANAGED ACCESS"), f"SALES.{OWN}"),
    "role": (role, {}, "SHOW ROLES", row(), OWN),
}


@pytest.fixture(params=OBJECTS)
def thing(request):
    return OBJECTS[request.param]


def test_a_missing_object_is_reported(server, thing):
    kind, given, _, _, object_id = thing
    held = context(script(server))
    assert kind.find_existing(held, spec(kind, **given), object_id) == []
    for verb in (kind.is_ready, kind.update):
        with pytest.raises(ResourceMissing):
            verb(held, spec(kind, **given), object_id)


def test_a_foreign_object_is_refused_and_never_dropped(server, thing):
    kind, properties, show, shown_row, object_id = thing
    script(server, **{show: result({**shown_row, "comment": "somebody else's"})})
    for verb in (
        lambda ctx: kind.find_existing(ctx, spec(kind, **properties), None),
        lambda ctx: kind.update(ctx, spec(kind, **properties), object_id),
    ):
        with pytest.raises(Refused) as refused:
            verb(context(server))
        assert refused.value.kind.code == "SNF-FOREIGN"
        assert MARK in refused.value.what
    deleting = context(server, deleting=True)
    assert kind.find_existing(deleting, spec(kind, **properties), object_id) == []
    kind.delete(deleting, spec(kind, **properties), object_id)
    assert written(server) == []


def test_an_object_of_ours_without_its_comment_is_neither_dropped_nor_called_gone(server, thing):
    kind, given, show, found, object_id = thing
    script(server, **{show: result({**found, "comment": "Data of the sales team"})})
    deleting = attrs.evolve(context(server, deleting=True), is_owned=lambda: True)
    for verb in (
        lambda: kind.find_existing(deleting, spec(kind, **given), object_id),
        lambda: kind.delete(deleting, spec(kind, **given), object_id),
    ):
        with pytest.raises(LakeferryError, match="SNF-COMMENT-CHANGED"):
            verb()
    assert written(server) == []


def test_a_database_with_a_schema_of_somebody_else_is_not_dropped(server):
    schemas = [row(name=name) for name in ("INFORMATION_SCHEMA", "PUBLIC", "ANALYSTS")]
    script(
        server,
        **{
            "SHOW DATABASES": result(row()),
            "SHOW SCHEMAS IN DATABASE": [result(*schemas), result(*schemas[:2])],
        },
    )
    held = context(server, deleting=True)
    with pytest.raises(LakeferryError, match=r"SNF-DATABASE-NOT-EMPTY.*ANALYSTS"):
        database.delete(held, spec(database), OWN)
    assert written(server) == []
    database.delete(held, spec(database), OWN)
    assert [statement.split()[0] for statement in written(server)] == ["DROP"]


def test_a_similar_name_is_not_ours(server, thing):
    """`_` in a pattern of SHOW matches any character, and case is ignored."""
    kind, given, show, found, _ = thing
    script(server, **{show: result({**found, "name": OWN.replace("_", "X")}, {**found, "name": OWN.lower()})})
    assert kind.find_existing(context(server), spec(kind, **given), None) == []


def test_an_object_that_somebody_drops_meanwhile_is_no_error(server, thing):
    kind, given, show, found, object_id = thing
    script(server, **{show: result(found), "DROP": MISSING})
    kind.delete(context(server, deleting=True), spec(kind, **given), object_id)
    assert len(written(server)) == 1


@pytest.mark.parametrize("name", ["a-b", "1a", "a b", 'a"b', "a.b", "x" * 256, "ä"])
def test_a_name_that_would_need_quotes_is_refused(name):
    with pytest.raises(BadProperties, match="letters, digits and underscores"):
        spec(database, name=name)


def test_an_object_with_an_extended_comment_is_still_ours(server):
    script(server, **{"SHOW ROLES": result(row(comment=f"ask the data team; {MARK}"))})
    assert role.find_existing(context(server), spec(role), None) == [OWN]


SOURCE = {"volume": "V", "integration": "C"}
CATALOG = {"role_arn": ROLE_ARN, "region": "eu-west-1", "account_id": "111122223333", "namespace": "lkc-1"}


@pytest.mark.parametrize(
    ("kind", "given", "clause"),
    [
        (warehouse, {}, "AUTO_RESUME=TRUE INITIALLY_SUSPENDED=TRUE"),
        (catalog_integration, CATALOG, "ACCESS_DELEGATION_MODE=EXTERNAL_VOLUME_CREDENTIALS"),
        (
            iceberg_table,
            {"database": "D", "schema": "S", "name": "T", "table": "t", **SOURCE},
            "AUTO_REFRESH=TRUE",
        ),
    ],
)
def test_statements_have_clauses_that_the_simulator_does_not_need(server, kind, given, clause):
    kind.create(context(script(server)), spec(kind, **given))
    assert clause in written(server)[0]


@pytest.mark.parametrize(
    "differs", [{"size": "Large"}, {"auto_suspend": "600"}, {"auto_suspend": ""}, {"auto_resume": "false"}]
)
def test_a_warehouse_is_updated(server, differs):
    script(server, **{"SHOW WAREHOUSES": result(row(**{**SIZED, **differs}))})
    warehouse.update(context(server), spec(warehouse), OWN)
    assert written(server) == [
        f"ALTER WAREHOUSE \"{OWN}\" SET WAREHOUSE_SIZE='XSMALL' AUTO_SUSPEND=60 AUTO_RESUME=TRUE"
    ]


def test_a_warehouse_that_never_sleeps_is_refused():
    with pytest.raises(BadProperties, match="is never suspended always costs"):
        spec(warehouse, auto_suspend_seconds="0")


def test_a_schema_gets_managed_access_back(server):
    script(server, **{"SHOW SCHEMAS": result(row(options=""))})
    schema.update(context(server), spec(schema, database="sales"), f"SALES.{OWN}")
    assert written(server) == [f'ALTER SCHEMA "SALES"."{OWN}" ENABLE MANAGED ACCESS']


def test_a_schema_is_gone_with_its_database_and_only_then(server):
    given = spec(schema, database="SALES")
    script(server, **{"SHOW SCHEMAS": MISSING})
    assert schema.find_existing(context(server, deleting=True), given, f"SALES.{OWN}") == []
    with pytest.raises(NotFound):
        schema.find_existing(context(server), given, None)
    script(server, **{"SHOW SCHEMAS": MISSING, "SHOW DATABASES": result(row("SALES", ""))})
    with pytest.raises(NotFound):
        schema.find_existing(context(server, deleting=True), given, f"SALES.{OWN}")


def test_names_fit_into_snowflake_s_unquoted_form():
    for name, made in [(NAME, OWN), ("3m-dev-x-1", "_3M_DEV_X_1")]:
        assert lookup.choose_object_name(Context(None, name, None, None, {})) == made
