"""Tableflow's Iceberg REST catalog, for readers: an environment is a catalog, a Kafka cluster a namespace, a topic a table.

A Tableflow API key is exchanged for a token, which ends. Whoever has a token reads what the key's owner may read. Files
in a customer's bucket are read with the customer's own AWS credentials; for managed storage, credentials are vended.
"""

from __future__ import annotations

import base64
import binascii
import secrets
from typing import Any, Final
from urllib.parse import parse_qs

from pyiceberg.table import Table

from simulators.confluent.authentication import find_key
from simulators.confluent.authorization import allowed
from simulators.confluent.calls import ICEBERG, OAUTH, Answer, Call, KeyKind, Route
from simulators.confluent.kinds.api_keys import ApiKey
from simulators.confluent.kinds.clusters import Cluster, within
from simulators.confluent.kinds.tableflow_topics import TableflowTopic
from simulators.confluent.refusals import Refusal

#: Seconds that a session lasts.
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


def token(call: Call) -> Answer:
    """OAuth 2 client credentials, in the form or as HTTP Basic."""
    form = {name: values[-1] for name, values in parse_qs(call.form.decode("utf-8", "replace")).items()}
    if form.get("grant_type") != "client_credentials":
        raise Refusal(400, "grant_type must be client_credentials", code="unsupported_grant_type")
    name, secret = form.get("client_id", ""), form.get("client_secret", "")
    if not name:
        name, secret = _basic(call.headers.get("authorization", ""))
    key = find_key(call.world, name, secret)
    if key is None or key.kind is not KeyKind.TABLEFLOW:
        raise Refusal(401, "Client authentication failed", code="invalid_client")
    made = secrets.token_urlsafe(32)
    call.world.sessions[made] = (key.id, call.world.clock.now() + SESSION)
    body = {"access_token": made, "token_type": "bearer", "expires_in": SESSION, "scope": form.get("scope", "catalog")}
    return Answer(200, body | {"issued_token_type": "urn:ietf:params:oauth:token-type:access_token"})


def _basic(header: str) -> tuple[str, str]:
    try:
        name, _, secret = base64.b64decode(header.removeprefix("Basic ")).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return "", ""
    return name, secret


def _reader(call: Call) -> ApiKey:
    """Whose token it is. Raises Refusal for none, a wrong one, or one that has ended."""
    given = call.headers.get("authorization", "").partition(" ")[2]
    key_id, until = call.world.sessions.get(given, ("", 0.0))
    key = call.world.api_keys.get(key_id)
    if key is None or until <= call.world.clock.now():
        raise Refusal(401, "The session has ended. Log in again", code="NotAuthorizedException")
    if (
        call.parameters["organization"] != call.world.organization_id
        or call.parameters["environment"] not in call.world.environments
    ):
        raise Refusal(404, "No such catalog", code="NoSuchWarehouseException")
    return key


def config(call: Call) -> Answer:
    _reader(call)
    return Answer(200, {"defaults": {}, "overrides": {}, "endpoints": list(_ENDPOINTS)})


def namespaces(call: Call) -> Answer:
    key = _reader(call)
    seen = [each.id for each in within(call.world, call.parameters["environment"]) if _tables(call, key, each)]
    return Answer(200, {"namespaces": [[name] for name in sorted(seen)]})


def namespace(call: Call) -> Answer:
    cluster = _cluster(call, _reader(call))
    return Answer(200, {"namespace": [cluster.id], "properties": {}})


def tables(call: Call) -> Answer:
    key = _reader(call)
    cluster = _cluster(call, key)
    identifiers = [{"namespace": [cluster.id], "name": name} for name in sorted(_tables(call, key, cluster))]
    return Answer(200, {"identifiers": identifiers})


def load(call: Call) -> Answer:
    topic = _topic(call)
    lake = call.world.lake
    if lake is None:
        raise Refusal(
            501, "No AWS is attached to the simulator, so there are no tables to read", code="UnsupportedOperationException"
        )
    lake.catalog.act_as(lake.root.properties())
    table: Table = lake.catalog.load_table(topic.key)
    body: dict[str, Any] = {"metadata-location": table.metadata_location, "metadata": table.metadata.model_dump(mode="json")}
    vends = not topic.integration and "vended-credentials" in call.headers.get("x-iceberg-access-delegation", "")
    vended = lake.vend(table.location()).properties() if vends else {}
    return Answer(200, body | {"config": vended})


def exists(call: Call) -> Answer:
    if "table" in call.parameters:
        _topic(call)
    else:
        _cluster(call, _reader(call))
    return Answer(204)


def report(call: Call) -> Answer:
    _topic(call)
    return Answer(204)


def refuse(call: Call) -> Answer:
    _reader(call)
    raise Refusal(403, "Tables are read only here", code="ForbiddenException")


def _tables(call: Call, key: ApiKey, cluster: Cluster) -> dict[str, TableflowTopic]:
    """Those that have a table by now, and that the key's owner may read."""
    made = {name: each for (of, name), each in call.world.tableflow_topics.items() if of == cluster.id and each.table_path}
    return {name: each for name, each in made.items() if allowed(call.world, key.owner, "read", cluster.inside("topic", name))}


def _cluster(call: Call, key: ApiKey) -> Cluster:
    cluster = call.world.clusters.get(call.parameters["namespace"])
    if cluster is None or cluster.environment != call.parameters["environment"] or not _tables(call, key, cluster):
        raise Refusal(404, f"Namespace does not exist: {call.parameters['namespace']}", code="NoSuchNamespaceException")
    return cluster


def _topic(call: Call) -> TableflowTopic:
    key = _reader(call)
    found = _tables(call, key, _cluster(call, key)).get(call.parameters["table"])
    if found is None:
        raise Refusal(404, f"Table does not exist: {call.parameters['table']}", code="NoSuchTableException")
    return found


ROUTES: Final = (
    Route(OAUTH, "POST", _BASE + "/v1/oauth/tokens", token),
    Route(ICEBERG, "GET", _BASE + "/v1/config", config),
    Route(ICEBERG, "GET", _BASE + "/v1/namespaces", namespaces),
    Route(ICEBERG, "GET", _NAMESPACE, namespace),
    Route(ICEBERG, "HEAD", _NAMESPACE, exists),
    Route(ICEBERG, "GET", _NAMESPACE + "/tables", tables),
    Route(ICEBERG, "GET", _TABLE, load),
    Route(ICEBERG, "HEAD", _TABLE, exists),
    Route(ICEBERG, "POST", _TABLE + "/metrics", report),
    Route(ICEBERG, "POST", _BASE + "/v1/namespaces", refuse),
    Route(ICEBERG, "DELETE", _NAMESPACE, refuse),
    Route(ICEBERG, "POST", _NAMESPACE + "/tables", refuse),
    Route(ICEBERG, "POST", _TABLE, refuse),
    Route(ICEBERG, "DELETE", _TABLE, refuse),
)
