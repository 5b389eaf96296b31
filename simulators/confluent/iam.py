"""Service accounts, role bindings and API keys (iam/v2)."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any, ClassVar, Final
from urllib.parse import unquote

from simulators.confluent.authorization import is_allowed, may_bind, require
from simulators.confluent.errors import ApiError, bad_request, conflict, forbidden, invalid, over_quota
from simulators.confluent.fields import Fields
from simulators.confluent.http import ROLE_BINDINGS, Answer, Call
from simulators.confluent.model import ApiKey, KeyKind, Plane, Resource, RoleBinding, ServiceAccount
from simulators.confluent.organization import Organization
from simulators.confluent.pages import build_page
from simulators.confluent.resources import Field, Kind

#: By kind of key: the API version and the path of the resources that it is for.
_KEY_RESOURCES: Final = {
    KeyKind.CLOUD: ("cloud/v1", "/cloud"),
    KeyKind.KAFKA: ("cmk/v2", "/cmk/v2/clusters"),
    KeyKind.REGISTRY: ("srcm/v3", "/srcm/v3/clusters"),
    KeyKind.FLINK: ("fcpm/v2", "/fcpm/v2/regions"),
    KeyKind.TABLEFLOW: ("tableflow/v1", "/tableflow"),
}


class ServiceAccounts(Kind[ServiceAccount]):
    """Names are unique in the organization. Reading a deleted account returns 403, as at the vendor."""

    api_version = "iam/v2"
    name = "ServiceAccount"
    path = "/iam/v2/service-accounts"
    store = "service_accounts"
    record = ServiceAccount
    id_prefix = "sa"
    spec = ""
    quota = ("service_accounts_per_org", "service_accounts")
    fields = (
        Field("display_name", "name", required=True, pattern=r".{1,128}"),
        Field("description", "description"),
    )
    filters = (("display_name", "name"),)

    def authorize(self, call: Call, verb: str, record: ServiceAccount | None) -> None:
        """Administrators of anything may create accounts. Only those of the organization, and the owners of
        an account, may change it (Confluent's pages "Create Service Accounts" and "Manage Service Accounts").
        """
        if verb == "create":
            _require_administrator(call)
        elif record and not is_allowed(call.org, call.principal, "admin", call.org.crn):
            require(call, "grant", record.crn)

    def is_listed(self, call: Call, record: ServiceAccount) -> bool:
        return is_allowed(call.org, call.principal, "admin", call.org.crn) or is_allowed(
            call.org, call.principal, "grant", record.crn
        )

    def create(self, call: Call) -> Answer:
        """Create the account, and make `assigned_resource_owner` its owner."""
        answer = super().create(call)
        if owner := call.query.get("assigned_resource_owner"):
            account = call.org.service_accounts[answer.body["id"]]
            bind_role(call.org, f"User:{owner}", "ResourceOwner", account.crn)
        return answer

    def check(self, call: Call, values: dict[str, Any], current: ServiceAccount | None) -> None:
        for account in call.org.service_accounts.values():
            if account.name == values["name"] and account is not current:
                raise conflict("Service name is already in use")

    def build_crn(
        self, org: Organization, parent: Resource | None, new_id: str, values: Mapping[str, Any]
    ) -> str:
        return f"{org.crn}/service-account={new_id}"

    def build_missing_error(self, name: str) -> ApiError:
        return forbidden("Forbidden Access")

    def erase(self, org: Organization, record: ServiceAccount) -> None:
        """Delete the account with its API keys, and the roles of others on it.

        Its own role bindings remain, without effect.
        """
        for key in list(org.api_keys.values()):
            if key.owner == record.id:
                del org.api_keys[key.id]
        for binding in list(org.role_bindings.values()):
            if binding.pattern == record.crn:
                del org.role_bindings[binding.id]
        super().erase(org, record)


def _require_administrator(call: Call) -> None:
    """Raise ApiError unless the caller is an administrator of something."""
    is_administrator = call.principal == call.org.owner or any(
        binding.principal == f"User:{call.principal}"
        and binding.role in ("OrganizationAdmin", "EnvironmentAdmin", "CloudClusterAdmin")
        for binding in call.org.role_bindings.values()
    )
    if not is_administrator:
        raise forbidden()


def bind_role(org: Organization, principal: str, role: str, pattern: str) -> RoleBinding:
    """Bind a role that is effective at once."""
    new = org.create_id("rb")
    now = org.clock.now()
    binding = RoleBinding(new, f"{org.crn}/role-binding={new}", now, now, principal, role, pattern, now)
    org.role_bindings[new] = binding
    return binding


class RoleBindings(Kind[RoleBinding]):
    """A role binding takes effect some time after its creation, and can't be updated."""

    api = ROLE_BINDINGS
    api_version = "iam/v2"
    name = "RoleBinding"
    path = "/iam/v2/role-bindings"
    store = "role_bindings"
    record = RoleBinding
    id_prefix = "rb"
    spec = ""
    verbs = ("create", "list", "read", "delete")
    instead: ClassVar[Mapping[str, Mapping[int, int]]] = {"create": {422: 400}}
    fields = (
        Field("principal", "principal", required=True),
        Field("role_name", "role", required=True),
        Field("crn_pattern", "pattern", required=True),
    )
    filters = (("principal", "principal"), ("role_name", "role"))

    def authorize(self, call: Call, verb: str, record: RoleBinding | None) -> None:
        if verb == "delete" and record:
            require(call, "grant", record.pattern)

    def check(self, call: Call, values: dict[str, Any], current: RoleBinding | None) -> None:
        principal = values["principal"]
        role = values["role"]
        pattern = unquote(values["pattern"])
        values["pattern"] = pattern
        kind, _, name = principal.partition(":")
        if kind not in ("User", "Group") or (
            kind == "User" and name not in {call.org.owner, *call.org.service_accounts}
        ):
            raise bad_request(f"principal {principal} does not exist", "/principal")
        if not may_bind(role, pattern) or not pattern.startswith(call.org.crn):
            raise bad_request(f"role {role} can't be bound at {pattern}", "/crn_pattern")
        require(call, "grant", pattern)
        for binding in call.org.role_bindings.values():
            if (binding.principal, binding.role, binding.pattern) == (principal, role, pattern):
                raise conflict("Role binding already exists")

    def compute_attributes(self, org: Organization, new_id: str) -> dict[str, Any]:
        return {"effective": org.clock.now() + org.delays.role_binding}

    def build_crn(
        self, org: Organization, parent: Resource | None, new_id: str, values: Mapping[str, Any]
    ) -> str:
        return f"{org.crn}/role-binding={new_id}"

    def build_missing_error(self, name: str) -> ApiError:
        return forbidden(f"Role binding {name} not found or access is denied")

    def is_listed(self, call: Call, record: RoleBinding) -> bool:
        """Return whether the binding's CRN pattern starts with the query parameter `crn_pattern`."""
        return record.pattern.startswith(unquote(call.query["crn_pattern"]))

    def list(self, call: Call) -> Answer:
        """List the bindings. The first one is that of the person who created the organization, whom Confluent
        makes its OrganizationAdmin (docs.confluent.io, "Predefined RBAC roles").
        """
        call.require_parameter("crn_pattern")
        org = call.org
        first = RoleBinding(
            "rb-owner",
            f"{org.crn}/role-binding=rb-owner",
            0,
            0,
            f"User:{org.owner}",
            "OrganizationAdmin",
            org.crn,
            0,
        )
        records = [
            binding
            for binding in (first, *org.role_bindings.values())
            if self.is_listed(call, binding) and self.matches_filters(call, binding)
        ]
        return build_page(call, self.api_version, self.name, records, self.build_document)

    def delete(self, call: Call) -> Answer:
        record = self.find(call, None)
        super().delete(call)
        return Answer(200, self.build_document(call.org, record))


class ApiKeys(Kind[ApiKey]):
    """Only create returns the secret.

    Keys are active after a delay. Reading a deleted key returns 403, as at the vendor.
    """

    api_version = "iam/v2"
    name = "ApiKey"
    path = "/iam/v2/api-keys"
    store = "api_keys"
    record = ApiKey
    fields = (Field("display_name", "name"), Field("description", "description"))
    filters = (("spec.owner", "owner"), ("spec.resource", "resource"))

    def create(self, call: Call) -> Answer:
        org = call.org
        spec = Fields(call.body).read_object("spec")
        if len(org.api_keys) >= org.quotas.api_keys:
            raise over_quota("apikeys_per_org", org.quotas.api_keys)
        owner = spec.read_reference("owner")
        if owner not in org.service_accounts and owner != org.owner:
            raise invalid("/spec/owner/id", f"owner {owner} does not exist")
        kind, resource, scope = _read_key_resource(org, spec)
        if call.principal != owner and not _owns_account(org, call.principal, owner):
            raise forbidden()
        delay = org.delays.kafka_key if kind is KeyKind.KAFKA else org.delays.other_key
        texts = (spec.read_text("display_name"), spec.read_text("description"))
        key = issue_key(org, owner, kind, resource, scope, delay=delay, texts=texts)
        document = self.build_document(org, key)
        return Answer(202, document | {"spec": document["spec"] | {"secret": key.secret}})

    def authorize(self, call: Call, verb: str, record: ApiKey | None) -> None:
        """Administrators manage the keys of what they administer. Every account manages its own keys."""
        if record and not self.is_listed(call, record):
            raise forbidden()

    def is_listed(self, call: Call, record: ApiKey) -> bool:
        is_own = call.principal == record.owner or _owns_account(call.org, call.principal, record.owner)
        return is_own or is_allowed(call.org, call.principal, "admin", record.scope)

    def check(self, call: Call, values: dict[str, Any], current: ApiKey | None) -> None:
        spec = Fields(call.body).read_object("spec", required=False)
        if current:
            spec.require_same_reference("owner", current.owner)
            if "resource" in spec:
                spec.read_object("resource").require_same("id", current.resource)

    def build_missing_error(self, name: str) -> ApiError:
        return forbidden("Forbidden Access")

    def read_only(self, org: Organization, record: ApiKey) -> dict[str, Any]:
        if record.owner == org.owner:
            kind = "User"
            owner_path = "/iam/v2/users"
            owner_crn = f"{org.crn}/user={record.owner}"
        else:
            kind = "ServiceAccount"
            owner_path = "/iam/v2/service-accounts"
            owner_crn = f"{org.crn}/service-account={record.owner}"
        owner = _build_reference(org, record.owner, owner_path, owner_crn)
        api_version, path = _KEY_RESOURCES[record.kind]
        target = org.clusters.get(record.resource) or org.schema_registries.get(record.resource)
        crn = target.crn if target else f"{org.crn}/{record.resource}"
        resource = _build_reference(org, record.resource, path, crn)
        return {
            "owner": owner | {"api_version": "iam/v2", "kind": kind},
            "resource": resource | {"api_version": api_version, "kind": record.kind.value},
        }


def _owns_account(org: Organization, principal: str, account: str) -> bool:
    """Return whether the principal may create keys of an account: an administrator of the organization, or
    the account's ResourceOwner (Confluent's page "Manage API Keys").
    """
    if is_allowed(org, principal, "admin", org.crn):
        return True
    known = org.service_accounts.get(account)
    return known is not None and is_allowed(org, principal, "grant", known.crn)


def _build_reference(org: Organization, name: str, path: str, crn: str) -> dict[str, str]:
    return {"id": name, "related": f"{org.addresses[Plane.CLOUD]}{path}/{name}", "resource_name": crn}


def _read_key_resource(org: Organization, spec: Fields) -> tuple[KeyKind, str, str]:
    """Return the kind of the key, its resource, and the scope at which an administrator may create it for
    another account.
    """
    if "resource" not in spec:
        return KeyKind.CLOUD, "cloud", org.crn
    resource = spec.read_object("resource")
    name = resource.read_text("id", required=True)
    if cluster := org.clusters.get(name):
        return KeyKind.KAFKA, name, cluster.scope
    if registry := org.schema_registries.get(name):
        return KeyKind.REGISTRY, name, registry.crn
    if name == "tableflow":
        resource.read_choice("kind", ["Tableflow"], "Tableflow")
        return KeyKind.TABLEFLOW, name, org.crn
    if name.removeprefix("aws.") not in org.flink_regions:
        raise invalid("/spec/resource/id", f"resource {name} does not exist")
    environment = org.environments.get(resource.read_text("environment", required=True))
    if environment is None:
        raise invalid("/spec/resource/environment", "environment does not exist")
    return KeyKind.FLINK, f"{environment.id}.{name}", environment.crn


def issue_key(
    org: Organization,
    owner: str,
    kind: KeyKind,
    resource: str,
    scope: str,
    *,
    delay: float,
    texts: tuple[str, str] = ("", ""),
) -> ApiKey:
    """Create an API key that is active after `delay` seconds.

    `texts` are its display name and description.
    """
    new = "".join(org.random.choices("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", k=16))
    now = org.clock.now()
    secret = secrets.token_urlsafe(48)
    key = ApiKey(
        new, f"{org.crn}/api-key={new}", now, now, secret, owner, kind, resource, scope, now + delay, *texts
    )
    org.api_keys[new] = key
    return key


KINDS: Final[tuple[Kind[Any], ...]] = (ServiceAccounts(), RoleBindings(), ApiKeys())
