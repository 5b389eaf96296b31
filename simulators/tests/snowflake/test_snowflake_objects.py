"""What is odd about names, literals and each type of object.

What all types share is in test_snowflake_object_types.py.
"""

import json

import pytest

from simulators.tests.snowflake.snowflake_kit import (
    CATALOG,
    ICEBERG,
    ROLE_ARN,
    VOLUME,
    fingerprint,
    new_key,
    sql_key,
)

LINKED = "LINKED_CATALOG=(CATALOG='C', ALLOWED_WRITE_OPERATIONS=NONE, ALLOWED_NAMESPACES=('lkc-1', 'lkc-2'))"


def test_a_dropped_database_takes_everything_in_it_along(stocked):
    stocked.run("CREATE ROLE X")
    stocked.run("GRANT SELECT ON FUTURE ICEBERG TABLES IN SCHEMA D.S TO ROLE X")
    stocked.run("GRANT SELECT ON ICEBERG TABLE D.S.T TO ROLE X")
    assert stocked.snowflake.objects()["GRANT"] == ["SELECT ON ICEBERG TABLE D.S.T TO X"]
    stocked.run("DROP DATABASE D")
    left = stocked.snowflake.objects()
    assert [left[domain] for domain in ("DATABASE", "SCHEMA", "ICEBERG TABLE", "GRANT", "FUTURE GRANT")] == [
        []
    ] * 5


@pytest.mark.parametrize("statement", ["DROP {} {}", "CREATE OR REPLACE {} {} {}"])
def test_a_volume_or_integration_in_use_stays(stocked, statement):
    for words, name, clauses in (("EXTERNAL VOLUME", "V", VOLUME), ("CATALOG INTEGRATION", "C", CATALOG)):
        assert "used by Iceberg table D.S.T" in stocked.refused(
            statement.format(words, name, clauses), "090106"
        )
    stocked.run("DROP ICEBERG TABLE D.S.T")
    for words, name, clauses in (("EXTERNAL VOLUME", "V", VOLUME), ("CATALOG INTEGRATION", "C", CATALOG)):
        stocked.run(statement.format(words, name, clauses))


# --- names and literals


def test_names_are_in_upper_case_unless_quoted(admin):
    for name in ("lower", '"lower"', '"a.b"', '"say ""hi"""', '"лес"'):
        admin.run(f"CREATE ROLE {name}")
    assert admin.snowflake.objects()["ROLE"] == sorted(["LOWER", "lower", "a.b", 'say "hi"', "лес"])
    admin.refused('DROP ROLE "Lower"', "002003")
    admin.run('DROP ROLE "LOWER"')


@pytest.mark.parametrize("word", ["TABLE", "select", "Order", "GRANT", "NULL"])
def test_a_reserved_word_is_a_name_only_in_quotes(admin, word):
    admin.refused(f"CREATE ROLE {word}", "001003")
    admin.refused(f"CREATE ROLE {word} COMMENT='x'", "001003")
    admin.run(f'CREATE ROLE "{word}"')
    assert admin.snowflake.objects()["ROLE"] == [word]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("'it''s'", "it's"),
        (r"'it\'s'", "it's"),
        (r"'a\\b'", r"a\b"),
        (r"'a\nb'", "a\nb"),
        ("'a\nb'", "a\nb"),
        ("$$it's \\ raw$$", "it's \\ raw"),
        (r"'\u0041'", "A"),
        ("'; DROP ROLE X; --'", "; DROP ROLE X; --"),
        ("'/* no */'", "/* no */"),
    ],
)
def test_strings_are_read_as_snowflake_reads_them(admin, written, meant):
    admin.run(f"CREATE ROLE X /* a comment */ COMMENT={written} -- another")
    assert admin.rows("SHOW ROLES LIKE 'X'")[0]["comment"] == meant


