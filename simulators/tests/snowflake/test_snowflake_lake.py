"""Tables of the embedded AWS, IAM enforced, as Snowflake reads them: trust, verification, refresh, SELECT,
linked databases.
"""

import pytest

from simulators.snowflake.server import Snowflake
from simulators.tests.snowflake.snowflake_kit import Client, new_key, sql_key
from simulators.tests.snowflake.snowflake_lake import Lake
from tests.support.aws_clients import policy
from tests.support.tableflow_kit import topic_of


@pytest.fixture(scope="module")
def running(aws):
    with Snowflake(seed=8, start=1_793_610_000, aws=aws.server) as snowflake:
        yield snowflake


@pytest.fixture
def lake(running, aws):
    running.reset()
    return Lake(running, aws)


# --- the circle of trust


def test_the_roles_come_after_the_objects_that_they_trust(lake):
    lake.append(10)
    lake.volume()
    lake.catalog()
    assert lake.verify()["success"] is False, "there is no role yet"
    assert lake.verify("CATALOG", "C")["success"] is False
    lake.trust()
    shown = lake.verify()
    assert shown == shown | {
        "success": True,
        "storageLocationSelectionResult": "PASSED",
        "writeResult": "SKIPPED",
        "readResult": "PASSED",
        "listResult": "PASSED",
        "deleteResult": "SKIPPED",
        "awsRoleArnValidationResult": "PASSED",
        "region": lake.aws.server.region,
    }
    assert lake.verify("CATALOG", "C") == {"success": True, "errorCode": "", "errorMessage": ""}
    assert lake.namespace in lake.admin.result("SELECT SYSTEM$LIST_NAMESPACES_FROM_CATALOG('C', '', 1)")
    tables = lake.admin.result(f"SELECT SYSTEM$LIST_ICEBERG_TABLES_FROM_CATALOG('C', '{lake.namespace}')")
    assert tables == [{"namespace": lake.namespace, "name": "things"}]
    lake.admin.run(lake.create())
    assert lake.count() == 10


def test_namespaces_are_listed_below_the_integrations_own_unless_the_root_is_named(lake):
    """https://docs.snowflake.com/en/sql-reference/functions/system_list_namespaces_from_catalog"""
    lake.connect()

    def listed(arguments):
        return lake.admin.result(f"SELECT SYSTEM$LIST_NAMESPACES_FROM_CATALOG({arguments})")

    assert listed("'C'") == [], "Glue's databases contain none"
    for levels in (0, 1, 2):
        assert lake.namespace in listed(f"'C', '', {levels}")
        assert listed(f"'C', '{lake.namespace}', {levels}") == []
    lake.permit(without=("glue:GetDatabases",))
    for arguments in ("'C'", "'C', '', 1"):
        message = lake.admin.refused(f"SELECT SYSTEM$LIST_NAMESPACES_FROM_CATALOG({arguments})", "004155")
        assert "glue:GetDatabases" in message


def test_namespaces_of_an_integration_without_one_are_those_of_the_root(lake):
    lake.connect(catalog={"namespace": ""})
    assert lake.namespace in lake.admin.result("SELECT SYSTEM$LIST_NAMESPACES_FROM_CATALOG('C')")


def test_a_role_without_s3_get_bucket_location_is_found(lake):
    lake.volume()
    lake.trust(without=("s3:GetBucketLocation",))
    assert "FAILED" in lake.verify()["listResult"]


