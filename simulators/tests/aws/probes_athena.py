"""Probes: how AWS differs from stock MiniStack in Athena."""

from simulators.tableflow.kafka import Log
from simulators.tableflow.writer import Tableflow, TableLocation
from simulators.tests.aws.athena_kit import Athena
from simulators.tests.aws.probe_kit import probe
from simulators.tests.aws.stack_kit import Stack
from tests.support.aws_clients import error_of
from tests.support.tableflow_kit import glue_catalog, sent, topic_of

MALFORMED = "InvalidRequestException"


@probe("athena_queries")
def selects_from_iceberg(aws):
    athena = Athena(aws)
    sql = f'SELECT count(*) AS "rows", sum(id) FROM "{athena.database}"."trades" WHERE Price > 1'
    return athena.rows(sql) == [["rows", "_col1"], ["2", "3"]]


@probe("athena_queries")
def writes_values_as_athena_does(aws):
    sql = (
        "SELECT Id, name, at, price, tags, at < current_timestamp, 1.5e10, 7/2, date '2026-01-02' FROM "
        "trades ORDER BY id"
    )
    first = [
        "1",
        'a, "b"',
        "2026-01-02 03:04:05.678901 UTC",
        "1.50",
        "[x]",
        "true",
        "1.5E10",
        "3",
        "2026-01-02",
    ]
    second = ["2", None, "2026-01-03 00:00:00.000000 UTC", "2.25", "[]", "true", "1.5E10", "3", "2026-01-02"]
    return (Athena(aws).rows(sql) or [])[1:] == [first, second]


@probe("athena_queries")
def names_types_as_athena_does(aws):
    athena = Athena(aws)
    result = athena.run("SELECT *, sum(id) OVER () FROM trades")
    if result["Status"]["State"] != "SUCCEEDED":
        return False
    answer = athena.client.get_query_results(QueryExecutionId=result["QueryExecutionId"])
    columns = answer["ResultSet"]["ResultSetMetadata"]["ColumnInfo"]
    names = [(column["Name"], column["Type"]) for column in columns]
    return names == [
        ("id", "bigint"),
        ("name", "varchar"),
        ("at", "timestamp with time zone"),
        ("price", "decimal"),
        ("tags", "array"),
        ("_col1", "bigint"),
    ]


@probe("athena_queries")
def lists_snapshots(aws):
    athena = Athena(aws)
    first = athena.table.current_snapshot()
    athena.table.append(athena.table.scan().to_arrow())
    result = (
        athena.rows('SELECT snapshot_id, parent_id, operation FROM "trades$snapshots" ORDER BY committed_at')
        or []
    )
    second = athena.table.current_snapshot()
    return result[1:] == [
        [str(first.snapshot_id), None, "append"],
        [str(second.snapshot_id), str(first.snapshot_id), "append"],
    ]


@probe("athena_queries")
def applies_equality_deletes(aws):
    """Of a table that Tableflow upserts."""
    athena = Athena(aws)
    flow = Tableflow(glue_catalog(aws), TableLocation(athena.bucket, cluster_id=athena.database))
    flow.create_table(topic_of(("owner", "string"), name="accounts"), "upsert")
    log = Log("accounts", 1)
    for owner in ("a", "b"):
        flow.append("accounts", log.append([sent("one", {"owner": owner})]))
    return athena.rows('SELECT owner, "$$offset" FROM accounts') == [["owner", "$$offset"], ["b", "1"]]


@probe("athena_queries")
def shows_and_describes(aws):
    athena = Athena(aws)
    shown = athena.rows("SHOW TABLES")
    described = athena.rows(f"DESCRIBE `{athena.database}`.trades") or [[""]]
    return shown == [["trades"]] and described[0][0].split() == ["id", "bigint"]


