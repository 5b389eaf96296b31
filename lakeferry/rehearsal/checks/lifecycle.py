"""Check the lifecycle: deploy, update only what the file changes, roll back a failed update, destroy
everything.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from lakeferry import inventory
from lakeferry.deployment import stacks
from lakeferry.deployment.cdk import Cdk
from lakeferry.inventory import Item
from lakeferry.rehearsal import changes
from lakeferry.rehearsal.changes import Change
from lakeferry.rehearsal.checks import people
from lakeferry.rehearsal.harness import Check, Harness, NotApplicable, Result, require, wait_until

#: The exit code of a command that was stopped or answered with no.
_CANCELLED: Final = 6
_PROTECTED: Final = 7
_QUESTION: Final = "Approve these permissions and deploy? Type yes"
_SHOWN: Final = "permissions that grow are shown before a deployment"
_INTERRUPTED: Final = "an interrupted deploy stops nothing in AWS, and the next one does the rest"
_UPDATED: Final = "an update changes what the file says and nothing else"
#: What an update may create at Confluent.
_CREATED: Final = {"topics", "connectors", "tableflow_topics", "acls", "subjects", "role_bindings"}
_PROTECTION: Final = re.compile(r"^deletion_protection = true", re.MULTILINE)
Objects = dict[str, list[str]]


def deploy(harness: Harness) -> list[Result]:
    harness.project.show("deploy --yes")
    described = (stacks.describe(harness.ctx, name, with_resources=True) for name in harness.ctx.stacks)
    resources = {stack.name: len(stack.resources) for stack in described if stack}
    require(sum(resources.values()) > 0, "deploy created no resource")
    statuses = _read_statuses(harness)
    require(set(statuses.values()) == {"CREATE_COMPLETE"}, f"after deploy: {statuses}")
    require(
        harness.project.run("plan --check")["changes"] == [],
        "plan shows changes to what has just been deployed",
    )
    result = f"{len(resources)} stacks, {sum(resources.values())} resources, IAM enforced"
    return [Check("the real CDK deploys the unmodified templates", result, resources)]


def _has_no_account_for_topics(harness: Harness) -> bool:
    """Return whether the deployment creates no topic so far, on a cluster of somebody else. Its first one
    comes with the account that manages topics.
    """
    deployment = harness.deployment
    created = [topic for topic in deployment.topics if not topic.existing and not topic.statement]
    return deployment.uses_existing_cluster and not created


@contextmanager
def _make_change(harness: Harness) -> Iterator[Change]:
    """Make an update of the file, with the files that it needs in the project, for the block."""
    folder = harness.project.folder
    change = changes.add(harness.deployment, original(harness), folder)
    change.write_files(folder)
    try:
        with _replace_file(harness, change.text):
            yield change
    finally:
        change.remove_files(folder)


def permissions_are_shown(harness: Harness) -> list[Result]:
    """Change the file so that roles get permissions, and answer no: they are shown in full, and nothing is
    changed.
    """
    before = _read_last_updates(harness)
    with _make_change(harness) as change:
        if problem := changes.find_problem(change, harness.project.folder):
            return [NotApplicable(_SHOWN, f"nothing can be added to the file: {problem}")]
        code, output = harness.project.talk("deploy", [(_QUESTION, "no\n")])
    require(code == _CANCELLED, f"a refused deploy ended with code {code}:\n{output[-3000:]}")
    permissions = output.partition("BROADER PERMISSIONS:")[2].partition(_QUESTION)[0]
    job = f"job/{harness.ctx.deployment.prefix}-{changes.EXPORT}"
    for action in ("glue:StartJobRun", "glue:GetJobRun"):
        require(
            re.search(rf"\+ allow {action} on arn:aws:glue:\S+:{job}", permissions),
            f"{action} on {job} is not in:\n{output}",
        )
    require("nothing was changed" in output, "the refused deploy doesn't say that nothing was changed")
    require(_read_last_updates(harness) == before, "the refused deploy changed a stack")
    lines = permissions.count("+ allow")
    return [Check(_SHOWN, f"{lines} lines; no was an answer, and nothing changed")]


def update(harness: Harness) -> list[Result]:
    """Add what the file can have more of. The first `deploy` is stopped with Ctrl-C, the second does the
    rest.

    Nothing else changes.
    """
    before = _list_objects(harness)
    folder = harness.project.folder
    change = changes.add(harness.deployment, original(harness), folder)
    change.write_files(folder)
    if problem := changes.find_problem(change, folder):
        change.remove_files(folder)
        return [NotApplicable(_UPDATED, f"nothing can be added to the file: {problem}")]
    harness.project.file.write_text(change.text, encoding="utf-8")
    if change.adds_topic:
        interrupted: Result = _interrupt_update(harness)
    else:
        interrupted = NotApplicable(_INTERRUPTED, "without [confluent], an update takes no time here")
    harness.project.run("deploy --yes")
    return [interrupted, _describe_created(harness, change, before)]


def _interrupt_update(harness: Harness) -> Check:
    """Stop `deploy` with Ctrl-C while Confluent's stack is updated."""
    stack = f"{harness.ctx.deployment.prefix}-confluent"
    stopped = harness.project.interrupt(
        "deploy --yes", lambda: _read_statuses(harness)[stack].endswith("_IN_PROGRESS"), code=_CANCELLED
    )
    require(
        stopped["code"] == "DEPLOY-STOPPED",
        f"the interrupted deploy says {stopped['code']}: {stopped['message']}",
    )
    under_way = stopped["details"]["under_way"]
    require(under_way == [stack], f"under way are {under_way}, not {stack}")
    wait_until(
        lambda: not _read_statuses(harness)[stack].endswith("_IN_PROGRESS"), f"{stack} did not end its update"
    )
    require(
        _read_statuses(harness)[stack] == "UPDATE_COMPLETE",
        f"{stack} is {_read_statuses(harness)[stack]} after Ctrl-C",
    )
    return Check(_INTERRUPTED, f"Ctrl-C while {stack} was updated")