@pytest.mark.parametrize(
    ("given", "volume_fails", "catalog_fails"),
    [
        ({"volume_id": "other"}, True, False),
        ({"catalog_id": "other"}, False, True),
        ({"principal": "arn:aws:iam::000000000000:user/vendor/somebody-else"}, True, True),
    ],
)
def test_a_wrong_id_or_principal_is_reported_by_the_side_that_has_it(
    lake, given, volume_fails, catalog_fails
):
    lake.append(1)
    lake.connect(**given)
    volume = lake.verify()
    catalog = lake.verify("CATALOG", "C")
    assert (volume["success"], catalog["success"]) == (not volume_fails, not catalog_fails)
    if volume_fails:
        result = volume["awsRoleArnValidationResult"]
        assert result.startswith("FAILED with exception message Error assuming AWS_ROLE:")
        assert (
            f"is not authorized to perform: sts:AssumeRole on resource: {lake.arn(lake.volume_role)}"
            in result
        )
        assert volume["readResult"] == "SKIPPED"
    if catalog_fails:
        assert catalog["errorCode"] == "004155"
        assert f"sts:AssumeRole on resource: {lake.arn(lake.catalog_role)}" in catalog["errorMessage"]
    lake.admin.refused(lake.create(), "004155" if catalog_fails else "091301")


@pytest.mark.parametrize(
    ("action", "result", "code"),
    [
        ("s3:GetObject", "readResult", "091301"),
        ("s3:ListBucket", "listResult", None),
        ("glue:GetCatalog", "errorMessage", "004155"),
        ("glue:GetDatabases", "errorMessage", None),
        ("glue:GetTable", None, "004155"),
        ("glue:GetDatabase", None, "004155"),
    ],
)
def test_a_permission_that_is_missing_is_reported(lake, action, result, code):
    lake.append(1)
    lake.connect(without=(action,))
    shown = lake.verify() | lake.verify("CATALOG", "C")
    if result:
        assert "enied" in shown[result], shown[result]
    if code:
        refused = lake.admin.refused(lake.create(), code)
        assert (action.partition(":")[2] in refused) == (code != "091301"), refused
    else:
        lake.admin.run(lake.create())
    lake.permit()
    assert (lake.verify()["success"], lake.verify("CATALOG", "C")["success"]) == (True, True)


@pytest.mark.parametrize(
    ("changed", "expected_message"),
    [
        ({"region": "us-east-1"}, "Credential should be scoped"),
        ({"endpoint": "us-east-1", "region": "us-east-1"}, None),
        (
            {"account": "111122223333"},
            "glue:GetCatalog on resource: arn:aws:glue:eu-west-1:111122223333:catalog",
        ),
        ({"namespace": "lkc-other"}, None),
    ],
)
def test_a_wrong_region_account_or_namespace_has_its_own_message(lake, changed, expected_message):
    lake.append(1)
    lake.connect(catalog=changed)
    shown = lake.verify("CATALOG", "C")
    if expected_message:
        assert expected_message in shown["errorMessage"]
        assert expected_message in lake.admin.refused(lake.create(), "004155")
    elif "namespace" in changed:
        assert shown["success"], "it proves that the endpoint answers, and no more"
        listed = lake.admin.result("SELECT SYSTEM$LIST_NAMESPACES_FROM_CATALOG('C', '', 1)")
        assert (lake.namespace in listed, "lkc-other" in listed) == (True, False)
        assert "glue:GetDatabase" in lake.admin.refused(lake.create(), "004155"), "the role may not read it"
        anything = policy({"Effect": "Allow", "Action": "glue:Get*", "Resource": "*"})
        lake.aws.iam.put_role_policy(RoleName=lake.catalog_role, PolicyName="own", PolicyDocument=anything)
        assert "namespace 'lkc-other' is not found" in lake.admin.refused(lake.create(), "094120")
    else:
        assert not shown["success"], "the role's policy is for another region"


def test_a_namespace_of_the_tables_own(lake):
    lake.append(3)
    lake.connect(catalog={"namespace": "lkc-other"})
    lake.admin.run(
        lake.create().replace(" AUTO_REFRESH", f" CATALOG_NAMESPACE='{lake.namespace}' AUTO_REFRESH")
    )
    assert lake.count() == 3


def test_a_table_that_the_catalog_does_not_have_yet(lake):
    lake.connect()
    assert "not found" in lake.admin.refused(lake.create(table="later"), "094120")
    assert lake.snowflake.objects()["ICEBERG TABLE"] == []


