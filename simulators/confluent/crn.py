"""Confluent resource names: what a role binding's pattern covers."""

from __future__ import annotations

from urllib.parse import unquote


def organization(organization_id: str) -> str:
    return f"crn://confluent.cloud/organization={organization_id}"


def covers(pattern: str, name: str) -> bool:
    """Whether `name` is what `pattern` names, or lies within it. A `*` at the end stands for any continuation."""
    pattern, name = unquote(pattern), unquote(name)
    if pattern.endswith("*"):
        return name.startswith(pattern[:-1])
    return name == pattern or name.startswith(f"{pattern}/")


def cluster_scope(cluster_crn: str) -> str:
    """The scope of roles on a Kafka cluster: its CRN without the last part."""
    return cluster_crn.rpartition("/")[0]
