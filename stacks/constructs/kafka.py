"""Environments and Kafka clusters at Confluent: each is created, or exists and is named by its id."""

from __future__ import annotations

from aws_cdk import Stack
from constructs import Construct

from config.deployments import validation
from lambdas.confluent.existing_properties import ExistingClusterProps
from lambdas.confluent.properties import (
    EnvironmentProps,
    KafkaClusterOutputs,
    KafkaClusterProps,
)
from stacks.constructs.confluent_provider import ConfluentProvider
from stacks.constructs.runtime import BadProps, require_forms


class Environment(Construct):
    """An environment. `from_id` takes one that exists, which is never changed; `create` creates one."""

    def __init__(
        self, scope: Construct, id: str, *, provider: ConfluentProvider, created: EnvironmentProps | None
    ) -> None:
        super().__init__(scope, id)
        self.provider = provider
        self.environment_id = ""
        self.name = ""
        if created:
            outputs = provider.create(self, "Resource", created).outputs
            self.environment_id = outputs.id
            self.name = outputs.name

    @classmethod
    def from_id(
        cls, scope: Construct, id: str, *, provider: ConfluentProvider, environment_id: str, name: str = ""
    ) -> Environment:
        """Return an environment that exists. Only Flink's statements need its name."""
        require_forms(environment_id=(validation.ENVIRONMENT_ID, environment_id))
        environment = cls(scope, id, provider=provider, created=None)
        environment.environment_id = environment_id
        environment.name = name
        return environment

    @classmethod
    def create(
        cls, scope: Construct, id: str, *, provider: ConfluentProvider, stream_governance: str
    ) -> Environment:
        return cls(
            scope, id, provider=provider, created=EnvironmentProps(stream_governance=stream_governance)
        )


class KafkaCluster(Construct):
    """A Kafka cluster. `from_id` looks one up that exists, which is never changed; `create` creates one."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        environment: Environment,
        props: KafkaClusterProps | ExistingClusterProps,
    ) -> None:
        super().__init__(scope, id)
        self.environment = environment
        self.provider = environment.provider
        self.region = props.region
        #: Whether somebody else owns it.
        self.is_shared = isinstance(props, ExistingClusterProps)
        #: The constructs of its topics by name.
        self.topics: dict[str, Construct] = {}
        self.resource = self.provider.create(self, "Resource", props)

    @classmethod
    def from_id(cls, scope: Construct, id: str, *, environment: Environment, cluster_id: str) -> KafkaCluster:
        """Look up a cluster. The deployment fails unless it is in the environment and in the stack's region,
        and Tableflow can use it.
        """
        require_forms(cluster_id=(validation.CLUSTER_ID, cluster_id))
        provider = environment.provider
        if first := provider.clusters.get(cluster_id):
            raise BadProps(
                f"cluster_id: Kafka cluster {cluster_id} is {first.node.path} already. Use that one, which "
                "knows the topics that have a table"
            )
        props = ExistingClusterProps(
            environment_id=environment.environment_id,
            cluster_id=cluster_id,
            region=Stack.of(scope).region,
        )
        provider.clusters[cluster_id] = cluster = cls(scope, id, environment=environment, props=props)
        return cluster

    @classmethod
    def create(
        cls,
        scope: Construct,
        id: str,
        *,
        environment: Environment,
        type: str,
        availability: str,
        max_ecku: int | None,
        deletion_protection: bool,
    ) -> KafkaCluster:
        props = KafkaClusterProps(
            environment_id=environment.environment_id,
            region=Stack.of(scope).region,
            type=type,
            availability=availability,
            max_ecku=max_ecku,
            deletion_protection=deletion_protection,
        )
        return cls(scope, id, environment=environment, props=props)

    @property
    def environment_id(self) -> str:
        return self.environment.environment_id

    @property
    def id(self) -> str:
        return self.resource.outputs.id

    @property
    def outputs(self) -> KafkaClusterOutputs:
        return self.resource.outputs
