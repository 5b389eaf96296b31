"""The templates' properties are valid for the resource types, each of which reads its own strictly.

The properties of each release stay valid for ever, because CloudFormation sends them with an update or a
delete by a later release. golden/ has those of each release, made once by `KEEP_PROPERTIES=1 pytest
tests/infra/test_kinds.py`.
"""

from __future__ import annotations

import copy
import io
import json
import os
import re
import tomllib
from pathlib import Path
from types import SimpleNamespace

import attrs
import pytest

from lambdas import contract
from lambdas.custom_resources import registry, request
from lambdas.custom_resources.registry import RESOURCE_TYPES, ResourceType
from lambdas.shared import errors
from lambdas.shared.errors import BadProperties, Transient
from lambdas.shared.properties import RESERVED, parse, prop
from tests.support.assembly_kit import ROOT
from tests.support.policies import ACCOUNT, Reader
from tests.support.resource_environment import Invocations, MemorySecrets, Resource

KEPT = Path(__file__).parent / "golden"
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]

#: Values in place of references, where a resource type checks the value's form.
SAMPLES = {"iam_user_arn": "arn:aws:iam::111122223333:user/x", "full_name": "SALES.PUBLIC", "name": "SALES"}


def given(assembly):
    """Return (where, kind, properties as CloudFormation sends them: all plain values are text)."""
    reader = Reader(assembly)
    for part, template in assembly.templates.items():
        for logical_id, body in template["Resources"].items():
            if body["Type"].startswith("Custom::Lakeferry") and body["Type"] not in contract.OTHER_TYPES:
                yield (
                    f"{part}.{logical_id}",
                    body["Properties"]["kind"],
                    _sent(reader.text(body["Properties"], part)),
                )


def _sent(value):
    if isinstance(value, dict):
        return {name: _sent(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_sent(item) for item in value]
    if isinstance(value, bool):
        return str(value).lower()
    text = str(value)
    for bucket in ("<data.TableflowBucket", "<data.LakeBucket"):
        if bucket in text:
            return text[: text.index(bucket)] + "a-bucket" + text[text.index(">") + 1 :]
    attribute = text.strip("<>").rpartition(".")[2] if text.startswith("<") else ""
    if text.endswith(("Table.full_name>", "Aggregates.full_name>")):
        return "SALES.PUBLIC.TRADES"
    return SAMPLES.get(attribute, text)


def test_each_resource_type_accepts_its_properties(assembly):
    seen = 0
    for where, kind, properties in given(assembly):
        try:
            parse(registry.find(kind).handler.PROPERTIES, properties, strict=True)
        except BadProperties as bad:
            pytest.fail(f"{where}: {bad}")
        seen += 1
    assert seen > 40


def test_a_wrong_value_is_found(dev):
    _, kind, properties = next(item for item in given(dev) if item[1] == "tableflow_topic")
    wrong = copy.deepcopy(properties)
    wrong["retention_ms"] = "1"
    with pytest.raises(BadProperties, match="less than 1 days"):
        parse(registry.find(kind).handler.PROPERTIES, wrong, strict=True)


def test_no_update_of_a_common_value_replaces_an_object_with_data(dev):
    """Values that users often change don't replace a topic, a table or a cluster."""
    harmless = {
        "topic": {"partitions", "config"},
        "tableflow_topic": {"retention_ms", "error_handling", "table_formats"},
        "kafka_cluster": {"type", "max_ecku", "deletion_protection"},
        "connector": {"max_interval_ms"},
    }
    for kind, changes in harmless.items():
        assert not changes & set(registry.find(kind).handler.PROPERTIES.CREATE_ONLY)


def released():
    """Return (file, logical id, kind, properties) of everything that the files of releases have."""
    for file in sorted(KEPT.glob("properties-*.json")):
        for load in json.loads(file.read_text(encoding="utf-8")):
            yield file.stem, load["logical_id"], load["kind"], load["properties"]


def refused(types):
    """Return the releases' properties that can no longer be updated or deleted, with the error."""
    invocations = Invocations(lambda *_: Unreachable(), secrets=AnySecret(), types=types, log=io.StringIO())
    for release, logical_id, name, properties in released():
        kind = types[name].handler
        try:
            spec = parse(kind.PROPERTIES, properties, strict=False)
            known = {prop: value for prop, value in properties.items() if hasattr(spec, prop)}
            resource = Resource(invocations, name, logical_id, **known)
            resource.physical_id = str(
                request.Identity(name, logical_id, request.compute_generation(kind, spec))
            )
            for asked in (resource.event("Update", properties), resource.event("Delete")):
                answer = invocations.on_event(asked)
                assert answer["PhysicalResourceId"] == resource.physical_id
                invocations.is_complete({**asked, **answer})
        except BadProperties as bad:
            yield f"{release} {logical_id}: {bad.what}"


class Unreachable:
    """A vendor that never answers. A delete with valid properties waits for it."""

    def __getattr__(self, name):
        raise Transient(errors.UNREACHABLE, f"no answer to {name}")


class AnySecret(MemorySecrets):
    def get_secret_value(self, **asked):
        return {"SecretString": json.dumps({"apiKey": "key", "apiSecret": "secret"})}


def test_the_properties_of_this_release_are_kept(assemblies):
    file = KEPT / f"properties-{VERSION}.json"
    if os.environ.get("KEEP_PROPERTIES") and not file.exists():
        each = [
            {"logical_id": where.replace(".", ""), "kind": kind, "properties": _kept(properties)}
            for stage in assemblies.values()
            for where, kind, properties in given(stage)
        ]
        file.write_text(json.dumps(each, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    assert file.exists(), f"{file.name} is missing: this module says how it is made"


def _kept(properties):
    return {name: value for name, value in properties.items() if name not in RESERVED}


def test_kept_properties_name_no_real_account():
    for file in KEPT.glob("properties-*.json"):
        assert set(re.findall(r"\d{12}", file.read_text(encoding="utf-8"))) <= {ACCOUNT}


def test_properties_of_earlier_releases_can_be_updated_and_deleted():
    assert len(list(released())) > 90
    assert list(refused(RESOURCE_TYPES)) == []


def test_a_newly_required_property_is_found():
    @attrs.frozen
    class Spec(RESOURCE_TYPES["topic"].handler.PROPERTIES):
        owner: str = prop("Who asked for it.")

    later = ResourceType(
        SimpleNamespace(**{**vars(RESOURCE_TYPES["topic"].handler), "PROPERTIES": Spec}), registry.CONFLUENT
    )
    found = list(refused({**RESOURCE_TYPES, "topic": later}))
    assert len(found) == 2
    assert all("owner: is missing" in row for row in found)
