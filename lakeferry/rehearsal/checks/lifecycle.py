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
from lakeferry.rehearsal.harness import Check, Harness, require, wait_until

_INTERVAL: Final = re.compile(r"^datagen_interval_ms = \d+$", re.MULTILINE)
_NEW_INTERVAL: Final = 250
_NEW_TOPIC: Final = "sales_orders"
_NEW_EXPORT: Final = "weekly_sales"
_ADDED: Final = f"""
[[topics]]
name = "{_NEW_TOPIC}"
tableflow = {{}}

[[exports]]
contract = "{_NEW_EXPORT}"
cron = "0 6 * * ? *"
zone = "Europe/Berlin"
recipients = ["analysts@example.com"]
"""
#: Confluent Cloud refuses compression.type, which the file's check can't know. The other new topic is rolled
#: back.
_REFUSED: Final = """
[[topics]]
name = "rehearsal_refused"
config = { "compression.type" = "gzip" }

[[topics]]
name = "rehearsal_beside"
"""
#: What an organization has before anybody deploys.
_INITIAL_OBJECTS: Final = {"environments": 1, "api_keys": 1}
#: The exit code of a command that was stopped or answered with no.
_CANCELLED: Final = 6
_QUESTION: Final = "Approve these permissions and deploy? Type yes"
Objects = dict[str, list[str]]


def deploy(harness: Harness) -> list[Check]:
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


def permissions_are_shown(harness: Harness) -> list[Check]:
    """Change the file so that roles get permissions, and answer no: they are shown in full, and nothing is
    changed.
    """
    before = _read_last_updates(harness)
    with _replace_file(harness, changed(original(harness))):
        code, output = harness.project.talk("deploy", [(_QUESTION, "no\n")])
    require(code == _CANCELLED, f"a refused deploy ended with code {code}:\n{output[-3000:]}")
    permissions = output.partition("BROADER PERMISSIONS:")[2].partition(_QUESTION)[0]
    job = f"job/{harness.ctx.deployment.prefix}-{_NEW_EXPORT}"
    for action in ("glue:StartJobRun", "glue:GetJobRun"):
        require(
            re.search(rf"\+ allow {action} on arn:aws:glue:\S+:{job}", permissions),
            f"{action} on {job} is not in:\n{output}",
        )
    require("nothing was changed" in output, "the refused deploy doesn't say that nothing was changed")
    require(_read_last_updates(harness) == before, "the refused deploy changed a stack")
    lines = permissions.count("+ allow")
    return [
        Check(
            "permissions that grow are shown before a deployment",
            f"{lines} lines; no was an answer, and nothing changed",
        )
    ]


def update(harness: Harness) -> list[Check]:
    """Add a topic and an export and change an interval. The first `deploy` is stopped with Ctrl-C, the second
    does the rest.

    Nothing else changes.
    """
    before = _list_objects(harness)
    stack = f"{harness.ctx.deployment.prefix}-confluent"
    harness.project.file.write_text(changed(original(harness)), encoding="utf-8")
    stopped = harness.project.interrupt(
        "deploy --yes", lambda: _read_statuses(harness)[stack].endswith("_IN_PROGRESS"), code=_CANCELLED
    )
    require(
        stopped["code"] == "DEPLOY-STOPPED",
        f"the interrupted deploy says {stopped['code']}: {stopped['message']}",
    )
    require(
        stopped["details"]["under_way"] == [stack],
        f"under way are {stopped['details']['under_way']}, not {stack}",
    )
    wait_until(
        lambda: not _read_statuses(harness)[stack].endswith("_IN_PROGRESS"), f"{stack} did not end its update"
    )
    require(
        _read_statuses(harness)[stack] == "UPDATE_COMPLETE",
        f"{stack} is {_read_statuses(harness)[stack]} after Ctrl-C",
    )
    harness.project.run("deploy --yes")
    after = _list_objects(harness)
    removed = {
        kind: sorted(set(ids) - set(after[kind]))
        for kind, ids in before.items()
        if set(ids) - set(after[kind])
    }
    require(not removed, f"the update removed {removed}")
    new = {
        kind: sorted(set(after[kind]) - set(ids))
        for kind, ids in before.items()
        if set(after[kind]) - set(ids)
    }
    unexpected = set(new) - {"topics", "connectors", "tableflow_topics", "acls", "subjects"}
    require(not unexpected, f"the update also created {', '.join(sorted(unexpected))}")
    require(any(_NEW_TOPIC in topic for topic in new.get("topics", [])), f"no topic {_NEW_TOPIC} was created")
    jobs = [job["Name"] for job in harness.ctx.client("glue").get_jobs()["Jobs"]]
    require(any(_NEW_EXPORT in job for job in jobs), f"no job for {_NEW_EXPORT}: {jobs}")
    counts = [f"{len(ids)} {kind}" for kind, ids in sorted(new.items())]
    created = f"created {', '.join(counts)} and a job; removed nothing"
    return [
        Check(
            "an interrupted deploy stops nothing in AWS, and the next one does the rest",
            f"Ctrl-C while {stack} was updated",
        ),
        Check("an update changes what the file says and nothing else", created, {"new": new}),
    ]