@probe("athena_queries")
def leaves_the_result_where_the_workgroup_says(aws):
    athena = Athena(aws)
    elsewhere = {"OutputLocation": f"s3://{aws.new_bucket()}/"}
    execution = athena.run("SELECT name, id FROM trades ORDER BY id", ResultConfiguration=elsewhere)
    key = f"athena/{execution['QueryExecutionId']}.csv"
    if execution["ResultConfiguration"]["OutputLocation"] != f"s3://{athena.bucket}/{key}":
        return False
    left = [
        entry["Key"]
        for entry in aws.s3.list_objects_v2(Bucket=athena.bucket, Prefix="athena/").get("Contents", [])
    ]
    if left != [key, f"{key}.metadata"]:
        return False
    result = aws.s3.get_object(Bucket=athena.bucket, Key=key)
    return (result["ServerSideEncryption"], result["Body"].read()) == (
        "AES256",
        b'"name","id"\n"a, ""b""","1"\n,"2"\n',
    )


@probe("athena_queries")
def pages_results_with_the_names_first(aws):
    athena = Athena(aws)
    result = athena.run("SELECT id FROM trades ORDER BY id")
    if result["Status"]["State"] != "SUCCEEDED":
        return False
    pages = athena.client.get_paginator("get_query_results").paginate(
        QueryExecutionId=result["QueryExecutionId"], PaginationConfig={"PageSize": 2}
    )
    return [len(page["ResultSet"]["Rows"]) for page in pages] == [2, 1]


@probe("athena_queries")
def says_what_is_not_there(aws):
    athena = Athena(aws)
    wanted = {
        "SELECT 1 FROM nothing": f"TABLE_NOT_FOUND: line 1:15: Table 'awsdatacatalog.{athena.database}.nothing' does not exist",
        "SELECT 1 FROM nowhere.trades": "SCHEMA_NOT_FOUND: line 1:15: Schema 'nowhere' does not exist",
        "SELECT nothing FROM trades": "COLUMN_NOT_FOUND: line 1:8: Column 'nothing' cannot be resolved",
    }
    return {sql: athena.reason(sql) for sql in wanted} == wanted


@probe("athena_queries")
def refuses_what_is_no_statement(aws):
    athena = Athena(aws)
    return [
        error_of(athena.start, sql) for sql in ("SELEC 1", "SELECT FROM WHERE", "SELECT 1; SELECT 2")
    ] == [MALFORMED] * 3


@probe("athena_queries")
def refuses_a_workgroup_that_is_not_there(aws):
    athena = Athena(aws)
    codes = [error_of(athena.start, "SELECT 1", WorkGroup="none")]
    athena.client.update_work_group(WorkGroup=athena.workgroup, State="DISABLED")
    return [*codes, error_of(athena.start, "SELECT 1")] == [MALFORMED] * 2


@probe("athena_queries")
def refuses_a_bucket_that_is_not_there(aws):
    athena = Athena(aws, ResultConfiguration={"OutputLocation": "s3://bucket-of-nobody/athena/"})
    return error_of(athena.start, "SELECT 1") == MALFORMED


@probe("athena_queries")
def starts_once_for_a_token(aws):
    athena = Athena(aws)
    token = {"ClientRequestToken": "t" * 32}
    numbers = {athena.start("SELECT 1", **token) for _ in range(2)}
    return len(numbers) == 1 and error_of(athena.start, "SELECT 2", **token) == MALFORMED


@probe("athena_queries")
def cancels_what_reads_too_much(aws):
    """Only the columns that are read count."""
    athena = Athena(aws, BytesScannedCutoffPerQuery=10**7)
    athena.append_large(10**7)
    whole, part = (athena.run(f"SELECT {columns} FROM trades")["Status"] for columns in ("*", "id"))
    stopped = (whole["State"], whole.get("StateChangeReason")) == (
        "CANCELLED",
        "Bytes scanned limit was exceeded",
    )
    return stopped and part["State"] == "SUCCEEDED"


@probe("athena_queries")
def reads_as_its_caller(aws):
    athena = Athena(aws)
    sql = "SELECT count(*) FROM trades"
    whole = athena.as_role()
    if athena.run(sql, whole)["Status"]["State"] != "SUCCEEDED":
        return False
    reasons = [
        athena.ended(athena.start(sql, athena.as_role(missing)))["Status"].get("StateChangeReason", "")
        for missing in _READ
    ]
    return all(message in reason for message, reason in zip(_READ.values(), reasons, strict=True))


