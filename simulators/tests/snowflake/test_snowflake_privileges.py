"""Who may do what: roles, grants and ownership, as a matrix and case by case.

Whatever isn't granted is refused by number.
"""

import pytest

from simulators.tests.snowflake.snowflake_kit import CATALOG, ICEBERG, VOLUME, Client, new_key, sql_key

ACCOUNT_GRANTS = ("DATABASE", "WAREHOUSE", "ROLE", "USER", "EXTERNAL VOLUME", "INTEGRATION")
ROTATE = "MODIFY PROGRAMMATIC AUTHENTICATION METHODS"


@pytest.fixture
def admin(admin):
    """With objects of DEPLOYER that READER may read, and a role that may only rotate the reader's keys."""
    admin.run("CREATE ROLE DEPLOYER")
    for grant in ACCOUNT_GRANTS:
        admin.run(f"GRANT CREATE {grant} ON ACCOUNT TO ROLE DEPLOYER")
    admin.run("GRANT ROLE DEPLOYER TO ROLE SYSADMIN")
    admin.run("GRANT ROLE DEPLOYER TO USER ADMIN")
    for statement in (
        "CREATE WAREHOUSE W",
        "CREATE DATABASE D",
        "CREATE SCHEMA D.S WITH MANAGED ACCESS",
        "CREATE ROLE READER",
        "CREATE ROLE ROTATOR",
        f"CREATE USER U TYPE=SERVICE RSA_PUBLIC_KEY='{sql_key(new_key())}'",
        f"CREATE EXTERNAL VOLUME V {VOLUME}",
        f"CREATE CATALOG INTEGRATION C {CATALOG}",
        "GRANT SELECT ON FUTURE ICEBERG TABLES IN SCHEMA D.S TO ROLE READER",
        f"CREATE ICEBERG TABLE D.S.T {ICEBERG}",
        "GRANT USAGE ON WAREHOUSE W TO ROLE READER",
        "GRANT USAGE ON DATABASE D TO ROLE READER",
        "GRANT USAGE ON SCHEMA D.S TO ROLE READER",
        f"GRANT {ROTATE} ON USER U TO ROLE ROTATOR",
        "GRANT ROLE READER TO USER U",
    ):
        admin.run(statement, role="DEPLOYER", warehouse="W")
    for role in ("READER", "ROTATOR"):
        admin.run(f"GRANT ROLE {role} TO USER ADMIN")
    return admin


