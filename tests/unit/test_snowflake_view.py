"""Secure views: only the columns that the properties name, replaced when anything differs, and their grants
stay.
"""

from __future__ import annotations

import pytest

from lambdas.shared.errors import BadProperties, NotFound, Refused, ResourceFailed
from lambdas.snowflake.resources import grant, view
from tests.support.snowflake_context import (
    DONE,
    MARK,
    MISSING,
    context,
    failure,
    result,
    row,
    script,
    spec,
    written,
)

VIEW = {
    "database": "SALES",
    "schema": "VIEWS",
    "name": "trades",
    "table": "SALES.RAW.TRADES",
    "columns": ["price", "$$offset", "later"],
}
FULL = "SALES.VIEWS.TRADES"
QUERY = 'SELECT "PRICE", "$$OFFSET" FROM "SALES"."RAW"."TRADES"'
SHOWN = row("TRADES", is_secure="true", text=f"CREATE SECURE VIEW x AS {QUERY}")


def names(*columns):
    return result(*[{"name": column} for column in columns])


def answers(**other):
    return {
        "SHOW VIEWS": result(SHOWN),
        "DESC ICEBERG TABLE": names("PRICE", "EMAIL", "$$OFFSET"),
        "DESC VIEW": names("PRICE", "$$OFFSET"),
        "CREATE": DONE,
        **other,
    }


def test_a_view_has_the_columns_that_the_table_has_and_the_properties_name(server):
    script(server, **answers())
    assert view.create(context(server), spec(view, **VIEW)) == FULL
    assert written(server) == [f'CREATE SECURE VIEW "SALES"."VIEWS"."TRADES" COMMENT=\'{MARK}\' AS {QUERY}']


def test_a_view_as_declared_is_left_alone(server):
    script(server, **answers())
    view.update(context(server), spec(view, **VIEW), FULL)
    assert written(server) == []


@pytest.mark.parametrize(
    "changed",
    [
        {"SHOW VIEWS": result(row("TRADES", is_secure="false", text=SHOWN["text"]))},
        {
            "SHOW VIEWS": result(
                row("TRADES", is_secure="true", text='AS SELECT EMAIL AS "PRICE" FROM "OTHERS"')
            )
        },
        {"SHOW VIEWS": result(row("TRADES", is_secure="true", text=""))},
        {"DESC VIEW": names("PRICE", "EMAIL")},
        {"DESC VIEW": failure("002057", "View definition declared 2 columns, but view query produces 1")},
        {"DESC ICEBERG TABLE": names("PRICE", "EMAIL", "$$OFFSET", "LATER")},
    ],
)
def test_a_view_that_differs_is_replaced_and_keeps_its_grants(server, changed):
    script(server, **answers(**changed))
    view.update(context(server), spec(view, **VIEW), FULL)
    (replaced,) = written(server)
    assert replaced.startswith(
        f'CREATE OR REPLACE SECURE VIEW "SALES"."VIEWS"."TRADES" COPY GRANTS COMMENT=\'{MARK}\' AS SELECT'
    )
    assert "EMAIL" not in replaced


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"DESC VIEW": names("PRICE", "EMAIL")}, "shows EMAIL"),
        ({"SHOW VIEWS": result(row("TRADES", is_secure="false", text=""))}, "isn't secure"),
    ],
)
def test_a_view_that_shows_more_is_not_ready(server, changed, why):
    script(server, **answers(**changed))
    with pytest.raises(ResourceFailed, match=why) as faulty:
        view.is_ready(context(server), spec(view, **VIEW), FULL)
    assert faulty.value.kind.code == "SNF-VIEW"


def test_a_table_without_columns_gets_no_view_yet(server):
    script(server, **answers(**{"DESC ICEBERG TABLE": names("EMAIL")}))
    with pytest.raises(ResourceFailed, match="has none of the columns"):
        view.create(context(server), spec(view, **VIEW))
    assert written(server) == []


