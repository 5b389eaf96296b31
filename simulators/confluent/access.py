"""Finds the objects that a call names, and refuses callers without a role there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simulators.confluent.authorization import allowed
from simulators.confluent.calls import Call
from simulators.confluent.fields import Fields
from simulators.confluent.refusals import Refusal, forbidden, not_found

if TYPE_CHECKING:
    from simulators.confluent.kinds.clusters import Cluster
    from simulators.confluent.kinds.environments import Environment


def require(call: Call, action: str, resource: str) -> None:
    if not allowed(call.world, call.principal, action, resource):
        raise forbidden()


def environment(call: Call, name: str) -> Environment:
    found = call.world.environments.get(name)
    if found is None:
        raise not_found("Environment", name)
    require(call, "admin", found.crn)
    return found


def environment_of_query(call: Call) -> Environment:
    """Where the vendor can't find an environment that a query names, it says forbidden."""
    name = call.required("environment")
    if name not in call.world.environments:
        raise forbidden(f"Environment {name} not found or access is denied")
    return environment(call, name)


def environment_of_body(call: Call, spec: Fields) -> Environment:
    name = spec.reference("environment")
    if name not in call.world.environments:
        raise Refusal(400, f"environment {name} does not exist", code="bad_request", pointer=spec.at("environment"))
    return environment(call, name)


def cluster(call: Call, name: str, environment_id: str, action: str = "admin") -> Cluster:
    """For Tableflow and Connect: a role on the cluster is enough."""
    found = call.world.clusters.get(name)
    if found is None or found.environment != environment_id:
        raise not_found("Kafka cluster", name)
    require(call, action, found.scope)
    return found


def cluster_of_query(call: Call, action: str = "admin") -> Cluster:
    """For Tableflow, which wants both ids with every call."""
    environment_id, name = call.required("environment"), call.required("spec.kafka_cluster")
    found = call.world.clusters.get(name)
    if found is None or found.environment != environment_id:
        raise forbidden("Kafka cluster not found or access is denied")
    return cluster(call, name, environment_id, action)
