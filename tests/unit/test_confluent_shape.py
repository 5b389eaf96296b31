"""All resource types have the same interface, and the contract with the stacks is correct."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import attrs
import pytest

from lambdas import contract
from lambdas.confluent.resources import acl, role_binding
from lambdas.custom_resources.registry import RESOURCE_TYPES

VERBS = ["create", "is_ready", "update", "delete", "find_existing"]


@pytest.mark.parametrize("name", RESOURCE_TYPES)
def test_every_kind_has_the_same_verbs_in_the_same_order(name):
    source = Path(inspect.getfile(RESOURCE_TYPES[name].handler)).read_text()
    defined = re.findall(
        r"^(?:def )?(create|is_ready|update|delete|find_existing)\b(?=\()", source, re.MULTILINE
    )
    assert defined == VERBS


@pytest.mark.parametrize("name", RESOURCE_TYPES)
def test_every_resource_type_is_registered_by_its_own_name(name):
    handler = RESOURCE_TYPES[name].handler
    assert name == handler.PROPERTIES.TYPE
    assert handler.PROPERTIES.OUTPUTS._fields
    assert set(handler.PROPERTIES.CREATE_ONLY) <= {field.name for field in attrs.fields(handler.PROPERTIES)}
    assert handler.TIMEOUT_SECONDS < contract.TOTAL_TIMEOUT_SECONDS


def test_the_least_privileges_name_known_accounts_roles_and_scopes():
    scopes = {field.name: field.metadata["one_of"] for field in attrs.fields(role_binding.PROPERTIES)}[
        "scope"
    ]
    entries = {field.name: field.metadata["one_of"] for field in attrs.fields(acl.PROPERTIES)}
    assert {role.account for role in contract.ROLES} | {entry.account for entry in contract.ACLS} == set(
        contract.ACCOUNTS
    )
    assert all(role.scope in scopes for role in contract.ROLES)
    for entry in contract.ACLS:
        assert entry.operation in entries["operation"]
        assert entry.resource_type in entries["resource_type"]
