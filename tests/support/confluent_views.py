"""What the simulator must have for a resource's properties. Each view returns what is found and what is
wanted, in the same form.

Both are computed from the simulator's state and the properties only, never with the code under test.
"""

from __future__ import annotations

import json
import re

#: The pattern of names that we give to objects.
_OURS = re.compile(r"lakeferry-test-eu-west-1-it-[0-9a-f]{8}")


def _is_ours(name):
    return _OURS.fullmatch(name) is not None


def _new(org, base, kind):
    known = {object_id for base_kind, object_id in base if base_kind == kind}
    return [item for item in getattr(org.simulation.organization, kind).values() if item.id not in known]


def _clusters(org):
    return org.simulation.organization.clusters.values()


def _registries(org):
    return org.simulation.organization.schema_registries.values()


def _environment(org, base, given):
    found = [
        (_is_ours(new_environment.name), new_environment.package)
        for new_environment in _new(org, base, "environments")
    ]
    return found, [(True, given.get("stream_governance", "ESSENTIALS"))]


def _kafka_cluster(org, base, given):
    found = [
        (
            _is_ours(found_cluster.name),
            found_cluster.environment,
            found_cluster.region,
            found_cluster.type,
            found_cluster.availability,
            found_cluster.max_ecku,
            found_cluster.protected,
        )
        for found_cluster in _new(org, base, "clusters")
    ]
    availability = "HIGH" if given.get("availability") == "MULTI_ZONE" else "LOW"
    return found, [
        (
            True,
            given["environment_id"],
            given["region"],
            given["type"],
            availability,
            given["max_ecku"],
            False,
        )
    ]


def _service_account(org, base, given):
    found = [
        (_is_ours(new_account.name), new_account.description)
        for new_account in _new(org, base, "service_accounts")
    ]
    return found, [(True, given.get("description", "Made by Lakeferry"))]


def _role_binding(org, base, given):
    found = [
        (new_binding.principal, new_binding.role, new_binding.pattern.rpartition("/")[2])
        for new_binding in _new(org, base, "role_bindings")
    ]
    resource = (
        f"topic={given['name']}" if given["scope"] == "topic" else f"cloud-cluster={given['cluster_id']}"
    )
    return found, [("User:" + given["service_account_id"], given["role"], resource)]


def _acl(org, base, given):
    fields = (
        "principal",
        "host",
        "operation",
        "resource_type",
        "resource_name",
        "pattern_type",
        "permission",
    )
    known = {known_object for kind, known_object in base if kind == "acls"}
    entries = [(cluster, acl) for cluster in _clusters(org) for acl in cluster.acls]
    found = [
        tuple(acl[name] for name in fields)
        for cluster, acl in entries
        if f"{cluster.id}/{json.dumps(acl)}" not in known
    ]
    return found, [
        (
            "User:" + given["service_account_id"],
            "*",
            given["operation"],
            "TOPIC",
            "orders",
            "LITERAL",
            "ALLOW",
        )
    ]


def _api_key(org, base, given):
    """Compare the key in the secret with the live key."""
    found = [
        (
            _is_ours(new_key.name),
            new_key.owner,
            new_key.resource,
            new_key.id,
            new_key.secret,
            new_key.description,
        )
        for new_key in _new(org, base, "api_keys")
    ]
    held = org.secrets.fields(given["secret"])
    return found, [
        (
            True,
            given["service_account_id"],
            given["cluster_id"],
            held["apiKey"],
            held["apiSecret"],
            given.get("description", "Made by Lakeferry"),
        )
    ]


def _topic(org, base, given):
    found = [
        (topic.name, topic.partitions, topic.settings)
        for cluster in _clusters(org)
        for topic in cluster.topics.values()
        if ("topics", f"{cluster.id}/{topic.name}") not in base
    ]
    return found, [(given["topic"], given["partitions"], given["config"])]


