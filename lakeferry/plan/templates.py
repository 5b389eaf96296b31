"""A deployment's stacks as they are synthesised, read from CDK's assembly."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import attrs


@attrs.frozen
class Wanted:
    """One stack. `resources` by logical id."""

    name: str
    template: Mapping[str, Any] = attrs.field(repr=False)
    tags: Mapping[str, str] = attrs.field(factory=dict)
    is_protected: bool = False

    @property
    def resources(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.template.get("Resources", {})
        return found


def read(folder: Path, names: Iterable[str]) -> list[Wanted]:
    """In the order of `names`, those of the deployment's stacks."""
    artifacts = _artifacts(folder)
    return [_stack(folder, name, artifacts[name]["properties"]) for name in names]


def bootstrap_version(folder: Path) -> int:
    """The oldest of CDK's bootstrap that the assembly can be deployed with."""
    asked = (artifact.get("properties", {}) for artifact in _artifacts(folder).values())
    return max((int(one.get("requiresBootstrapStackVersion") or 0) for one in asked), default=0)


def _artifacts(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["artifacts"]
    return found


def _stack(folder: Path, name: str, properties: Mapping[str, Any]) -> Wanted:
    template = json.loads((folder / properties["templateFile"]).read_text(encoding="utf-8"))
    return Wanted(name, template, properties.get("tags", {}), bool(properties.get("terminationProtection")))