@pytest.mark.parametrize("pattern", ["a\\_b", "A\\_B", "a__", "a%", "%"])
def test_like_takes_wildcards_and_escapes(admin, pattern):
    admin.run('CREATE ROLE "A_B"')
    admin.run('CREATE ROLE "AxB"')
    names = [row["name"] for row in admin.rows(f"SHOW ROLES LIKE '{pattern.replace(chr(92), chr(92) * 2)}'")]
    assert ("A_B" in names, "AxB" in names) == (True, "\\" not in pattern)


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("CREAT ROLE X", "001003"),
        ("CREATE ROLE", "001003"),
        ("CREATE ROLE 'X'", "001003"),
        ("CREATE ROLE X COMMENT 'x'", "001003"),
        ("CREATE ROLE X COMMENT='x", "001003"),
        ('CREATE ROLE "X', "001003"),
        ('CREATE ROLE ""', "001003"),
        ("CREATE ROLE X.Y COMMENT=(", "001003"),
        ("DROP ROLE X Y", "001003"),
        ("DROP IF EXISTS ROLE X", "001003"),
        ("SHOW ROLES LIKE X", "001003"),
        ("GRANT ROLE X", "001003"),
        ("GRANT USAGE ON DATABASE D ROLE R", "001003"),
        ("ALTER ROLE PUBLIC", "001003"),
        ("CREATE WAREHOUSE X AUTO_SUSPEND==1", "001003"),
        ("SELECT FROM WHERE", "001003"),
        ("`x`", "001003"),
        ("CREATE TABLE T (A INT)", "000000"),
        ("CREATE DATABASE X CLONE D", "000000"),
        (
            "CREATE CATALOG INTEGRATION X CATALOG_SOURCE=GLUE TABLE_FORMAT=ICEBERG GLUE_AWS_ROLE_ARN='x' "
            "ENABLED=TRUE",
            "000000",
        ),
        (
            "CREATE CATALOG INTEGRATION X CATALOG_SOURCE=ICEBERG_REST TABLE_FORMAT=ICEBERG ENABLED=TRUE "
            "REST_CONFIG=(CATALOG_URI='https://x') REST_AUTHENTICATION=(TYPE=OAUTH OAUTH_CLIENT_SECRET='x')",
            "000000",
        ),
        (
            "CREATE EXTERNAL VOLUME X STORAGE_LOCATIONS=((NAME='l' STORAGE_PROVIDER='GCS' "
            "STORAGE_BASE_URL='gcs://x/'))",
            "000000",
        ),
        ("INSERT INTO T VALUES (1)", "000000"),
        ("UNDROP EXTERNAL VOLUME X", "000000"),
        ("GRANT SELECT ON ALL DYNAMIC TABLES IN SCHEMA D.S TO ROLE PUBLIC", "000000"),
        ("SELECT SYSTEM$NEW_THING('x')", "000000"),
        ("SHOW TABLES", "000000"),
        ("CREATE WAREHOUSE X WAREHOUSE_SIZE='HUGE'", "001008"),
        ("CREATE WAREHOUSE X AUTO_RESUME=MAYBE", "001008"),
        ("CREATE USER X TYPE=ROBOT", "001008"),
        ("CREATE EXTERNAL VOLUME X", "002029"),
        (f"CREATE EXTERNAL VOLUME X {VOLUME.replace('s3://lake', 's3://la.ke')}", "001008"),
        (f"CREATE EXTERNAL VOLUME X {VOLUME.replace('arn:aws', 'arn')}", "001008"),
        (f"CREATE EXTERNAL VOLUME X {VOLUME.replace('NAME=', 'LABEL=')}", "001420"),
        (f"CREATE CATALOG INTEGRATION X {CATALOG.replace('=60', '=29')}", "001008"),
        (f"CREATE CATALOG INTEGRATION X {CATALOG.replace('https://glue', 'http://glue')}", "001008"),
        (f"CREATE CATALOG INTEGRATION X {CATALOG.replace('SIGV4_IAM_ROLE', 'SIGV4_ROLE')}", "001420"),
        (f"CREATE CATALOG INTEGRATION X {CATALOG.replace('ENABLED=TRUE', '')}", "002029"),
        (f"CREATE CATALOG INTEGRATION X {CATALOG} GLUE_REGION='x'", "001003"),
        ("CREATE WAREHOUSE X AUTO_SUSPEND='²'", "001008"),
        ("CREATE SCHEMA NONE_SUCH.S", "002003"),
        ("CREATE SCHEMA S", "090105"),
        (f"CREATE ICEBERG TABLE NONE_SUCH.S.X {ICEBERG}", "002003"),
        (f"CREATE DATABASE X {LINKED}", "002029"),
        (f"CREATE DATABASE X {LINKED} EXTERNAL_VOLUME='NONE'", "002003"),
        (f"CREATE DATABASE X {LINKED.replace(chr(39) + 'C' + chr(39), 'D')} EXTERNAL_VOLUME='V'", "002003"),
        (f"CREATE DATABASE X {LINKED.replace('=NONE', '=ALL')} EXTERNAL_VOLUME='V'", "000000"),
        (
            f"CREATE DATABASE X {LINKED.replace('))', '), SYNC_INTERVAL_SECONDS=29)')} EXTERNAL_VOLUME='V'",
            "001008",
        ),
        (
            f"CREATE DATABASE X {LINKED.replace('))', '), NAMESPACE_MODE=FLATTEN_NESTED_NAMESPACE)')} "
            "EXTERNAL_VOLUME='V'",
            "000000",
        ),
        (
            f"CREATE DATABASE X {LINKED.replace('))', '), BLOCKED_NAMESPACES=())')} EXTERNAL_VOLUME='V'",
            "000000",
        ),
        (f"CREATE DATABASE X {LINKED.replace('(CATALOG=', '(NAME=')} EXTERNAL_VOLUME='V'", "001420"),
        ("ALTER DATABASE D UPDATE LINKED_CATALOG SET SYNC_INTERVAL_SECONDS=90", "001003"),
        ("SELECT SYSTEM$CATALOG_LINK_STATUS('D')", "091351"),
        ("SELECT SYSTEM$LIST_NAMESPACES_FROM_CATALOG()", "000938"),
        ("SELECT SYSTEM$LIST_NAMESPACES_FROM_CATALOG('C', '')", "000938"),
        ("SELECT SYSTEM$LIST_NAMESPACES_FROM_CATALOG('C', '', 1, 1)", "000939"),
        ("SELECT SYSTEM$LIST_NAMESPACES_FROM_CATALOG('C', '', 'all')", "001008"),
    ],
)
def test_a_wrong_statement_is_refused_by_number_and_changes_nothing(stocked, statement, code):
    """000000 is the simulator's own number, for what it doesn't simulate."""
    before = stocked.snowflake.objects()
    message = stocked.refused(statement, code)
    assert message.startswith("not simulated: ") is (code == "000000")
    assert stocked.snowflake.objects() == before


