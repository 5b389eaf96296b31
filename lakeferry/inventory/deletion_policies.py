"""What deleting the deployed stacks does with data, by their templates."""

from __future__ import annotations

from typing import Any, Final

import attrs

from lakeferry.deployment import stacks
from lakeferry.deployment.context import DeploymentContext
from lakeferry.deployment.stacks import Stack
from lakeferry.error_translation import translate_aws_errors
from lakeferry.inventory.aws_kinds import KINDS
from lakeferry.inventory.model import Item
from lakeferry.inventory.ownership import GIVEN_UP
from lambdas import contract

#: Kinds that hold data. They are kept if their stack was deployed with on_destroy = "keep".
_DATA: Final = tuple(kind.name for kind in KINDS if kind.is_data)
_IN_GLUE: Final = ("glue_database", "glue_table")
_RETAINED: Final = ("Retain", "RetainExceptOnCreate")
_CLUSTER: Final = contract.resource_type("kafka_cluster")
_TABLE: Final = contract.resource_type("tableflow_topic")
_CLEANED: Final = tuple(f"{contract.CLEANUP_ID}:{cleanup}:" for cleanup in contract.CLEANUPS)


@attrs.frozen
class DeletionPolicies:
    """What deleting the stacks does with data, by their templates.

    `deleted` and `retained` are physical ids. `managed_tables` are the topics whose tables are in Confluent's
    storage.
    """

    stacks: tuple[Stack, ...] = ()
    deleted: frozenset[str] = frozenset()
    retained: frozenset[str] = frozenset()
    protects_cluster: bool = False
    managed_tables: frozenset[str] = frozenset()

    def keep(self, item: Item) -> bool | None:
        """Return whether the item is kept; None if no stack decides that, so the deployment file does."""
        if item.kind not in _DATA:
            return None
        id = item.parents[0] if item.kind == "glue_table" else item.id
        if id in self.deleted:
            return False
        # Only a cleanup resource deletes a database that Tableflow created.
        of_tableflow = item.kind in _IN_GLUE and any(stack.name == item.owner for stack in self.stacks)
        return True if id in self.retained or of_tableflow else None


def read_policies(ctx: DeploymentContext) -> DeletionPolicies:
    """Raises CommandFailed."""
    deleted = set[str]()
    retained = set[str]()
    managed_tables = set[str]()
    protects_cluster = False
    with translate_aws_errors("reading the stacks"):
        described = (stacks.describe(ctx, name, with_resources=True) for name in stacks.list_names(ctx))
        current = tuple(stack for stack in described if stack)
        for stack in current:
            bodies: dict[str, Any] = (
                stacks.read_template(ctx, stack.id).get("Resources", {}) if stack.resources else {}
            )
            for resource in stack.resources:
                id = resource.physical_id
                body = bodies.get(resource.logical_id, {})
                if resource.status in GIVEN_UP:
                    continue
                deleted.update(id.removeprefix(cleaned) for cleaned in _CLEANED if id.startswith(cleaned))
                (retained if body.get("DeletionPolicy") in _RETAINED else deleted).add(id)
                properties = body.get("Properties", {})
                if resource.type == _TABLE and properties.get("storage") == "managed":
                    managed_tables.add(str(properties.get("topic")))
                protection = str(properties.get("deletion_protection", ""))
                # Only active stacks count: one that can't be updated can't be deployed without the
                # protection.
                protects_cluster |= (
                    resource.type == _CLUSTER and protection.lower() == "true" and stack.is_active
                )
    return DeletionPolicies(
        stacks=current,
        deleted=frozenset(deleted),
        retained=frozenset(retained),
        protects_cluster=protects_cluster,
        managed_tables=frozenset(managed_tables),
    )
