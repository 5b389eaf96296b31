"""Checks requests and responses against Confluent's OpenAPI files in contracts/confluent.

Extensible enums count as closed: a value that the file doesn't name is more likely a mistake of ours. Where
real responses differ from the file, the difference is a named patch.
"""

from __future__ import annotations

import gzip
import re
from functools import cache
from pathlib import Path
from urllib.parse import parse_qsl

import yaml
from openapi_schema_validator import OAS30ReadValidator, OAS30WriteValidator, oas30_format_checker
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

FOLDER = Path(__file__).with_name("contracts") / "confluent"

_BASE = "contract:file"
_FILES = {
    "/org/v2": "org-v2",
    "/cmk/v2": "cmk-v2",
    "/iam/v2/service-accounts": "iam-v2",
    "/iam/v2/api-keys": "apikeys-v2",
    "/iam/v2/role-bindings": "mds-v2",
    "/srcm/v3": "srcm-v3",
    "/connect/v1": "connect-v1",
    "/fcpm/v2": "flink-v2",
    "/sql/v1": "flink-gateway-v1",
    "/kafka/v3": "kafkarest-v3",
    "/pim/v1": "provider-integration-v1",
    "/pim/v2": "provider-integration-v2",
    "/tableflow/v1": "tableflow-v1",
    "/subjects": "schema-registry-v1",
    "/schemas": "schema-registry-v1",
    "/config": "schema-registry-v1",
    "/mode": "schema-registry-v1",
    "/compatibility": "schema-registry-v1",
}
#: APIs without a file in the folder. Their requests and responses follow the API reference, unchecked.
_WITHOUT_FILE = ("/networking/v1/",)


class ContractBroken(AssertionError):
    """A request or response that the OpenAPI file doesn't allow."""


def check(method, path, query, status, content_type, document):
    """Check a response, and raise ContractBroken. `document` is the parsed body, or None without one."""
    if path.startswith(_WITHOUT_FILE):
        return
    name = _name(path)
    if any(patch(method, path, query, status) for patch in PATCHES):
        return
    operation = _operation(name, method, path)
    where = f"{method} {path} answered {status}"
    described = _described(operation["responses"], status)
    if described is None:
        raise ContractBroken(f"{where}, which {name}.yaml does not declare")
    schema = _schema(_resolve(name, described), content_type)
    if schema is None:
        return
    problems = sorted(_validator(name, schema).iter_errors(document), key=lambda each: list(each.path))
    if problems:
        result = "; ".join(
            f"{'/'.join(map(str, problem.path))}: {problem.message[:300]}" for problem in problems[:3]
        )
        raise ContractBroken(f"{where}, and {name}.yaml says otherwise: {result}")


def check_request(method, path, query, content_type, document):
    """Check a request, and raise ContractBroken for unknown or missing query parameters and for a body that
    isn't allowed.
    """
    if path.startswith(_WITHOUT_FILE):
        return
    name = _name(path)
    operation = _operation(name, method, path)
    item = _item(name, method, path)
    parameters = [
        _resolve(name, part) for part in (*item.get("parameters", []), *operation.get("parameters", []))
    ]
    declared = {each["name"]: each for each in parameters if each["in"] == "query"}
    where = f"{method} {path}"
    for given, value in parse_qsl(query, keep_blank_values=True):
        if given not in declared and (given, path.split("/")[1]) not in UNDECLARED:
            raise ContractBroken(f"{where} has the parameter {given!r}, which {name}.yaml does not know")
        if given in declared:
            schema = _resolve(name, declared[given].get("schema", {}))
            _require_valid(name, schema, _typed(schema, value), f"{where}?{given}")
    lacking = [
        each for each, parameter in declared.items() if parameter.get("required") and f"{each}=" not in query
    ]
    if lacking:
        raise ContractBroken(f"{where} lacks {', '.join(lacking)}")
    body = operation.get("requestBody")
    if document is None or body is None:
        if document is not None or (body is not None and _resolve(name, body).get("required")):
            raise ContractBroken(f"{where}: a body is {'not ' if body is None else ''}wanted")
        return
    schema = _schema(_resolve(name, body), content_type)
    if schema is not None:
        _require_valid(name, schema, document, where)
        if unknown := list(_unknown(name, [schema], document)):
            raise ContractBroken(f"{where} has {', '.join(unknown)}, which {name}.yaml does not know")


def _unknown(name, schemas, document):
    """Yield the properties of a body that no schema names: the service would ignore them."""
    schemas = [_resolve(name, schema) for schema in schemas]
    for schema in schemas:
        schemas += [
            _resolve(name, item) for part in ("allOf", "oneOf", "anyOf") for item in schema.get(part, [])
        ]
    if isinstance(document, list):
        for value in document:
            yield from _unknown(name, [schema["items"] for schema in schemas if "items" in schema], value)
    named = [schema for schema in schemas if "properties" in schema]
    if (
        isinstance(document, dict)
        and named
        and not any(schema.get("additionalProperties") for schema in schemas)
    ):
        for key, value in document.items():
            of_key = [each["properties"][key] for each in named if key in each["properties"]]
            yield from _unknown(name, of_key, value) if of_key else [repr(key)]


#: Parameters that the services accept although their files don't name them.
UNDECLARED = {("page_size", "sql"), ("page_token", "sql"), ("expand", "connect")}


def _typed(schema, value):
    kind = schema.get("type")
    if kind == "array":
        return value.split(",")
    return (
        int(value)
        if kind == "integer" and value.isdecimal()
        else value == "true"
        if kind == "boolean"
        else value
    )


