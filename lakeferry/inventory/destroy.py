"""Destroys a whole deployment: its stacks, then the orphans, then another inventory to verify that nothing is
left.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final

import attrs
from botocore.exceptions import BotoCoreError, ClientError

from lakeferry import inventory
from lakeferry.deployment import stacks
from lakeferry.deployment.context import DeploymentContext
from lakeferry.deployment.stacks import Stack
from lakeferry.error_translation import is_aws_denial, translate_aws_errors
from lakeferry.errors import CommandFailed
from lakeferry.inventory import AWS, ORPHAN, STACK, Item, Verdict, removal
from lakeferry.inventory.deletion_policies import DeletionPolicies, read_policies
from lakeferry.inventory.foreign import require_own_contents
from lakeferry.inventory.known import Answer, ExistenceChecker, read_known, require_same_tenants
from lakeferry.output import Reporter
from lambdas.shared.aws import read_error_code
from lambdas.shared.errors import LakeferryError

_DEPLOYED: Final = 'its stack was deployed with on_destroy = "{}"'
#: Prefix of the name that Lambda gives the log group of a function.
_OF_FUNCTION: Final = "/aws/lambda/"
#: How many times to remove what is left, or to wait for it: AWS lists some resources for a minute after their
#: deletion.
_ROUNDS: Final = 6
_PAUSE: Final = 20.0
_POLL: Final = 2.0
#: A stack's custom resources may take an hour each, some of them one after another.
_PATIENCE: Final = 4 * 3600.0
#: Seconds without an answer of CloudFormation after which the wait fails. A single poll may fail.
_SILENCE: Final = 60.0
#: At most so many reasons are shown for a stack, from so many of its latest events. Earlier events may be of
#: another deletion.
_REASONS: Final = 5
_EVENTS: Final = 100


@attrs.frozen
class Planned:
    """`to_delete` is in the order of deletion.

    `differing` has data on which deployed stacks and deployment file disagree.
    """

    to_delete: list[Item]
    to_keep: list[Item]
    policies: DeletionPolicies
    differing: list[Item]

    @property
    def lost_tables(self) -> list[str]:
        """Return the topics whose tables Confluent stores, and deletes also with on_destroy = "keep"."""
        stored = {item.name for item in self.to_delete if item.stored_by_vendor}
        return sorted(stored | self.policies.managed_tables)


@attrs.frozen
class Done:
    """`seconds` is the duration by stack, `removed` what was deleted outside of stacks, `items` the last
    inventory.
    """

    seconds: dict[str, float]
    removed: list[Item]
    items: list[Item]
    reasons: list[str]


def plan(ctx: DeploymentContext, items: Iterable[Item]) -> Planned:
    """Plan by the deployed stacks: later edits of the deployment file don't change what they do.

    Raises CommandFailed.
    """
    policies = read_policies(ctx)
    to_delete = []
    to_keep = []
    differing = []
    for item in items:
        keeps = policies.keep(item)
        if keeps is not None and keeps != ctx.deployment.keeps_data:
            differing.append(item)
        if keeps:
            to_keep.append(attrs.evolve(item, verdict=Verdict.RETAINED, why=_DEPLOYED.format("keep")))
        elif keeps is False and item.verdict is Verdict.RETAINED:
            to_delete.append(attrs.evolve(item, verdict=Verdict.ORPHANED, why=_DEPLOYED.format("delete")))
        elif item.verdict in (Verdict.RETAINED, Verdict.UNKNOWN):
            to_keep.append(item)
        else:
            to_delete.append(item)
    return Planned(sorted(to_delete, key=lambda item: _order(ctx, item)), to_keep, policies, differing)


def _order(ctx: DeploymentContext, item: Item) -> tuple[int, int]:
    """Sort stacks in the reverse order of their deployment, each before its resources; orphans come last."""
    names = stacks.list_names(ctx)
    stack = len(names) - names.index(item.owner) if item.owner in names else len(names) + 1
    if item.kind == STACK:
        return stack, -1
    return stack, removal.ORDER.index(item.kind) if item.kind in removal.ORDER else 0


def require_possible(ctx: DeploymentContext, planned: Planned) -> None:
    """Raises CommandFailed if the deployment is protected or busy, its file disagrees, a vendor can't be
    seen, or others use it.

    Raises LakeferryError if a login is of another organization or account than the deployed objects.
    """
    policies = planned.policies
    _require_unprotected(ctx, policies)
    _require_agreement(ctx, planned)
    if busy := [
        stack for stack in policies.stacks if stack.is_in_progress and stack.status != "DELETE_IN_PROGRESS"
    ]:
        raise CommandFailed("STACK-BUSY", ", ".join(f"{stack.name} is {stack.status}" for stack in busy))
    # An unknown item without a kind stands for everything that the login may not see.
    hidden = [
        item
        for item in planned.to_keep
        if item.verdict is Verdict.UNKNOWN and item.system != AWS and not item.kind
    ]
    if hidden and policies.stacks:
        raise CommandFailed("VENDOR-REFUSED", "; ".join(f"{item.system} {item.why}" for item in hidden))
    require_same_tenants(ctx, policies.stacks)
    require_own_contents(ctx, planned.to_delete, policies.stacks)
    _require_detached(ctx, policies.stacks)


def _require_detached(ctx: DeploymentContext, deployed: Iterable[Stack]) -> None:
    """Raise CommandFailed if roles or users of somebody else have the policy for people in Athena: AWS does
    not delete it then.

    A login that may not look is not refused: AWS itself keeps the policy, and says so.
    """
    outputs: dict[str, str] = {}
    for stack in deployed:
        outputs |= stack.outputs
    policy = outputs.get("AthenaPeoplePolicyArn")
    if policy is None:
        return
    with translate_aws_errors(f"asking who has policy {policy}"):
        try:
            entities = ctx.client("iam").list_entities_for_policy(PolicyArn=policy)
        except ClientError as error:
            if is_aws_denial(error) or read_error_code(error) == "NoSuchEntity":
                return
            raise
    calls = []
    for kind in ("Role", "User", "Group"):
        for entity in entities[f"Policy{kind}s"]:
            name = entity[f"{kind}Name"]
            lowered = kind.lower()
            calls.append(f"`aws iam detach-{lowered}-policy --{lowered}-name {name} --policy-arn {policy}`")
    if calls:
        raise CommandFailed(
            "DESTROY-ATTACHED",
            f"{policy} is attached to {len(calls)} roles, users or groups of somebody else",
            f"{'; '.join(calls)}; then destroy again",
        )


def _require_unprotected(ctx: DeploymentContext, policies: DeletionPolicies) -> None:
    protected = [stack for stack in policies.stacks if stack.is_protected and not stack.is_failed_creation]
    file = f"project/deployments/{ctx.stage}.toml"
    names = [stack.name for stack in protected]
    if names:
        lift = (
            "aws cloudformation update-termination-protection --no-enable-termination-protection --stack-name"
        )
        hint = (
            f'To lose the data: set on_destroy = "delete" in {file} and deploy, then destroy. To keep it '
            "and remove the rest: "
            f"`{lift} NAME` for each of these, then destroy"
        )
        raise CommandFailed("DESTROY-PROTECTED", f"protected against deletion: {', '.join(names)}", hint)
    confluent = ctx.deployment.confluent
    if policies.protects_cluster or (policies.stacks and confluent and confluent.deletion_protection):
        hint = f"Set confluent.deletion_protection = false in {file} and deploy, then destroy"
        raise CommandFailed("DESTROY-PROTECTED", "the Kafka cluster is protected against deletion", hint)


def _require_agreement(ctx: DeploymentContext, planned: Planned) -> None:
    """Raises CommandFailed if the deployment file and the deployed stacks disagree on keeping data."""
    if not planned.differing:
        return
    intended, does = ("keep", "delete") if ctx.deployment.keeps_data else ("delete", "keep")
    names = ", ".join(f"{item.kind} {item.name}" for item in planned.differing)
    message = f'the file says on_destroy = "{intended}", and the deployed stacks would {does}: {names}'
    hint = (
        f"Set deployment.on_destroy in project/deployments/{ctx.stage}.toml to what you want, "
        f"`lakeferry deploy --stage {ctx.stage}`, then destroy"
    )
    raise CommandFailed("DESTROY-DIFFERS", message, hint, [attrs.asdict(item) for item in planned.differing])


def destroy(ctx: DeploymentContext, planned: Planned, *, say: Reporter, report: Reporter) -> Done:
    """Remove what is planned and nothing else, even if more appears meanwhile.

    `say` shows what has happened, `report` what is happening. Raises CommandFailed.
    """
    announced = {(item.system, item.kind, item.id) for item in planned.to_delete}
    functions = {item.name for item in planned.to_delete if item.kind == "function"}

    def is_planned(item: Item) -> bool:
        """Lambda creates a function's log group when the function first runs, which may be during this
        deletion.
        """
        own_log = item.kind == "log_group" and item.name.removeprefix(_OF_FUNCTION) in functions
        return own_log or (item.system, item.kind, item.id) in announced

    deletion = _StackDeletion(
        ctx, [item.id for item in planned.to_delete if item.kind == STACK], say, report, ctx.clock.time()
    )
    reasons = deletion.run()
    removed: list[Item] = []
    for round_ in range(_ROUNDS):
        items = [
            item for item in inventory.collect(ctx) if item.verdict is Verdict.UNKNOWN or is_planned(item)
        ]
        # The deletion of an existing stack removes its AWS resources. It calls its functions, which must
        # exist until then.
        remaining = [
            item for item in removal.list_removable(items) if item.system != AWS or item.owner == ORPHAN
        ]
        has_stacks = any(item.kind == STACK and item.verdict is not Verdict.RETAINED for item in items)
        if not remaining and not has_stacks:
            break
        if round_:
            ctx.clock.sleep(_PAUSE)
        before = reasons
        outcome = removal.remove(ctx, remaining, report)
        removed += [item for item in outcome.removed if item not in removed]
        reasons = [f"{item.kind} {item.name}: {why}" for item, why in outcome.stuck]
        reasons += deletion.run(force=round_ > 0)
        if outcome.stuck and not outcome.removed and not has_stacks:
            break
        if round_ > 1 and reasons and reasons == before and not outcome.removed:
            break
    last = [_as_orphan(item) if item.id in deletion.ids else item for item in inventory.collect(ctx)]
    return Done(deletion.seconds, removed, last, reasons)


def _as_orphan(item: Item) -> Item:
    """Return a managed stack that could not be deleted as an orphan. Other items keep their verdict."""
    if item.kind != STACK or item.verdict is not Verdict.MANAGED:
        return item
    return attrs.evolve(item, verdict=Verdict.ORPHANED, why="it could not be deleted")


@attrs.define
class _StackDeletion:
    """Deletes stacks in the order of `ids`.

    It uses ids because a new stack may get the name of a deleted one meanwhile.
    """

    ctx: DeploymentContext
    ids: list[str]
    say: Reporter
    report: Reporter
    _since: float
    seconds: dict[str, float] = attrs.field(factory=dict)

    def run(self, *, force: bool = False) -> list[str]:
        """Delete those that still exist, and return the reasons why one could not be deleted. Raises
        CommandFailed.

        With `force`, CloudFormation skips the resources that it can't delete. It would skip an object at a
        vendor without a trace, so that needs a proof that the object doesn't exist any more.
        """
        reasons: list[str] = []
        for id in self.ids:
            name = id.split("/")[1] if "/" in id else id
            with translate_aws_errors(f"deleting stack {name}"):
                if stack := stacks.describe(self.ctx, id, with_resources=force):
                    may_force = force and stack.status == "DELETE_FAILED"
                    unproved = _list_unproved(self.ctx, stack) if may_force else []
                    reasons += unproved
                    reasons += self._delete(stack, force=may_force and not unproved)
        return reasons

    def _delete(self, stack: Stack, *, force: bool) -> Iterator[str]:
        client = self.ctx.client("cloudformation")
        if stack.status != "DELETE_IN_PROGRESS":
            stacks.unprotect_failed_creation(self.ctx, stack)
            try:
                client.delete_stack(
                    StackName=stack.id, **({"DeletionMode": "FORCE_DELETE_STACK"} if force else {})
                )
            except ClientError as error:
                if read_error_code(error) != "ValidationError":
                    raise
                yield f"{stack.name}: {error.response['Error']['Message']}"
                return
        if existing := self._await_end(stack):
            yield from _list_reasons(client, existing)
            return
        now = self.ctx.clock.time()
        self.seconds[stack.name], self._since = now - self._since, now
        self.say(f"  {stack.name} deleted ({self.seconds[stack.name]:.0f} s)")

    def _await_end(self, stack: Stack) -> Stack | None:
        """Return None once it is deleted; the stack if its deletion failed, was cancelled, or takes too
        long.
        """
        client = self.ctx.client("cloudformation")
        clock = self.ctx.clock
        answered = clock.time()
        until = answered + _PATIENCE
        while True:
            try:
                for event in islice(stacks.read_newest_events(client, stack.id), 1):
                    self.report(f"{stack.name}: {event.logical_id} {event.status}")
                current = stacks.describe(self.ctx, stack.id)
                if current is None or current.status != "DELETE_IN_PROGRESS" or clock.time() > until:
                    return current
                answered = clock.time()
            except (ClientError, BotoCoreError):
                if clock.time() - answered > _SILENCE:
                    raise
            clock.sleep(_POLL)


def _list_unproved(ctx: DeploymentContext, stack: Stack) -> list[str]:
    """Return why each object at a vendor may exist that the stack couldn't delete."""
    try:
        known_resources = [
            resource for resource in read_known(ctx, stack) if resource.status != stacks.DELETED
        ]
    except LakeferryError as error:
        return [
            f"{stack.name}: the states of its objects can't be read: {error.what}. If the vendor's console "
            "shows none of them: `aws cloudformation delete-stack --deletion-mode FORCE_DELETE_STACK "
            f"--stack-name {stack.name}`"
        ]
    checker = ExistenceChecker(ctx, deleting=True)
    reasons = []
    for resource in known_resources:
        existence = checker.look(resource)
        if existence.answer not in (Answer.ABSENT, Answer.FOREIGN):
            why = existence.why if existence.answer is Answer.UNKNOWN else "it still exists"
            forget = f"`lakeferry forget {stack.name} {resource.identity.logical_id}`"
            reasons.append(
                f"{stack.name}: {resource.identity.logical_id} is not skipped: {why}. If it is gone: {forget}"
            )
    return reasons


def _list_reasons(client: Any, stack: Stack) -> Iterator[str]:
    """Return why it could not be deleted: the resources' reasons, or the stack's own.

    CloudFormation cancels the deletion of a stack that another one imports from. Its status is then as
    before, with a reason.
    """
    if stack.status != "DELETE_FAILED":
        (described,) = client.describe_stacks(StackName=stack.id)["Stacks"]
        yield f"{stack.name} is {stack.status}: {described.get('StackStatusReason') or 'no reason given'}"
        return
    latest = islice(stacks.read_newest_events(client, stack.id), _EVENTS)
    failed = (event for event in latest if event.status == "DELETE_FAILED")
    for event in islice(failed, _REASONS):
        yield f"{stack.name}: {event.logical_id}: {event.reason or 'no reason given'}"
