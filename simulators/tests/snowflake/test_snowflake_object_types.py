"""Every type of object through the same statements: created, replaced, shown, altered, dropped, and refused
by number.
"""

from typing import NamedTuple

import pytest

from simulators.tests.snowflake.snowflake_kit import CATALOG, ICEBERG, VOLUME, Client


class ObjectType(NamedTuple):
    """`clauses` is what CREATE needs; `change` is a SET with the columns of SHOW that tell. `restored` is the
    same for UNSET, "" where the type has none. `elsewhere` are properties and `forms` of ALTER that Snowflake
    has and the simulator hasn't."""

    words: str
    name: str
    clauses: str
    change: tuple[str, dict[str, str]]
    restored: tuple[str, dict[str, str]]
    elsewhere: tuple[str, ...]
    forms: tuple[str, ...] = ()
    renamable: bool = False
    described: bool = True

    @property
    def domain(self):
        return self.words.removeprefix("CATALOG ")


NEW = ("COMMENT='new'", {"comment": "new"})
NONE = ("COMMENT", {"comment": ""})
SPACE = ("DATA_RETENTION_TIME_IN_DAYS=1", "LOG_LEVEL='x'")
TYPES = [
    ObjectType(
        *("WAREHOUSE", "X", ""),
        (
            "AUTO_SUSPEND=60 AUTO_RESUME=FALSE WAREHOUSE_SIZE=X2LARGE",
            {"auto_suspend": "60", "auto_resume": "false", "size": "2X-Large"},
        ),
        (
            "AUTO_SUSPEND, AUTO_RESUME, WAREHOUSE_SIZE",
            {"auto_suspend": "600", "auto_resume": "true", "size": "X-Small"},
        ),
        ("MAX_CLUSTER_COUNT=2", "RESOURCE_MONITOR=x"),
        renamable=True,
    ),
    ObjectType(
        "DATABASE", "X", "", NEW, NONE, (*SPACE, "EXTERNAL_VOLUME='V'"), ("RENAME TO Y", "SWAP WITH Y")
    ),
    ObjectType("SCHEMA", "D.X", "", NEW, NONE, SPACE, ("RENAME TO Y", "SWAP WITH Y")),
    ObjectType("ROLE", "X", "", NEW, NONE, (), ("RENAME TO Y",), described=False),
    ObjectType(
        *("USER", "X", ""),
        (
            "LOGIN_NAME=a DISPLAY_NAME=B EMAIL='c' DEFAULT_ROLE=D DEFAULT_WAREHOUSE=E "
            "DEFAULT_NAMESPACE=F.G TYPE=SERVICE DISABLED=TRUE DEFAULT_SECONDARY_ROLES=()",
            dict(
                login_name="A",
                display_name="B",
                email="c",
                default_role="D",
                default_warehouse="E",
                default_namespace="F.G",
            )
            | dict(type="SERVICE", disabled="true", default_secondary_roles="[]"),
        ),
        (
            "LOGIN_NAME, DISPLAY_NAME, EMAIL, DEFAULT_ROLE, DEFAULT_WAREHOUSE, DEFAULT_NAMESPACE, TYPE, "
            "DISABLED, DEFAULT_SECONDARY_ROLES",
            dict(
                login_name="X",
                display_name="X",
                email="",
                default_role="",
                default_warehouse="",
                default_namespace="",
            )
            | dict(type=None, disabled="false", default_secondary_roles='["ALL"]'),
        ),
        ("PASSWORD='x'",),
        ("ADD KEY PAIR K PUBLIC_KEY='x'", "RESET PASSWORD", "ABORT ALL QUERIES"),
        renamable=True,
    ),
    ObjectType(
        *("EXTERNAL VOLUME", "X", VOLUME),
        ("ALLOW_WRITES=TRUE COMMENT='new'", {"allow_writes": "true", "comment": "new"}),
        ("", {}),
        (),
        ("UPDATE STORAGE_LOCATION='l'",),
    ),
    ObjectType(
        *("CATALOG INTEGRATION", "X", CATALOG),
        ("ENABLED=FALSE COMMENT='new'", {"enabled": "false", "comment": "new"}),
        ("", {}),
        (),
        ("SET REST_AUTHENTICATION=(TYPE=SIGV4)",),
    ),
    ObjectType(
        *("ICEBERG TABLE", "D.S.X", ICEBERG),
        NEW,
        NONE,
        ("BASE_LOCATION='x'",),
        ("ADD COLUMN A INT", "RENAME TO Y", "CONVERT TO MANAGED", "SET CATALOG_TABLE_NAME='x'"),
    ),
]