def rollback(harness: Harness) -> list[Check]:
    """Deploy a change that fails; check that the rollback restores the same objects under the same ids."""
    before = _list_objects(harness)
    stack = f"{harness.ctx.deployment.prefix}-confluent"
    with _replace_file(harness, original(harness) + _REFUSED):
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


def destroy(harness: Harness) -> list[Check]:
    destroyed = harness.project.run(f"destroy --confirm {harness.ctx.stage}")
    require(
        sorted(destroyed["stacks"]) == sorted(harness.ctx.stacks), f"destroy deleted {destroyed['stacks']}"
    )
    require(destroyed["removed"] == [], f"CloudFormation left {destroyed['removed']}, which destroy removed")
    missing = harness.project.run("status", code=2)
    require(missing["code"] == "NOT-DEPLOYED", f"after destroy, status says {missing['code']}")
    return nothing_left(harness)


def nothing_left(harness: Harness) -> list[Check]:
    """Check that nothing remains, by the inventory and by the simulators' own lists."""
    items = inventory.collect(harness.ctx)
    require_nothing_left(items)
    remaining = {kind: len(ids) for kind, ids in harness.simulators.confluent_objects().items() if ids}
    require(remaining == _INITIAL_OBJECTS, f"Confluent still has {remaining}")
    retained = Counter(item.system for item in items)
    counts = ", ".join(f"{count} in {vendor}" for vendor, count in sorted(retained.items())) or "nothing"
    return [
        Check(
            "nothing is left over at any vendor",
            f"retained by on_destroy: {counts}",
            {"retained": dict(retained)},
        )
    ]


def require_nothing_left(items: list[Item]) -> None:
    """Raise CheckFailed if the inventory has leftovers."""
    left_over = [f"{item.system} {item.kind} {item.name}" for item in inventory.problems(items)]
    require(not left_over, f"left over: {', '.join(left_over)}")


def changed(text: str) -> str:
    """Return the file with one more topic, another export and a changed interval."""
    return _INTERVAL.sub(f"datagen_interval_ms = {_NEW_INTERVAL}", text) + _ADDED


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


def synth(harness: Harness, name: str, text: str) -> Cdk:
    """Synthesise separate templates from another deployment file of the stage."""
    folder = harness.out / "deployments" / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{harness.ctx.stage}.toml").write_text(text, encoding="utf-8")
    cdk = Cdk(harness.ctx, harness.cdk.folder / name, harness.cdk.log)
    cdk.synth(lambda _: None, deployments=folder)
    return cdk


def _list_objects(harness: Harness) -> Objects:
    """Return Confluent's objects by kind, without API keys, which a rotation may change any time."""
    return {kind: ids for kind, ids in harness.simulators.confluent_objects().items() if kind != "api_keys"}


def _compare_objects(before: Objects, after: Objects) -> dict[str, Any]:
    return {
        kind: sorted(set(ids) ^ set(after[kind]))
        for kind, ids in before.items()
        if set(ids) != set(after[kind])
    }
