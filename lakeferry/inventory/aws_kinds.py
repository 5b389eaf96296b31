"""Kinds of things in AWS: how each is listed, and by what a deployment's own are known where no stack has them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs

from deployments.model import Deployment
from lakeferry.ground import Ground

Tags = Mapping[str, str]


@attrs.frozen
class Found:
    """`id` is what CloudFormation calls it by, `said` what a description or its like says. `tags` are asked for when needed."""

    name: str
    id: str
    said: str = ""
    tags: Callable[[], Tags] = dict
    pending: str = ""
    where: tuple[str, ...] = ()


@attrs.frozen
class Rule:
    """`made` are names that only CloudFormation gives, `ours` names that somebody else could have given, too.

    A thing with one of `ours` is ours if it says `says` or has our tags. `ends_by_itself`: pending deletion, it is no concern.
    """

    made: str = ""
    ours: str = ""
    says: str = ""
    needs_tags: bool = False
    is_data: bool = False
    ends_by_itself: bool = False


@attrs.frozen
class AwsKind:
    name: str
    type: str
    find: Callable[[Ground], Iterator[Found]]
    rule: Rule

    def is_made(self, name: str) -> bool:
        return bool(self.rule.made) and re.fullmatch(self.rule.made, name) is not None

    def is_like_ours(self, found: Found) -> bool:
        return bool(self.rule.ours) and re.fullmatch(self.rule.ours, found.name) is not None

    def says_so(self, found: Found) -> bool:
        return bool(self.rule.says) and re.search(self.rule.says, found.said) is not None


def generated(deployment: Deployment, *, lower: bool = False) -> str:
    """Names as CloudFormation makes them up: stack, logical id, a dozen signs; or all of it, cut to the longest."""
    stack = rf"{re.escape(deployment.prefix)}-(data|confluent|snowflake|exports|operations)"
    letters = "a-z0-9" if lower else "A-Za-z0-9"
    return rf"{stack}-[{letters}]+-[{letters}]{{12,13}}|(?=.{{64}}$|.{{80}}$){stack}-[{letters}-]{{30,}}"


def of_list(tags: Any, key: str = "Key", value: str = "Value") -> dict[str, str]:
    return {one[key]: one[value] for one in tags or []}


def pages(here: Ground, service: str, operation: str, **asked: Any) -> Iterator[dict[str, Any]]:
    client = here.client(service)
    if client.can_paginate(operation):
        yield from client.get_paginator(operation).paginate(**asked)
    else:
        yield getattr(client, operation)(**asked)
