"""API keys (iam/v2/api-keys). A key's secret goes out once, and no key works at once."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any, Final

from simulators.confluent.authorization import allowed
from simulators.confluent.errors import forbidden, invalid, over_quota
from simulators.confluent.fields import Fields
from simulators.confluent.http import CONTROL, Answer, Call, Route
from simulators.confluent.model import ApiKey, KeyKind, Plane
from simulators.confluent.organization import Organization
from simulators.confluent.resources import Kind

KIND: Final = Kind("iam/v2", "ApiKey", "/iam/v2/api-keys")
_VERSIONS: Final = {
    KeyKind.CLOUD: "cloud/v1",
    KeyKind.KAFKA: "cmk/v2",
    KeyKind.REGISTRY: "srcm/v3",
    KeyKind.FLINK: "fcpm/v2",
    KeyKind.TABLEFLOW: "tableflow/v1",
}
_PATHS: Final = {
    KeyKind.CLOUD: "/cloud",
    KeyKind.KAFKA: "/cmk/v2/clusters",
    KeyKind.REGISTRY: "/srcm/v3/clusters",
    KeyKind.FLINK: "/fcpm/v2/regions",
    KeyKind.TABLEFLOW: "/tableflow",
}


def issue(
    org: Organization, owner: str, kind: KeyKind, resource: str, *, delay: float, texts: tuple[str, str] = ("", "")
) -> ApiKey:
    """A key that works `delay` seconds from now. `texts` are its display name and description."""
    new, now = "".join(org.random.choices("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", k=16)), org.clock.now()
    secret = secrets.token_urlsafe(48)
    key = ApiKey(new, f"{org.crn}/api-key={new}", now, now, secret, owner, kind, resource, now + delay, *texts)
    org.api_keys[new] = key
    return key


def document(org: Organization, key: ApiKey, *, reveal: bool = False) -> dict[str, Any]:
    spec = {
        "display_name": key.name,
        "description": key.description,
        "owner": _owner(org, key),
        "resource": _resource(org, key),
    }
    return KIND.header(org, key) | {"spec": spec | ({"secret": key.secret} if reveal else {})}


def _owner(org: Organization, key: ApiKey) -> dict[str, str]:
    person = key.owner == org.owner
    path, crn = ("users", "user") if person else ("service-accounts", "service-account")
    related = f"{org.addresses[Plane.CLOUD]}/iam/v2/{path}/{key.owner}"
    named = {"id": key.owner, "related": related, "resource_name": f"{org.crn}/{crn}={key.owner}"}
    return named | {"api_version": "iam/v2", "kind": "User" if person else "ServiceAccount"}


def _resource(org: Organization, key: ApiKey) -> dict[str, str]:
    related = f"{org.addresses[Plane.CLOUD]}{_PATHS[key.kind]}/{key.resource}"
    holder = org.clusters.get(key.resource) or org.schema_registries.get(key.resource)
    named = {"id": key.resource, "related": related, "resource_name": holder.crn if holder else f"{org.crn}/{key.resource}"}
    return named | {"api_version": _VERSIONS[key.kind], "kind": key.kind.value}


def create(call: Call) -> Answer:
    org, spec = call.org, Fields(call.body).inside("spec")
    if len(org.api_keys) >= org.quotas.api_keys:
        raise over_quota("apikeys_per_org", org.quotas.api_keys)
    owner = spec.reference("owner")
    if owner not in org.service_accounts and owner != org.owner:
        raise invalid("/spec/owner/id", f"owner {owner} does not exist")
    kind, resource, scope = _target(org, call.body["spec"].get("resource"))
    if call.principal != owner and not allowed(org, call.principal, "admin", scope):
        raise forbidden()
    delay = org.delays.kafka_key if kind is KeyKind.KAFKA else org.delays.other_key
    texts = (spec.text("display_name"), spec.text("description"))
    key = issue(org, owner, kind, resource, delay=delay, texts=texts)
    return Answer(202, document(org, key, reveal=True))


def _target(org: Organization, given: Any) -> tuple[KeyKind, str, str]:
    """The kind, what the key opens, and the scope of who may make it."""
    if given is None:
        return KeyKind.CLOUD, "cloud", org.crn
    fields = Fields({"resource": given}, "/spec").inside("resource")
    name = fields.text("id", required=True)
    if cluster := org.clusters.get(name):
        return KeyKind.KAFKA, name, cluster.scope
    if registry := org.schema_registries.get(name):
        return KeyKind.REGISTRY, name, registry.crn
    if name == "tableflow":
        fields.choice("kind", ["Tableflow"], "Tableflow")
        return KeyKind.TABLEFLOW, name, org.crn
    return _flink_region(org, fields, name)


def _flink_region(org: Organization, fields: Fields, name: str) -> tuple[KeyKind, str, str]:
    if name.removeprefix("aws.") not in org.flink_regions:
        raise invalid("/spec/resource/id", f"resource {name} does not exist")
    environment = org.environments.get(fields.text("environment", required=True))
    if environment is None:
        raise invalid("/spec/resource/environment", "environment does not exist")
    return KeyKind.FLINK, f"{environment.id}.{name}", environment.crn


def read(call: Call) -> Answer:
    return Answer(200, document(call.org, _found(call)))


def listing(call: Call) -> Answer:
    return KIND.page(call, [each for each in call.org.api_keys.values() if _chosen(each, call.query)], document)


def _chosen(key: ApiKey, query: Mapping[str, str]) -> bool:
    return query.get("spec.owner", key.owner) == key.owner and query.get("spec.resource", key.resource) == key.resource


def update(call: Call) -> Answer:
    key, spec = _found(call), Fields(call.body).inside("spec", required=False)
    spec.keep_reference("owner", key.owner)
    if "resource" in spec:
        spec.inside("resource").keep("id", key.resource)
    key.name, key.description = spec.text("display_name", key.name), spec.text("description", key.description)
    key.updated = call.org.clock.now()
    return Answer(200, document(call.org, key))


def delete(call: Call) -> Answer:
    del call.org.api_keys[_found(call).id]
    return Answer(204)


def _found(call: Call) -> ApiKey:
    """A key that is gone reads as forbidden: so it does at the vendor."""
    key = call.org.api_keys.get(call.parameters["id"])
    if key is None:
        raise forbidden("Forbidden Access")
    return key


ROUTES: Final = (
    Route(CONTROL, "POST", "/iam/v2/api-keys", create),
    Route(CONTROL, "GET", "/iam/v2/api-keys", listing),
    Route(CONTROL, "GET", "/iam/v2/api-keys/{id}", read),
    Route(CONTROL, "PATCH", "/iam/v2/api-keys/{id}", update),
    Route(CONTROL, "DELETE", "/iam/v2/api-keys/{id}", delete),
)
