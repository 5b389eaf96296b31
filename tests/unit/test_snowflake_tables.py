"""Tables and linked databases: refreshed or created again, never writable, and never in place of foreign
objects.
"""

from __future__ import annotations

import pytest

from lambdas import contract
from lambdas.shared.errors import BadProperties, NotFound, Refused, ReplacementRequired, ResourceFailed
from lambdas.snowflake.resources import iceberg_table, linked_database
from tests.support.snowflake_context import (
    MISSING,
    OWN,
    context,
    failure,
    result,
    row,
    script,
    spec,
    value,
    written,
)

TABLE = {
    "database": "SALES",
    "schema": "PUBLIC",
    "name": "stock_trades",
    "volume": "V",
    "integration": "C",
    "table": "stock_trades",
}
FULL = "SALES.PUBLIC.STOCK_TRADES"
PATH = '"SALES"."PUBLIC"."STOCK_TRADES"'
SHOWN = row(
    "STOCK_TRADES",
    external_volume_name="V",
    catalog_name="C",
    catalog_table_name="stock_trades",
    catalog_namespace="lkc-1",
)
STATUS = "SELECT SYSTEM$AUTO_REFRESH_STATUS"


def table(server, **answers):
    return script(server, **{"SHOW ICEBERG TABLES": result(SHOWN), **answers})


@pytest.mark.parametrize(
    "status",
    [value("null"), value(""), result(columns=("RESULT",)), failure("001009", "AUTO_REFRESH is off")],
)
def test_a_frozen_table_is_set_to_follow(server, status):
    table(server, **{"SELECT SYSTEM$": status})
    with pytest.raises(ResourceFailed) as faulty:
        iceberg_table.is_ready(context(server), spec(iceberg_table, **TABLE), FULL)
    assert faulty.value.kind.code == "SNF-REFRESH"
    assert written(server) == [f"ALTER ICEBERG TABLE {PATH} SET AUTO_REFRESH=TRUE"]


def test_a_stopped_table_is_refreshed_and_restarted_every_two_minutes(server):
    table(server, **{"SELECT SYSTEM$": value({"executionState": "STOPPED", "lastErrorMessage": "no access"})})
    ctx = context(server, left=900)
    for _ in range(3):
        with pytest.raises(ResourceFailed, match=r"STOPPED: .*no access"):
            iceberg_table.is_ready(ctx, spec(iceberg_table, **TABLE), FULL)
        ctx.clock.now += 60
    cure = [
        f"ALTER ICEBERG TABLE {PATH} {action}"
        for action in ("SET AUTO_REFRESH=FALSE", "REFRESH", "SET AUTO_REFRESH=TRUE")
    ]
    assert written(server) == cure + cure


def test_a_refresh_that_fails_never_leaves_a_table_switched_off(server):
    stopped = value({"executionState": "STOPPED"})
    table(
        server, **{"SELECT SYSTEM$": stopped, f"ALTER ICEBERG TABLE {PATH} REFRESH": failure("099999", "no")}
    )
    with pytest.raises(ResourceFailed):
        iceberg_table.is_ready(context(server), spec(iceberg_table, **TABLE), FULL)
    assert written(server)[-1].endswith("SET AUTO_REFRESH=TRUE")


def test_a_table_that_recovers_by_itself_is_only_waited_for(server):
    table(server, **{"SELECT SYSTEM$": value({"executionState": "STALLED"})})
    with pytest.raises(ResourceFailed, match="STALLED"):
        iceberg_table.is_ready(context(server), spec(iceberg_table, **TABLE), FULL)
    assert written(server) == []


def test_a_table_that_lacks_a_column_of_the_properties_is_created_again(server):
    table(server, **{"DESC ICEBERG TABLE": result({"name": "DAY"}, {"name": "TRADES"})})
    iceberg_table.update(context(server), spec(iceberg_table, **TABLE, columns=["day", "trades"]), FULL)
    with pytest.raises(ReplacementRequired, match="lacks volume"):
        iceberg_table.update(context(server), spec(iceberg_table, **TABLE, columns=["day", "volume"]), FULL)
    assert written(server) == []


