"""Grants: checked before they are made, in the forms that Snowflake shows, and revoked in the same form."""

from __future__ import annotations

import pytest

from lambdas import contract
from lambdas.shared.errors import BadProperties, Denied, NotFound, ResourceMissing
from lambdas.snowflake.resources import grant
from tests.support.snowflake_context import DONE, MISSING, context, result, row, script, sent, spec, written

ROTATE = "MODIFY PROGRAMMATIC AUTHENTICATION METHODS"


def to_role(on, name, privilege="USAGE"):
    return spec(grant, on=on, name=name, privilege=privilege, to_role="READER")


def shown(privilege, granted_on, name):
    return {"privilege": privilege, "granted_on": granted_on, "name": name}


#: The grant, its rows in SHOW GRANTS TO ROLE, and the words between GRANT and TO.
SINGLE = [
    (to_role("WAREHOUSE", "w"), [("WAREHOUSE", "W")], 'USAGE ON WAREHOUSE "W"'),
    (to_role("DATABASE", "SALES"), [("DATABASE", "SALES")], 'USAGE ON DATABASE "SALES"'),
    (to_role("SCHEMA", "SALES.PUBLIC"), [("SCHEMA", "SALES.PUBLIC")], 'USAGE ON SCHEMA "SALES"."PUBLIC"'),
    (to_role("SCHEMA", 'L."lkc-1"'), [("SCHEMA", 'L."lkc-1"')], 'USAGE ON SCHEMA "L"."lkc-1"'),
    (
        to_role("EXTERNAL VOLUME", "V"),
        [("EXTERNAL_VOLUME", "V"), ("VOLUME", "V"), ("EXTERNAL VOLUME", "V")],
        'USAGE ON EXTERNAL VOLUME "V"',
    ),
    (to_role("INTEGRATION", "C"), [("INTEGRATION", "C")], 'USAGE ON INTEGRATION "C"'),
    (
        to_role("ICEBERG TABLE", "SALES.PUBLIC.T", "SELECT"),
        [("ICEBERG_TABLE", "SALES.PUBLIC.T"), ("TABLE", "SALES.PUBLIC.T")],
        'SELECT ON ICEBERG TABLE "SALES"."PUBLIC"."T"',
    ),
    (to_role("USER", "U", ROTATE), [("USER", "U")], f'{ROTATE} ON USER "U"'),
    (
        to_role("DATABASE", "Data Team"),
        [("DATABASE", "Data Team"), ("DATABASE", '"Data Team"')],
        'USAGE ON DATABASE "Data Team"',
    ),
]
NEAR = [("WAREHOUSE", "W2"), ("SCHEMA", "SALES"), ("DATABASE", "W"), ("ROLE", "C"), ("USER", "OTHER")]


@pytest.mark.parametrize(("wanted", "rows", "words"), SINGLE)
def test_each_form_is_granted_once_and_revoked(server, wanted, rows, words):
    near = [shown("USAGE", *grant_row) for grant_row in NEAR] + [shown("OWNERSHIP", *rows[0])]
    script(server, **{"SHOW GRANTS": result(*near), "REVOKE": [DONE, MISSING]})
    grant.create(context(server), wanted)
    for _ in range(2):
        grant.delete(context(server, deleting=True), wanted, "x")
    assert written(server) == [f'GRANT {words} TO ROLE "READER"', *[f'REVOKE {words} FROM ROLE "READER"'] * 2]
    for grant_row in rows:
        script(server, **{"SHOW GRANTS": result(shown(wanted.privilege, *grant_row))})
        server.sent.clear()
        object_id = grant.create(context(server), wanted)
        grant.update(context(server), wanted, object_id)
        assert grant.is_ready(context(server), wanted, object_id) == {"id": object_id}
        assert grant.find_existing(context(server), wanted, None) == [object_id]
        assert set(sent(server)) == {'SHOW GRANTS TO ROLE "READER"'}