def _describe_created(harness: Harness, change: Change, before: Objects) -> Check:
    """Check that the update created what the change says, and removed nothing."""
    after = _list_objects(harness)
    removed = {}
    new = {}
    for kind, ids in before.items():
        if set(ids) - set(after[kind]):
            removed[kind] = sorted(set(ids) - set(after[kind]))
        if set(after[kind]) - set(ids):
            new[kind] = sorted(set(after[kind]) - set(ids))
    require(not removed, f"the update removed {removed}")
    expected = {*_CREATED, "service_accounts"} if _has_no_account_for_topics(harness) else _CREATED
    unexpected = set(new) - expected
    require(not unexpected, f"the update also created {', '.join(sorted(unexpected))}")
    accounts = new.get("service_accounts", [])
    require(len(accounts) <= 1, f"the update created {len(accounts)} service accounts for one topic")
    counts = [f"{len(ids)} {kind}" for kind, ids in sorted(new.items())]
    if change.adds_topic:
        topics = new.get("topics", [])
        require(any(changes.TOPIC in topic for topic in topics), f"no topic {changes.TOPIC} was created")
    if change.adds_export:
        jobs = [job["Name"] for job in harness.ctx.client("glue").get_jobs()["Jobs"]]
        require(any(changes.EXPORT in job for job in jobs), f"no job for {changes.EXPORT}: {jobs}")
        counts.append("a job")
    return Check(_UPDATED, f"created {', '.join(counts)}; removed nothing", {"new": new})


def rollback(harness: Harness) -> list[Result]:
    """Deploy a change that fails; check that the rollback restores the same objects under the same ids."""
    before = _list_objects(harness)
    stack = f"{harness.ctx.deployment.prefix}-confluent"
    with _replace_file(harness, changes.refuse(original(harness))):
        failed = harness.project.run("deploy --yes", code=1)
    require(
        failed["code"] == "DEPLOY-FAILED", f"the failed deploy says {failed['code']}: {failed['message']}"
    )
    require(
        "compression.type" in failed["message"],
        f"the message doesn't name the refused setting: {failed['message']}",
    )
    require(
        "lakeferry explain CFL-INVALID" in failed["hint"], f"the hint names no explanation: {failed['hint']}"
    )
    after = _list_objects(harness)
    require(after == before, f"the rollback left {_compare_objects(before, after)}")
    status = _read_statuses(harness)[stack]
    require(
        status == failed["details"]["states"][stack] == "UPDATE_ROLLBACK_COMPLETE", f"{stack} is {status}"
    )
    again = harness.project.run("deploy --yes")
    require(
        (again["changes"], again["settings"]) == ([], []),
        f"after the rollback, deploy changes {again['changes']}",
    )
    result = (
        f"{stack} is UPDATE_ROLLBACK_COMPLETE, with the same {sum(map(len, after.values()))} objects in "
        "Confluent"
    )
    return [Check("a failed change rolls back completely", result)]


