"""What the simulator must hold for given properties: for each kind, what is there, and what shall be, in the same words.

Both sides are read off the simulator's world and the properties alone, never through the code under test.
"""

from __future__ import annotations

import json


def _new(org, base, kind):
    known = {each for found, each in base if found == kind}
    return [each for each in getattr(org.simulation.organization, kind).values() if each.id not in known]


def _clusters(org):
    return org.simulation.organization.clusters.values()


def _registries(org):
    return org.simulation.organization.schema_registries.values()


def _environment(org, base, given):
    return [each.package for each in _new(org, base, "environments")], [given.get("stream_governance", "ESSENTIALS")]


def _kafka_cluster(org, base, given):
    found = [(each.type, each.availability) for each in _new(org, base, "clusters")]
    return found, [(given["type"], "HIGH" if given.get("availability") == "MULTI_ZONE" else "LOW")]


def _service_account(org, base, given):
    found = [each.description for each in _new(org, base, "service_accounts")]
    return found, [given.get("description", "Made by Lakeferry")]


def _role_binding(org, base, given):
    found = [(each.principal, each.role, each.pattern.rpartition("/")[2]) for each in _new(org, base, "role_bindings")]
    place = f"topic={given['name']}" if given["scope"] == "topic" else f"cloud-cluster={given['cluster_id']}"
    return found, [("User:" + given["service_account_id"], given["role"], place)]


def _acl(org, base, given):
    fields = ("principal", "operation", "resource_name", "permission")
    known = {each for kind, each in base if kind == "acls"}
    entries = [(cluster, acl) for cluster in _clusters(org) for acl in cluster.acls]
    found = [tuple(acl[name] for name in fields) for cluster, acl in entries if f"{cluster.id}/{json.dumps(acl)}" not in known]
    return found, [("User:" + given["service_account_id"], given["operation"], "orders", "ALLOW")]


def _api_key(org, base, given):
    """The secret holds the key that lives."""
    found = [(each.owner, each.resource, each.id, each.secret, each.description) for each in _new(org, base, "api_keys")]
    held = org.secrets.fields(given["secret"])
    return found, [
        (
            given["service_account_id"],
            given["cluster_id"],
            held["apiKey"],
            held["apiSecret"],
            given.get("description", "Made by Lakeferry"),
        )
    ]


def _topic(org, base, given):
    found = [(each.name, each.partitions, each.settings) for cluster in _clusters(org) for each in cluster.topics.values()]
    return found, [(given["topic"], given["partitions"], given["config"])]


def _schema(org, base, given):
    """Of the subject, the latest schema and the level of its own."""
    found = [
        (name, json.loads(each.schemas.latest(name).text), each.schemas.levels.get(name, ""))
        for each in _registries(org)
        for name in each.schemas.subjects()
    ]
    return found, [(given["subject"], json.loads(given["schema"]), given.get("compatibility", ""))]


def _connector(org, base, given):
    found = [
        (each.state, each.config["kafka.topic"], each.config["quickstart"], each.config.get("max.interval"))
        for each in _new(org, base, "connectors")
    ]
    interval = given.get("max_interval_ms")
    return found, [("RUNNING", given["topic"], given["quickstart"], interval and str(interval))]


def _flink_compute_pool(org, base, given):
    return [each.max_cfu for each in _new(org, base, "compute_pools")], [given["max_cfu"]]


def _flink_statement(org, base, given):
    """The statement runs, and its table has the columns that the text names."""
    found = [(each.sql, each.phase) for each in org.simulation.organization.statements.values()]
    columns = [
        [field["name"] for field in json.loads(each.schemas.latest("totals-value").text)["fields"]]
        for each in _registries(org)
        if each.schemas.latest("totals-value")
    ]
    wanted = "number" if "`number`" in given["sql"] else "id"
    return (found, columns), ([(given["sql"], "RUNNING")], [[wanted]])


def _provider_integration(org, base, given):
    return [each.role_arn for each in _new(org, base, "provider_integrations")], [given["role_arn"]]


def _tableflow_topic(org, base, given):
    found = [
        (each.id, each.bucket, each.integration, str(each.config["retention_ms"]), each.config["error_handling"]["mode"])
        for each in org.simulation.organization.tableflow_topics.values()
    ]
    wanted = (given["topic"], given["bucket"], given["provider_integration_id"], str(given["retention_ms"]))
    return found, [(*wanted, given["error_handling"])]


def _catalog_integration(org, base, given):
    found = [(each.integration, each.cluster) for each in _new(org, base, "catalog_integrations")]
    return found, [(given["provider_integration_id"], given["cluster_id"])]


VIEWS = {
    "environment": _environment,
    "kafka_cluster": _kafka_cluster,
    "service_account": _service_account,
    "role_binding": _role_binding,
    "acl": _acl,
    "api_key": _api_key,
    "topic": _topic,
    "schema": _schema,
    "connector": _connector,
    "flink_compute_pool": _flink_compute_pool,
    "flink_statement": _flink_statement,
    "provider_integration": _provider_integration,
    "tableflow_topic": _tableflow_topic,
    "catalog_integration": _catalog_integration,
}
