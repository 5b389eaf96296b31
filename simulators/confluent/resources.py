"""The CRUD APIs: subclasses of Kind declare the fields, parent, quota and rules of a kind of resource."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, ClassVar, Final, Generic

import attrs

from simulators.confluent import access
from simulators.confluent.errors import ApiError, immutable, invalid, not_found, over_quota
from simulators.confluent.fields import ANY_TEXT, Fields
from simulators.confluent.http import CONTROL, Answer, Api, Call, Route
from simulators.confluent.model import Plane, Resource
from simulators.confluent.organization import CLOUD, Organization
from simulators.confluent.pages import R, build_page

_NEW: Final = object()


@attrs.frozen
class Field:
    """A property in the body.

    `path` has dots between nested objects. `attribute` is the record's; it is empty for a constant, the first
    of `choices`. A required field of a nested object is required whenever the object is sent; with
    `optional_object`, a new resource may lack the object. `synonyms` maps other values that clients may send
    to the stored ones.
    """

    path: str
    attribute: str = ""
    type: type[str] | type[int] | type[bool] = str
    required: bool = False
    optional_object: bool = False
    default: Any = ""
    pattern: str = ANY_TEXT
    choices: Collection[Any] | Callable[[Organization], Collection[Any]] = ()
    synonyms: Mapping[str, str] = attrs.field(factory=dict)
    not_simulated: Collection[str] = ()
    immutable: bool = False
    omit_empty: bool = False

    def get_value(self, record: Resource) -> Any:
        return getattr(record, self.attribute) if self.attribute else next(iter(self.choices))  # type: ignore[arg-type]

    def read(self, org: Organization, body: Fields, current: Any = _NEW) -> Any:
        """Return the value for a new resource, or for an update of one that has the value `current`.

        Raises ApiError.
        """
        *objects, name = self.path.split(".")
        for part in objects:
            if part not in body and (current is not _NEW or self.optional_object):
                return self.default if current is _NEW else current
            body = body.read_object(part)
        if self.immutable and current is not _NEW:
            if name in body and self.synonyms.get(body.get_raw(name), body.get_raw(name)) != current:
                raise immutable(body.build_pointer(name))
            return current
        required = self.required and (current is _NEW or bool(objects) or name in body)
        default = None
        if not required:
            default = self.default if current is _NEW else current
        value = self._read_value(org, body, name, default)
        if value in self.not_simulated:
            raise invalid(body.build_pointer(name), f"{value} is not simulated")
        return self.synonyms.get(value, value)

    def _read_value(self, org: Organization, body: Fields, name: str, default: Any) -> Any:
        """Return the checked value. `default` is None for a required field."""
        choices = self.choices(org) if callable(self.choices) else self.choices
        if self.type is bool:
            return body.read_flag(name, default)
        if self.type is int:
            return body.read_integer(name, default, among=choices or None)
        if choices or self.synonyms:
            return body.read_choice(name, (*choices, *self.synonyms, *self.not_simulated), default)
        return body.read_text(name, default or "", required=default is None, pattern=self.pattern)


@attrs.frozen
class Parent:
    """The object that contains the resources. `attribute` is the attribute of their records that has its id.

    The functions find the object and check that the caller may use it. They raise ApiError.
    """

    attribute: str
    of_query: Callable[[Call], Resource]
    of_body: Callable[[Call, Fields], Resource]


ENVIRONMENT: Final = Parent("environment", access.find_environment_of_query, access.find_environment_of_body)
CLUSTER: Final = Parent("cluster", access.find_cluster_of_query, access.find_cluster_of_body)
CLOUD_FIELD: Final = Field("cloud", choices=(CLOUD,), required=True, immutable=True)


class Kind(Generic[R]):
    """Subclasses declare a kind of resource, and override the verbs and rules in which it differs.

    `label` is the name of the kind in messages. `store` is the attribute of Organization that has the
    records. `spec` is the object in the body that has the fields, empty for the body itself. `filters` are
    pairs of a query parameter of lists and an attribute of the record. `quota` is the vendor's name of a
    quota and the attribute of Quotas. `instead` has `Route.instead` by verb.
    """

    api: ClassVar[Api] = CONTROL
    api_version: ClassVar[str]
    name: ClassVar[str]
    path: ClassVar[str]
    label: ClassVar[str] = ""
    store: ClassVar[str] = ""
    record: ClassVar[type[Any]] = Resource
    id_prefix: ClassVar[str] = ""
    spec: ClassVar[str] = "spec"
    parent: ClassVar[Parent | None] = None
    fields: ClassVar[tuple[Field, ...]] = ()
    filters: ClassVar[tuple[tuple[str, str], ...]] = ()
    quota: ClassVar[tuple[str, str] | None] = None
    quota_within_parent: ClassVar[bool] = False
    created_status: ClassVar[int] = 201
    verbs: ClassVar[tuple[str, ...]] = ("create", "list", "read", "update", "delete")
    instead: ClassVar[Mapping[str, Mapping[int, int]]] = {}

    # Rules that subclasses override.

    def authorize(self, call: Call, verb: str, record: R | None) -> None:
        """Check the caller's rights beyond those on the parent.

        `record` is None for create. Raises ApiError.
        """

    def check(self, call: Call, values: dict[str, Any], current: R | None) -> None:
        """Check rules that involve several fields or other objects.

        `current` is None for a new resource. Raises ApiError.
        """

    def compute_attributes(self, org: Organization, new_id: str) -> dict[str, Any]:
        """Return the attributes of a new record that aren't fields."""
        return {}

    def build_crn(
        self, org: Organization, parent: Resource | None, new_id: str, values: Mapping[str, Any]
    ) -> str:
        raise NotImplementedError

    def start_lifecycle(self, org: Organization, record: R) -> None:
        """Start the lifecycle of a new record."""

    def act_on_update(self, org: Organization, record: R, body: Fields) -> None:
        """Act on an update. `record` already has its new values."""

    def check_deletable(self, org: Organization, record: R) -> None:
        """Raise ApiError if the record can't be deleted."""

    def erase(self, org: Organization, record: R) -> None:
        del self.list_objects(org)[record.id]

    def build_missing_error(self, name: str) -> ApiError:
        return not_found(self.label, name)

    def is_gone(self, record: R) -> bool:
        return False

    def is_listed(self, call: Call, record: R) -> bool:
        return True

    def describe_status(self, org: Organization, record: R) -> dict[str, Any]:
        return {}

    def read_only(self, org: Organization, record: R) -> dict[str, Any]:
        """Return the read-only properties by dotted path."""
        return {}

    # The verbs.

    def create(self, call: Call) -> Answer:
        org = call.org
        body = self._read_body(call, required=True)
        parent = self.parent.of_body(call, body) if self.parent else None
        self.authorize(call, "create", None)
        self._require_quota(org, parent)
        values = {field.attribute: field.read(org, body) for field in self.fields}
        values.pop("", None)
        values |= _list_parents(parent)
        self.check(call, values, None)
        new = org.create_id(self.id_prefix)
        now = org.clock.now()
        crn = self.build_crn(org, parent, new, values)
        record: R = self.record(
            id=new, crn=crn, created=now, updated=now, **values, **self.compute_attributes(org, new)
        )
        self.list_objects(org)[new] = record
        self.start_lifecycle(org, record)
        return Answer(self.created_status, self.build_document(org, record))

    def list(self, call: Call) -> Answer:
        parent = self.parent.of_query(call) if self.parent else None
        records = [
            record
            for record in self.list_objects(call.org).values()
            if self._is_in(record, parent)
            and self.is_listed(call, record)
            and self.matches_filters(call, record)
        ]
        return build_page(call, self.api_version, self.name, records, self.build_document)

    def matches_filters(self, call: Call, record: Resource) -> bool:
        for name, attribute in self.filters:
            if call.query.get(name, "") not in ("", getattr(record, attribute)):
                return False
        return True

    def read(self, call: Call) -> Answer:
        parent = self.parent.of_query(call) if self.parent else None
        record = self.find(call, parent)
        self.authorize(call, "read", record)
        return Answer(200, self.build_document(call.org, record))

    def update(self, call: Call) -> Answer:
        org = call.org
        body = self._read_body(call, required=self.parent is not None)
        parent = self.parent.of_body(call, body) if self.parent else None
        record = self.find(call, parent)
        self.authorize(call, "update", record)
        values = {field.attribute: field.read(org, body, field.get_value(record)) for field in self.fields}
        values.pop("", None)
        self.check(call, values, record)
        for name, value in values.items():
            setattr(record, name, value)
        record.updated = org.clock.now()
        self.act_on_update(org, record, body)
        return Answer(200, self.build_document(org, record))

    def delete(self, call: Call) -> Answer:
        parent = self.parent.of_query(call) if self.parent else None
        record = self.find(call, parent)
        self.authorize(call, "delete", record)
        self.check_deletable(call.org, record)
        self.erase(call.org, record)
        return Answer(204)

    def build_routes(self) -> tuple[Route, ...]:
        record_path = self.path + "/{id}"
        table = {
            "create": ("POST", self.path, self.create),
            "list": ("GET", self.path, self.list),
            "read": ("GET", record_path, self.read),
            "update": ("PATCH", record_path, self.update),
            "delete": ("DELETE", record_path, self.delete),
        }
        return tuple(Route(self.api, *table[verb], self.instead.get(verb, {})) for verb in self.verbs)

    def list_objects(self, org: Organization) -> dict[str, R]:
        objects: dict[str, R] = getattr(org, self.store)
        return objects

    def find(self, call: Call, parent: Resource | None) -> R:
        record = self.list_objects(call.org).get(call.parameters["id"])
        if record is None or not self._is_in(record, parent) or self.is_gone(record):
            raise self.build_missing_error(call.parameters["id"])
        return record

    def build_document(self, org: Organization, record: R) -> dict[str, Any]:
        body: dict[str, Any] = {}
        for field in self.fields:
            if (value := field.get_value(record)) or not field.omit_empty:
                _put(body, field.path, value)
        for path, value in (self._build_references(org, record) | self.read_only(org, record)).items():
            _put(body, path, value)
        document = self.build_header(org, record)
        document |= {self.spec: body} if self.spec else body
        if status := self.describe_status(org, record):
            document["status"] = status
        return document

    def build_header(self, org: Organization, record: R) -> dict[str, Any]:
        query = f"?environment={getattr(record, 'environment', '')}" if self.parent else ""
        if self.parent is CLUSTER:
            query += f"&spec.kafka_cluster={getattr(record, 'cluster', '')}"
        return build_header(org, self.api_version, self.name, self.path, record, query=query)

    def _read_body(self, call: Call, *, required: bool) -> Fields:
        body = Fields(call.body)
        return body.read_object(self.spec, required=required) if self.spec else body

    def _is_in(self, record: R, parent: Resource | None) -> bool:
        return self.parent is None or parent is None or getattr(record, self.parent.attribute) == parent.id

    def _require_quota(self, org: Organization, parent: Resource | None) -> None:
        if self.quota:
            name, attribute = self.quota
            counted_parent = parent if self.quota_within_parent else None
            limit: int = getattr(org.quotas, attribute)
            count = sum(self._is_in(record, counted_parent) for record in self.list_objects(org).values())
            if count >= limit:
                raise over_quota(name, limit)

    def _build_references(self, org: Organization, record: R) -> dict[str, Any]:
        references: dict[str, Any] = {}
        if self.parent:
            environment = org.environments[getattr(record, "environment", "")]
            references["environment"] = build_reference(org, environment, "/org/v2/environments")
        if self.parent is CLUSTER:
            cluster = org.clusters[getattr(record, "cluster", "")]
            references["kafka_cluster"] = build_reference(
                org, cluster, "/cmk/v2/clusters", cluster.environment
            )
        return references