@pytest.mark.parametrize(
    ("arguments", "expected"), [("'C'", []), ("'C', '', 1", ["lkc-1"]), ("'C', 'lkc-1', 0", [])]
)
def test_namespaces_without_aws(stocked, arguments, expected):
    assert stocked.result(f"SELECT SYSTEM$LIST_NAMESPACES_FROM_CATALOG({arguments})") == expected


# --- what is odd about a type


def test_warehouses_suspend_themselves_and_resume(admin):
    admin.run("CREATE WAREHOUSE W WAREHOUSE_SIZE=XXLARGE AUTO_SUSPEND=60 INITIALLY_SUSPENDED=TRUE")
    shown = admin.rows("SHOW WAREHOUSES LIKE 'W'")[0]
    assert {name: shown[name] for name in ("state", "size", "auto_suspend", "auto_resume")} == {
        "state": "SUSPENDED",
        "size": "2X-Large",
        "auto_suspend": "60",
        "auto_resume": "true",
    }
    admin.run("ALTER WAREHOUSE W RESUME")
    admin.refused("ALTER WAREHOUSE W RESUME", "090063")
    admin.run("ALTER WAREHOUSE W RESUME IF SUSPENDED")
    assert admin.rows("SHOW WAREHOUSES")[0]["state"] == "STARTED"
    admin.snowflake.advance(61)
    assert admin.rows("SHOW WAREHOUSES")[0]["state"] == "SUSPENDED"
    admin.run("ALTER WAREHOUSE W SET AUTO_SUSPEND=0")
    admin.run("ALTER WAREHOUSE W RESUME")
    admin.snowflake.advance(1_000_000)
    assert admin.rows("SHOW WAREHOUSES")[0]["state"] == "STARTED", "0 is never"