@pytest.fixture(params=TYPES, ids=[type_.words for type_ in TYPES])
def each(request):
    return request.param


def shown(client, each, **clauses):
    """The rows of SHOW, by name."""
    words = {"like": "", "more": ""} | clauses
    scope = " IN ACCOUNT" if "." in each.name else ""
    return {
        row["name"]: row for row in client.rows(f"SHOW {each.words}S {words['like']}{scope} {words['more']}")
    }


def test_it_is_created_replaced_and_dropped(stocked, each):
    before = stocked.snowflake.objects()
    create = f"{each.name} {each.clauses}"
    assert stocked.one(f"CREATE {each.words} {create} COMMENT='it''s'").endswith(" X successfully created.")
    assert each.name in stocked.snowflake.objects()[each.domain]
    assert "already exists" in stocked.refused(f"CREATE {each.words} {create}", "002002")
    assert "statement succeeded" in stocked.one(f"CREATE {each.words} IF NOT EXISTS {create} COMMENT='other'")
    assert shown(stocked, each)["X"]["comment"] == "it's"
    assert stocked.one(f"CREATE OR REPLACE {each.words} {create}").endswith(" X successfully created.")
    assert shown(stocked, each)["X"]["comment"] == ""
    assert stocked.one(f"DROP {each.words} {each.name}") == "X successfully dropped."
    stocked.refused(f"DROP {each.words} {each.name}", "002003")
    assert "already dropped" in stocked.one(f"DROP {each.words} IF EXISTS {each.name} CASCADE")
    assert stocked.snowflake.objects() == before


def test_it_is_shown_by_pattern_prefix_and_number(stocked, each):
    for suffix in ("", "2", "3"):
        stocked.run(f"CREATE {each.words} {each.name}{suffix} {each.clauses}")
    assert shown(stocked, each, like="LIKE 'x_'").keys() == {"X2", "X3"}
    assert shown(stocked, each, more="STARTS WITH 'X'").keys() == {"X", "X2", "X3"}
    assert shown(stocked, each, more="STARTS WITH 'x'").keys() == set()
    assert shown(stocked, each, more="STARTS WITH 'X' LIMIT 2").keys() == {"X", "X2"}
    stocked.refused(f"SHOW {each.words}S LIMIT 2 FROM 'X'", "000000")


def test_it_is_altered(stocked, each):
    stocked.run(f"CREATE {each.words} {each.name} {each.clauses}")
    alter, (change, changed), (unset, restored) = (
        f"ALTER {each.words} {each.name}",
        each.change,
        each.restored,
    )
    before = shown(stocked, each)["X"]
    stocked.run(f"{alter} SET {change}")
    assert shown(stocked, each)["X"] == before | changed
    stocked.run(f"ALTER {each.words} IF EXISTS {each.name}_ SET {change}")
    if unset:
        stocked.refused(f"{alter} UNSET {unset}, NONE_SUCH", "001420")
        assert shown(stocked, each)["X"] == before | changed, "all of a statement, or nothing"
        stocked.run(f"{alter} UNSET {unset}")
        assert shown(stocked, each)["X"] == before | restored
    else:
        stocked.refused(f"{alter} UNSET COMMENT", "001003")
    if each.renamable:
        stocked.refused(f"{alter} RENAME TO {each.name}", "002002")
        stocked.run(f"{alter} RENAME TO {each.name}2")
        assert shown(stocked, each, like="LIKE 'X_'").keys() == {"X2"}


