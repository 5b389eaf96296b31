"""The phases of a rehearsal, and which checks apply to a deployment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import attrs

from config.deployments.model import Deployment
from lakeferry.rehearsal import changes
from lakeferry.rehearsal.checks import commands, exports, health, lifecycle, rotation, tables
from lakeferry.rehearsal.harness import Harness, NotApplicable, Result

#: Returns why a step has nothing to check in a deployment, "" if it has.
Absent = Callable[[Deployment], str]


def _always(_: Deployment) -> str:
    return ""


def _explain_no_exports(deployment: Deployment) -> str:
    return "" if deployment.exports else "the file has no export"


def _explain_no_tables(deployment: Deployment) -> str:
    return "" if deployment.tables else "the file has no table"


def _explain_no_table_in_glue(deployment: Deployment) -> str:
    return "" if deployment.tables_in_glue else "the file has no table in Glue"


def _explain_no_snowflake(deployment: Deployment) -> str:
    return "" if deployment.uses_snowflake else "the deployment does not use Snowflake"


def _explain_no_trust(deployment: Deployment) -> str:
    if deployment.uses_own_bucket or deployment.uses_snowflake:
        return ""
    return "no vendor assumes a role of the deployment"


def _explain_no_confluent(deployment: Deployment) -> str:
    return "" if deployment.confluent else "the file has no [confluent], so it creates nothing at a vendor"


def _explain_no_own_tables(deployment: Deployment) -> str:
    return _explain_no_confluent(deployment) or _explain_no_tables(deployment)


@attrs.frozen
class Step:
    """`claim` is what the report says of a step that doesn't apply."""

    claim: str
    run: Callable[[Harness], list[Result]]
    absent: Absent = _always


@attrs.frozen
class PlannedPhase:
    name: str
    steps: tuple[Step, ...]

    def work(self, harness: Harness) -> list[Result]:
        """Run the steps that apply. Raises CheckFailed."""
        results: list[Result] = []
        for step in self.steps:
            if why := step.absent(harness.deployment):
                results.append(NotApplicable(step.claim, why))
            else:
                results += step.run(harness)
        return results


PHASES: Final = (
    PlannedPhase(
        "init, secrets, doctor, plan; cdk bootstrap",
        (Step("init, secrets, doctor and plan lead to a deployment", commands.prepare),),
    ),
    PlannedPhase("deploy", (Step("the real CDK deploys the unmodified templates", lifecycle.deploy),)),
    PlannedPhase(
        "events flow into Iceberg tables",
        (Step("events flow into Iceberg tables", tables.events_flow),),
    ),
    PlannedPhase(
        "status", (Step("status looks at every hop of every table", commands.status, _explain_no_tables),)
    ),
    PlannedPhase(
        "readers",
        (
            Step("Snowflake shows new rows after its refresh", tables.new_rows, _explain_no_snowflake),
            Step("the same question gives the same rows everywhere", tables.same_rows, _explain_no_tables),
            Step("Athena's named queries run", tables.run_named_queries, _explain_no_table_in_glue),
        ),
    ),
    PlannedPhase(
        "doctor and monitoring",
        (
            Step("doctor finds nothing wrong", health.nothing_wrong),
            Step("doctor names a broken handshake", health.broken_trust_is_named, _explain_no_trust),
            Step("monitoring measures every hop", health.monitoring_measures, _explain_no_tables),
        ),
    ),
    PlannedPhase(
        "the exports, their schedules and their mails",
        (
            Step("recipients confirm their subscription", exports.subscriptions),
            Step(
                "the schedule fires, and the job publishes the right rows",
                exports.published,
                _explain_no_exports,
            ),
            Step("a second firing publishes nothing twice", exports.not_twice, _explain_no_exports),
            Step("a failed run is reported by mail", exports.failure_is_mailed, _explain_no_exports),
        ),
    ),
    PlannedPhase(
        "rotation",
        (Step("every secret rotates while a reader reads", rotation.secrets_rotate, _explain_no_confluent),),
    ),
    PlannedPhase(
        "rotate and logs",
        (
            Step("a key is rotated and revoked by hand", commands.rotate, _explain_no_confluent),
            Step("logs finds what a name wrote", commands.logs),
        ),
    ),
    PlannedPhase(
        "deploy --repair",
        (
            Step(
                "what somebody deleted is reported and created again", commands.repair, _explain_no_own_tables
            ),
        ),
    ),
    PlannedPhase(
        "an update that is refused",
        (
            Step(
                "permissions that grow are shown before a deployment",
                lifecycle.permissions_are_shown,
                _explain_no_exports,
            ),
        ),
    ),
    PlannedPhase(
        "an update that fails",
        (Step("a failed change rolls back completely", lifecycle.rollback, _explain_no_confluent),),
    ),
    PlannedPhase(
        "an update that is interrupted",
        (
            Step(
                "an update changes what the file says and nothing else",
                lifecycle.update,
                changes.explain_no_change,
            ),
        ),
    ),
)
LAST: Final = PlannedPhase(
    "destroy, and the inventory", (Step("nothing is left over at any vendor", lifecycle.destroy),)
)
