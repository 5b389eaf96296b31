"""Grants: checked before they are made, in the forms that Snowflake shows, and revoked in the same form."""

from __future__ import annotations

import pytest

from lambdas import contract
from lambdas.shared.errors import BadProperties, Denied, NotFound, ResourceMissing
from lambdas.snowflake import sql
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


@pytest.mark.parametrize("on", ["DATABASE", "WAREHOUSE"])
def test_a_grant_is_gone_with_its_role_and_only_then(server, on):
    wanted = to_role(on, "W")
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


@pytest.mark.parametrize(
    ("given", "object_id"),
    [
        (
            {"on": "SCHEMA", "name": 'sales."a-b"', "privilege": "MONITOR", "to_role": "r"},
            'MONITOR ON SCHEMA SALES."a-b" TO ROLE R',
        ),
        ({"on": "ROLE", "name": "r", "to_user": '"a b"'}, "USAGE ON ROLE R TO USER a b"),
        ({"on": "ROLE", "name": "r", "to_role": "s"}, "USAGE ON ROLE R TO ROLE S"),
    ],
)
def test_the_id_of_a_grant_names_all_of_it(server, given, object_id):
    wanted = spec(grant, **given)
    assert grant.create(context(script(server)), wanted) == object_id
    with pytest.raises(ResourceMissing, match=f"LF-VANISHED  {object_id} is not granted"):
        grant.is_ready(context(script(server)), wanted, object_id)


@pytest.mark.parametrize("privilege", ["USAGE", "MONITOR", "WRITE"])
@pytest.mark.parametrize(
    ("granted", "counts"),
    [
        (("SCHEMA", "SALES.PUBLIC"), True),
        (("SCHEMA", '"SALES"."PUBLIC"'), True),
        (("SCHEMA", "SALES"), False),
        (("SCHEMA", "SALES.PUBLIC.X"), False),
        (("SCHEMA", "PUBLIC.SALES"), False),
        (("SCHEMA", None), False),
        (("DATABASE", "SALES.PUBLIC"), False),
        ((None, "SALES.PUBLIC"), False),
    ],
)
def test_a_grant_is_recognized_by_privilege_type_and_name(privilege, granted, counts):
    rows = [{name: text or "" for name, text in shown("USAGE", *granted).items()}]
    found = grant.is_granted(rows, privilege, "SCHEMA", ("SALES", "PUBLIC"))
    assert found is (counts and privilege == "USAGE")
    assert not grant.is_granted([{}], privilege, "SCHEMA", ("SALES", "PUBLIC"))
    assert not grant.is_granted([], privilege, "SCHEMA", ("SALES", "PUBLIC"))


@pytest.mark.parametrize(
    ("changed", "counts"),
    [
        ({}, True),
        ({"grant_on": "TABLE", "name": "SALES.PUBLIC.<TABLE>"}, True),
        ({"name": '"SALES".PUBLIC.<ICEBERG_TABLE>'}, True),
        ({"privilege": "INSERT"}, False),
        ({"privilege": "UPDATE"}, False),
        ({"name": "SALES.QUX.<ICEBERG_TABLE>"}, False),
        ({"grant_on": "VIEW"}, False),
        ({"name": "SALES.<ICEBERG_TABLE>"}, False),
        ({"name": "SALES.PUBLIC"}, False),
    ],
)
def test_a_grant_on_future_tables_is_recognized(changed, counts):
    group = ("SELECT", "ICEBERG TABLES IN SCHEMA", ("SALES", "PUBLIC"))
    assert grant.is_granted_in_future([COMING | changed], *group) is counts
    assert not grant.is_granted_in_future([], *group)


@pytest.mark.parametrize(
    ("on", "member", "names"),
    [
        ("ICEBERG TABLES IN SCHEMA", "ICEBERG TABLE", ("SALES", "PUBLIC", "T")),
        ("ICEBERG TABLES IN DATABASE", "ICEBERG TABLE", ("SALES", "PUBLIC", "T")),
        ("VIEWS IN SCHEMA", "VIEW", ("SALES", "PUBLIC", "T")),
        ("SCHEMAS IN DATABASE", "SCHEMA", ("D", "T")),
    ],
)
def test_the_members_of_each_group(on, member, names):
    assert (grant.is_group(on), grant.is_group(member)) == (True, False)
    assert grant.find_member_type(on) == member
    own = {"database_name": "SALES", "schema_name": "PUBLIC", "name": "INFORMATION_SCHEMA"}
    skipped = [] if member == "SCHEMA" else [("SALES", "PUBLIC", "INFORMATION_SCHEMA")]
    assert grant.group_members(on, "D", [TABLE, own]) == [names, *skipped]
    assert grant.group_members(on, "D", []) == []


