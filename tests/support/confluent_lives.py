"""For each resource type of Confluent: the objects that it needs, its properties, and how they change during
its life.
"""

from __future__ import annotations

from simulators.confluent.simulation import REGION
from tests.support.confluent_environment import ROLE, SCHEMA, WIDER
from tests.support.lives import Life

STATEMENT = "CREATE TABLE `totals` AS SELECT `id` FROM `orders`"
EDITED_STATEMENT = "CREATE TABLE `totals` AS SELECT UPPER(`id`) AS `id` FROM `orders`"
OTHER_STATEMENT = "CREATE TABLE `totals` AS SELECT `id` AS `number` FROM `orders`"
#: Milliseconds between two records, long because no test here reads them.
SELDOM = 100_000
UNDO = "DROP TABLE IF EXISTS `totals`"


def edit(statement):
    """Return the properties of another text of the statement that fills `totals`, as the stacks compute them."""
    head, _, query = statement.partition(" AS SELECT ")
    insert = f"INSERT INTO `totals` (`id`) SELECT {query}"
    return {"sql": statement, "insert_sql": insert, "head": head, "columns": ["id"], "reads": ["orders"]}


#: What an edit in place of STATEMENT needs.
IN_PLACE = {name: value for name, value in edit(STATEMENT).items() if name != "sql"}


def environment(org):
    return org.make("environment", "Environment")["id"]


def cluster(org):
    where = {"environment_id": environment(org)}
    return {**where, "cluster_id": org.make("kafka_cluster", "Cluster", region=REGION, **where)["id"]}


def account(org, name="Account"):
    return org.make("service_account", name)["id"]


def key(org, service, secret, owner, **where):
    org.make(
        "api_key",
        f"Key{service}",
        service=service,
        secret=org.new_secret(secret),
        service_account_id=owner,
        **where,
    )
    return secret


def kafka(org):
    """Return a cluster, its administrator's key, and the administrator."""
    where = cluster(org)
    admin = account(org, "Admin")
    org.make(
        "role_binding",
        "AdminRole",
        service_account_id=admin,
        role="CloudClusterAdmin",
        scope="cluster",
        **where,
    )
    return {**where, "credentials": key(org, "kafka", "kafka-key", admin, **where)}, admin


def orders(org):
    """Return `kafka` with a topic and its schema."""
    where, admin = kafka(org)
    org.make("topic", "Orders", topic="orders", partitions=1, **where)
    registry = registry_key(org, where["environment_id"])
    org.make("schema", "OrdersValue", subject="orders-value", schema=SCHEMA, **registry)
    return where, admin


def registry_key(org, environment_id):
    owner = account(org, "Registrar")
    registry = org.made["Cluster"]["schema_registry_id"]
    for role in ("DeveloperRead", "DeveloperWrite", "ResourceOwner"):
        org.make(
            "role_binding",
            f"Registry{role}",
            service_account_id=owner,
            role=role,
            scope="subject",
            environment_id=environment_id,
            schema_registry_id=registry,
            name="*",
        )
    secret = key(org, "schema_registry", "registry-key", owner, environment_id=environment_id)
    return {"environment_id": environment_id, "credentials": secret}


def tableflow(org):
    where, admin = orders(org)
    org.make(
        "role_binding", "Subjects", service_account_id=admin, role="DeveloperRead", scope="subject", name="*",
        environment_id=where["environment_id"], schema_registry_id=org.made["Cluster"]["schema_registry_id"],
    )  # fmt: skip
    given = org.make("provider_integration", "Aws", environment_id=where["environment_id"], role_arn=ROLE)[
        "id"
    ]
    secret = key(org, "tableflow", "tableflow-key", admin, environment_id=where["environment_id"],
                 cluster_id=where["cluster_id"], region=REGION)  # fmt: skip
    org.make("role_binding", "Integration", service_account_id=admin, role="ResourceOwner", scope="provider_integration",
             environment_id=where["environment_id"], name=given)  # fmt: skip
    return {**where, "credentials": secret, "provider_integration_id": given}


def _service_account(org):
    return {}


def _role_binding(org):
    where = cluster(org)
    owner = account(org)
    other = account(org, "Other")
    org.made["other"] = other
    return {**where, "service_account_id": owner, "role": "CloudClusterAdmin", "scope": "cluster"}


def _acl(org):
    where, _ = kafka(org)
    return {
        **where,
        "service_account_id": account(org),
        "resource_type": "TOPIC",
        "resource_name": "orders",
        "operation": "READ",
    }


def _api_key(org):
    owner = account(org)
    where = cluster(org)
    org.make(
        "role_binding", "Role", service_account_id=owner, role="CloudClusterAdmin", scope="cluster", **where
    )
    org.new_secret("another-secret")
    return {**where, "service_account_id": owner, "service": "kafka", "secret": org.new_secret("the-secret")}


def _topic(org):
    where, _ = kafka(org)
    return {
        **where,
        "topic": "orders",
        "partitions": 3,
        "config": {"retention.ms": "86400000", "cleanup.policy": "compact"},
    }


def _schema(org):
    return {
        **registry_key(org, cluster(org)["environment_id"]),
        "subject": "orders-value",
        "schema": SCHEMA,
        "delete_permanently": "true",
    }


