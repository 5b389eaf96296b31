"""Tableflow's read-only Iceberg REST catalog: an environment is a catalog, a Kafka cluster is a namespace, a
topic is a table.

A client exchanges a Tableflow API key for a token that expires, and may read what the key's owner may read.
It reads files in a customer's bucket with the customer's own AWS credentials. For managed storage, the
catalog vends credentials.
"""

from __future__ import annotations

import secrets
from typing import Any, Final
from urllib.parse import parse_qs

from pyiceberg.table import Table

from simulators.confluent.authorization import is_allowed
from simulators.confluent.errors import ApiError
from simulators.confluent.http import ICEBERG, OAUTH, Answer, Call, Route, find_key, read_basic_credentials
from simulators.confluent.model import ApiKey, Cluster, KeyKind, TableflowTopic

#: Seconds until a token expires.
SESSION: Final = 3600
_BASE: Final = "/iceberg/catalog/organizations/{organization}/environments/{environment}"
_NAMESPACE: Final = _BASE + "/v1/namespaces/{namespace}"
_TABLE: Final = _NAMESPACE + "/tables/{table}"
_ENDPOINTS: Final = (
    "GET /v1/{prefix}/namespaces",
    "GET /v1/{prefix}/namespaces/{namespace}",
    "HEAD /v1/{prefix}/namespaces/{namespace}",
    "GET /v1/{prefix}/namespaces/{namespace}/tables",
    "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}",
    "HEAD /v1/{prefix}/namespaces/{namespace}/tables/{table}",
    "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/metrics",
)


def create_token(call: Call) -> Answer:
    """Return a token for OAuth 2.0 client credentials, given as form fields or as HTTP Basic."""
    form = {name: values[-1] for name, values in parse_qs(call.form.decode("utf-8", "replace")).items()}
    if form.get("grant_type") != "client_credentials":
        raise ApiError(400, "grant_type must be client_credentials", code="unsupported_grant_type")
    name = form.get("client_id", "")
    secret = form.get("client_secret", "")
    if not name:
        name, secret = read_basic_credentials(call.headers.get("authorization", ""))
    key = find_key(call.org, name, secret)
    if key is None or key.kind is not KeyKind.TABLEFLOW:
        raise ApiError(401, "Client authentication failed", code="invalid_client")
    access_token = secrets.token_urlsafe(32)
    call.org.sessions[access_token] = (key.id, call.org.clock.now() + SESSION)
    body = {
        "access_token": access_token,
        "token_type": "bearer",
        "expires_in": SESSION,
        "scope": form.get("scope", "catalog"),
    }
    return Answer(200, body | {"issued_token_type": "urn:ietf:params:oauth:token-type:access_token"})


def _find_reader(call: Call) -> ApiKey:
    """Return the API key that the caller's token belongs to.

    Raises ApiError if the token is missing, unknown or expired.
    """
    access_token = call.headers.get("authorization", "").partition(" ")[2]
    key_id, expiry = call.org.sessions.get(access_token, ("", 0.0))
    key = call.org.api_keys.get(key_id)
    if key is None or expiry <= call.org.clock.now():
        raise ApiError(401, "The session has ended. Log in again", code="NotAuthorizedException")
    if (
        call.parameters["organization"] != call.org.organization_id
        or call.parameters["environment"] not in call.org.environments
    ):
        raise ApiError(404, "No such catalog", code="NoSuchWarehouseException")
    return key


def read_config(call: Call) -> Answer:
    _find_reader(call)
    return Answer(200, {"defaults": {}, "overrides": {}, "endpoints": list(_ENDPOINTS)})


def list_namespaces(call: Call) -> Answer:
    key = _find_reader(call)
    names = [
        cluster.id
        for cluster in call.org.list_clusters(call.parameters["environment"])
        if _find_readable_tables(call, key, cluster)
    ]
    return Answer(200, {"namespaces": [[name] for name in sorted(names)]})


def read_namespace(call: Call) -> Answer:
    cluster = _find_cluster(call, _find_reader(call))
    return Answer(200, {"namespace": [cluster.id], "properties": {}})