def test_a_table_outside_the_volume_is_refused(lake):
    lake.append(1)
    lake.connect(volume={"base": f"s3://{lake.bucket}/elsewhere/"})
    assert "not under the base URL" in lake.admin.refused(lake.create(), "091347")


def test_snowflakes_user_may_do_nothing_but_assume_roles(lake, aws):
    lake.volume()
    name = lake.principal().rpartition("/")[2]
    (user,) = [
        listed_user
        for listed_user in aws.iam.list_users(PathPrefix="/vendor/")["Users"]
        if listed_user["UserName"] == name
    ]
    assert user["Arn"] == lake.principal()
    lake.snowflake.reset()
    assert name not in {listed_user["UserName"] for listed_user in aws.iam.list_users()["Users"]}


# --- what stays fresh


def test_a_table_with_auto_refresh_follows_and_one_without_is_frozen(lake):
    lake.append(10)
    lake.set_up()
    lake.admin.run(lake.create("FALSE", name="D.S.FROZEN"))
    lake.append(5, start=10)
    assert (lake.count(), lake.count("D.S.FROZEN")) == (10, 10)
    lake.snowflake.advance(59)
    assert lake.count() == 10
    lake.snowflake.advance(1)
    assert (lake.count(), lake.count("D.S.FROZEN")) == (15, 10)
    lake.append(5, start=15)
    lake.snowflake.advance(3600)
    assert (lake.count(), lake.count("D.S.FROZEN")) == (20, 10)
    assert lake.admin.result("SELECT SYSTEM$AUTO_REFRESH_STATUS('D.S.THINGS')")["executionState"] == "RUNNING"
    assert lake.admin.one("SELECT SYSTEM$AUTO_REFRESH_STATUS('D.S.FROZEN')") is None
    assert "AUTO_REFRESH" in lake.admin.refused("ALTER ICEBERG TABLE D.S.THINGS REFRESH", "091337")
    lake.admin.run("ALTER ICEBERG TABLE D.S.FROZEN REFRESH")
    assert lake.count("D.S.FROZEN") == 20


def test_auto_refresh_can_be_switched(lake):
    lake.append(10)
    lake.set_up()
    lake.admin.run("ALTER ICEBERG TABLE D.S.THINGS SET AUTO_REFRESH=FALSE")
    lake.append(5, start=10)
    lake.snowflake.advance(600)
    assert lake.count() == 10
    lake.admin.run("ALTER ICEBERG TABLE D.S.THINGS SET AUTO_REFRESH=TRUE")
    assert lake.count() == 15
    lake.append(5, start=15)
    lake.snowflake.advance(60)
    assert lake.count() == 20


def test_a_role_that_stops_trusting_stalls_the_table_until_it_trusts_again(lake):
    lake.append(10)
    lake.set_up()
    lake.append(5, start=10)
    lake.permit(without=("glue:GetTable",))
    lake.snowflake.advance(60)
    shown = lake.admin.result("SELECT SYSTEM$AUTO_REFRESH_STATUS('D.S.THINGS')")
    assert shown["executionState"] == "STALLED"
    assert "GetTable" in shown["invalidExecutionStateReason"]
    assert lake.count() == 10
    lake.permit()
    lake.snowflake.advance(60)
    assert lake.count() == 15
    lake.permit(without=("s3:GetObject",))
    lake.admin.refused("SELECT * FROM D.S.THINGS", "091301")


def test_a_table_with_equality_deletes_is_refused(lake):
    lake.upsert_table()
    lake.connect()
    assert "Equality deletes" in lake.admin.refused(lake.create(table="accounts"), "091968")


def test_a_table_that_gets_equality_deletes_stops_without_a_word(lake):
    lake.flow.create_table(topic_of(("owner", "string"), name="accounts"), "upsert")
    lake.connect()
    lake.admin.run(lake.create(table="accounts", name="D.S.ACCOUNTS"))
    lake.flow.drop("accounts")
    lake.upsert_table()
    lake.snowflake.advance(60)
    assert lake.count("D.S.ACCOUNTS") == 0
    shown = lake.admin.result("SELECT SYSTEM$AUTO_REFRESH_STATUS('D.S.ACCOUNTS')")
    assert (shown["executionState"], shown["invalidExecutionStateReason"][:6]) == ("STOPPED", "091968")