def _connector(org):
    where, admin = kafka(org)
    org.make("topic", "Trades", topic="stock_trades", partitions=1, **where)
    del where["credentials"]
    return {
        **where,
        "service_account_id": admin,
        "topic": "stock_trades",
        "quickstart": "STOCK_TRADES",
        "max_interval_ms": SELDOM,
    }


def _pool(org):
    return {"environment_id": environment(org), "region": REGION, "max_cfu": 10}


def _statement(org):
    where, _ = orders(org)
    env = where["environment_id"]
    runner = account(org, "Runner")
    roles = [
        ("FlinkDeveloper", "environment", {}),
        ("ResourceOwner", "topic", {"cluster_id": where["cluster_id"], "name": "*"}),
        (
            "ResourceOwner",
            "subject",
            {"schema_registry_id": org.made["Cluster"]["schema_registry_id"], "name": "*"},
        ),
        (
            "ResourceOwner",
            "transactional_id",
            {"cluster_id": where["cluster_id"], "name": "_confluent-flink_*"},
        ),
        ("Assigner", "service_account", {"name": runner}),
    ]
    for role, scope, item in roles:
        place = {} if scope == "service_account" else {"environment_id": env}
        org.make("role_binding", f"Flink{role}{scope}".replace("_", ""), service_account_id=runner, role=role, scope=scope,
                 **place, **item)  # fmt: skip
    pool = org.make("flink_compute_pool", "Pool", environment_id=env, region=REGION)["id"]
    secret = key(org, "flink", "flink-key", runner, environment_id=env, region=REGION)
    return {
        "environment_id": env, "region": REGION, "credentials": secret, "compute_pool_id": pool,
        "service_account_id": runner, "catalog": org.made["Environment"]["name"],
        "database": org.made["Cluster"]["name"], "sql": STATEMENT, "undo_sql": UNDO, "topic": "totals",
        "cluster_id": where["cluster_id"], "topic_credentials": where["credentials"],
        "subject_credentials": "registry-key", **IN_PLACE,
    }  # fmt: skip


def _provider_integration(org):
    return {"environment_id": environment(org), "role_arn": ROLE}


def _tableflow_topic(org):
    where = tableflow(org)
    org.make("catalog_integration", "Glue", **where)
    own = {"topic": "orders", "bucket": "lake", "retention_ms": 864000000, "error_handling": "SKIP"}
    return {**where, **own, "await_catalog": "true"}


def existing_topic(org):
    """Return the properties of a topic that somebody else has, with its schema."""
    where, _ = orders(org)
    return {**where, "topic": "orders", "write_mode": "APPEND", "registry_credentials": "registry-key"}


def _catalog_integration(org):
    return tableflow(org)


LIVES = {
    "environment": Life(lambda org: {}, {"stream_governance": "ADVANCED"}, {}, {"environments": 1}),
    "kafka_cluster": Life(
        lambda org: {"environment_id": environment(org), "region": REGION, "type": "Basic", "max_ecku": 1},
        {"type": "Standard", "max_ecku": 2}, {"availability": "MULTI_ZONE"}, {"clusters": 1}, ("schema_registries",),
    ),
    "service_account": Life(_service_account, {"description": "Other words"}, {}, {"service_accounts": 1}),
    "role_binding": Life(_role_binding, {}, {"role": "DeveloperRead", "scope": "topic", "name": "orders"}, {"role_bindings": 1}),
    "acl": Life(_acl, {}, {"operation": "WRITE"}, {"acls": 1}),
    "api_key": Life(_api_key, {"description": "Other words"}, {"secret": "another-secret"}, {"api_keys": 1}),
    "topic": Life(_topic, {"partitions": 6, "config": {"retention.ms": "172800000"}}, {"topic": "returns"}, {"topics": 1}),
    "schema": Life(_schema, {"schema": WIDER, "compatibility": "FULL"}, {"subject": "returns-value"}, {"subjects": 1}),
    "connector": Life(_connector, {"max_interval_ms": SELDOM + 1}, {}, {"connectors": 1}, ("subjects",)),
    "flink_compute_pool": Life(_pool, {"max_cfu": 20}, {}, {"compute_pools": 1}),
    "flink_statement": Life(
        _statement, edit(EDITED_STATEMENT), {**edit(OTHER_STATEMENT), "drop_on_edit": "true"}, {"statements": 1, "topics": 1, "subjects": 1},
    ),
    "provider_integration": Life(_provider_integration, {}, {"role_arn": ROLE + "-2"}, {"provider_integrations": 1}),
    "tableflow_topic": Life(
        _tableflow_topic,
        {"retention_ms": 950400000, "error_handling": "SUSPEND"}, {"bucket": "other-lake"}, {"tableflow_topics": 1},
    ),
    "existing_cluster": Life(lambda org: {**cluster(org), "region": REGION}, {}, {}, {}),
    "existing_topic": Life(existing_topic, {}, {}, {}),
    "catalog_integration": Life(_catalog_integration, {"database": "own"}, {}, {"catalog_integrations": 1}),
}  # fmt: skip