def _schema(org, base, given):
    """Compare the latest schema of the subject and the subject's own compatibility.

    A deleted subject has none.
    """
    found = [
        (name, json.loads(registry.schemas.latest(name).text), registry.schemas.levels.get(name))
        for registry in _registries(org)
        for name in registry.schemas.subjects()
        if ("subjects", f"{registry.id}/{name}") not in base
    ]
    return found, [(given["subject"], json.loads(given["schema"]), given.get("compatibility"))]


def _connector(org, base, given):
    found = [
        (_is_ours(new_connector.name), new_connector.state, new_connector.config)
        for new_connector in _new(org, base, "connectors")
    ]
    names = [new_connector.name for new_connector in _new(org, base, "connectors")]
    config = {
        "connector.class": "DatagenSource",
        "name": names[0] if names else "",
        "kafka.auth.mode": "SERVICE_ACCOUNT",
        "kafka.service.account.id": given["service_account_id"],
        "tasks.max": "1",
        "output.data.format": "AVRO",
        "kafka.topic": given["topic"],
        "quickstart": given["quickstart"],
        "max.interval": str(given["max_interval_ms"]),
    }
    return found, [(True, "RUNNING", config)]


def _flink_compute_pool(org, base, given):
    found = [
        (_is_ours(new_pool.name), new_pool.environment, new_pool.region, new_pool.max_cfu)
        for new_pool in _new(org, base, "compute_pools")
    ]
    return found, [(True, given["environment_id"], given["region"], given["max_cfu"])]


def _flink_statement(org, base, given):
    """Check that the statement runs, and that its table has the columns of the text.

    The text is that of an INSERT if the statement went on where another one stopped.
    """
    session = {"sql.current-catalog": given["catalog"], "sql.current-database": given["database"]}
    found = [
        (
            statement.sql == given["sql"] or statement.sql == given["insert_sql"],
            statement.phase,
            statement.pool,
            statement.principal,
            {name: statement.properties[name] for name in statement.properties if name in session},
        )
        for key, statement in org.simulation.organization.statements.items()
        if ("statements", "/".join(key)) not in base
    ]
    columns = [
        [field["name"] for field in json.loads(registry.schemas.latest("totals-value").text)["fields"]]
        for registry in _registries(org)
        if registry.schemas.latest("totals-value")
    ]
    wanted = "number" if "`number`" in given["sql"] else "id"
    running = (True, "RUNNING", given["compute_pool_id"], given["service_account_id"], session)
    return (found, columns), ([running], [[wanted]])


def _provider_integration(org, base, given):
    found = [
        (_is_ours(new_integration.name), new_integration.environment, new_integration.role_arn)
        for new_integration in _new(org, base, "provider_integrations")
    ]
    return found, [(True, given["environment_id"], given["role_arn"])]


def _tableflow_topic(org, base, given):
    """Leave out the deprecated setting, which the simulator adds."""
    found = [
        (topic.id, topic.bucket, topic.integration, {**topic.config, "record_failure_strategy": ""})
        for topic in org.simulation.organization.tableflow_topics.values()
        if ("tableflow_topics", topic.id) not in base
    ]
    config = {
        "retention_ms": str(given["retention_ms"]),
        "error_handling": {"mode": given["error_handling"]},
        "metadata_column_naming_scheme": "DEFAULT",
        "record_failure_strategy": "",
    }
    return found, [(given["topic"], given["bucket"], given["provider_integration_id"], config)]


def _catalog_integration(org, base, given):
    found = [
        (
            _is_ours(new_integration.name),
            new_integration.integration,
            new_integration.cluster,
            new_integration.database,
        )
        for new_integration in _new(org, base, "catalog_integrations")
    ]
    return found, [(True, given["provider_integration_id"], given["cluster_id"], given.get("database", ""))]


def _nothing(org, base, given):
    """Nothing is created: what exists is somebody else's."""
    return org.objects() - base, set()


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
    "existing_cluster": _nothing,
    "existing_topic": _nothing,
}