@pytest.mark.parametrize("grantee", ["ROLE", "USER"])
def test_a_role_of_a_role_or_a_user(server, grantee):
    wanted = spec(grant, on="ROLE", name="READER", **{f"to_{grantee.lower()}": "somebody"})
    other = "USER" if grantee == "ROLE" else "ROLE"
    script(server, **{"SHOW GRANTS OF ROLE": result({"granted_to": other, "grantee_name": "SOMEBODY"})})
    grant.create(context(server), wanted)
    assert written(server) == [f'GRANT ROLE "READER" TO {grantee} "SOMEBODY"']
    script(server, **{"SHOW GRANTS OF ROLE": result({"granted_to": grantee, "grantee_name": "SOMEBODY"})})
    assert grant.find_existing(context(server), wanted, None) == [
        f"USAGE ON ROLE READER TO {grantee} SOMEBODY"
    ]
    grant.create(context(server), wanted)
    grant.delete(context(server, deleting=True), wanted, "x")
    assert written(server)[1:] == [f'REVOKE ROLE "READER" FROM {grantee} "SOMEBODY"']


TABLES = to_role("ICEBERG TABLES IN SCHEMA", "SALES.PUBLIC", "SELECT")
COMING = {"privilege": "SELECT", "grant_on": "ICEBERG_TABLE", "name": "SALES.PUBLIC.<ICEBERG_TABLE>"}
TABLE = {"database_name": "SALES", "schema_name": "PUBLIC", "name": "T"}
FUTURE = 'GRANT SELECT ON FUTURE ICEBERG TABLES IN SCHEMA "SALES"."PUBLIC" TO ROLE "READER"'
ALL = 'GRANT SELECT ON ALL ICEBERG TABLES IN SCHEMA "SALES"."PUBLIC" TO ROLE "READER"'


def schema_script(server, coming=(), tables=(), granted=()):
    return script(
        server,
        **{
            "SHOW FUTURE GRANTS": result(*coming, columns=tuple(COMING)),
            "SHOW ICEBERG TABLES": result(*tables, columns=tuple(TABLE)),
            "SHOW GRANTS": result(*granted, columns=("privilege", "granted_on", "name")),
        },
    )


@pytest.mark.parametrize(
    ("coming", "tables", "granted", "statements"),
    [
        ([], [], [], [FUTURE]),
        ([], [TABLE], [], [FUTURE, ALL]),
        ([COMING], [TABLE], [], [ALL]),
        ([COMING], [TABLE], [shown("SELECT", "ICEBERG_TABLE", "SALES.PUBLIC.T")], []),
        ([COMING], [], [], []),
        ([{**COMING, "name": "SALES.OTHER.<ICEBERG_TABLE>"}], [], [], [FUTURE]),
        ([{**COMING, "grant_on": "VIEW"}], [], [], [FUTURE]),
    ],
)
def test_current_and_future_tables_of_a_schema(server, coming, tables, granted, statements):
    schema_script(server, coming, tables, granted)
    for verb in (lambda ctx: grant.create(ctx, TABLES), lambda ctx: grant.update(ctx, TABLES, "x")):
        server.sent.clear()
        verb(context(server))
        assert written(server) == statements


def test_grants_on_all_tables_of_a_schema_are_revoked(server):
    schema_script(server, [], [TABLE], [shown("SELECT", "TABLE", "SALES.PUBLIC.T")])
    deleting = context(server, deleting=True)
    assert grant.find_existing(deleting, TABLES, None), "one half is left over"
    grant.delete(deleting, TABLES, "x")
    assert written(server) == [
        'REVOKE SELECT ON FUTURE ICEBERG TABLES IN SCHEMA "SALES"."PUBLIC" FROM ROLE "READER"',
        'REVOKE SELECT ON ALL ICEBERG TABLES IN SCHEMA "SALES"."PUBLIC" FROM ROLE "READER"',
    ]


def test_a_grant_on_coming_tables_alone_is_revoked(server):
    schema_script(server, [COMING])
    assert grant.find_existing(context(server, deleting=True), TABLES, None)


