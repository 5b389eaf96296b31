"""A cluster's tables in the embedded AWS, the two roles that Snowflake reads them with, and Snowflake's
objects for them.
"""

import itertools
import json

from simulators.tableflow.kafka import Log
from simulators.tableflow.writer import Tableflow, TableLocation
from simulators.tests.snowflake.snowflake_kit import Client
from tests.support.aws_clients import policy
from tests.support.tableflow_kit import glue_catalog, numbered, sent, topic_of

VOLUME_ACTIONS = ("s3:GetObject", "s3:GetObjectVersion", "s3:ListBucket", "s3:GetBucketLocation")
CATALOG_ACTIONS = (
    "glue:GetCatalog",
    "glue:GetDatabase",
    "glue:GetDatabases",
    "glue:GetTable",
    "glue:GetTables",
)
THINGS = topic_of(("n", "int"))
_numbers = itertools.count(1)


class Lake:
    """`admin` is the account's, with a warehouse, and a schema D.S."""

    def __init__(self, snowflake, aws):
        self.snowflake = snowflake
        self.aws = aws
        number = next(_numbers)
        self.admin = Client(snowflake, warehouse="W")
        self.namespace = f"lkc-snow{number}"
        self.bucket = aws.new_bucket()
        self.flow = Tableflow(glue_catalog(aws), TableLocation(self.bucket, cluster_id=self.namespace))
        self.table = self.flow.create_table(THINGS)
        self.base = self.table.location().partition("/v1/")[0] + "/v1/"
        self.volume_role = f"snow-volume-{number}"
        self.catalog_role = f"snow-catalog-{number}"
        for statement in ("CREATE WAREHOUSE W", "CREATE DATABASE D", "CREATE SCHEMA D.S"):
            self.admin.run(statement)

    def append(self, count, start=0):
        self.flow.append("things", numbered(count, start))

    def upsert_table(self):
        """With an equality delete in it."""
        self.flow.create_table(topic_of(("owner", "string"), name="accounts"), "upsert")
        log = Log("accounts", 1)
        for _ in range(2):
            self.flow.append("accounts", log.append([sent("a", {"owner": "a"})]))

    def arn(self, role):
        return f"arn:aws:iam::{self.aws.server.account}:role/{role}"

    def volume(self, external_id="volume-id", base=None):
        role = self.arn(self.volume_role)
        where = (
            f"STORAGE_BASE_URL='{base or self.base}' STORAGE_AWS_ROLE_ARN='{role}' "
            f"STORAGE_AWS_EXTERNAL_ID='{external_id}'"
        )
        location = f"(NAME='l' STORAGE_PROVIDER='S3' {where})"
        self.admin.run(f"CREATE EXTERNAL VOLUME V STORAGE_LOCATIONS=({location}) ALLOW_WRITES=FALSE")

    def catalog(self, external_id="catalog-id", **changed):
        region = self.aws.server.region
        given = {
            "endpoint": region,
            "region": region,
            "account": self.aws.server.account,
            "namespace": self.namespace,
        } | changed
        uri = f"https://glue.{given['endpoint']}.amazonaws.com/iceberg"
        role = self.arn(self.catalog_role)
        config = f"CATALOG_URI='{uri}' CATALOG_API_TYPE=AWS_GLUE CATALOG_NAME='{given['account']}'"
        signing = (
            f"SIGV4_IAM_ROLE='{role}' SIGV4_SIGNING_REGION='{given['region']}' "
            f"SIGV4_EXTERNAL_ID='{external_id}'"
        )
        self.admin.run(
            "CREATE CATALOG INTEGRATION C CATALOG_SOURCE=ICEBERG_REST TABLE_FORMAT=ICEBERG ENABLED=TRUE "
            f"CATALOG_NAMESPACE='{given['namespace']}' REFRESH_INTERVAL_SECONDS=60 "
            f"REST_CONFIG=({config}) REST_AUTHENTICATION=(TYPE=SIGV4 {signing})"
        )

    def principal(self):
        location = self.admin.properties("DESC EXTERNAL VOLUME V", "property_value")["STORAGE_LOCATION_1"]
        return json.loads(location)["STORAGE_AWS_IAM_USER_ARN"]

    def trust(self, *, volume_id="volume-id", catalog_id="catalog-id", principal=None, without=()):
        """The customer's two roles, as the output of DESC requires, without the actions in `without`."""
        whom = principal or self.principal()
        for role, external_id in ((self.volume_role, volume_id), (self.catalog_role, catalog_id)):
            condition = {"StringEquals": {"sts:ExternalId": external_id}}
            statement = {
                "Effect": "Allow",
                "Principal": {"AWS": whom},
                "Action": "sts:AssumeRole",
                "Condition": condition,
            }
            self.aws.iam.create_role(RoleName=role, AssumeRolePolicyDocument=policy(statement))
        self.permit(without)

    def permit(self, without=()):
        bucket, _, prefix = self.base.removeprefix("s3://").partition("/")
        objects = f"arn:aws:s3:::{bucket}/{prefix}*"
        whole = f"arn:aws:s3:::{bucket}"
        arn = f"arn:aws:glue:{self.aws.server.region}:{self.aws.server.account}"
        glue = [f"{arn}:catalog", f"{arn}:database/{self.namespace}", f"{arn}:table/{self.namespace}/*"]
        for role, actions, resources in (
            (self.volume_role, VOLUME_ACTIONS, [objects, whole]),
            (self.catalog_role, CATALOG_ACTIONS, glue),
        ):
            allowed = {
                "Effect": "Allow",
                "Action": [action for action in actions if action not in without],
                "Resource": resources,
            }
            self.aws.iam.put_role_policy(RoleName=role, PolicyName="own", PolicyDocument=policy(allowed))

    def set_up(self):
        """Volume, integration, roles that trust them, and the table, which refreshes itself."""
        self.connect()
        self.admin.run(self.create())

    def connect(self, *, volume=None, catalog=None, **trust):
        """Volume, integration and roles that trust them."""
        self.volume(**(volume or {}))
        self.catalog(**(catalog or {}))
        self.trust(**trust)

    def create(self, auto_refresh="TRUE", table="things", name="D.S.THINGS"):
        where = f"EXTERNAL_VOLUME='V' CATALOG='C' CATALOG_TABLE_NAME='{table}'"
        return f"CREATE ICEBERG TABLE {name} {where} AUTO_REFRESH={auto_refresh}"

    def verify(self, what="VOLUME", name="V"):
        function = f"SYSTEM$VERIFY_{'EXTERNAL_VOLUME' if what == 'VOLUME' else 'CATALOG_INTEGRATION'}"
        return self.admin.result(f"SELECT {function}('{name}')")

    def count(self, name="D.S.THINGS"):
        return int(self.admin.one(f"SELECT COUNT(*) FROM {name}"))
