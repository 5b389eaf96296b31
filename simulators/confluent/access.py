"""Finds the environment or cluster that a call names, and refuses a caller that has no role on it."""

from __future__ import annotations

from simulators.confluent.authorization import require
from simulators.confluent.errors import bad_request, forbidden, not_found
from simulators.confluent.fields import Fields
from simulators.confluent.http import Call
from simulators.confluent.model import Cluster, Environment


def find_environment(call: Call, name: str) -> Environment:
    if name not in call.org.environments:
        raise not_found("Environment", name)
    require(call, "admin", call.org.environments[name].crn)
    return call.org.environments[name]


def find_environment_of_query(call: Call) -> Environment:
    """Return the environment.

    Raises ApiError: like the vendor, with 403 for an environment that doesn't exist.
    """
    name = call.require_parameter("environment")
    if name not in call.org.environments:
        raise forbidden(f"Environment {name} not found or access is denied")
    return find_environment(call, name)


def find_environment_of_body(call: Call, spec: Fields) -> Environment:
    name = spec.read_reference("environment")
    if name not in call.org.environments:
        raise bad_request(f"environment {name} does not exist", spec.build_pointer("environment"))
    return find_environment(call, name)


def find_cluster(call: Call, name: str, environment_id: str, action: str = "admin") -> Cluster:
    """Return the cluster.

    Tableflow and Connect only need a role on the cluster, not on the environment. Raises ApiError.
    """
    cluster = call.org.clusters.get(name)
    if cluster is None or cluster.environment != environment_id:
        raise not_found("Kafka cluster", name)
    require(call, action, cluster.scope)
    return cluster


def name_cluster_of_query(call: Call) -> Cluster:
    """Return the cluster for a call of which the topic decides what the caller may do."""
    environment_id = call.require_parameter("environment")
    name = call.require_parameter("spec.kafka_cluster")
    _require_cluster(call, name, environment_id)
    return call.org.clusters[name]


def name_cluster_of_body(call: Call, spec: Fields) -> Cluster:
    name = spec.read_reference("kafka_cluster")
    _require_cluster(call, name, spec.read_reference("environment"))
    return call.org.clusters[name]


def find_cluster_of_query(call: Call, action: str = "admin") -> Cluster:
    """Return the cluster for Tableflow, which requires the ids of both environment and cluster in every
    call.
    """
    environment_id = call.require_parameter("environment")
    name = call.require_parameter("spec.kafka_cluster")
    _require_cluster(call, name, environment_id)
    return find_cluster(call, name, environment_id, action)


def find_cluster_of_body(call: Call, spec: Fields) -> Cluster:
    """Return the cluster for a call that creates or updates a catalog integration."""
    name = spec.read_reference("kafka_cluster")
    environment_id = spec.read_reference("environment")
    _require_cluster(call, name, environment_id)
    return find_cluster(call, name, environment_id)


def _require_cluster(call: Call, name: str, environment_id: str) -> None:
    if name not in call.org.clusters or call.org.clusters[name].environment != environment_id:
        raise forbidden("Kafka cluster not found or access is denied")
