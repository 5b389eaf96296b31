"""Views: they run with their owner's rights, and a secure one shows its definition to its owner only.

https://docs.snowflake.com/en/user-guide/views-secure, https://docs.snowflake.com/en/sql-reference/sql/create-view
"""

import pytest

from simulators.snowflake.server import Snowflake
from simulators.tests.snowflake.snowflake_kit import Client, new_key, sql_key
from simulators.tests.snowflake.snowflake_lake import Lake

TEXT = 'CREATE SECURE VIEW D.SHOWN.THINGS COMMENT=\'for people\' AS SELECT "N" FROM "D"."S"."THINGS"'


@pytest.fixture(scope="module")
def running(aws):
    with Snowflake(seed=9, start=1_793_610_000, aws=aws.server) as snowflake:
        yield snowflake


@pytest.fixture
def lake(running, aws):
    running.reset()
    lake = Lake(running, aws)
    lake.append(3)
    lake.set_up()
    lake.admin.run("CREATE SCHEMA D.SHOWN WITH MANAGED ACCESS")
    return lake


@pytest.fixture
def person(lake):
    """A user in a role that may use the warehouse and both schemas' database, and no schema yet."""
    for statement in (
        "CREATE ROLE PEOPLE",
        f"CREATE USER ANNA RSA_PUBLIC_KEY='{sql_key(new_key())}' DEFAULT_SECONDARY_ROLES=()",
        "GRANT ROLE PEOPLE TO USER ANNA",
        "GRANT USAGE ON WAREHOUSE W TO ROLE PEOPLE",
        "GRANT USAGE ON DATABASE D TO ROLE PEOPLE",
        "GRANT USAGE ON SCHEMA D.SHOWN TO ROLE PEOPLE",
        "GRANT SELECT ON FUTURE VIEWS IN SCHEMA D.SHOWN TO ROLE PEOPLE",
        TEXT,
    ):
        lake.admin.run(statement)
    return Client(lake.snowflake, "ANNA", new_key(), "PEOPLE", "W")


def test_a_view_shows_its_columns_to_who_may_not_read_its_table(lake, person):
    rows = person.rows("SELECT * FROM D.SHOWN.THINGS ORDER BY N")
    assert rows == [{"N": str(number)} for number in range(3)]
    assert person.one('SELECT COUNT(*) FROM D.SHOWN.THINGS WHERE "N" > 1') == "1"
    person.refused("SELECT * FROM D.S.THINGS", "002003")
    lake.admin.run("GRANT USAGE ON SCHEMA D.S TO ROLE PEOPLE")
    person.refused("SELECT * FROM D.S.THINGS", "002003")
    lake.admin.run("GRANT REFERENCES ON ICEBERG TABLE D.S.THINGS TO ROLE PEOPLE")
    person.refused("SELECT * FROM D.S.THINGS", "003001")


@pytest.mark.parametrize(
    "query",
    [
        'SELECT "$$OFFSET" FROM D.SHOWN.THINGS',
        'SELECT T."$$OFFSET" FROM D.SHOWN.THINGS AS T',
        'SELECT N FROM D.SHOWN.THINGS WHERE "$$OFFSET" > 0',
        'WITH A AS (SELECT * FROM D.SHOWN.THINGS) SELECT "$$OFFSET" FROM A',
    ],
)
def test_no_query_reaches_what_a_view_leaves_out(person, query):
    person.refused(query, "000904")


def test_the_definition_of_a_secure_view_is_for_its_owner(lake, person):
    shown = lake.admin.rows("SHOW VIEWS IN SCHEMA D.SHOWN")[0]
    assert (shown["text"], shown["is_secure"], shown["comment"]) == (TEXT, "true", "for people")
    assert person.rows("SHOW VIEWS IN SCHEMA D.SHOWN")[0]["text"] == ""
    assert lake.admin.one("SELECT GET_DDL('VIEW', 'D.SHOWN.THINGS')") == TEXT
    person.refused("SELECT GET_DDL('VIEW', 'D.SHOWN.THINGS')", "003001")
    person.refused("SELECT GET_DDL('TABLE', 'D.S.THINGS')", "002003")
    definition = "SELECT VIEW_DEFINITION FROM D.INFORMATION_SCHEMA.VIEWS"
    assert (lake.admin.one(definition), person.one(definition)) == (TEXT, None)
    lake.admin.run("ALTER VIEW D.SHOWN.THINGS UNSET SECURE")
    assert person.one("SELECT GET_DDL('VIEW', 'D.SHOWN.THINGS')") == TEXT


def test_columns_are_described_to_who_may_select_them(lake, person):
    assert [row["name"] for row in person.rows("DESC VIEW D.SHOWN.THINGS")] == ["N"]
    person.refused("DESC ICEBERG TABLE D.S.THINGS", "002003")
    columns = (
        "SELECT TABLE_NAME, COLUMN_NAME FROM D.INFORMATION_SCHEMA.COLUMNS "
        "WHERE TABLE_SCHEMA IN ('S', 'SHOWN')"
    )
    assert person.rows(columns) == [{"TABLE_NAME": "THINGS", "COLUMN_NAME": "N"}]
    assert len(lake.admin.rows(columns)) > 2, "the table has more"


def test_a_view_or_copy_of_what_one_may_not_read_is_refused(lake, person):
    for statement in (
        "CREATE DATABASE OWN",
        "CREATE SCHEMA OWN.X",
        "GRANT OWNERSHIP ON SCHEMA OWN.X TO ROLE PEOPLE",
    ):
        lake.admin.run(statement)
    lake.admin.run("GRANT USAGE ON DATABASE OWN TO ROLE PEOPLE")
    for statement in (
        "CREATE VIEW OWN.X.V AS SELECT * FROM D.S.THINGS",
        "CREATE TABLE OWN.X.T CLONE D.S.THINGS",
        "CREATE TABLE OWN.X.T AS SELECT * FROM D.S.THINGS",
        "SELECT * FROM D.S.THINGS AT(OFFSET => -60)",
    ):
        person.refused(statement, "002003")
    person.run("CREATE VIEW OWN.X.V AS SELECT * FROM D.SHOWN.THINGS")
    assert list(person.rows("SELECT * FROM OWN.X.V")[0]) == ["N"]


def test_a_replaced_view_keeps_its_grants_only_with_copy_grants(lake, person):
    lake.admin.run("REVOKE SELECT ON FUTURE VIEWS IN SCHEMA D.SHOWN FROM ROLE PEOPLE")
    replaced = TEXT.replace("CREATE ", "CREATE OR REPLACE ")
    lake.admin.run(replaced.replace(" COMMENT", " COPY GRANTS COMMENT"))
    assert len(person.rows("SELECT * FROM D.SHOWN.THINGS")) == 3
    lake.admin.run(replaced)
    person.refused("SELECT * FROM D.SHOWN.THINGS", "002003")


def test_tables_and_views_share_their_names(lake, person):
    lake.admin.refused("CREATE VIEW D.S.THINGS AS SELECT 1 AS A", "002002")
    lake.admin.refused(TEXT, "002002")
    lake.admin.refused("CREATE SECURE VIEW D.SHOWN.B AS SELECT ABSENT FROM D.S.THINGS", "000904")
    lake.admin.run("DROP VIEW D.SHOWN.THINGS")
    person.refused("SELECT * FROM D.SHOWN.THINGS", "002003")