# --- what is read


def test_names_of_columns_are_in_upper_case_and_have_to_be_quoted_where_they_are_no_words(lake):
    lake.append(10)
    lake.set_up()
    (row,) = lake.admin.rows(
        'SELECT n, "$$TOPIC", t."$$OFFSET" AS o FROM d.s.things AS t ORDER BY n DESC LIMIT 1'
    )
    assert list(row) == ["N", "$$TOPIC", "O"]
    assert (row["N"], row["$$TOPIC"]) == ("9", "things")
    star = lake.admin.rows("SELECT * FROM D.S.THINGS")
    assert {"N", "$$TOPIC", "$$PARTITION", "$$LEADER-EPOCH", "$$TIMESTAMP"} <= set(star[0])
    assert "invalid identifier" in lake.admin.refused("SELECT NONE_SUCH FROM D.S.THINGS", "000904")
    lake.admin.refused('SELECT "n" FROM D.S.THINGS', "000904")
    assert lake.admin.one("SELECT $$topic$$ FROM D.S.THINGS LIMIT 1") == "topic", "two dollars begin a string"
    described = {each["name"]: each["type"] for each in lake.admin.rows("DESC ICEBERG TABLE D.S.THINGS")}
    assert (described["N"], described["$$TIMESTAMP"]) == ("NUMBER(10,0)", "TIMESTAMP_LTZ(6)")


def test_queries_are_queries(lake):
    lake.append(10)
    lake.set_up()
    sums = (
        "WITH x AS (SELECT n % 2 AS odd, n FROM D.S.THINGS) SELECT odd, SUM(n) AS s, COUNT(*) FROM x GROUP "
        "BY odd ORDER BY odd"
    )
    assert lake.admin.run(sums)["data"] == [["0", "20", "5"], ["1", "25", "5"]]
    both = "SELECT a.n FROM D.S.THINGS a JOIN D.S.THINGS b ON a.n = b.n WHERE b.n BETWEEN 2 AND 3 ORDER BY 1"
    assert lake.admin.run(both)["data"] == [["2"], ["3"]]
    names = [
        item["name"]
        for item in lake.admin.run("SELECT COUNT(*), MAX(n) + 1 FROM D.S.THINGS")["resultSetMetaData"][
            "rowType"
        ]
    ]
    assert names == ["COUNT(*)", "MAX(N) + 1"]
    lake.admin.refused("SELECT * FROM D.S.NONE_SUCH", "002003")
    lake.admin.refused("SELECT 1; DROP TABLE D.S.THINGS", "000008")


def test_only_who_may_select_reads(lake):
    lake.append(10)
    lake.set_up()
    for statement in (
        "CREATE ROLE READER",
        "CREATE USER U TYPE=SERVICE DEFAULT_ROLE=READER DEFAULT_WAREHOUSE=W DEFAULT_NAMESPACE=D.S "
        f"RSA_PUBLIC_KEY='{sql_key(new_key())}'",
        "GRANT ROLE READER TO USER U",
    ):
        lake.admin.run(statement)
    reader = Client(lake.snowflake, "U", new_key())
    grants = (
        "USAGE ON WAREHOUSE W",
        "USAGE ON DATABASE D",
        "USAGE ON SCHEMA D.S",
        "SELECT ON ICEBERG TABLE D.S.THINGS",
    )
    for grant in grants:
        assert reader.post("SELECT COUNT(*) FROM THINGS").json()["code"] in ("002003", "000606")
        lake.admin.run(f"GRANT {grant} TO ROLE READER")
    assert reader.one("SELECT COUNT(*) FROM THINGS") == "10"
    for grant in grants:
        lake.admin.run(f"REVOKE {grant} FROM ROLE READER")
        assert reader.post("SELECT COUNT(*) FROM D.S.THINGS").status_code == 422
        lake.admin.run(f"GRANT {grant} TO ROLE READER")
    reader.refused("DROP ICEBERG TABLE D.S.THINGS", "003001")