def test_a_partial_grant_is_completed(server):
    schema_script(server, [], [TABLE], [shown("SELECT", "TABLE", "SALES.PUBLIC.T")])
    assert grant.find_existing(context(server), TABLES, None) == []
    with pytest.raises(ResourceMissing):
        grant.is_ready(context(server), TABLES, "x")


def test_a_linked_database_s_schemas_but_snowflake_s_own(server):
    wanted = to_role("SCHEMAS IN DATABASE", "LINKED")
    script(server, **{"SHOW SCHEMAS": result({"name": "lkc-1"}, {"name": "INFORMATION_SCHEMA"})})
    grant.create(context(server), wanted)
    assert written(server) == ['GRANT USAGE ON ALL SCHEMAS IN DATABASE "LINKED" TO ROLE "READER"']
    granted = shown("USAGE", "SCHEMA", 'LINKED."lkc-1"')
    script(
        server,
        **{
            "SHOW SCHEMAS": result({"name": "lkc-1"}, {"name": "INFORMATION_SCHEMA"}),
            "SHOW GRANTS": result(granted),
        },
    )
    server.sent.clear()
    grant.create(context(server), wanted)
    assert written(server) == []
    assert grant.is_ready(context(script(server)), wanted, "x") == {"id": "x"}


MANAGE_GRANTS = {"privilege": "MANAGE GRANTS", "granted_on": "ACCOUNT", "name": "ACCT"}


def test_a_grant_is_gone_with_its_role_and_only_then(server):
    wanted = to_role("WAREHOUSE", "W")
    sees_all = {"SHOW GRANTS": MISSING, 'SHOW GRANTS TO ROLE "DEPLOYER"': result(MANAGE_GRANTS)}
    script(server, **sees_all)
    assert grant.find_existing(context(server, deleting=True), wanted, "x") == []
    with pytest.raises(NotFound):
        grant.find_existing(context(server), wanted, None)
    script(server, **sees_all, **{"SHOW ROLES": result(row("READER", ""))})
    with pytest.raises(NotFound):
        grant.find_existing(context(server, deleting=True), wanted, "x")
    script(server, **{"SHOW GRANTS": MISSING})
    with pytest.raises(Denied, match="SNF-UNSEEN"):
        grant.find_existing(context(server, deleting=True), wanted, "x")


def test_grants_on_tables_are_gone_with_their_schema(server):
    script(server, **{"SHOW ICEBERG TABLES": MISSING, "SHOW FUTURE GRANTS": result(columns=tuple(COMING))})
    assert grant.find_existing(context(server, deleting=True), TABLES, "x") == []
    with pytest.raises(NotFound):
        grant.update(context(server), TABLES, "x")


@pytest.mark.parametrize(
    ("given", "expected_message"),
    [
        (
            {"on": "WAREHOUSE", "name": "W", "privilege": "SELECT", "to_role": "R"},
            "SELECT can't be granted on WAREHOUSE",
        ),
        ({"on": "SCHEMA", "name": "S", "to_role": "R"}, "does not have 2 parts"),
        ({"on": "WAREHOUSE", "name": "A.B", "to_role": "R"}, "does not have 1 parts"),
        ({"on": "WAREHOUSE", "name": "W"}, "either to_role or to_user"),
        ({"on": "ROLE", "name": "R", "to_role": "R", "to_user": "U"}, "either to_role or to_user"),
        ({"on": "WAREHOUSE", "name": "W", "to_user": "U"}, "only roles are granted to users"),
        ({"on": "ACCOUNT", "name": "W", "to_role": "R"}, "is none of"),
        ({"on": "WAREHOUSE", "name": "W", "privilege": "OWNERSHIP", "to_role": "R"}, "is none of"),
    ],
)
def test_grants_that_make_no_sense_are_refused(given, expected_message):
    with pytest.raises(BadProperties, match=expected_message):
        spec(grant, **given)


def test_the_least_privileges_are_ones_that_can_be_granted():
    for privilege in contract.SNOWFLAKE_GRANTS:
        assert privilege.privilege in grant.ON[privilege.on]
    assert {privilege.role for privilege in contract.SNOWFLAKE_GRANTS} == set(contract.SNOWFLAKE_ROLES)