#: Statement, and the code that each role gets ("" where it succeeds).
MATRIX = {
    "CREATE WAREHOUSE X": {
        "DEPLOYER": "",
        "SYSADMIN": "",
        "READER": "003001",
        "ROTATOR": "003001",
        "USERADMIN": "003001",
    },
    "CREATE DATABASE X": {
        "DEPLOYER": "",
        "SYSADMIN": "",
        "READER": "003001",
        "USERADMIN": "003001",
        "PUBLIC": "003001",
    },
    "CREATE ROLE X": {
        "DEPLOYER": "",
        "USERADMIN": "",
        "SECURITYADMIN": "",
        "READER": "003001",
        "SYSADMIN": "",
    },
    "CREATE USER X": {"DEPLOYER": "", "USERADMIN": "", "READER": "003001", "ROTATOR": "003001"},
    f"CREATE EXTERNAL VOLUME X {VOLUME}": {
        "DEPLOYER": "",
        "ACCOUNTADMIN": "",
        "USERADMIN": "003001",
        "READER": "003001",
    },
    f"CREATE CATALOG INTEGRATION X {CATALOG}": {
        "DEPLOYER": "",
        "ACCOUNTADMIN": "",
        "SECURITYADMIN": "003001",
        "READER": "003001",
    },
    "CREATE SCHEMA D.X": {"DEPLOYER": "", "READER": "003001", "ROTATOR": "002003", "USERADMIN": "002003"},
    f"CREATE ICEBERG TABLE D.S.X {ICEBERG}": {"DEPLOYER": "", "READER": "003001", "ROTATOR": "002003"},
    "ALTER WAREHOUSE W SUSPEND": {"DEPLOYER": "", "READER": "003001", "ROTATOR": "002003"},
    "ALTER SCHEMA D.S DISABLE MANAGED ACCESS": {"DEPLOYER": "", "READER": "003001"},
    "ALTER USER U SET DEFAULT_ROLE=X": {
        "DEPLOYER": "",
        "ROTATOR": "003001",
        "READER": "002003",
        "USERADMIN": "002003",
    },
    f"ALTER USER U SET RSA_PUBLIC_KEY_2='{sql_key(new_key())}'": {
        "DEPLOYER": "",
        "ROTATOR": "",
        "READER": "002003",
    },
    "ALTER USER U UNSET RSA_PUBLIC_KEY_2": {"DEPLOYER": "", "ROTATOR": "", "READER": "002003"},
    "DROP ROLE READER": {"DEPLOYER": "", "ROTATOR": "002003", "SECURITYADMIN": "003001"},
    "DROP USER U": {"DEPLOYER": "", "ROTATOR": "003001", "READER": "002003"},
    "DESC USER U": {"DEPLOYER": "", "SECURITYADMIN": "", "ROTATOR": "003001", "READER": "002003"},
    "DESC EXTERNAL VOLUME V": {"DEPLOYER": "", "READER": "002003", "ROTATOR": "002003"},
    "DESC CATALOG INTEGRATION C": {"DEPLOYER": "", "READER": "002003", "SECURITYADMIN": "003001"},
    "SELECT SYSTEM$VERIFY_EXTERNAL_VOLUME('V')": {"DEPLOYER": "", "READER": "002003"},
    "SELECT SYSTEM$VERIFY_CATALOG_INTEGRATION('C')": {"DEPLOYER": "", "READER": "002003"},
    "GRANT SELECT ON ICEBERG TABLE D.S.T TO ROLE ROTATOR": {
        "DEPLOYER": "",
        "SECURITYADMIN": "",
        "READER": "003001",
    },
    "GRANT SELECT ON ALL ICEBERG TABLES IN SCHEMA D.S TO ROLE ROTATOR": {
        "DEPLOYER": "",
        "READER": "003001",
        "ROTATOR": "002003",
    },
    "GRANT SELECT ON FUTURE ICEBERG TABLES IN SCHEMA D.S TO ROLE ROTATOR": {
        "DEPLOYER": "",
        "READER": "003001",
    },
    "GRANT SELECT ON FUTURE ICEBERG TABLES IN DATABASE D TO ROLE ROTATOR": {
        "DEPLOYER": "003001",
        "SECURITYADMIN": "",
    },
    "GRANT SELECT ON FUTURE ICEBERG TABLES IN SCHEMA D.PUBLIC TO ROLE ROTATOR": {
        "DEPLOYER": "003001",
        "SECURITYADMIN": "",
    },
    "GRANT USAGE ON WAREHOUSE W TO ROLE ROTATOR": {"DEPLOYER": "", "SECURITYADMIN": "", "READER": "003001"},
    "GRANT ROLE READER TO ROLE SYSADMIN": {
        "DEPLOYER": "",
        "SECURITYADMIN": "",
        "READER": "003001",
        "ROTATOR": "002003",
    },
    "GRANT ROLE ACCOUNTADMIN TO USER U": {"DEPLOYER": "002003", "ACCOUNTADMIN": "", "READER": "002003"},
    "GRANT CREATE USER ON ACCOUNT TO ROLE READER": {
        "DEPLOYER": "003001",
        "SECURITYADMIN": "",
        "READER": "003001",
    },
    "REVOKE USAGE ON DATABASE D FROM ROLE READER": {"DEPLOYER": "", "READER": "003001"},
    "SHOW GRANTS TO ROLE READER": {"DEPLOYER": "", "READER": "", "ROTATOR": "002003"},
}


@pytest.mark.parametrize(
    ("statement", "role", "code"),
    [(statement, role, code) for statement, answers in MATRIX.items() for role, code in answers.items()],
    ids=lambda value: str(value)[:50],
)
def test_the_matrix(admin, statement, role, code):
    before = admin.snowflake.objects()
    answer = admin.post(statement, role=role, warehouse="W").json()
    assert answer["code"] == (code or "090001"), answer["message"]
    if code:
        assert admin.snowflake.objects() == before


