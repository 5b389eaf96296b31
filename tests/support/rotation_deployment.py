"""A Kafka key, a Snowflake user, their secrets and the function that rotates them, in an embedded AWS and
both simulators.
"""

from __future__ import annotations

import json
from functools import cached_property

from cryptography.hazmat.primitives.asymmetric import rsa

from lambdas import contract
from lambdas.confluent import secret_fields as confluent_fields
from lambdas.confluent.services import base
from lambdas.custom_resources.state import DynamoDocuments, KnownObject, ResourceState, StateStore
from lambdas.shared.clock import SystemClock
from lambdas.shared.redaction import ApiKey, Secret
from lambdas.shared.secrets import reveal_fields
from lambdas.snowflake import keypair
from lambdas.snowflake import secret_fields as snowflake_fields
from simulators.snowflake.engine import execute
from simulators.snowflake.model import Domain
from simulators.snowflake.session import Session
from tests.support.confluent_kit import Organization
from tests.support.rotation_kit import lambdas, least, let_in, new_function
from tests.support.waiting import until

PATIENCE = 60.0


class Deployment:
    """Secrets of a Kafka key and of a Snowflake user, and the function that rotates them."""

    def __init__(self, aws, cloud, snowflake, prefix="rotated"):
        self.aws = aws
        self.cloud = cloud
        self.snowflake = snowflake
        self.prefix = prefix
        self.org = Organization(cloud)
        self.admin = self.secret("admin", self._admin())
        self.kafka = self.secret("kafka", self._kafka())
        tags = {contract.ROTATION_ROLE_TAG: "ROTATES"}
        self.user = self.secret("snowflake", self._user(), tags) if snowflake else self.admin
        self.states = f"{prefix}-states"
        self._write_state()
        self.environment = {
            contract.STATE_TABLE: self.states,
            contract.CLOUD_KEY_SECRET: self.admin,
            contract.CONFLUENT_URL: cloud.url,
            contract.SNOWFLAKE_URL: snowflake.url if snowflake else "",
        }

    @cached_property
    def function(self):
        role = least(self.aws, self.admin, self.kafka, self.user, states=self.states)
        given = {
            "role": role,
            "environment": self.environment,
            "timeout": 120,
            "name": f"{self.prefix}-rotation",
        }
        return let_in(self.aws, new_function(self.aws, lambdas(), contract.ROTATE, **given))

    def secret(self, name, fields, tags=None):
        tags = [{"Key": key, "Value": value} for key, value in (tags or {}).items()]
        made = self.aws.secrets.create_secret(
            Name=f"{self.prefix}/{name}", SecretString=json.dumps(fields), Tags=tags
        )
        return made["ARN"]

    def _write_state(self):
        """Create a table of states with one for each vendor, which says where its objects are."""
        self.aws.dynamodb.create_table(
            TableName=self.states,
            AttributeDefinitions=[{"AttributeName": contract.STATE_KEY, "AttributeType": "S"}],
            KeySchema=[{"AttributeName": contract.STATE_KEY, "KeyType": "HASH"}],
            BillingMode="PAY_PER_REQUEST",
        )
        tenants = [self.org.id]
        if self.snowflake:
            account = self.snowflake._simulation.account
            tenants.append(f"{account.locator}.AWS_{account.region.upper().replace('-', '_')}")
        states = StateStore(DynamoDocuments(self.aws.dynamodb, self.states), SystemClock())
        for tenant in tenants:
            row = ResourceState(
                "1", "Create", "", 0.0, "it", facts=KnownObject(object_id="it", tenant=tenant)
            )
            states.change(tenant, lambda _, row=row: row)

    def _admin(self):
        given = self.cloud.credentials
        return {"apiKey": given["cloud_api_key"], "apiSecret": given["cloud_api_secret"]}

    def _kafka(self):
        environment = self.org.environment()
        cluster = self.org.cluster(environment)
        account = self.org.account(f"{self.prefix}-reader")
        key = self.org.key(account, {"id": cluster["id"], "kind": "Cluster"})
        self.cluster = cluster
        self.account = account
        to = base.Connection(
            account, cluster["id"], environment, display_name="reader-key", endpoint="127.0.0.1:9092"
        )
        return reveal_fields(confluent_fields.build_fields("kafka", ApiKey(key[0], Secret(key[1])), to))

    def _user(self):
        pair = keypair._pair(rsa.generate_private_key(public_exponent=65537, key_size=2048))
        account = self.snowflake._simulation.account
        admin = Session(account, account.find(Domain.USER, ("ADMIN",)), "ACCOUNTADMIN")
        for statement in (
            "CREATE ROLE ROTATES",
            f"CREATE USER READS TYPE=SERVICE RSA_PUBLIC_KEY='{pair.public}'",
            "GRANT MODIFY PROGRAMMATIC AUTHENTICATION METHODS ON USER READS TO ROLE ROTATES",
            "GRANT ROLE ROTATES TO USER READS",
        ):
            execute(admin, statement, {})
        to = snowflake_fields.Connection(account.identifier, "READS", "127.0.0.1")
        return reveal_fields(snowflake_fields.build_fields(pair, to))

    def arn(self, name):
        return {"kafka": self.kafka, "snowflake": self.user}[name]

    def fields(self, name, stage="AWSCURRENT"):
        return json.loads(
            self.aws.secrets.get_secret_value(SecretId=self.arn(name), VersionStage=stage)["SecretString"]
        )

    def stages(self, name):
        return self.aws.secrets.describe_secret(SecretId=self.arn(name))["VersionIdsToStages"]

    def live(self, name):
        """Return the ids of the vendor's live keys."""
        if name == "kafka":
            listed = self.org.control.get("/iam/v2/api-keys", **{"spec.owner": self.account})["data"]
            return {key["id"] for key in listed}
        user = self.snowflake._simulation.account.find(Domain.USER, ("READS",))
        return {slot.fingerprint for slot in user.keys.values()}

    def key(self, name, stage="AWSCURRENT"):
        fields = self.fields(name, stage)
        return fields["apiKey"] if name == "kafka" else fields["fingerprint"]

    def rotate(self, name, **asked):
        """Start a rotation, and wait until AWSCURRENT has moved."""
        version = self.aws.secrets.rotate_secret(SecretId=self.arn(name), **asked)["VersionId"]
        until(lambda: self.stages(name).get(version) == ["AWSCURRENT"], PATIENCE)
        assert self.stages(name)[version] == ["AWSCURRENT"]
        return version

    def ask(self, **event):
        answer = self.aws.functions.invoke(FunctionName=self.function, Payload=json.dumps(event))
        return json.loads(answer["Payload"].read())