def test_a_view_of_somebody_else_is_neither_replaced_nor_dropped(server):
    foreign = result({"name": "TRADES", "comment": "mine", "is_secure": "false", "text": ""})
    script(server, **answers(**{"SHOW VIEWS": foreign}))
    with pytest.raises(Refused, match="SNF-FOREIGN"):
        view.update(context(server), spec(view, **VIEW), FULL)
    view.delete(context(server, deleting=True), spec(view, **VIEW), FULL)
    assert written(server) == []


@pytest.mark.parametrize("changed", [{"columns": []}, {"table": "RAW.TRADES"}, {"name": "a b"}])
def test_bad_properties_are_refused(changed):
    with pytest.raises(BadProperties):
        spec(view, **VIEW | changed)


def membership(**grantee):
    return spec(grant, on="ROLE", name="PEOPLE", **grantee)


@pytest.mark.parametrize(
    ("grantee", "shown"),
    [
        ({"to_user": "anna"}, "User 'ANNA'"),
        ({"to_user": "anna@example.com"}, "User '\"anna@example.com\"'"),
        ({"to_user": "anna@example.com"}, "User '\\\"anna@example.com\\\"'"),
        ({"to_role": "analysts"}, "Role 'ANALYSTS'"),
    ],
)
def test_somebody_who_is_not_there_is_named_with_the_key(server, grantee, shown):
    absent = failure("002003", f"SQL compilation error:\n{shown} does not exist or not authorized.")
    script(server, **{"SHOW GRANTS": result(columns=("granted_to", "grantee_name")), "GRANT": absent})
    with pytest.raises(NotFound, match="grant_to has ") as refused:
        grant.create(context(server), membership(**grantee, named_by="snowflake.grant_to"))
    assert (refused.value.kind.code, refused.value.patience) == ("SNF-GRANTEE-MISSING", 0.0)
    with pytest.raises(NotFound, match="SNF-MISSING"):
        grant.create(context(server), membership(**grantee))


def test_a_missing_role_is_not_taken_for_a_missing_grantee(server):
    script(server, **{"SHOW GRANTS": result(columns=("granted_to", "grantee_name")), "GRANT": MISSING})
    with pytest.raises(NotFound, match="SNF-MISSING"):
        grant.create(context(server), membership(to_user="anna", named_by="snowflake.grant_to"))


@pytest.mark.parametrize("shown", ["anna@example.com", '"anna@example.com"'])
def test_a_grantee_is_found_with_and_without_quotes(server, shown):
    script(server, **{"SHOW GRANTS": result({"granted_to": "USER", "grantee_name": shown})})
    grant.create(context(server), membership(to_user="anna@example.com"))
    assert written(server) == []


def test_a_grant_on_future_views_is_found(server):
    wanted = spec(grant, on="VIEWS IN SCHEMA", privilege="SELECT", name="SALES.VIEWS", to_role="PEOPLE")
    shown = {"privilege": "SELECT", "grant_on": "VIEW", "name": "SALES.VIEWS.<VIEW>"}
    script(server, **{"SHOW FUTURE": result(shown), "SHOW VIEWS": result(columns=("name",))})
    grant.create(context(server), wanted)
    assert written(server) == []
    assert grant.find_existing(context(server), wanted, None) == [
        "SELECT ON VIEWS IN SCHEMA SALES.VIEWS TO ROLE PEOPLE"
    ]


def test_a_grant_on_views_includes_future_ones(server):
    wanted = spec(grant, on="VIEWS IN SCHEMA", privilege="SELECT", name="SALES.VIEWS", to_role="PEOPLE")
    no_rows = result(columns=("name", "privilege"))
    script(server, **{"SHOW": no_rows, "GRANT": DONE, "REVOKE": DONE})
    grant.create(context(server), wanted)
    grant.delete(context(server, deleting=True), wanted, "x")
    on = 'VIEWS IN SCHEMA "SALES"."VIEWS"'
    assert written(server) == [
        f'GRANT SELECT ON FUTURE {on} TO ROLE "PEOPLE"',
        f'REVOKE SELECT ON FUTURE {on} FROM ROLE "PEOPLE"',
        f'REVOKE SELECT ON ALL {on} FROM ROLE "PEOPLE"',
    ]