def test_what_is_wrong_is_refused_by_number(stocked, each):
    words = each.words
    name = each.name
    create = f"{each.name} {each.clauses}"
    stocked.run(f"CREATE {words} {create} COMMENT='it''s'")
    alter = f"ALTER {words} {name}"
    before = shown(stocked, each)
    objects = stocked.snowflake.objects()
    other = create.replace(name, f"{name}2", 1)
    for statement, code in (
        (f"CREATE OR REPLACE {words} IF NOT EXISTS {create}", "001003"),
        (f"CREATE OR ALTER {words} {create}", "000000"),
        (f"CREATE OR REPLACE {words} {create} NONE_SUCH=1", "001420"),
        (f"CREATE OR REPLACE {words} {create} COMMENT=(1)", "001008"),
        (f"CREATE {words} {other} COMMENT='x' COMMENT='y'", "001003"),
        (f"CREATE {words} {other} NONE_SUCH", "001003"),
        (f"CREATE {words} A.B.C.{other}", "002003"),
        (f"{alter} SET NONE_SUCH=1", "001420"),
        (f"{alter} SET COMMENT=(1)", "001008"),
        (f"{alter} SET", "001003"),
        (f"{alter} SET COMMENT='new' NONE_SUCH", "001003"),
        (f"{alter} SET TAG T='x'", "000000"),
        (f"{alter} NONE_SUCH", "001003"),
        (f"ALTER {words} {name}2 SET COMMENT='x'", "002003"),
        (f"DROP {words} {name} NONE_SUCH", "001003"),
        (f"SHOW {words}S NONE_SUCH", "001003"),
        (f"DESC {words} {name}2", "002003" if each.described else "001003"),
        *((f"CREATE {words} {other} {item}", "000000") for item in each.elsewhere),
        *((f"{alter} SET {item}", "000000") for item in each.elsewhere),
        *((f"{alter} {form}", "000000") for form in each.forms),
    ):
        stocked.refused(statement, code)
    assert (shown(stocked, each), stocked.snowflake.objects()) == (before, objects), (
        "what is refused changes nothing"
    )


#: What a role that may do anything else with it gets a grant of, so that it sees it.
SIGHT = {
    "ROLE": "",
    "USER": "MONITOR",
    "ICEBERG TABLE": "REFERENCES",
    "WAREHOUSE": "MONITOR",
    "DATABASE": "MONITOR",
    "SCHEMA": "MONITOR",
}


def test_only_the_owner_and_whom_he_lets_may_change_it(stocked, each):
    """A role that sees nothing learns nothing; one that sees it is refused by privilege."""
    for role in ("STRANGER", "GUEST"):
        stocked.run(f"CREATE ROLE {role}")
        stocked.run(f"GRANT ROLE {role} TO USER ADMIN")
    create = f"CREATE {{}} {each.words} {each.name} {each.clauses}"
    stocked.run(create.format(""))
    privilege = SIGHT.get(each.words, "USAGE")
    grant = (
        f"GRANT {privilege} ON {each.domain} {each.name} TO ROLE GUEST"
        if privilege
        else f"GRANT ROLE {each.name} TO ROLE GUEST"
    )
    stocked.run(grant)
    for container, number in (("DATABASE D", 1), ("SCHEMA D.S", 2)):
        if each.name.count(".") >= number:
            stocked.run(f"GRANT USAGE ON {container} TO ROLE GUEST")
    before = stocked.snowflake.objects()
    hidden = "002003" if "." in each.name else "003001"
    for statement, stranger, guest in (
        (create.format(""), hidden, "003001"),
        (create.format("OR REPLACE"), hidden, "003001"),
        (f"ALTER {each.words} {each.name} SET {each.change[0]}", "002003", "003001"),
        (f"DROP {each.words} {each.name}", "002003", "003001"),
        (f"GRANT {privilege or 'OWNERSHIP'} ON {each.domain} {each.name} TO ROLE PUBLIC", "002003", "003001"),
    ):
        stocked.refused(statement, stranger, role="STRANGER")
        stocked.refused(statement, guest, role="GUEST")
    assert shown(stocked, each, like="LIKE 'X'").keys() == {"X"}
    assert (
        Client(stocked.snowflake, role="STRANGER").rows(
            f"SHOW {each.words}S LIKE 'X'" + (" IN ACCOUNT" if "." in each.name else "")
        )
        == []
    )
    assert stocked.snowflake.objects() == before
    container = {0: "ACCOUNT", 1: "DATABASE D", 2: "SCHEMA D.S"}[each.name.count(".")]
    stocked.run(f"GRANT CREATE {each.domain} ON {container} TO ROLE GUEST")
    stocked.refused(create.format(""), "002002", role="GUEST")
    stocked.refused(create.format("OR REPLACE"), "003001", role="GUEST")
    if each.words in ("WAREHOUSE", "DATABASE", "SCHEMA"):
        stocked.run(f"GRANT MODIFY ON {each.words} {each.name} TO ROLE GUEST")
        stocked.run(f"ALTER {each.words} {each.name} SET {each.change[0]}", role="GUEST")
    stocked.run(f"GRANT OWNERSHIP ON {each.domain} {each.name} TO ROLE GUEST REVOKE CURRENT GRANTS")
    stocked.run(f"ALTER {each.words} {each.name} SET {each.change[0]}", role="GUEST")
    stocked.run(f"DROP {each.words} {each.name}", role="GUEST")
