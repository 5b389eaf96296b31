"""Ids and names of objects: equal for equal resources, unique otherwise, and the same in every release."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lambdas import contract
from lambdas.confluent.resources import environment, topic
from lambdas.custom_resources import request
from lambdas.custom_resources.registry import RESOURCE_TYPES
from lambdas.custom_resources.request import Identity
from lambdas.shared.errors import LakeferryError
from lambdas.shared.properties import parse
from tests.support.toy_kind import Spec, ToyKind

NAME = {
    "project": "lakeferry",
    "stage": "dev",
    "region": "eu-west-1",
    "account": "111122223333",
    "stack": "lake",
    "logical_id": "AppManager5F2C",
    "generation": "0",
}
STACK = "arn:aws:cloudformation:eu-west-1:111122223333:stack/lake/11111111-2222-3333-4444-555555555555"
EVENT = {
    "RequestType": "Create",
    "RequestId": "r1",
    "StackId": STACK,
    "LogicalResourceId": "Toy",
    "ResourceProperties": {"kind": "toy"},
}


def test_names_of_living_objects_never_change():
    assert contract.build_object_name(**NAME) == "lakeferry-dev-eu-west-1-appmanager5f2c-9f08b8b2"


def test_ids_of_living_objects_never_change():
    spec = parse(
        topic.PROPERTIES,
        {"environment_id": "env-1", "cluster_id": "lkc-1", "credentials": "a", "topic": "t"},
        strict=True,
    )
    assert request.compute_generation(topic, spec) == "f1747aab"
    assert request.compute_generation(environment, parse(environment.PROPERTIES, {}, strict=True)) == "0"
    assert str(Identity("topic", "Trades", "f1747aab")) == "lf1:topic:Trades:f1747aab"


@given(st.fixed_dictionaries({name: st.text(max_size=200) for name in NAME}))
def test_every_name_is_valid_for_all_resource_types(parts):
    name = contract.build_object_name(**parts)
    assert re.fullmatch(r"[a-z0-9-]{8,60}", name)
    assert re.fullmatch(r"(?:[0-9A-Za-z\-])[\w\.-]{0,63}", name), "a compute pool's pattern"
    assert re.fullmatch(r".*[a-z0-9]", name)


@pytest.mark.parametrize("part", NAME)
def test_a_name_depends_on_every_part_even_if_truncated(part):
    long = {**NAME, "logical_id": "A" * 200}
    for names in (NAME, long):
        assert contract.build_object_name(**names) != contract.build_object_name(
            **{**names, part: names[part] + "x"}
        )


def test_names_of_a_deployment_begin_alike():
    prefix = contract.name_prefix("lakeferry", "dev", "eu-west-1")
    assert prefix == "lakeferry-dev-eu-west-1-"
    assert contract.build_object_name(**NAME).startswith(prefix)


def test_types_of_cloudformation():
    assert contract.resource_type("kafka_cluster") == "Custom::LakeferryKafkaCluster"
    assert all(len(contract.resource_type(kind)) <= 60 for kind in RESOURCE_TYPES)


def test_an_id_is_read_back_and_a_foreign_one_is_not():
    ours = Identity("topic", "Trades", "f1747aab")
    assert request.parse_physical_id(str(ours)) == ours
    for foreign in ("", "lake-Toy-1ABCDEF", "lf2:topic:Trades:0", "lf1:topic:Trades", "lf1:a:b:c:d"):
        assert request.parse_physical_id(foreign) is None


@given(st.tuples(*[st.sampled_from(["north", "south"])] * 2), st.tuples(*[st.integers(1, 2)] * 2))
def test_a_generation_depends_on_replacing_properties_only(shelves, sizes):
    one, other = (Spec(shelf=shelf, size=size) for shelf, size in zip(shelves, sizes, strict=True))
    same = shelves[0] == shelves[1]
    assert (
        request.compute_generation(ToyKind(), one) == request.compute_generation(ToyKind(), other)
    ) is same
    assert request.is_replaced(ToyKind(), one, other) is not same


def test_an_event_is_read():
    asked = request.read_request(
        {
            **EVENT,
            "RequestType": "Update",
            "PhysicalResourceId": "lf1:toy:Toy:0",
            "OldResourceProperties": {"a": 1},
        }
    )
    assert (asked.id, asked.verb, asked.kind, asked.before) == ("r1", "Update", "toy", {"a": 1})
    assert asked.identity == Identity("toy", "Toy", "0")
    assert request.parse_stack_arn(STACK) == ("111122223333", "eu-west-1", "lake")


@pytest.mark.parametrize("physical_id", ["lf1:toy:Other:0", "lf1:topic:Toy:0", "invented"])
def test_an_id_of_another_resource_is_not_accepted(physical_id):
    assert request.read_request({**EVENT, "PhysicalResourceId": physical_id}).identity is None


@pytest.mark.parametrize(
    "missing", ["RequestType", "RequestId", "StackId", "LogicalResourceId", "ResourceProperties"]
)
def test_an_event_that_cloudformation_does_not_send(missing):
    with pytest.raises(LakeferryError) as refused:
        request.read_request({name: value for name, value in EVENT.items() if name != missing})
    assert refused.value.kind.code == "LF-FOREIGN-EVENT"


@pytest.mark.parametrize(
    "changed", [{"RequestType": "Read"}, {"ResourceProperties": 7}, {"ResourceProperties": None}]
)
def test_an_event_of_another_form(changed):
    with pytest.raises(LakeferryError):
        request.read_request({**EVENT, **changed})


@pytest.mark.parametrize(
    "stack", ["", "arn:aws:s3:::bucket", "arn:aws:cloudformation:eu-west-1:1:changeSet/x/y", "None"]
)
def test_invalid_stack_ids(stack):
    with pytest.raises(LakeferryError):
        request.parse_stack_arn(stack)


def test_marks_of_properties():
    marks = [
        request.read_request({**EVENT, "ResourceProperties": properties}).fingerprint
        for properties in ({"a": 1, "b": 2}, {"b": 2, "a": 1}, {"a": 1})
    ]
    assert marks[0] == marks[1]
    assert len(set(marks)) == 2
    assert all(mark for mark in itertools.chain(marks))
