"""A cluster with STOCK_TRADES flowing, a customer's bucket and role in the embedded AWS, and a Tableflow
key.
"""

import itertools

from tests.support.aws_clients import policy
from tests.support.confluent_kit import LONG

BUCKET_ACTIONS = ["s3:GetBucketLocation", "s3:ListBucketMultipartUploads", "s3:ListBucket"]
OBJECT_ACTIONS = [
    "s3:PutObject",
    "s3:PutObjectTagging",
    "s3:GetObject",
    "s3:AbortMultipartUpload",
    "s3:ListMultipartUploadParts",
]
GLUE_ACTIONS = [
    f"glue:{verb}{noun}"
    for verb, noun in (
        *itertools.product(("Create", "Update", "Get"), ("Table", "Database")),
        ("Delete", "Table"),
        *(("Get", part) for part in ("Tables", "Databases", "TableVersion", "TableVersions")),
    )
]
_numbers = itertools.count(1)


class Lake:
    """What the kickstarter makes before Tableflow, each step as its user would."""

    def __init__(self, org, aws):
        self.org = org
        self.aws = aws
        self.cloud = org.cloud
        self.environment = org.environment()
        self.cluster = org.cluster(self.environment)
        self.id = self.cluster["id"]
        self.admin = org.administrator(self.cluster)
        self.kafka = org.kafka(self.cluster, self.admin)
        self.flow = org.tableflow(self.admin)
        self.bucket = aws.new_bucket() if aws else "some-bucket"
        self.role = f"lake-{next(_numbers)}"
        self.integration = self._integration()
        self.where = {"environment": self.environment, "spec__kafka_cluster": self.id}
        self.same = {"environment": {"id": self.environment}, "kafka_cluster": {"id": self.id}}

    def _integration(self):
        config = {
            "kind": "AwsIntegrationConfig",
            "customer_iam_role_arn": f"arn:aws:iam::000000000000:role/{self.role}",
        }
        body = {
            "display_name": "lake",
            "provider": "AWS",
            "config": config,
            "environment": {"id": self.environment},
        }
        made = self.org.control.post("/pim/v1/integrations", body, 201)
        self.org.bind(
            self.admin,
            "ResourceOwner",
            f"{self.org.crn}/environment={self.environment}/provider-integration={made['id']}",
        )
        self.cloud.advance(LONG)
        return made

    def trust(self, without=(), external_id=None, principal=None):
        """The customer's role, as the vendor asks for it, less the actions in `without`."""
        config = self.integration["config"]
        whom = {"AWS": principal or config["iam_role_arn"]}
        condition = {"StringEquals": {"sts:ExternalId": external_id or config["external_id"]}}
        statements = [
            {"Effect": "Allow", "Principal": whom, "Action": "sts:AssumeRole", "Condition": condition}
        ]
        if "sts:TagSession" not in without:
            statements.append({"Effect": "Allow", "Principal": whom, "Action": "sts:TagSession"})
        self.aws.iam.create_role(RoleName=self.role, AssumeRolePolicyDocument=policy(*statements))
        self.permit(without)

    def flow_as(self, **trust):
        """A topic with records, and the customer's role with this trust."""
        self.topic()
        self.datagen()
        self.trust(**trust)

    def permit(self, without=()):
        arn = f"arn:aws:s3:::{self.bucket}"
        allowed = [
            {
                "Effect": "Allow",
                "Action": [action for action in actions if action not in without],
                "Resource": resource,
            }
            for actions, resource in (
                (BUCKET_ACTIONS, arn),
                (OBJECT_ACTIONS, f"{arn}/*"),
                (GLUE_ACTIONS, "*"),
            )
        ]
        self.aws.iam.put_role_policy(RoleName=self.role, PolicyName="lake", PolicyDocument=policy(*allowed))

    def topic(self, name="stock_trades", **more):
        self.kafka.post(f"/kafka/v3/clusters/{self.id}/topics", {"topic_name": name} | more, 201)
        self.cloud.advance(60)

    def datagen(self, topic="stock_trades", seconds=200):
        """Runs from now on; the topic has a schema then."""
        config = {
            "connector.class": "DatagenSource",
            "name": topic,
            "kafka.auth.mode": "SERVICE_ACCOUNT",
            "kafka.service.account.id": self.admin,
            "kafka.topic": topic,
            "output.data.format": "AVRO",
            "quickstart": "STOCK_TRADES",
            "tasks.max": "1",
        }
        path = f"/connect/v1/environments/{self.environment}/clusters/{self.id}/connectors"
        self.org.control.post(path, {"name": topic, "config": config}, 201)
        self.cloud.advance(seconds)

    def body(self, name="stock_trades", **changed):
        storage = {
            "kind": "ByobAws",
            "bucket_name": self.bucket,
            "provider_integration_id": self.integration["id"],
        }
        return {"spec": {"display_name": name, "storage": storage} | self.same | changed}

    def enable(self, name="stock_trades", **changed):
        """The Tableflow topic, once the vendor had its time."""
        self.flow.post("/tableflow/v1/tableflow-topics", self.body(name, **changed), 202)
        self.cloud.advance(120)
        return self.read(name)

    def read(self, name="stock_trades"):
        return self.flow.get(f"/tableflow/v1/tableflow-topics/{name}", **self.where)

    def catalog_body(self, **changed):
        config = {"kind": "AwsGlue", "provider_integration_id": self.integration["id"]}
        return {"spec": {"display_name": "glue", "config": config} | self.same | changed}

    def catalog(self):
        made = self.flow.post("/tableflow/v1/catalog-integrations", self.catalog_body(), 202)
        self.cloud.advance(60)
        return made["id"]

    def read_catalog(self, name):
        return self.flow.get(f"/tableflow/v1/catalog-integrations/{name}", **self.where)

    def produced(self, topic="stock_trades"):
        """How many messages lie in the topic."""
        return len(self.cloud._simulation.organization.clusters[self.id].topics[topic].messages)