def destroy(harness: Harness) -> list[Result]:
    results: list[Result] = []
    if harness.deployment.keeps_data:
        results.append(_remove_protection(harness))
    people.forget_readers(harness)
    destroyed = harness.project.run(f"destroy --confirm {harness.ctx.stage}")
    require(
        sorted(destroyed["stacks"]) == sorted(harness.ctx.stacks), f"destroy deleted {destroyed['stacks']}"
    )
    require(destroyed["removed"] == [], f"CloudFormation left {destroyed['removed']}, which destroy removed")
    missing = harness.project.run("status", code=2)
    require(missing["code"] == "NOT-DEPLOYED", f"after destroy, status says {missing['code']}")
    return [*results, *nothing_left(harness)]


def _remove_protection(harness: Harness) -> Check:
    """Do what the refusal of a protected deployment advises."""
    refused = harness.project.run(f"destroy --confirm {harness.ctx.stage}", code=_PROTECTED)
    require(refused["code"] == "DESTROY-PROTECTED", f"destroy says {refused['code']}: {refused['message']}")
    text = original(harness)
    unprotected = _PROTECTION.sub("deletion_protection = false", text)
    if unprotected != text:
        harness.project.file.write_text(unprotected, encoding="utf-8")
        harness.project.run("deploy --yes")
    client = harness.ctx.client("cloudformation")
    for stack in harness.ctx.stacks:
        client.update_termination_protection(StackName=stack, EnableTerminationProtection=False)
    return Check("a protected deployment is not destroyed", f"{refused['code']}, before anything was deleted")


def nothing_left(harness: Harness) -> list[Result]:
    """Check that nothing remains, by the inventory and by the simulators' own lists, and that what existed
    before the deployment still does.
    """
    items = inventory.collect(harness.ctx)
    require_nothing_left(items)
    before = _drop_own_keys(harness.initial)
    after = _drop_own_keys(harness.simulators.confluent_objects())
    require(after == before, f"Confluent has other objects than before: {_compare_objects(before, after)}")
    retained = Counter(item.system for item in items)
    counts = ", ".join(f"{count} in {vendor}" for vendor, count in sorted(retained.items())) or "nothing"
    return [
        Check(
            "nothing is left over at any vendor",
            f"retained by on_destroy, or somebody else's: {counts}",
            {"retained": dict(retained)},
        )
    ]


def _drop_own_keys(objects: Objects) -> dict[str, Any]:
    """Return the objects, and of those that may be replaced, only how many there are."""
    return {kind: ids if kind != "api_keys" else [str(len(ids))] for kind, ids in objects.items()}


def require_nothing_left(items: list[Item]) -> None:
    """Raise CheckFailed if the inventory has leftovers."""
    left_over = [f"{item.system} {item.kind} {item.name}" for item in inventory.problems(items)]
    require(not left_over, f"left over: {', '.join(left_over)}")


def original(harness: Harness) -> str:
    return harness.project.file.read_text(encoding="utf-8")


@contextmanager
def _replace_file(harness: Harness, text: str) -> Iterator[None]:
    """Write another deployment file for the block."""
    before = original(harness)
    harness.project.file.write_text(text, encoding="utf-8")
    try:
        yield
    finally:
        harness.project.file.write_text(before, encoding="utf-8")


def _read_statuses(harness: Harness) -> dict[str, str]:
    described = (stacks.describe(harness.ctx, name) for name in harness.ctx.stacks)
    return {stack.name: stack.status for stack in described if stack}


def _read_last_updates(harness: Harness) -> dict[str, Any]:
    described = harness.ctx.client("cloudformation").describe_stacks()["Stacks"]
    return {stack["StackName"]: (stack["StackStatus"], stack.get("LastUpdatedTime")) for stack in described}


def synth_change(harness: Harness) -> Cdk:
    """Synthesise separate templates of the updated deployment."""
    cdk = Cdk(harness.ctx, harness.cdk.folder / "changed", harness.cdk.log, harness.cdk.root)
    with _make_change(harness):
        cdk.synth(lambda _: None)
    return cdk


def _list_objects(harness: Harness) -> Objects:
    """Return Confluent's objects by kind, without API keys, which a rotation may change any time."""
    return {kind: ids for kind, ids in harness.simulators.confluent_objects().items() if kind != "api_keys"}


def _compare_objects(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    return {
        kind: sorted(set(ids) ^ set(after[kind]))
        for kind, ids in before.items()
        if set(ids) != set(after[kind])
    }