@pytest.mark.parametrize(
    "column", ["external_volume_name", "catalog_name", "catalog_table_name", "catalog_namespace"]
)
def test_a_view_of_something_else_is_created_again(server, column):
    table(server, **{"SHOW ICEBERG TABLES": result({**SHOWN, column: "ANOTHER"})})
    with pytest.raises(ReplacementRequired, match=column):
        iceberg_table.update(context(server), spec(iceberg_table, **TABLE, namespace="lkc-1"), FULL)
    assert written(server) == []


@pytest.mark.parametrize(
    ("answer", "kind", "code"),
    [
        (failure("093665", "Iceberg table not found in the catalog"), NotFound, "SNF-TABLE-MISSING"),
        (failure("093665", "EntityNotFoundException: Entity"), NotFound, "SNF-TABLE-MISSING"),
        (
            failure("004139", "Insufficient Lake Formation permission(s): access denied"),
            NotFound,
            "SNF-TRUST-CATALOG",
        ),
        (failure("093665", "is not authorized to perform: sts:AssumeRole"), NotFound, "SNF-TRUST-ROLE"),
        (
            failure("093665", "is not authorized to perform: s3:GetObject on resource"),
            NotFound,
            "SNF-TRUST-STORAGE",
        ),
        (
            failure("091968", "Equality deletes on Iceberg tables are not supported"),
            Refused,
            "SNF-EQUALITY-DELETES",
        ),
        (failure("000606", "No active warehouse selected"), Refused, "SNF-WAREHOUSE"),
        (failure("001003", "syntax error"), Refused, "SNF-INVALID"),
    ],
)
def test_a_failed_creation_of_a_table_is_reported_by_its_cause(server, answer, kind, code):
    script(server, CREATE=answer)
    with pytest.raises(Refused) as refused:
        iceberg_table.create(context(server), spec(iceberg_table, **TABLE))
    assert type(refused.value) is kind
    assert refused.value.kind.code == code
    assert (refused.value.patience > 0) == (kind is NotFound), "what may still be on its way is waited for"


def test_a_foreign_table_is_neither_used_nor_dropped(server):
    table(server, **{"SHOW ICEBERG TABLES": result({**SHOWN, "comment": ""})})
    with pytest.raises(Refused, match="comment doesn't hold"):
        iceberg_table.find_existing(context(server), spec(iceberg_table, **TABLE), None)
    iceberg_table.delete(context(server, deleting=True), spec(iceberg_table, **TABLE), FULL)
    assert written(server) == []


def test_a_table_is_gone_with_its_schema_or_database(server):
    given = spec(iceberg_table, **TABLE)
    deleting = context(server, deleting=True)
    script(server, **{"SHOW ICEBERG TABLES": MISSING})
    assert iceberg_table.find_existing(deleting, given, FULL) == []
    script(server, **{"SHOW ICEBERG TABLES": MISSING, "SHOW DATABASES": result(row("SALES", ""))})
    assert iceberg_table.find_existing(deleting, given, FULL) == []
    schema = result(row("PUBLIC", ""))
    script(
        server,
        **{
            "SHOW ICEBERG TABLES": MISSING,
            "SHOW DATABASES": result(row("SALES", "")),
            "SHOW SCHEMAS": schema,
        },
    )
    with pytest.raises(NotFound):
        iceberg_table.find_existing(deleting, given, FULL)


@pytest.mark.parametrize("mode", ["UPSERT", "UPSERT_HISTORY", "upsert", "SOMETHING_NEW"])
def test_a_table_of_upserts_is_refused_with_the_reason(mode):
    with pytest.raises(BadProperties, match="equality deletes"):
        spec(iceberg_table, **TABLE, write_mode=mode)


@pytest.mark.parametrize("mode", ["APPEND", "append", ""])
def test_an_append_only_table_is_accepted(mode):
    assert contract.snowflake_refuses(mode) == ""


