"""An update changes what the file says and nothing else; one that fails leaves what was."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Final

import attrs

from lakeferry.deployment import stacks
from lakeferry.deployment.cdk import Cdk, CliFailed
from lakeferry.local.bootstrap import ROOT
from lakeferry.output import Reporter
from rehearsal.check import NotProven, Proof, require
from rehearsal.harness import Harness

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
#: compression.type can't be set on Confluent Cloud, which the file's check can't know. The new topic has to go again.
_REFUSED: Final = """
[[topics]]
name = "rehearsal_refused"
config = { "compression.type" = "gzip" }

[[topics]]
name = "rehearsal_beside"
"""
Objects = dict[str, list[str]]


@attrs.frozen
class Changes:
    """Templates of the update, and of the one that Confluent refuses, once they are there."""

    wanted: Future[Cdk]
    refused: Future[Cdk]


@contextmanager
def synthesised(stage: Harness) -> Iterator[Changes]:
    """In the background: what the stage has stay those of the project's file."""
    wanted = changed(original(stage))
    with ThreadPoolExecutor(1) as pool:
        changes = Changes(pool.submit(synth, stage, "wanted", wanted), pool.submit(synth, stage, "refused", wanted + _REFUSED))
        try:
            yield changes
        finally:
            pool.shutdown(cancel_futures=True)


def changes_only_that(stage: Harness, changes: Changes, report: Reporter) -> list[Proof]:
    """One more topic, another export, a changed interval."""
    before = _objects(stage)
    changes.wanted.result().deploy(report)
    after = _objects(stage)
    gone = {kind: sorted(set(ids) - set(after[kind])) for kind, ids in before.items() if set(ids) - set(after[kind])}
    require(not gone, f"the update took away {gone}")
    new = {kind: sorted(set(after[kind]) - set(ids)) for kind, ids in before.items() if set(after[kind]) - set(ids)}
    strange = set(new) - {"topics", "connectors", "tableflow_topics", "acls", "subjects"}
    require(not strange, f"the update made {', '.join(sorted(strange))} too")
    require(any(_NEW_TOPIC in one for one in new.get("topics", [])), f"no topic {_NEW_TOPIC} was made")
    jobs = [job["Name"] for job in stage.ctx.client("glue").get_jobs()["Jobs"]]
    require(any(_NEW_EXPORT in job for job in jobs), f"no job for {_NEW_EXPORT}: {jobs}")
    told = ", ".join(f"{len(ids)} {kind}" for kind, ids in sorted(new.items()))
    return [Proof("an update changes what the file says and nothing else", f"made {told} and a job; nothing went", {"new": new})]


def rolls_back(stage: Harness, changes: Changes, report: Reporter) -> list[Proof]:
    """To what was before: the same objects under the same ids."""
    before = _objects(stage)
    try:
        changes.refused.result().deploy(report)
    except CliFailed as failed:
        told = "\n".join(failed.lines)
    else:
        raise NotProven("a topic with a setting that Confluent refuses was deployed")
    require("compression.type" in told, "the command line does not tell what was refused")
    after = _objects(stage)
    require(after == before, f"the rollback left {_difference(before, after)}")
    stack = f"{stage.ctx.deployment.prefix}-confluent"
    found = stacks.describe(stage.ctx, stack)
    require(found and found.status == "UPDATE_ROLLBACK_COMPLETE", f"{stack} is {found.status if found else 'gone'}")
    seen = f"{stack} is UPDATE_ROLLBACK_COMPLETE, with the same {sum(map(len, after.values()))} objects in Confluent"
    return [Proof("a change that fails rolls back to what was", seen)]


def changed(text: str) -> str:
    """The same deployment with one more topic, another export and a changed interval."""
    return _INTERVAL.sub(f"datagen_interval_ms = {_NEW_INTERVAL}", text) + _ADDED


def original(stage: Harness) -> str:
    return (ROOT / "deployments" / f"{stage.ctx.stage}.toml").read_text(encoding="utf-8")


def synth(stage: Harness, name: str, text: str) -> Cdk:
    """With templates of its own, from another deployment file of the stage."""
    folder = stage.out / "deployments" / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{stage.ctx.stage}.toml").write_text(text, encoding="utf-8")
    cdk = Cdk(stage.ctx, stage.cdk.folder / name, stage.cdk.log)
    cdk.synth(lambda _: None, deployments=folder)
    return cdk


def _objects(stage: Harness) -> Objects:
    """Of Confluent, by kind. What a rotation may change any time is left out."""
    return {kind: ids for kind, ids in stage.worlds.confluent_objects().items() if kind != "api_keys"}


def _difference(before: Objects, after: Objects) -> dict[str, Any]:
    return {kind: sorted(set(ids) ^ set(after[kind])) for kind, ids in before.items() if set(ids) != set(after[kind])}
