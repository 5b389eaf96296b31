"""Check the lifecycle: deploy, update only what the file changes, roll back a failed update, destroy everything."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Final

import attrs

from lakeferry import inventory
from lakeferry.deployment import stacks
from lakeferry.deployment.cdk import Cdk, CliFailed
from lakeferry.inventory import Item
from lakeferry.local.bootstrap import ROOT
from lakeferry.output import Reporter
from rehearsal.harness import Check, CheckFailed, Harness, require

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
cron = "0 6 ? * MON *"
zone = "Europe/Berlin"
recipients = ["analysts@example.com"]
"""
#: Confluent Cloud refuses compression.type, which the file's check can't know. The other new topic is rolled back.
_REFUSED: Final = """
[[topics]]
name = "rehearsal_refused"
config = { "compression.type" = "gzip" }

[[topics]]
name = "rehearsal_beside"
"""
#: What an organization has before anybody deploys.
_INITIAL_OBJECTS: Final = {"environments": 1, "api_keys": 1}
Objects = dict[str, list[str]]


@attrs.frozen
class Changes:
    """Templates of the update and of the one that Confluent refuses, synthesised in the background."""

    accepted: Future[Cdk]
    refused: Future[Cdk]


@contextmanager
def synthesised(harness: Harness) -> Iterator[Changes]:
    """Synthesise both changes to templates of their own; those of the stage stay as they are."""
    text = changed(original(harness))
    with ThreadPoolExecutor(1) as pool:
        changes = Changes(pool.submit(synth, harness, "accepted", text), pool.submit(synth, harness, "refused", text + _REFUSED))
        try:
            yield changes
        finally:
            pool.shutdown(cancel_futures=True)


def deploy(harness: Harness, report: Reporter) -> list[Check]:
    harness.cdk.deploy(report)
    described = (stacks.describe(harness.ctx, name, with_resources=True) for name in harness.ctx.stacks)
    resources = {stack.name: len(stack.resources) for stack in described if stack}
    seen = f"{len(resources)} stacks, {sum(resources.values())} resources, IAM enforced"
    return [Check("the real CDK deploys the unmodified templates", seen, resources)]


def update(harness: Harness, changes: Changes, report: Reporter) -> list[Check]:
    """Add a topic and an export and change an interval; check that nothing else changes."""
    before = _objects(harness)
    changes.accepted.result().deploy(report)
    after = _objects(harness)
    removed = {kind: sorted(set(ids) - set(after[kind])) for kind, ids in before.items() if set(ids) - set(after[kind])}
    require(not removed, f"the update removed {removed}")
    new = {kind: sorted(set(after[kind]) - set(ids)) for kind, ids in before.items() if set(after[kind]) - set(ids)}
    unexpected = set(new) - {"topics", "connectors", "tableflow_topics", "acls", "subjects"}
    require(not unexpected, f"the update also created {', '.join(sorted(unexpected))}")
    require(any(_NEW_TOPIC in one for one in new.get("topics", [])), f"no topic {_NEW_TOPIC} was created")
    jobs = [job["Name"] for job in harness.ctx.client("glue").get_jobs()["Jobs"]]
    require(any(_NEW_EXPORT in job for job in jobs), f"no job for {_NEW_EXPORT}: {jobs}")
    created = ", ".join(f"{len(ids)} {kind}" for kind, ids in sorted(new.items()))
    seen = f"created {created} and a job; removed nothing"
    return [Check("an update changes what the file says and nothing else", seen, {"new": new})]


def rollback(harness: Harness, changes: Changes, report: Reporter) -> list[Check]:
    """Deploy a change that fails; check that the rollback restores the same objects under the same ids."""
    before = _objects(harness)
    try:
        changes.refused.result().deploy(report)
    except CliFailed as failed:
        message = "\n".join(failed.lines)
    else:
        raise CheckFailed("a topic with a setting that Confluent refuses was deployed")
    require("compression.type" in message, "the message doesn't name the refused setting")
    after = _objects(harness)
    require(after == before, f"the rollback left {_difference(before, after)}")
    stack = f"{harness.ctx.deployment.prefix}-confluent"
    described = stacks.describe(harness.ctx, stack)
    status = described.status if described else "missing"
    require(status == "UPDATE_ROLLBACK_COMPLETE", f"{stack} is {status}")
    seen = f"{stack} is UPDATE_ROLLBACK_COMPLETE, with the same {sum(map(len, after.values()))} objects in Confluent"
    return [Check("a failed change rolls back completely", seen)]


def destroy(harness: Harness, report: Reporter) -> list[Check]:
    harness.cdk.destroy(report)
    return nothing_left(harness)


def nothing_left(harness: Harness) -> list[Check]:
    """Check that nothing remains, by the inventory and by the simulators' own lists."""
    items = inventory.collect(harness.ctx)
    require_nothing_left(items)
    remaining = {kind: len(ids) for kind, ids in harness.simulators.confluent_objects().items() if ids}
    require(remaining == _INITIAL_OBJECTS, f"Confluent still has {remaining}")
    retained = Counter(item.system for item in items)
    counts = ", ".join(f"{count} in {vendor}" for vendor, count in sorted(retained.items())) or "nothing"
    return [Check("nothing is left over at any vendor", f"retained by on_destroy: {counts}", {"retained": dict(retained)})]


def require_nothing_left(items: list[Item]) -> None:
    """Raise CheckFailed if the inventory has leftovers."""
    left = inventory.problems(items)
    require(not left, f"left over: {', '.join(f'{item.system} {item.kind} {item.name}' for item in left)}")


def changed(text: str) -> str:
    """Return the file with one more topic, another export and a changed interval."""
    return _INTERVAL.sub(f"datagen_interval_ms = {_NEW_INTERVAL}", text) + _ADDED


def original(harness: Harness) -> str:
    return (ROOT / "deployments" / f"{harness.ctx.stage}.toml").read_text(encoding="utf-8")


def synth(harness: Harness, name: str, text: str) -> Cdk:
    """Synthesise templates of their own from another deployment file of the stage."""
    folder = harness.out / "deployments" / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{harness.ctx.stage}.toml").write_text(text, encoding="utf-8")
    cdk = Cdk(harness.ctx, harness.cdk.folder / name, harness.cdk.log)
    cdk.synth(lambda _: None, deployments=folder)
    return cdk


def _objects(harness: Harness) -> Objects:
    """Return Confluent's objects by kind, without API keys, which a rotation may change any time."""
    return {kind: ids for kind, ids in harness.simulators.confluent_objects().items() if kind != "api_keys"}


def _difference(before: Objects, after: Objects) -> dict[str, Any]:
    return {kind: sorted(set(ids) ^ set(after[kind])) for kind, ids in before.items() if set(ids) != set(after[kind])}