LINKED = {"volume": "V", "integration": "C", "namespaces": ["lkc-1"]}
LINK = "SELECT SYSTEM$CATALOG_LINK_STATUS"
CONFIG = "SELECT SYSTEM$GET_CATALOG_LINKED_DATABASE_CONFIG"


def config(**given):
    every = {
        "catalog_integration": "C",
        "external_volume": "V",
        "sync_interval_seconds": 300,
        "allowed_write_operations": "NONE",
        "allowed_namespaces": ["lkc-1"],
    }
    return value({**every, **given})


def answers(server, status=None, described=None):
    state = status or value({"executionState": "RUNNING", "failureDetails": []})
    schemas = result({"name": "INFORMATION_SCHEMA"}, {"name": "lkc-1"})
    return script(
        server,
        **{
            "SHOW DATABASES": result(row()),
            "SHOW SCHEMAS": schemas,
            LINK: state,
            CONFIG: described or config(),
        },
    )


def test_a_linked_database_is_ready_once_it_shows_the_named_tables(server):
    with pytest.raises(ResourceFailed, match="doesn't show lkc-2") as faulty:
        linked_database.is_ready(
            context(answers(server)),
            spec(linked_database, **{**LINKED, "namespaces": ["lkc-1", "lkc-2"]}),
            OWN,
        )
    assert faulty.value.kind.code == "SNF-TRUST-NAMESPACE"


@pytest.mark.parametrize(
    ("described", "changes"),
    [
        (config(allowed_namespaces=[]), ["ADD ('lkc-1') TO ALLOWED_NAMESPACES"]),
        (
            config(allowed_namespaces=["lkc-1", "old", "older"]),
            ["REMOVE ('old', 'older') FROM ALLOWED_NAMESPACES"],
        ),
        (config(sync_interval_seconds=30), ["SET SYNC_INTERVAL_SECONDS=300"]),
        (config(allowed_write_operations="ALL"), ["SET ALLOWED_WRITE_OPERATIONS=NONE"]),
        (
            value({"allowedNamespaces": ["lkc-1"], "allowedWriteOperations": "all"}),
            ["SET ALLOWED_WRITE_OPERATIONS=NONE"],
        ),
        (value({}), []),
    ],
)
def test_a_linked_database_is_altered_where_it_differs(server, described, changes):
    linked_database.update(
        context(answers(server, described=described)), spec(linked_database, **LINKED), OWN
    )
    assert written(server) == [f'ALTER DATABASE "{OWN}" UPDATE LINKED_CATALOG {change}' for change in changes]


@pytest.mark.parametrize("changed", [{"catalog_integration": "D"}, {"external_volume": "W"}])
def test_a_linked_database_on_another_catalog_is_created_again(server, changed):
    with pytest.raises(ReplacementRequired):
        linked_database.update(
            context(answers(server, described=config(**changed))), spec(linked_database, **LINKED), OWN
        )


@pytest.mark.parametrize(
    ("status", "expected_message"),
    [
        (
            value({"executionState": "FAILED", "failureDetails": [{"error": "no access"}]}),
            "FAILED: .*no access",
        ),
        (value({"executionState": "RUNNING", "failureDetails": [{"error": "one table"}]}), "one table"),
        (value({"executionState": "SUSPENDED"}), "SUSPENDED"),
        (value("no json"), "no state"),
        (failure("099999", "no link"), "no link"),
    ],
)
def test_a_linked_database_that_doesn_t_follow_is_reported_and_waited_for(server, status, expected_message):
    with pytest.raises(ResourceFailed, match=expected_message) as faulty:
        linked_database.is_ready(
            context(answers(server, status=status)), spec(linked_database, **LINKED), OWN
        )
    assert faulty.value.patience == 900


@pytest.mark.parametrize(
    ("given", "expected_message"),
    [({"namespaces": []}, "at least one"), ({"sync_seconds": "29"}, "30 to 86400")],
)
def test_a_linked_database_of_everything_is_refused(given, expected_message):
    with pytest.raises(BadProperties, match=expected_message):
        spec(linked_database, **{**LINKED, **given})