# --- a database linked to the catalog


def linked(lake, **changed):
    given = {"namespaces": f"'{lake.namespace}'", "more": ""} | changed
    return (
        f"CREATE DATABASE LDB LINKED_CATALOG=(CATALOG='C', ALLOWED_NAMESPACES=({given['namespaces']}), "
        f"ALLOWED_WRITE_OPERATIONS=NONE, SYNC_INTERVAL_SECONDS=60{given['more']}) EXTERNAL_VOLUME='V'"
    )


def test_a_linked_database_has_the_catalogs_tables(lake):
    lake.append(10)
    lake.connect()
    lake.admin.run(linked(lake))
    assert {each["schema_name"] for each in lake.admin.rows("SHOW ICEBERG TABLES IN DATABASE LDB")} == {
        lake.namespace
    }
    for name in (f'LDB."{lake.namespace}"."things"', f'LDB."{lake.namespace}".THINGS'):
        assert lake.count(name) == 10
    (row,) = lake.admin.rows(f'SELECT n, "$$topic" FROM LDB."{lake.namespace}"."things" LIMIT 1')
    assert set(row) == {"n", "$$topic"}
    status = lake.admin.result("SELECT SYSTEM$CATALOG_LINK_STATUS('LDB')")
    assert (status["executionState"], status["failureDetails"]) == ("RUNNING", [])
    lake.append(5, start=10)
    lake.flow.create_table(topic_of(("a", "string"), name="more"))
    lake.snowflake.advance(60)
    assert lake.count(f'LDB."{lake.namespace}"."things"') == 15
    assert {each["name"] for each in lake.admin.rows("SHOW ICEBERG TABLES IN DATABASE LDB")} == {
        "things",
        "more",
    }
    lake.flow.drop("more")
    lake.snowflake.advance(60)
    assert {each["name"] for each in lake.admin.rows("SHOW ICEBERG TABLES IN DATABASE LDB")} == {"things"}
    for statement in (f'DROP ICEBERG TABLE LDB."{lake.namespace}"."things"', "CREATE SCHEMA LDB.X"):
        lake.admin.refused(statement, "000002")
    lake.admin.run("DROP DATABASE LDB")
    assert lake.flow.read("things").num_rows == 15, "Snowflake deleted nothing"


def test_a_linked_database_whose_role_fails_says_so_in_its_status(lake):
    lake.append(1)
    lake.volume()
    lake.catalog()
    lake.admin.run(linked(lake))
    status = lake.admin.result("SELECT SYSTEM$CATALOG_LINK_STATUS('LDB')")
    assert "sts:AssumeRole" in status["failureDetails"][0]["errorMessage"]
    lake.trust(without=("s3:GetObject",))
    lake.snowflake.advance(60)
    assert lake.admin.result("SELECT SYSTEM$CATALOG_LINK_STATUS('LDB')")["failureDetails"] == []
    (row,) = lake.admin.rows("SHOW ICEBERG TABLES IN DATABASE LDB")
    assert "ICEBERG_TABLE_NOT_INITIALIZED" in row["auto_refresh_status"]
    lake.permit()
    lake.snowflake.advance(60)
    assert lake.count(f'LDB."{lake.namespace}"."things"') == 1


@pytest.mark.parametrize("more", ["", ", CATALOG_CASE_SENSITIVITY=CASE_SENSITIVE"])
def test_names_of_a_linked_database_are_found_in_any_case_unless_it_is_made_otherwise(lake, more):
    lake.append(1)
    lake.connect()
    lake.admin.run(linked(lake, more=more))
    answer = lake.admin.post(f'SELECT COUNT(*) FROM LDB."{lake.namespace}".THINGS')
    assert answer.status_code == (422 if more else 200)
