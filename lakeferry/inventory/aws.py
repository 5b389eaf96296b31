"""What of a deployment is in AWS: stacks, and everything of its kinds that a stack has or that can only have been ours."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

import attrs
from botocore.exceptions import BotoCoreError, ClientError

from lakeferry.deployment.context import DeploymentContext
from lakeferry.inventory import aws_stores, aws_works, glue_tables, stacks
from lakeferry.inventory.aws_kinds import AwsKind, Found, Tags, pages
from lakeferry.inventory.model import AWS, ORPHAN, Claim, Item, Verdict, kept, left_over, not_asked
from lakeferry.inventory.stacks import Stacks

_BY_HAND: Final = "made by hand: the deployment file names it"
_KEEP: Final = 'on_destroy = "keep" in the deployment file'
_LIKE_OURS: Final = "named like ours, but nothing shows that we made it. Look at it yourself"
_TAGGED: Final = "has the deployment's tags, but no name of ours. Look at it yourself"
_OF_FUNCTION: Final = "/aws/lambda/"
_STACK_NAME: Final = "aws:cloudformation:stack-name"
_STACK_ID: Final = "aws:cloudformation:stack-id"


def take(ctx: DeploymentContext, known: Stacks) -> list[Item]:
    """A kind that can't be listed is told as such. Raises CommandFailed."""
    look = _Look(ctx, known)
    found = list(stacks.items(ctx, known))
    for kind in all_kinds(ctx):
        found += _asked(kind.name, partial(look.of_kind, kind))
    buckets = [item.name for item in found if item.kind == "bucket"]
    found += _asked("glue_table", lambda: glue_tables.take(ctx, known, buckets, look.settled))
    found += _asked("tagged", lambda: _tagged(ctx, known, found))
    return found


def all_kinds(ctx: DeploymentContext) -> list[AwsKind]:
    return [*aws_works.kinds(ctx.deployment), *aws_stores.kinds(ctx.deployment)]


def _asked(kind: str, look: Callable[[], Iterator[Item]]) -> list[Item]:
    try:
        return list(look())
    except ClientError as error:
        return [not_asked(AWS, kind, str(error.response.get("Error", {}).get("Code", "")))]
    except BotoCoreError as error:
        return [not_asked(AWS, kind, type(error).__name__)]


def _tagged(ctx: DeploymentContext, known: Stacks, found: list[Item]) -> Iterator[Item]:
    """What none of the kinds has found and no stack has, and that has our tags all the same."""
    told = ctx.deployment.deployment
    filters = [{"Key": "project", "Values": [told.name]}, {"Key": "stage", "Values": [told.stage]}]
    of_stacks = {resource.physical_id for _, resource in known.physical_ids("")}
    seen = {item.id for item in found} | {item.name for item in found} | of_stacks
    for page in pages(ctx, "resourcegroupstaggingapi", "get_resources", TagFilters=filters):
        for one in page["ResourceTagMappingList"]:
            arn, name = one["ResourceARN"], re.split("[:/]", one["ResourceARN"])[-1]
            is_gone = any(kind.is_made(name) or kind.is_cut(name) for kind in all_kinds(ctx))  # AWS remembers tags for a while
            if not is_gone and not {arn, name, arn.split(":", 5)[5]} & seen:
                yield kept(_TAGGED).item(AWS, arn.split(":")[2], name, arn)


@attrs.frozen
class _Look:
    ctx: DeploymentContext
    stacks: Stacks

    def of_kind(self, kind: AwsKind) -> Iterator[Item]:
        for found in kind.find(self.ctx):
            if claim := self._claim(kind, found):
                yield claim.item(AWS, kind.name, found.name, found.id, found.where)

    def settled(self, claim: Claim, *, is_data: bool) -> Claim:
        """Data that the file says to keep is not left over."""
        if is_data and claim.verdict is Verdict.LEFT_OVER and self.ctx.deployment.keeps_data:
            return kept(_KEEP, ORPHAN)
        return claim

    def _claim(self, kind: AwsKind, found: Found) -> Claim | None:
        if kind.type == "AWS::SecretsManager::Secret" and found.name in self._by_hand:
            return kept(_BY_HAND)
        claim = self._of_stack(kind, found)
        if claim is None or claim.whose == ORPHAN:
            claim = self._of_nobody(kind, found, claim)
        if claim is None:
            return None
        return _pending(kind, found, self.settled(claim, is_data=kind.rule.is_data))

    def _of_stack(self, kind: AwsKind, found: Found) -> Claim | None:
        """Lambda makes a function's log group where the function's stack doesn't."""
        claim = self.stacks.claim(kind.type, found.id)
        if claim is None and found.name.startswith(_OF_FUNCTION):
            return self.stacks.claim("AWS::Lambda::Function", found.name.removeprefix(_OF_FUNCTION))
        return claim

    @property
    def _by_hand(self) -> list[str]:
        told, snowflake = self.ctx.deployment, self.ctx.deployment.snowflake
        names = [told.confluent.cloud_key_secret, told.aws.pseudonym_secret, snowflake.key_secret if snowflake else None]
        return [name for name in names if name]

    def _of_nobody(self, kind: AwsKind, found: Found, former: Claim | None) -> Claim | None:
        """Of what no stack has: whether it is ours is shown by its name, by what it says, by its tags."""
        left = former or left_over("no stack has it")
        if kind.is_made(found.name):
            return None if self._is_anothers(found.tags()) else left
        if kind.is_cut(found.name):
            if self._is_anothers(found.tags()):
                return None
            return left if former or self._is_tagged(found.tags()) else kept(_LIKE_OURS)
        if kind.is_like_ours(found):
            if (kind.says_so(found) and not kind.rule.needs_tags) or self._is_tagged(found.tags()):
                return left
            return None if kind.rule.ours == ".*" or self._is_anothers(found.tags()) else kept(_LIKE_OURS)
        return former

    def _is_tagged(self, tags: Tags) -> bool:
        told = self.ctx.deployment.deployment
        ours = (tags.get("project"), tags.get("stage")) == (told.name, told.stage)
        return (ours or _STACK_NAME in tags) and not self._is_anothers(tags)

    def _is_anothers(self, tags: Tags) -> bool:
        """Whether they say that another deployment, or another stack, or one of another region, made it."""
        told = self.ctx.deployment.deployment
        stack, region = tags.get(_STACK_NAME, ""), (tags.get(_STACK_ID) or ":::").split(":")[3]
        return (
            (tags.get("project", told.name), tags.get("stage", told.stage)) != (told.name, told.stage)
            or (bool(stack) and stack not in stacks.names(self.ctx))
            or (bool(region) and region != self.ctx.region)
        )


def _pending(kind: AwsKind, found: Found, claim: Claim) -> Claim:
    if not found.pending:
        return claim
    if kind.rule.ends_by_itself:
        return attrs.evolve(claim, verdict=Verdict.KEPT, why=f"pending deletion: AWS removes it on {found.pending}")
    if claim.verdict is Verdict.LEFT_OVER:
        return attrs.evolve(claim, why=f"pending deletion since {found.pending}: until then nothing else can have its name")
    return claim