def test_a_database_comes_with_a_schema_and_managed_access_is_shown(admin):
    admin.run("CREATE DATABASE D")
    admin.run("CREATE SCHEMA D.S WITH MANAGED ACCESS COMMENT='c'")
    shown = {row["name"]: row["options"] for row in admin.rows("SHOW SCHEMAS IN DATABASE D")}
    assert shown == {"PUBLIC": "", "S": "MANAGED ACCESS"}
    admin.run("ALTER SCHEMA D.PUBLIC ENABLE MANAGED ACCESS")
    admin.run("ALTER SCHEMA D.S DISABLE MANAGED ACCESS")
    shown = {row["name"]: row["options"] for row in admin.rows("SHOW SCHEMAS IN DATABASE D")}
    assert shown == {"PUBLIC": "MANAGED ACCESS", "S": ""}


def test_a_user_is_shown_by_property(admin):
    key = new_key()
    admin.run(
        'CREATE USER U TYPE=SERVICE DEFAULT_ROLE="R" DEFAULT_WAREHOUSE=\'W\' DEFAULT_NAMESPACE="D"."S" '
        f"RSA_PUBLIC_KEY='{sql_key(key)}'"
    )
    shown = admin.properties("DESC USER U")
    assert {
        name: shown[name]
        for name in ("TYPE", "DEFAULT_ROLE", "DEFAULT_WAREHOUSE", "DEFAULT_NAMESPACE", "COMMENT")
    } == {
        "TYPE": "SERVICE",
        "DEFAULT_ROLE": "R",
        "DEFAULT_WAREHOUSE": "W",
        "DEFAULT_NAMESPACE": "D.S",
        "COMMENT": "null",
    }
    assert shown["RSA_PUBLIC_KEY_FP"] == fingerprint(key)
    assert shown["RSA_PUBLIC_KEY_LAST_SET_TIME"] == "2026-11-02 09:00:00.000"
    assert shown["RSA_PUBLIC_KEY_2_LAST_SET_TIME"] == "null"
    admin.snowflake.advance(60)
    admin.run(f"ALTER USER U SET RSA_PUBLIC_KEY_2='{sql_key(new_key('two'))}' DEFAULT_ROLE=X")
    shown = admin.properties("DESC USER U")
    assert (shown["RSA_PUBLIC_KEY_2_LAST_SET_TIME"], shown["DEFAULT_ROLE"]) == (
        "2026-11-02 09:01:00.000",
        "X",
    )


def test_a_user_that_is_wrong_in_one_property_is_left_as_it_was(admin):
    admin.run("CREATE USER U")
    admin.refused("ALTER USER U SET DEFAULT_ROLE=R RSA_PUBLIC_KEY='x'", "003544")
    assert admin.properties("DESC USER U")["DEFAULT_ROLE"] == "null"