def list_tables(call: Call) -> Answer:
    key = _find_reader(call)
    cluster = _find_cluster(call, key)
    identifiers = [
        {"namespace": [cluster.id], "name": name}
        for name in sorted(_find_readable_tables(call, key, cluster))
    ]
    return Answer(200, {"identifiers": identifiers})


def load(call: Call) -> Answer:
    topic = _find_topic(call)
    lake = call.org.lake
    if lake is None:
        raise ApiError(
            501,
            "No AWS is attached to the simulator, so there are no tables to read",
            code="UnsupportedOperationException",
        )
    lake.catalog.act_as(lake.root.build_properties())
    table: Table = lake.catalog.load_table(topic.key)
    body: dict[str, Any] = {
        "metadata-location": table.metadata_location,
        "metadata": table.metadata.model_dump(mode="json"),
    }
    vends = not topic.integration and "vended-credentials" in call.headers.get(
        "x-iceberg-access-delegation", ""
    )
    vended = lake.vend(table.location()).build_properties() if vends else {}
    return Answer(200, body | {"config": vended})


def check_exists(call: Call) -> Answer:
    if "table" in call.parameters:
        _find_topic(call)
    else:
        _find_cluster(call, _find_reader(call))
    return Answer(204)


def accept_report(call: Call) -> Answer:
    _find_topic(call)
    return Answer(204)


def refuse(call: Call) -> Answer:
    _find_reader(call)
    raise ApiError(403, "Tables are read-only", code="ForbiddenException")


def _find_readable_tables(call: Call, key: ApiKey, cluster: Cluster) -> dict[str, TableflowTopic]:
    """Return the topics that already have a table and that the key's owner may read."""
    tables = {
        name: topic
        for (cluster_id, name), topic in call.org.tableflow_topics.items()
        if cluster_id == cluster.id and topic.table_path
    }
    return {
        name: topic
        for name, topic in tables.items()
        if is_allowed(call.org, key.owner, "read", cluster.build_crn("topic", name))
    }


def _find_cluster(call: Call, key: ApiKey) -> Cluster:
    cluster = call.org.clusters.get(call.parameters["namespace"])
    if (
        cluster is None
        or cluster.environment != call.parameters["environment"]
        or not _find_readable_tables(call, key, cluster)
    ):
        raise ApiError(
            404, f"Namespace does not exist: {call.parameters['namespace']}", code="NoSuchNamespaceException"
        )
    return cluster


def _find_topic(call: Call) -> TableflowTopic:
    key = _find_reader(call)
    topic = _find_readable_tables(call, key, _find_cluster(call, key)).get(call.parameters["table"])
    if topic is None:
        raise ApiError(404, f"Table does not exist: {call.parameters['table']}", code="NoSuchTableException")
    return topic


ROUTES: Final = (
    Route(OAUTH, "POST", _BASE + "/v1/oauth/tokens", create_token),
    Route(ICEBERG, "GET", _BASE + "/v1/config", read_config),
    Route(ICEBERG, "GET", _BASE + "/v1/namespaces", list_namespaces),
    Route(ICEBERG, "GET", _NAMESPACE, read_namespace),
    Route(ICEBERG, "HEAD", _NAMESPACE, check_exists),
    Route(ICEBERG, "GET", _NAMESPACE + "/tables", list_tables),
    Route(ICEBERG, "GET", _TABLE, load),
    Route(ICEBERG, "HEAD", _TABLE, check_exists),
    Route(ICEBERG, "POST", _TABLE + "/metrics", accept_report),
    Route(ICEBERG, "POST", _BASE + "/v1/namespaces", refuse),
    Route(ICEBERG, "DELETE", _NAMESPACE, refuse),
    Route(ICEBERG, "POST", _NAMESPACE + "/tables", refuse),
    Route(ICEBERG, "POST", _TABLE, refuse),
    Route(ICEBERG, "DELETE", _TABLE, refuse),
)
