"""The phases of a rehearsal, and which checks apply to a deployment."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Final

import attrs

from config.deployments.model import Deployment
from lakeferry.rehearsal import changes
from lakeferry.rehearsal.checks import (
    aggregates,
    attachments,
    commands,
    edits,
    exports,
    health,
    lifecycle,
    links,
    past_windows,
    people,
    queries,
    rotation,
    tables,
    workbooks,
)
from lakeferry.rehearsal.harness import Harness, NotApplicable, Result
from lakeferry.verification.claims import Absent, Claim, explain_absent


@attrs.frozen
class Step:
    """`claim` is what the report says of a step that doesn't apply.

    `explain` says why a rehearsal can't check the claim, "" if it can.
    """

    claim: Claim
    run: Callable[[Harness], list[Result]]
    explain: Absent | None = None

    def absent(self, deployment: Deployment) -> str:
        """Return why the step has nothing to check, "" if it has."""
        why = explain_absent(self.claim, deployment)
        return why or (self.explain(deployment) if self.explain else "")


@attrs.frozen
class PlannedPhase:
    """`stops_time`: no time passes at Confluent, so that tables stay as they are however long it takes."""

    name: str
    steps: tuple[Step, ...]
    stops_time: bool = False

    def work(self, harness: Harness) -> list[Result]:
        """Run the steps that apply. Raises CheckFailed."""
        results: list[Result] = []
        with harness.simulators.stop_confluent_time() if self.stops_time else nullcontext():
            for step in self.steps:
                if why := step.absent(harness.deployment):
                    results.append(NotApplicable(step.claim, why))
                else:
                    results += step.run(harness)
        return results


PHASES: Final = (
    PlannedPhase("init, secrets, doctor, plan; cdk bootstrap", (Step(Claim.PREPARED, commands.prepare),)),
    PlannedPhase("deploy", (Step(Claim.DEPLOYED, lifecycle.deploy),)),
    PlannedPhase("events flow into Iceberg tables", (Step(Claim.EVENTS_FLOW, tables.events_flow),)),
    PlannedPhase("status", (Step(Claim.STATUS, commands.status),)),
    PlannedPhase(
        "readers",
        (
            Step(Claim.NEW_ROWS, tables.new_rows),
            Step(Claim.SAME_ROWS, tables.same_rows),
            Step(Claim.NAMED_QUERIES, queries.run_named_queries),
            Step(Claim.QUERIED, queries.query_hides_columns),
            Step(Claim.SNOWFLAKE_PEOPLE, people.see_views_in_snowflake),
            Step(Claim.ATHENA_PEOPLE, people.see_columns_in_athena),
        ),
    ),
    PlannedPhase(
        "doctor and monitoring",
        (
            Step(Claim.DOCTOR, health.nothing_wrong),
            Step(Claim.BROKEN_TRUST, health.broken_trust_is_named),
            Step(Claim.MONITORING, health.monitoring_measures),
        ),
    ),
    PlannedPhase(
        "the exports, their schedules and their mails",
        (
            Step(Claim.SUBSCRIPTIONS, exports.subscriptions),
            Step(Claim.BACKFILLED, past_windows.backfilled),
            Step(Claim.PUBLISHED, exports.published),
            Step(Claim.AGGREGATES, queries.run_queries_of_aggregates),
            Step(Claim.SNOWFLAKE_AGGREGATES, aggregates.see_aggregates_in_snowflake),
            Step(Claim.WORKBOOKS, workbooks.libreoffice_opens),
            Step(Claim.NOT_TWICE, exports.not_twice),
            Step(Claim.VERIFIED, commands.verify),
            Step(Claim.FAILURE_MAILED, exports.failure_is_mailed),
        ),
        stops_time=True,
    ),
    PlannedPhase(
        "files and links in mails",
        (Step(Claim.ATTACHED, attachments.files_are_attached), Step(Claim.LINKS, links.links_open)),
    ),
    PlannedPhase("rotation", (Step(Claim.ROTATION, rotation.secrets_rotate),)),
    PlannedPhase("rotate and logs", (Step(Claim.REVOKED, commands.rotate), Step(Claim.LOGS, commands.logs))),
    PlannedPhase("an edited Flink statement", (Step(Claim.EDITED, edits.edited_in_place),)),
    PlannedPhase("deploy --repair", (Step(Claim.REPAIRED, commands.repair),)),
    PlannedPhase("an update that is refused", (Step(Claim.PERMISSIONS, lifecycle.permissions_are_shown),)),
    PlannedPhase("an update that fails", (Step(Claim.ROLLBACK, lifecycle.rollback),)),
    PlannedPhase(
        "an update that is interrupted", (Step(Claim.UPDATE, lifecycle.update, changes.explain_no_change),)
    ),
)
LAST: Final = PlannedPhase("destroy, and the inventory", (Step(Claim.DESTROYED, lifecycle.destroy),))
