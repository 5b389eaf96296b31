"""resources.md: every type of custom resource with its properties, its outputs, and what replaces it."""

from __future__ import annotations

from typing import Any

import attrs

from dev.docs import markdown
from dev.docs.markdown import format_code
from lambdas import contract
from lambdas.custom_resources.registry import RESOURCE_TYPES
from lambdas.shared.resource import ResourceHandler

_INTRO = """\
The types of custom resources of a stack; each is an object of Confluent Cloud or Snowflake. They share one lifecycle: requests
may come twice, late or after their rollback; names consist of project, stage, region, account, stack and logical id; an object
whose id was lost is found again by its name; nothing is written if nothing differs. Secrets are never properties or outputs: a
property names the secret in Secrets Manager.

Every resource also has the property `kind`."""

_OWNERSHIP = """\
An object that isn't proved to be the resource's own is never changed, deleted, disabled or undone. A search that found nothing
proves nothing: somebody else may create the object after it. A create that the vendor certainly refused (400, 403, 409, 429)
proves nothing either; one that got no answer, or a 5xx, may have made the object."""


def build_page() -> str:
    kinds = [_describe_kind(name, resource_type.handler) for name, resource_type in RESOURCE_TYPES.items()]
    return markdown.format_page("Resources", _INTRO, _describe_ownership(), *kinds)


def _describe_ownership() -> str:
    rows = [
        (format_code(name), kind.ownership.meets, kind.ownership.proof)
        for name, kind in RESOURCE_TYPES.items()
    ]
    return "\n\n".join(
        [
            "## Whose an object is",
            _OWNERSHIP,
            markdown.format_table(["type", "can it meet a foreign one", "proof"], rows),
        ]
    )


def _describe_kind(name: str, kind: ResourceHandler) -> str:
    replace = ", ".join(format_code(name) for name in kind.PROPERTIES.CREATE_ONLY)
    outputs = ", ".join(format_code(name) for name in kind.PROPERTIES.OUTPUTS._fields)
    parts = [
        f"## {name}",
        f"`{contract.resource_type(name)}`. {_read_docstring(kind)}",
        markdown.format_table(
            ["property", "", "what it is"],
            [_describe_property(field) for field in attrs.fields(kind.PROPERTIES)],
        ),
        f"Replaced if one of these changes: {replace}." if replace else "Never replaced.",
        f"Outputs: {outputs}. CloudFormation waits {kind.TIMEOUT_SECONDS / 60:.0f} minutes at most.",
    ]
    return "\n\n".join(parts)


def _read_docstring(kind: ResourceHandler) -> str:
    """Return the handler's docstring, which says what the type is."""
    return " ".join(str(kind.__doc__).split())


def _describe_property(field: attrs.Attribute[Any]) -> tuple[str, str, str]:
    choices = [format_code(str(choice)) for choice in field.metadata["one_of"] if choice != ""]
    text = str(field.metadata["doc"]) + (f" One of {', '.join(choices)}." if choices else "")
    return format_code(field.name), _describe_need(field), text


def _describe_need(field: attrs.Attribute[Any]) -> str:
    if field.default is attrs.NOTHING:
        return "required"
    has_default = (
        isinstance(field.default, str | int) and not isinstance(field.default, bool) and field.default != ""
    )
    if has_default or field.default is True:
        return f"default {format_code(str(field.default).lower() if field.default is True else str(field.default))}"
    return "optional"
