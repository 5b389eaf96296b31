"""Kinds of things in AWS: how each is listed, and by what a deployment's own are known where no stack has them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs
from botocore.exceptions import ClientError

from deployments.model import Deployment
from lakeferry.deployment.context import DeploymentContext
from lambdas.shared.aws import error_code

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
    """`made` are names that only CloudFormation gives; `cut` are such names that are cut, which another deployment may have, too.
    `ours` are names that anybody could have given.

    A thing with a name of `cut` is ours if a stack of ours had it or it has our tags, one with a name of `ours` if it says `says`
    or has our tags. `ends_by_itself`: pending deletion, it is no concern.
    """

    made: str = ""
    cut: str = ""
    ours: str = ""
    says: str = ""
    needs_tags: bool = False
    is_data: bool = False
    ends_by_itself: bool = False


@attrs.frozen
class AwsKind:
    name: str
    type: str
    find: Callable[[DeploymentContext], Iterator[Found]]
    rule: Rule

    def is_made(self, name: str) -> bool:
        return bool(self.rule.made) and re.fullmatch(self.rule.made, name) is not None

    def is_cut(self, name: str) -> bool:
        return bool(self.rule.cut) and re.fullmatch(self.rule.cut, name) is not None

    def is_like_ours(self, found: Found) -> bool:
        return bool(self.rule.ours) and re.fullmatch(self.rule.ours, found.name) is not None

    def says_so(self, found: Found) -> bool:
        return bool(self.rule.says) and re.search(self.rule.says, found.said) is not None


def generated(deployment: Deployment, *, lower: bool = False) -> str:
    """Names as CloudFormation generates them: stack, logical id, a dozen characters. Another stack's name never looks so."""
    letters = "a-z0-9" if lower else "A-Za-z0-9"
    return rf"{_stack(deployment)}-[{letters}]+-[{letters}]{{12,13}}"


def cut(deployment: Deployment) -> str:
    """The same where the name was too long and was cut to the most characters that the service allows.

    `lake-dev-data-confluent-…`, cut, may be of stack `lake-dev-data` or of stack `lake-dev-data-confluent`, so tags must decide.
    """
    return rf"(?=.{{64}}$|.{{80}}$){_stack(deployment)}-[A-Za-z0-9-]{{30,}}"


def _stack(deployment: Deployment) -> str:
    return rf"{re.escape(deployment.prefix)}-(data|confluent|snowflake|exports|operations)"


def of_list(tags: Any, key: str = "Key", value: str = "Value") -> dict[str, str]:
    return {one[key]: one[value] for one in tags or []}


def tags_of(ctx: DeploymentContext, service: str, operation: str, **asked: Any) -> Mapping[str, Any]:
    """The service's answer; none for what is gone meanwhile. Raises ClientError."""
    try:
        found: Mapping[str, Any] = getattr(ctx.client(service), operation)(**asked)
        return found
    except ClientError as error:
        if any(sign in error_code(error) for sign in ("NotFound", "NonExistent", "DoesNotExist", "NoSuch")):
            return {}
        raise


def pages(ctx: DeploymentContext, service: str, operation: str, **asked: Any) -> Iterator[dict[str, Any]]:
    client = ctx.client(service)
    if client.can_paginate(operation):
        yield from client.get_paginator(operation).paginate(**asked)
    else:
        yield getattr(client, operation)(**asked)