def _require_valid(name, schema, document, where):
    problems = [
        error
        for error in _validator(name, schema, OAS30WriteValidator).iter_errors(document)
        if not _is_filled_in(error)
    ]
    problems.sort(key=lambda each: list(each.path))
    if problems:
        result = "; ".join(
            f"{'/'.join(map(str, problem.path))}: {problem.message[:300]}" for problem in problems[:3]
        )
        raise ContractBroken(f"{where}, and {name}.yaml says otherwise: {result}")


def _is_filled_in(problem):
    """Return whether a problem is about a read-only field that clients send too.

    Confluent's SDKs send `kind` and `api_version` of references, and return a Flink statement with the
    version in its metadata.
    """
    return problem.validator == "readOnly" and (
        problem.path[-1] in ("kind", "api_version") or problem.path[0] == "metadata"
    )


def html_for_401_of_kafka_rest(method, path, query, status):
    return path.startswith("/kafka/v3") and status in (401, 429)


def numbered_errors_of_role_bindings(method, path, query, status):
    return path.startswith("/iam/v2/role-bindings") and status == 403


def expanded_connectors_are_a_map(method, path, query, status):
    return path.endswith("/connectors") and "expand" in query


def tableflow_sees_topics_late(method, path, query, status):
    return path == "/tableflow/v1/tableflow-topics" and method == "POST" and status == 404


def flink_put_may_conflict(method, path, query, status):
    return path.startswith("/sql/v1") and method == "PUT" and status == 409


#: Differences between real responses and the files. Kafka REST's 401 is HTML. A 403 about role bindings, also
#: the answer for a missing one, has a flat body. The list of connectors is a map when it is expanded.
#: Tableflow answers 404 for a topic that was created moments ago (terraform-provider-confluent, pull request
#: 896). Flink's PUT answers 409 for another resource_version.
PATCHES = (
    html_for_401_of_kafka_rest,
    numbered_errors_of_role_bindings,
    expanded_connectors_are_a_map,
    tableflow_sees_topics_late,
    flink_put_may_conflict,
)


def without_statement_name(schema):
    """Remove `spec.statement_name`, which the file requires of every statement and doesn't define."""
    if "statement_name" in _required(schema) and "statement_name" not in schema.get("properties", {}):
        schema["required"] = [
            required_name for required_name in schema["required"] if required_name != "statement_name"
        ]


def without_data_at_the_top(schema):
    """Remove the required `data`.

    Rows of a page are in `results.data`; the file requires them at the top level too.
    """
    properties = schema.get("properties", {})
    if "data" in _required(schema) and "results" in properties and "data" not in properties:
        schema["required"] = [
            required_name for required_name in schema["required"] if required_name != "data"
        ]


def without_connector_keys(schema):
    """Make the API key and the cluster optional.

    A service account's connector has no key; clients don't send the cluster.
    """
    if "kafka.api.key" in _required(schema):
        schema["required"] = ["connector.class", "name"]


def _required(schema):
    """Return the required fields of a schema. A parameter's `required` is a boolean."""
    required = schema.get("required", [])
    return required if isinstance(required, list) else []


def closed_enums(schema):
    if "x-extensible-enum" in schema and schema.get("type") == "string":
        schema["enum"] = schema["x-extensible-enum"]


def absolute_references(schema):
    """Make references absolute, so that each part of a file can be a schema of its own."""
    if str(schema.get("$ref", "")).startswith("#"):
        schema["$ref"] = _BASE + schema["$ref"]


def _amended(node):
    if isinstance(node, dict):
        for amend in (
            without_statement_name,
            without_data_at_the_top,
            without_connector_keys,
            closed_enums,
            absolute_references,
        ):
            amend(node)
        for item in node.values():
            _amended(item)
    elif isinstance(node, list):
        for element in node:
            _amended(element)
    return node


@cache
def _file(name):
    return _amended(yaml.load(gzip.decompress((FOLDER / f"{name}.yaml.gz").read_bytes()), yaml.CSafeLoader))


@cache
def _registry(name):
    return Registry().with_resource(
        _BASE, Resource.from_contents(_file(name), default_specification=DRAFT202012)
    )


@cache
def _paths(name):
    """Return path templates as patterns, those with the most literal text first."""
    found = []
    for template in _file(name)["paths"]:
        if "?" not in template:
            pattern = re.compile(re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(template)))
            found.append((template.count("{"), -len(template), pattern, template))
    return sorted(found, key=lambda each: each[:2])


def _name(path):
    name = next(
        (file for prefix, file in _FILES.items() if path == prefix or path.startswith(f"{prefix}/")), None
    )
    if name is None:
        raise ContractBroken(f"no file describes {path}")
    return name


def _operation(name, method, path):
    return _item(name, method, path)[method.lower()]


def _item(name, method, path):
    for _, _, pattern, template in _paths(name):
        if method.lower() in _file(name)["paths"][template] and pattern.fullmatch(path):
            return _file(name)["paths"][template]
    raise ContractBroken(f"{name}.yaml has no {method} {path}")


def _described(responses, status):
    for code in (str(status), f"{status // 100}XX", "default"):
        if code in responses:
            return responses[code]
    return None


def _resolve(name, node):
    while "$ref" in node:
        found = _file(name)
        for part in node["$ref"].removeprefix(_BASE)[2:].split("/"):
            found = found[part.replace("~1", "/").replace("~0", "~")]
        node = found
    return node


def _schema(described, content_type):
    content = described.get("content", {})
    kind = content_type.partition(";")[0]
    found = next((value for declared, value in content.items() if declared.partition(";")[0] == kind), None)
    if content and found is None:
        raise ContractBroken(f"content type {content_type!r}, and the file has {', '.join(content)}")
    return found["schema"] if found and "schema" in found else None


def _validator(name, schema, kind=OAS30ReadValidator):
    return kind(schema, registry=_registry(name), format_checker=oas30_format_checker)
