"""All groups in the order in which they are told, and what asks for each."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from lakeferry.deployment.context import Ground
from lakeferry.health import aws, confluent, deployment_file, quotas, snowflake, storage, tools
from lakeferry.health import confluent_to_aws as confluent_hops
from lakeferry.health import snowflake_to_aws as snowflake_hops
from lakeferry.health.model import Check, Group
from lakeferry.health.runner import Probe

#: (group, what stands for its checks where they can't be made, the checks)
_OF_GROUND: Final[tuple[tuple[Group, str, Callable[[Ground], list[Check]]], ...]] = (
    (deployment_file.GROUP, "deployment file", lambda here: deployment_file.look(here.plan)),
    (aws.GROUP, "identity", aws.identity),
    (aws.GROUP, "region", aws.region),
    (aws.GROUP, "bootstrap", aws.bootstrap),
    (aws.GROUP, "Lambda: calls at once", quotas.functions),
    (aws.GROUP, "Glue: quotas", quotas.jobs),
    (storage.GROUP, "buckets", storage.look),
    (confluent.GROUP, confluent.KEY, confluent.look),
    (snowflake.GROUP, snowflake.KEY, snowflake.look),
    (confluent_hops.GROUP, confluent_hops.INTEGRATION, confluent_hops.look),
    (snowflake_hops.GROUP, snowflake_hops.VOLUME, snowflake_hops.look),
)
GROUPS: Final = tuple(dict.fromkeys([tools.GROUP.name, *(group.name for group, _, _ in _OF_GROUND)]))


def probes(here: Ground) -> list[Probe]:
    return [
        Probe(tools.GROUP, "tools", tools.look),
        *(Probe(group, name, partial(look, here)) for group, name, look in _OF_GROUND),
    ]


def without_ground() -> list[Probe]:
    """What can be looked at although the deployment file has mistakes."""
    return [Probe(tools.GROUP, "tools", tools.look)]