def test_a_volume_keeps_the_id_that_was_chosen_and_makes_up_another_each_time_else(admin):
    def ids():
        shown = admin.properties("DESC EXTERNAL VOLUME V", "property_value")
        location = json.loads(shown["STORAGE_LOCATION_1"])
        return location["STORAGE_AWS_EXTERNAL_ID"], location["STORAGE_AWS_IAM_USER_ARN"]

    admin.run(f"CREATE EXTERNAL VOLUME V {VOLUME}")
    chosen, user = ids()
    assert chosen == "mine"
    assert user.startswith("arn:aws:iam::000000000000:user/vendor/")
    made_up = set()
    for _ in range(3):
        admin.run(
            f"CREATE OR REPLACE EXTERNAL VOLUME V {VOLUME.replace(chr(39) + 'mine' + chr(39), chr(39) * 2)}"
        )
        made_up.add(ids()[0])
        assert ids()[1] == user
    assert len(made_up) == 3
    assert all("_SFCRole=" in url for url in made_up)


def test_a_volume_is_described_by_row(admin):
    admin.run(f"CREATE EXTERNAL VOLUME V {VOLUME}")
    rows = admin.rows("DESC EXTERNAL VOLUME V")
    assert [(row["parent_property"], row["property"]) for row in rows] == [
        ("", "ALLOW_WRITES"),
        ("STORAGE_LOCATIONS", "STORAGE_LOCATION_1"),
        ("STORAGE_LOCATIONS", "ACTIVE"),
        ("", "COMMENT"),
    ]
    assert json.loads(rows[1]["property_value"])["STORAGE_ALLOWED_LOCATIONS"] == ["s3://lake/p/*"]
    other = VOLUME.partition("((")[2].partition("))")[0].replace("'l'", "'m'")
    admin.run(f"ALTER EXTERNAL VOLUME V ADD STORAGE_LOCATION=({other})")
    admin.refused("ALTER EXTERNAL VOLUME V REMOVE STORAGE_LOCATION 'l'", "091346")
    admin.run("ALTER EXTERNAL VOLUME V REMOVE STORAGE_LOCATION 'm'")
    admin.run("ALTER EXTERNAL VOLUME V SET ALLOW_WRITES=TRUE")
    assert admin.rows("SHOW EXTERNAL VOLUMES")[0]["allow_writes"] == "true"


@pytest.mark.parametrize("prefix", ["GLUE", "API"])
def test_an_integration_is_described_by_row_and_never_tells_its_external_id_in_its_configuration(
    admin, prefix
):
    admin.snowflake.behave(prefix=prefix)
    admin.run(f"CREATE CATALOG INTEGRATION C {CATALOG}")
    shown = admin.properties("DESC CATALOG INTEGRATION C", "property_value")
    assert shown[f"{prefix}_AWS_EXTERNAL_ID"] == "mine"
    assert shown[f"{prefix}_AWS_IAM_USER_ARN"].startswith("arn:aws:iam::")
    assert json.loads(shown["REST_AUTHENTICATION"])["SIGV4_IAM_ROLE"] == ROLE_ARN
    assert "mine" not in shown["REST_AUTHENTICATION"]
    assert (shown["ENABLED"], shown["REFRESH_INTERVAL_SECONDS"]) == ("true", "60")
    admin.run("ALTER CATALOG INTEGRATION C SET REFRESH_INTERVAL_SECONDS=30 ENABLED=FALSE")
    admin.refused("ALTER CATALOG INTEGRATION C SET CATALOG_NAMESPACE='x'", "001420")
    shown = admin.properties("DESC CATALOG INTEGRATION C", "property_value")
    assert (shown["ENABLED"], shown["REFRESH_INTERVAL_SECONDS"]) == ("false", "30")


def test_a_table_needs_a_warehouse(stocked):
    stocked.warehouse = None
    stocked.refused(f"CREATE ICEBERG TABLE D.S.X {ICEBERG}", "000606")
    stocked.run("ALTER WAREHOUSE W SET AUTO_RESUME=FALSE")
    stocked.run("ALTER WAREHOUSE W SUSPEND")
    stocked.refused(f"CREATE ICEBERG TABLE D.S.X {ICEBERG}", "000606", warehouse="W")