def test_a_reader_sees_only_what_it_may_use(admin):
    reader = Client(admin.snowflake, "U", new_key(), "READER")
    assert [row["name"] for row in reader.rows("SHOW DATABASES")] == ["D"]
    assert [row["name"] for row in reader.rows("SHOW SCHEMAS IN DATABASE D")] == ["S"]
    assert [row["name"] for row in reader.rows("SHOW ICEBERG TABLES IN ACCOUNT")] == ["T"]
    for plural in ("EXTERNAL VOLUMES", "CATALOG INTEGRATIONS"):
        assert reader.rows(f"SHOW {plural}") == []
    assert [row["name"] for row in reader.rows("SHOW USERS")] == ["U"]
    assert reader.properties("DESC USER U")["NAME"] == "U", "everybody may see himself"
    assert {row["name"] for row in reader.rows("SHOW ROLES")} == {"READER", "PUBLIC"}


def test_future_grants_reach_what_is_made_later_and_nothing_else(admin):
    admin.run(f"CREATE ICEBERG TABLE D.S.LATER {ICEBERG}", role="DEPLOYER", warehouse="W")
    admin.run(f"CREATE ICEBERG TABLE D.PUBLIC.OTHER {ICEBERG}", role="DEPLOYER", warehouse="W")
    shown = {(row["privilege"], row["name"]) for row in admin.rows("SHOW GRANTS TO ROLE READER")}
    assert ("SELECT", "D.S.LATER") in shown
    assert ("SELECT", "D.PUBLIC.OTHER") not in shown
    (future,) = admin.rows("SHOW FUTURE GRANTS TO ROLE READER")
    assert (future["privilege"], future["grant_on"], future["name"]) == (
        "SELECT",
        "ICEBERG_TABLE",
        "D.S.<ICEBERG_TABLE>",
    )
    admin.run("GRANT SELECT ON FUTURE ICEBERG TABLES IN DATABASE D TO ROLE ROTATOR")
    admin.run(f"CREATE ICEBERG TABLE D.S.LAST {ICEBERG}", role="DEPLOYER", warehouse="W")
    assert "LAST" not in str(admin.rows("SHOW GRANTS TO ROLE ROTATOR")), (
        "the schema's own go before the database's"
    )
    admin.run("REVOKE SELECT ON FUTURE ICEBERG TABLES IN SCHEMA D.S FROM ROLE READER")
    assert admin.rows("SHOW FUTURE GRANTS IN SCHEMA D.S") == []


def test_grants_are_shown_in_the_vendors_words(admin):
    admin.run("GRANT USAGE ON EXTERNAL VOLUME V TO ROLE READER", role="DEPLOYER")
    admin.run("GRANT USAGE ON INTEGRATION C TO ROLE READER WITH GRANT OPTION", role="DEPLOYER")
    shown = {row["granted_on"]: row for row in admin.rows("SHOW GRANTS TO ROLE READER")}
    assert set(shown) == {"WAREHOUSE", "DATABASE", "SCHEMA", "ICEBERG_TABLE", "VOLUME", "INTEGRATION"}
    assert shown["INTEGRATION"]["grant_option"] == "true"
    assert (shown["SCHEMA"]["name"], shown["SCHEMA"]["granted_by"]) == ("D.S", "DEPLOYER")
    on = admin.rows("SHOW GRANTS ON EXTERNAL VOLUME V")
    assert {(grant["privilege"], grant["grantee_name"]) for grant in on} == {
        ("OWNERSHIP", "DEPLOYER"),
        ("USAGE", "READER"),
    }
    of = admin.rows("SHOW GRANTS OF ROLE READER")
    assert sorted((grant["granted_to"], grant["grantee_name"]) for grant in of) == [
        ("USER", "ADMIN"),
        ("USER", "U"),
    ]
    assert [row["role"] for row in admin.rows("SHOW GRANTS TO USER U")] == ["READER"]
    owned = {
        row["name"] for row in admin.rows("SHOW GRANTS TO ROLE DEPLOYER") if row["privilege"] == "OWNERSHIP"
    }
    assert {"W", "D", "D.S", "V", "C", "D.S.T", "U"} <= owned