def _list_parents(parent: Resource | None) -> dict[str, str]:
    """Return the attributes of a record in `parent`: for a cluster, its environment too."""
    if parent is None:
        return {}
    environment = getattr(parent, "environment", "")
    if not environment:
        return {"environment": parent.id}
    return {"environment": environment, "cluster": parent.id}


def _put(body: dict[str, Any], path: str, value: Any) -> None:
    *objects, name = path.split(".")
    for part in objects:
        body = body.setdefault(part, {})
    body[name] = value


def build_header(
    org: Organization, api_version: str, name: str, path: str, record: Resource, *, query: str = ""
) -> dict[str, Any]:
    metadata = {
        "self": f"{org.addresses[Plane.CLOUD]}{path}/{record.id}{query}",
        "resource_name": record.crn,
        "created_at": org.clock.format_time(record.created),
        "updated_at": org.clock.format_time(record.updated),
    }
    return {"api_version": api_version, "kind": name, "id": record.id, "metadata": metadata}


def build_reference(
    org: Organization, resource: Resource, path: str, environment: str = ""
) -> dict[str, str]:
    """Return a complete object reference. Of the client's own reference, only the id is used."""
    environment_field = {"environment": environment} if environment else {}
    related = f"{org.addresses[Plane.CLOUD]}{path}/{resource.id}"
    return {"id": resource.id, **environment_field, "related": related, "resource_name": resource.crn}