_READ = {
    "glue:GetTable": "not authorized to perform: glue:GetTable",
    "s3:GetObject": "PERMISSION_DENIED: Permission denied on S3 path: s3://",
    "s3:PutObject": "Access denied when writing output to url: s3://",
}


@probe("athena_queries")
def wants_the_location_of_the_results_bucket(aws):
    athena = Athena(aws)
    return error_of(athena.start, "SELECT 1", athena.as_role("s3:GetBucketLocation")) == MALFORMED


@probe("athena_queries")
def gives_results_to_who_may_read_them(aws):
    athena = Athena(aws)
    number = athena.run("SELECT id FROM trades")["QueryExecutionId"]
    codes = [
        error_of(athena.as_role(*granted).get_query_results, QueryExecutionId=number)
        for granted in ((), ("s3:GetObject",))
    ]
    return codes == [None, "AccessDeniedException"]


@probe("athena_workgroups")
def wants_permission_on_the_workgroup_of_a_query(aws):
    athena = Athena(aws)
    other = Athena(aws)
    number = athena.start("SELECT 1")
    calls = [part.as_role().get_query_execution for part in (athena, other)]
    return [error_of(call, QueryExecutionId=number) for call in calls] == [None, "AccessDeniedException"]


def saved(athena, **given):
    request = {
        "Name": "q",
        "Database": athena.database,
        "QueryString": "SELECT 1",
        "WorkGroup": athena.workgroup,
    }
    return athena.client.create_named_query(**(request | given))["NamedQueryId"]


@probe("athena_workgroups")
def lists_saved_queries_of_a_workgroup(aws):
    athena = Athena(aws)
    number = saved(athena)
    listed = athena.client.list_named_queries(WorkGroup=athena.workgroup)["NamedQueryIds"]
    result = athena.client.get_named_query(NamedQueryId=number)["NamedQuery"]["QueryString"]
    return (listed, result) == ([number], "SELECT 1") and number not in athena.client.list_named_queries()[
        "NamedQueryIds"
    ]


@probe("athena_workgroups")
def pages_saved_queries(aws):
    athena = Athena(aws)
    numbers = {saved(athena, Name=f"q{number}") for number in range(51)}
    pages = list(athena.client.get_paginator("list_named_queries").paginate(WorkGroup=athena.workgroup))
    return len(pages) == 2 and {number for page in pages for number in page["NamedQueryIds"]} == numbers


@probe("athena_workgroups")
def saves_no_query_in_a_workgroup_that_is_not_there(aws):
    return error_of(saved, Athena(aws), WorkGroup="none") == MALFORMED


@probe("athena_workgroups")
def keeps_a_workgroup_that_holds_queries(aws):
    athena = Athena(aws)
    number = saved(athena)
    refused = error_of(athena.client.delete_work_group, WorkGroup=athena.workgroup)
    athena.client.delete_work_group(WorkGroup=athena.workgroup, RecursiveDeleteOption=True)
    return (refused, error_of(athena.client.get_named_query, NamedQueryId=number)) == (MALFORMED, MALFORMED)


@probe("athena_workgroups")
def keeps_a_workgroup_of_a_stack_that_holds_queries(aws):
    stack = Stack(aws, "AWS::Athena::WorkGroup", Name="workgroup-that-holds")
    number = saved(Athena(aws), WorkGroup=stack.resource)
    full = stack.delete()
    error_of(aws.client("athena").delete_named_query, NamedQueryId=number)
    return (full, stack.delete()) == ("DELETE_FAILED", "DELETE_COMPLETE")


@probe("athena_metadata")
def shows_only_tables_that_exist(aws):
    athena = Athena(aws)
    athena.table  # noqa: B018  (the property creates it)
    named = {"CatalogName": "AwsDataCatalog", "DatabaseName": athena.database}
    shown = athena.client.get_table_metadata(**named, TableName="trades")["TableMetadata"]
    missing = error_of(athena.client.get_table_metadata, **named, TableName="nosuch")
    return (shown["Name"], missing) == ("trades", "MetadataException")
