"""An Iceberg table in the embedded AWS, a workgroup to ask it in, and queries that are waited for."""

import functools
import itertools
import os
from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa

from tests.support.tableflow_kit import glue_catalog
from tests.support.waiting import until

ROWS = [
    {
        "Id": 1,
        "Name": 'a, "b"',
        "at": datetime(2026, 1, 2, 3, 4, 5, 678901, UTC),
        "price": Decimal("1.50"),
        "tags": ["x"],
    },
    {"Id": 2, "Name": None, "at": datetime(2026, 1, 3, tzinfo=UTC), "price": Decimal("2.25"), "tags": []},
]
SCHEMA = pa.schema(
    [
        ("Id", pa.int64()),
        ("Name", pa.string()),
        ("at", pa.timestamp("us", "UTC")),
        ("price", pa.decimal128(10, 2)),
        ("tags", pa.list_(pa.string())),
    ]
)
_numbers = itertools.count(1)


class Athena:
    """A workgroup, a bucket for its results, and table `trades` in a database with a hyphen in its name; by
    `aws`.
    """

    def __init__(self, aws, **configuration):
        self.aws = aws
        self.bucket = aws.new_bucket()
        self.database = aws.new_database()
        self.workgroup = f"group-{next(_numbers)}"
        place = {
            "OutputLocation": f"s3://{self.bucket}/athena/",
            "EncryptionConfiguration": {"EncryptionOption": "SSE_S3"},
        }
        enforced = {"EnforceWorkGroupConfiguration": True, "ResultConfiguration": place}
        self.client = aws.client("athena")
        self.client.create_work_group(Name=self.workgroup, Configuration=enforced | configuration)

    @functools.cached_property
    def table(self):
        created = glue_catalog(self.aws).create_table(
            (self.database, "trades"), SCHEMA, location=f"s3://{self.bucket}/lake/trades"
        )
        created.append(pa.Table.from_pylist(ROWS, SCHEMA))
        return created

    def append_large(self, size):
        """A row that takes so many bytes, however it is compressed."""
        self.table.append(pa.Table.from_pylist([{"Id": 3, "Name": os.urandom(size).hex()}], SCHEMA))

    def start(self, sql, client=None, **given):
        self.table  # noqa: B018  (the property creates it)
        request = {
            "QueryString": sql,
            "WorkGroup": self.workgroup,
            "QueryExecutionContext": {"Database": self.database},
        }
        return (client or self.client).start_query_execution(**(request | given))["QueryExecutionId"]

    def ended(self, number, client=None):
        """The execution."""

        def over():
            result = (client or self.client).get_query_execution(QueryExecutionId=number)["QueryExecution"]
            return result if result["Status"]["State"] not in ("QUEUED", "RUNNING") else None

        return until(over, patience=300.0)

    def run(self, sql, client=None, **given):
        return self.ended(self.start(sql, client, **given))

    def rows(self, sql, **given):
        """With the names of the columns in front; None where it failed."""
        result = self.run(sql, **given)
        return self.results(result) if result["Status"]["State"] == "SUCCEEDED" else None

    def results(self, result, **given):
        answer = self.client.get_query_results(QueryExecutionId=result["QueryExecutionId"], **given)[
            "ResultSet"
        ]["Rows"]
        return [[datum.get("VarCharValue") for datum in row["Data"]] for row in answer]

    def reason(self, sql):
        """Of a query that failed."""
        return self.run(sql)["Status"].get("StateChangeReason", "")

    def as_role(self, *left_out):
        """A client of a role that may all that is needed but for `left_out`."""
        aws = self.aws
        group = aws.arn("athena", f"workgroup/{self.workgroup}")
        chain = ("catalog", f"database/{self.database}", f"table/{self.database}/trades")
        allowed = [
            ("athena:StartQueryExecution", group),
            ("athena:GetQueryExecution", group),
            ("athena:GetQueryResults", group),
            ("glue:GetTable", [aws.arn("glue", name) for name in chain]),
            ("s3:GetObject", f"arn:aws:s3:::{self.bucket}/*"),
            ("s3:PutObject", f"arn:aws:s3:::{self.bucket}/athena/*"),
            ("s3:GetBucketLocation", f"arn:aws:s3:::{self.bucket}"),
        ]
        return aws.assuming(aws.new_role(*[grant for grant in allowed if grant[0] not in left_out])).client(
            "athena"
        )
