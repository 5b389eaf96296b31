"""A simulated Snowflake account with an embedded AWS that enforces IAM: a table by Tableflow, and roles that
trust Snowflake.
"""

from __future__ import annotations

from pyiceberg.catalog import load_catalog

from simulators.aws import settings
from simulators.aws.server import EmbeddedAws
from simulators.snowflake.lake import Lake
from simulators.tableflow.writer import Tableflow, TableLocation
from tests.support.aws_clients import Clients, policy
from tests.support.snowflake_environment import Account
from tests.support.tableflow_kit import numbered, topic_of

NAMESPACE = "lkc-lake1"
#: The outputs of volume and integration that are in a role's trust, by the names of the trust's properties.
_VALUES = (("principal", "iam_user_arn"), ("external_id", "external_id"))
VOLUME_ACTIONS = ("s3:GetObject", "s3:GetObjectVersion", "s3:ListBucket", "s3:GetBucketLocation")
CATALOG_ACTIONS = (
    "glue:GetCatalog",
    "glue:GetDatabase",
    "glue:GetDatabases",
    "glue:GetTable",
    "glue:GetTables",
)


class Lakeside(Account):
    """An account beside a bucket with the tables `things` and `others` of NAMESPACE."""

    settles = 130.0  # two refreshes of a table, each of which calls AWS

    def __init__(self, **options):
        self._server = EmbeddedAws(iam=True)
        self._server.__enter__()
        self.aws = Clients(self._server)
        vendor = Lake(
            self._server.url, self._server.region, settings.ACCESS_KEY_ID, settings.SECRET_ACCESS_KEY
        )
        super().__init__(lake=vendor, **options)
        self.bucket = self.aws.new_bucket()
        self._write()

    def close(self):
        super().close()
        self._server.__exit__(None, None, None)

    def _write(self):
        keys = {
            "client.access-key-id": "test",
            "client.secret-access-key": "test",
            "client.region": self._server.region,
        }
        endpoints = {"glue.endpoint": self._server.url, "s3.endpoint": self._server.url}
        catalog = load_catalog(
            "lake", type="glue", **{"glue.skip-name-validation": "true", **endpoints, **keys}
        )
        flow = Tableflow(catalog, TableLocation(self.bucket, cluster_id=NAMESPACE))
        for name in ("things", "others"):
            table = flow.create_table(topic_of(("n", "int"), name=name))
            flow.append(name, numbered(10))
        self.base = table.location().partition("/v1/")[0] + "/v1/"

    def arn(self, role):
        return f"arn:aws:iam::{self._server.account}:role/{role}"

    def trust_properties(self, *, location=None, without=(), **trusted):
        """Create volume, integration and roles, and return the properties of the trust.

        `location` changes the integration's catalog, `without` removes actions from the roles' policies, and
        `trusted` are wrong values for the roles' trust, by the names of the trust's properties.
        """
        result = {"volume": self._volume(), "integration": self._integration(location or {})}
        right = {
            f"{name}_{ours}": value[theirs] for name, value in result.items() for ours, theirs in _VALUES
        }
        written = {**right, **trusted}
        for name, (actions, resources) in self._needs().items():
            self._role(
                name,
                written[f"{name}_principal"],
                written[f"{name}_external_id"],
                set(actions) - set(without),
                resources,
            )
        return {**{name: value["name"] for name, value in result.items()}, **written}

    def _volume(self):
        return self.make(
            "snowflake_external_volume", "Volume", base_url=self.base, role_arn=self.arn("volume")
        )

    def _integration(self, changed):
        catalog = {
            "region": self._server.region,
            "account_id": self._server.account,
            "namespace": NAMESPACE,
        } | changed
        role = self.arn("integration")
        return self.make(
            "snowflake_catalog_integration", "Catalog", role_arn=role, refresh_seconds=60, **catalog
        )

    def _needs(self):
        bucket, _, prefix = self.base.removeprefix("s3://").partition("/")
        glue = f"arn:aws:glue:{self._server.region}:{self._server.account}"
        return {
            "volume": (VOLUME_ACTIONS, [f"arn:aws:s3:::{bucket}", f"arn:aws:s3:::{bucket}/{prefix}*"]),
            "integration": (
                CATALOG_ACTIONS,
                [f"{glue}:catalog", f"{glue}:database/{NAMESPACE}", f"{glue}:table/{NAMESPACE}/*"],
            ),
        }

    def _role(self, name, principal, external_id, actions, resources):
        condition = {"StringEquals": {"sts:ExternalId": external_id}}
        trust = policy(
            {
                "Effect": "Allow",
                "Principal": {"AWS": principal},
                "Action": "sts:AssumeRole",
                "Condition": condition,
            }
        )
        allowed = policy({"Effect": "Allow", "Action": sorted(actions), "Resource": resources})
        self.aws.iam.create_role(RoleName=name, AssumeRolePolicyDocument=trust)
        self.aws.iam.put_role_policy(RoleName=name, PolicyName="own", PolicyDocument=allowed)

    def remove_roles(self):
        for role in self.aws.iam.list_roles(PathPrefix="/")["Roles"]:
            if role["RoleName"] in ("volume", "integration"):
                self.aws.iam.delete_role_policy(RoleName=role["RoleName"], PolicyName="own")
                self.aws.iam.delete_role(RoleName=role["RoleName"])