def test_a_grant_is_there_once_and_a_revoke_of_none_is_no_error(admin):
    before = admin.snowflake.objects()["GRANT"]
    admin.run("GRANT USAGE ON DATABASE D TO ROLE READER")
    assert admin.snowflake.objects()["GRANT"] == before
    admin.run("REVOKE MONITOR ON DATABASE D FROM ROLE READER")
    admin.run("REVOKE ROLE READER FROM ROLE SYSADMIN")
    admin.run("GRANT ALL PRIVILEGES ON WAREHOUSE W TO ROLE READER")
    assert sum("ON WAREHOUSE W TO READER" in item for item in admin.snowflake.objects()["GRANT"]) == 5
    admin.refused("GRANT SELECT ON WAREHOUSE W TO ROLE READER", "001003")


def test_roles_make_no_circle(admin):
    admin.run("GRANT ROLE READER TO ROLE DEPLOYER", role="DEPLOYER")
    admin.refused("GRANT ROLE DEPLOYER TO ROLE READER", "003013")
    admin.refused("GRANT ROLE READER TO ROLE READER", "003013")


def test_ownership_moves_only_with_a_word_on_the_grants_that_there_are(admin):
    admin.refused("GRANT OWNERSHIP ON DATABASE D TO ROLE ROTATOR", "003036", role="DEPLOYER")
    admin.run("GRANT OWNERSHIP ON DATABASE D TO ROLE ROTATOR COPY CURRENT GRANTS", role="DEPLOYER")
    assert {row["owner"] for row in admin.rows("SHOW DATABASES LIKE 'D'")} == {"ROTATOR"}
    assert "USAGE ON DATABASE D TO READER" in admin.snowflake.objects()["GRANT"]
    admin.run("GRANT OWNERSHIP ON DATABASE D TO ROLE DEPLOYER REVOKE CURRENT GRANTS", role="ROTATOR")
    assert "USAGE ON DATABASE D TO READER" not in admin.snowflake.objects()["GRANT"]


def test_in_a_schema_with_managed_access_its_owner_grants_and_not_the_owner_of_a_table(admin):
    admin.run("GRANT OWNERSHIP ON ICEBERG TABLE D.S.T TO ROLE READER REVOKE CURRENT GRANTS", role="DEPLOYER")
    grant = "GRANT SELECT ON ICEBERG TABLE D.S.T TO ROLE ROTATOR"
    admin.refused(grant, "003001", role="READER")
    admin.run("ALTER SCHEMA D.S DISABLE MANAGED ACCESS", role="DEPLOYER")
    admin.run(grant, role="READER")


def test_secondary_roles_add_what_the_named_role_lacks_but_make_nothing(admin):
    """A user has them unless it was created without; then it only has the role in the call."""
    admin.run("GRANT ROLE ROTATOR TO USER U")
    user = Client(admin.snowflake, "U", new_key(), "READER")
    rotate = f"ALTER USER U SET RSA_PUBLIC_KEY_2='{sql_key(new_key('two'))}'"
    user.run(rotate)
    admin.run("GRANT ROLE DEPLOYER TO USER U")
    user.refused("CREATE DATABASE X", "003001")
    admin.run("ALTER USER U SET DEFAULT_SECONDARY_ROLES=()")
    user.refused(rotate, "003001")
    user.run(rotate, role="ROTATOR")


def test_what_a_role_inherits_it_may(admin):
    admin.run("CREATE ROLE BOSS")
    admin.run("GRANT ROLE BOSS TO USER ADMIN")
    admin.refused("SHOW SCHEMAS IN DATABASE D", "002003", role="BOSS")
    admin.run("GRANT ROLE READER TO ROLE BOSS")
    assert admin.rows("SHOW SCHEMAS IN DATABASE D", role="BOSS")
    admin.run("REVOKE ROLE READER FROM ROLE BOSS")
    admin.refused("SHOW SCHEMAS IN DATABASE D", "002003", role="BOSS")


def test_nobody_drops_himself_or_the_role_he_acts_in(admin):
    admin.refused("DROP USER ADMIN", "003001")
    admin.run("GRANT OWNERSHIP ON ROLE READER TO ROLE READER", role="DEPLOYER")
    admin.refused("DROP ROLE READER", "003001", role="READER")