DATABASE_GROUPS = {
    "SCHEMAS IN DATABASE": ("SHOW SCHEMAS IN DATABASE", "USAGE", ("SCHEMA", "D.T")),
    "ICEBERG TABLES IN DATABASE": ("SHOW ICEBERG TABLES IN DATABASE", "SELECT", ("TABLE", "SALES.PUBLIC.T")),
}


@pytest.mark.parametrize("on", DATABASE_GROUPS)
def test_a_group_in_a_database_has_no_future_members(server, on):
    show, privilege, member = DATABASE_GROUPS[on]
    wanted = to_role(on, "D", privilege)
    words = f'{privilege} ON ALL {on} "D"'
    script(server, **{show: result(TABLE)})
    assert grant.create(context(server), wanted) == f"{privilege} ON {on} D TO ROLE READER"
    grant.delete(context(server, deleting=True), wanted, "x")
    assert written(server) == [f'GRANT {words} TO ROLE "READER"', f'REVOKE {words} FROM ROLE "READER"']
    assert f'{show} "D"' in sent(server)
    assert not any("FUTURE" in statement for statement in sent(server))
    for deleting in (False, True):
        held = context(script(server, **{show: result(TABLE)}), deleting=deleting)
        assert grant.find_existing(held, wanted, None) == []
        script(server, **{show: result(TABLE), "SHOW GRANTS": result(shown(privilege, *member))})
        assert grant.find_existing(held, wanted, None) == [f"{privilege} ON {on} D TO ROLE READER"]


def test_a_group_without_members_needs_no_list_of_grants(server):
    wanted = to_role("SCHEMAS IN DATABASE", "D")
    script(server, **{"SHOW SCHEMAS": result(columns=("name",))})
    grant.create(context(server), wanted)
    assert sent(server) == ['SHOW SCHEMAS IN DATABASE "D"']


def test_all_members_of_a_group_must_have_the_grant_and_one_is_enough_to_delete(server):
    wanted = to_role("SCHEMAS IN DATABASE", "D")
    members = result({"name": "A"}, {"name": "B"})
    script(server, **{"SHOW SCHEMAS": members, "SHOW GRANTS": result(shown("USAGE", "SCHEMA", "D.A"))})
    grant.create(context(server), wanted)
    assert written(server) == ['GRANT USAGE ON ALL SCHEMAS IN DATABASE "D" TO ROLE "READER"']
    assert len(grant.find_existing(context(server, deleting=True), wanted, None)) == 1


def test_a_revoke_of_each_half_is_tried_although_the_other_is_gone(server):
    script(server, REVOKE=[MISSING, DONE])
    grant.delete(context(server, deleting=True), TABLES, "x")
    assert [statement.split()[3] for statement in written(server)] == ["FUTURE", "ALL"]


@pytest.mark.parametrize("grantee", ["to_role", "to_user"])
def test_a_membership_is_gone_with_the_role_that_is_granted(server, grantee):
    wanted = spec(grant, on="ROLE", name="lent", **{grantee: "somebody"})
    sees_all = {
        "SHOW GRANTS OF ROLE": MISSING,
        'SHOW GRANTS TO ROLE "DEPLOYER"': result(MANAGE_GRANTS),
        "SHOW ROLES LIKE 'SOMEBODY'": result(row("SOMEBODY", "")),
    }
    script(server, **sees_all)
    assert grant.find_existing(context(server, deleting=True), wanted, "x") == []
    assert sent(server)[-1] == "SHOW ROLES LIKE 'LENT'"
    script(server, **sees_all, **{"SHOW ROLES LIKE 'LENT'": result(row("LENT", ""))})
    with pytest.raises(NotFound):
        grant.find_existing(context(server, deleting=True), wanted, "x")


def test_only_a_known_group_is_granted_on():
    path = sql.path(["D"])
    statement = grant.on_group("SELECT", "ALL", "ICEBERG TABLES IN DATABASE", path)
    assert statement.text == 'SELECT ON ALL ICEBERG TABLES IN DATABASE "D"'
    wrong = [
        ("OWNERSHIP", "ALL", "VIEWS IN SCHEMA"),
        ("USAGE", "SOME", "VIEWS IN SCHEMA"),
        ("USAGE", "ALL", "ROLE"),
    ]
    for words in wrong:
        with pytest.raises(BadProperties):
            grant.on_group(*words, path)


def test_a_grant_is_not_there_only_if_snowflake_shows_so():
    assert grant.ABSENCE_IS_SHOWN is True
