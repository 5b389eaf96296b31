"""A user who deploys a stage to the stand-ins with commands, and produces records to its topics."""

from __future__ import annotations

import base64
import io
import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import fastavro
import requests

from config.deployments import deployment_file
from config.exports.check import NOT_JUDGED
from lakeferry.deployment.cdk import Cdk
from lakeferry.deployment.context import Addresses, DeploymentContext
from lakeferry.rehearsal.environments import SimulatedEnvironment
from tests.support.command import Clone, CommandResult
from tests.support.waiting import until

_RUN_SECONDS = 300.0
_ENDED = ("SUCCEEDED", "FAILED", "TIMEOUT", "STOPPED", "ERROR")


def bootstrap(ctx: DeploymentContext, root: Path) -> None:
    """Bootstrap CDK in the account and region of the deployment."""
    Cdk(ctx, root / "cdk.out", root / "cdk.log").bootstrap(print)


@attrs.frozen
class Newcomer:
    """A user who has a clone and nothing else of ours, beside what another team has."""

    clone: Clone
    stage: str
    variables: Mapping[str, str]

    def call(self, *words, code=0) -> dict[str, Any]:
        result = self.clone.run(*words, "--json", changes=self.variables, patience=1500)
        assert result.code == code, f"{words}\n{result.err[-4000:]}{result.out}"
        return result.document

    @property
    def file(self) -> Path:
        return self.clone.root / "project" / "deployments" / f"{self.stage}.toml"

    @property
    def ctx(self) -> DeploymentContext:
        loaded = deployment_file.load(self.file, self.clone.root / "project", judge=NOT_JUDGED)
        return DeploymentContext(loaded, Addresses.read(self.variables))

    def output(self, part, name) -> str:
        (stack,) = self.ctx.client("cloudformation").describe_stacks(
            StackName=f"{self.ctx.deployment.prefix}-{part}"
        )["Stacks"]
        return next(output["OutputValue"] for output in stack["Outputs"] if output["OutputKey"] == name)

    def wait_for_run(self, job) -> dict[str, Any]:
        """Return the newest run of a Glue job once it has ended."""
        glue = self.ctx.client("glue")

        def ended():
            run = max(glue.get_job_runs(JobName=job)["JobRuns"], key=lambda run: run["StartedOn"])
            return run if run["JobRunState"] in _ENDED else None

        return until(ended, _RUN_SECONDS)


@attrs.frozen
class Operator:
    """Calls `lakeferry` as a user of the stand-ins does."""

    clone: Clone
    environment: SimulatedEnvironment
    ctx: DeploymentContext

    def call(self, *words, code=0) -> CommandResult:
        result = self.clone.run(
            *words, "--stage", self.ctx.stage, "--json", changes=self.environment.variables, patience=1500
        )
        assert result.code == code, f"{words}\n{result.err[-4000:]}{result.out}"
        return result

    def produce(self, topic, values):
        """Produce records over Kafka's REST API with the keys in Secrets Manager."""
        cluster = f"{self.environment.confluent['url']}/cmk/v2/clusters/{self.output('KafkaClusterId')}"
        cloud = self.environment.confluent["cloud_api_key"], self.environment.confluent["cloud_api_secret"]
        query = {"environment": self.output("EnvironmentId")}
        endpoint = requests.get(cluster, params=query, auth=cloud, timeout=30).json()["spec"]["http_endpoint"]
        registry = self.secret("schema_registry")
        producer = self.secret("kafka/app_producer")
        latest = f"{registry['schema.registry.url']}/subjects/{topic}-value/versions/latest"
        schema = requests.get(latest, auth=(registry["apiKey"], registry["apiSecret"]), timeout=30).json()
        parsed = fastavro.parse_schema(json.loads(schema["schema"]))
        for value in values:
            encoded = io.BytesIO(struct.pack(">bI", 0, schema["id"]))
            encoded.seek(5)
            fastavro.schemaless_writer(encoded, parsed, value)
            body = {"value": {"type": "BINARY", "data": base64.b64encode(encoded.getvalue()).decode()}}
            records = f"{endpoint}/kafka/v3/clusters/{self.output('KafkaClusterId')}/topics/{topic}/records"
            answer = requests.post(
                records, json=body, auth=(producer["apiKey"], producer["apiSecret"]), timeout=30
            )
            assert answer.json()["error_code"] == 200, answer.text

    def secret(self, name):
        held = self.ctx.client("secretsmanager").get_secret_value(
            SecretId=f"{self.ctx.deployment.prefix}/confluent/{name}"
        )
        return json.loads(held["SecretString"])

    def output(self, name):
        stack = f"{self.ctx.deployment.prefix}-confluent"
        (described,) = self.ctx.client("cloudformation").describe_stacks(StackName=stack)["Stacks"]
        return next(output["OutputValue"] for output in described["Outputs"] if output["OutputKey"] == name)

    def stacks(self):
        """Return each stack's status by its name."""
        found = self.ctx.client("cloudformation").describe_stacks()["Stacks"]
        return {row["StackName"]: row["StackStatus"] for row in found if row["StackName"] in self.ctx.stacks}