def test_a_table_is_shown_with_its_volume_and_catalog(stocked):
    (row,) = stocked.rows("SHOW ICEBERG TABLES IN SCHEMA D.S")
    wanted = (
        "database_name",
        "schema_name",
        "name",
        "external_volume_name",
        "catalog_name",
        "catalog_table_name",
    )
    assert [row[column] for column in wanted] == ["D", "S", "T", "V", "C", "t"]
    assert (row["catalog_namespace"], row["auto_refresh_status"]) == ("lkc-1", None)
    assert stocked.rows("SHOW ICEBERG TABLES LIKE 'T' IN DATABASE D") == stocked.rows(
        "SHOW ICEBERG TABLES IN ACCOUNT"
    )


def test_a_replacement_that_fails_leaves_what_there_was(stocked):
    before = stocked.snowflake.objects()
    stocked.refused(
        "CREATE OR REPLACE ICEBERG TABLE D.S.T EXTERNAL_VOLUME='NONE' CATALOG='C' CATALOG_TABLE_NAME='t'",
        "002003",
    )
    stocked.run("ALTER CATALOG INTEGRATION C SET ENABLED=FALSE")
    stocked.refused(f"CREATE OR REPLACE ICEBERG TABLE D.S.T {ICEBERG}", "004155")
    assert stocked.snowflake.objects() == before


def test_a_linked_database_has_the_schemas_that_it_allows_and_holds_volume_and_integration(stocked):
    stocked.run("DROP ICEBERG TABLE D.S.T")
    stocked.run(f"CREATE DATABASE LDB {LINKED} EXTERNAL_VOLUME='V' COMMENT='c'")
    assert {row["name"]: row["kind"] for row in stocked.rows("SHOW DATABASES")} == {
        "D": "STANDARD",
        "LDB": "CATALOG-LINKED DATABASE",
    }
    stocked.run(
        "ALTER DATABASE LDB UPDATE LINKED_CATALOG ADD ('lkc-2', 'lkc-3', 'lkc-4') TO ALLOWED_NAMESPACES"
    )
    stocked.run("ALTER DATABASE LDB UPDATE LINKED_CATALOG REMOVE ('lkc-3') FROM ALLOWED_NAMESPACES")
    stocked.run("ALTER DATABASE LDB UPDATE LINKED_CATALOG SET SYNC_INTERVAL_SECONDS=90")
    config = stocked.result("SELECT SYSTEM$GET_CATALOG_LINKED_DATABASE_CONFIG('LDB')")
    assert (config["allowedNamespaces"], config["syncIntervalSeconds"]) == (["lkc-1", "lkc-2", "lkc-4"], 90)
    assert [row["name"] for row in stocked.rows("SHOW SCHEMAS IN DATABASE LDB")] == ["lkc-1", "lkc-2"], (
        "as at the first sync"
    )
    stocked.snowflake.advance(90)
    assert [row["name"] for row in stocked.rows("SHOW SCHEMAS IN DATABASE LDB")] == [
        "lkc-1",
        "lkc-2",
        "lkc-4",
    ]
    for words, name in (("EXTERNAL VOLUME", "V"), ("CATALOG INTEGRATION", "C")):
        assert "used by database LDB" in stocked.refused(f"DROP {words} {name}", "090106")


def test_what_a_dropped_role_owned_goes_to_who_dropped_it(admin):
    admin.run("CREATE ROLE X")
    admin.run("GRANT CREATE DATABASE ON ACCOUNT TO ROLE X")
    admin.run("GRANT ROLE X TO ROLE ACCOUNTADMIN")
    admin.run("CREATE DATABASE D", role="X")
    assert admin.rows("SHOW DATABASES")[0]["owner"] == "X"
    admin.run("DROP ROLE X")
    assert {row["owner"] for row in admin.rows("SHOW DATABASES")} == {"ACCOUNTADMIN"}
