"""Show a plan, data loss first, and return it as a JSON document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final

import attrs

from lakeferry.inventory import AWS, CONFLUENT, SNOWFLAKE
from lakeferry.output import Output
from lakeferry.plan import ownership
from lakeferry.plan.cost import HOURS, Estimate
from lakeferry.plan.difference import GRAVEST, Action, Change
from lakeferry.plan.durations import Phase
from lakeferry.plan.edited_statements import EditedStatement
from lakeferry.plan.permissions import PermissionChange
from lakeferry.plan.refusals import Refusal

#: How many names of created resources of one type are shown; the others are only counted.
_MAX_NAMES: Final = 4
_DAY_HOURS: Final = 24
_ORDER: Final = (CONFLUENT, SNOWFLAKE, AWS)
_COLUMNS: Final = ["action", "type", "name", "why"]


@attrs.frozen
class Setting:
    """A changed output or tag of a stack, or its changed termination protection."""

    stack: str
    what: str
    before: str
    after: str


@attrs.frozen
class Plan:
    """A plan. `deployed` has all existing stacks, `removed_from_file` those that the deployment file no
    longer needs.

    `account` is "" if nobody is logged in, so that it is not known what is deployed. `unasked` has sentences
    about what a vendor could refuse, and could not be asked; `busy` has stacks that are being changed.
    """

    prefix: str
    account: str
    region: str
    changes: list[Change]
    settings: list[Setting]
    phases: list[Phase]
    cost: Estimate
    deployed: list[str]
    removed_from_file: list[str]
    permissions: list[PermissionChange] = attrs.field(factory=list)
    refusals: list[Refusal] = attrs.field(factory=list)
    unasked: tuple[str, ...] = ()
    busy: list[str] = attrs.field(factory=list)
    statements: list[EditedStatement] = attrs.field(factory=list)

    @property
    def is_empty(self) -> bool:
        return not self.changes and not self.settings

    @property
    def losses(self) -> list[Change]:
        """Return the changes that delete data, without refused changes, which can't be deployed."""
        refused = {refusal.resource.id for refusal in self.refusals}
        return _sort_by_severity(
            [change for change in self.changes if change.data_loss and change.resource.id not in refused]
        )

    @property
    def broadened(self) -> list[PermissionChange]:
        """Return the changes of permissions that allow more in a deployed stack."""
        return [
            permission
            for permission in self.permissions
            if permission.broadens and permission.stack in self.deployed
        ]

    def counts(self, *systems: str) -> Counter[Action]:
        return Counter(
            change.action for change in self.changes if not systems or change.resource.system in systems
        )


def show(output: Output, plan: Plan) -> None:
    _show_heading(output, plan)
    if plan.losses:
        output.print("DATA LOSS:", alarm=True)
        show_losses(output, plan)
    for resource in ownership.list_adopted(plan.changes):
        output.print(
            f"TAKEN OVER if it exists, because the file adopts it: {resource.what} {resource.name}",
            alarm=True,
        )
    for statement in plan.statements:
        _show_statement(output, statement)
    for system in _ORDER:
        _show_system(output, plan, system)
    _print_permissions(output, plan)
    for setting in plan.settings:
        output.print(f"stack {setting.stack}: {setting.what}: {setting.before} → {setting.after}")
    for name in plan.removed_from_file:
        output.print(
            f"stack {name} is kept: it is no longer in the deployment file, and `lakeferry deploy` deletes "
            "no stack"
        )
    if plan.phases and not plan.is_empty:
        low = sum(phase.low for phase in plan.phases)
        high = sum(phase.high for phase in plan.phases)
        output.print(f"\nExpected duration: {low:.0f} to {high:.0f} minutes")
        for phase in plan.phases:
            output.print(f"  {phase.stack}  {phase}")
    month = f"{plan.cost.low:,.0f} to {plan.cost.high:,.0f} USD a month"
    output.print(f"\nEstimated cost: {month}, {format_day_cost(plan.cost)}; `lakeferry cost` has the details")


def _show_statement(output: Output, statement: EditedStatement) -> None:
    output.print(f"\nFlink statement {statement.name}: {statement}")
    if statement.consequence:
        output.print(f"  {statement.consequence}")
    for line in statement.diff:
        output.print(f"  {line}")


def _show_heading(output: Output, plan: Plan) -> None:
    """Show the summary, and what is refused or could not be found out."""
    account = f"account {plan.account}, " if plan.account else ""
    if not plan.account:
        output.print(
            "NOT COMPARED: nobody is logged in to AWS, and it is unknown what is deployed. A first "
            "deployment would:"
        )
    output.print(f"{plan.prefix} in {account}{plan.region}: {summarize(plan)}")
    for sentence in plan.busy:
        output.print(f"OUT OF DATE: {sentence}: another deployment is changing it, and may fail", alarm=True)
    for refusal in plan.refusals:
        output.print(f"CAN'T BE DEPLOYED: {refusal}", alarm=True)
    for sentence in plan.unasked:
        output.print(f"NOT CHECKED: {sentence}", alarm=True)


def summarize(plan: Plan) -> str:
    if plan.is_empty:
        return "no changes"
    return (
        _format_counts(plan.counts(), reversed(GRAVEST))
        or "only outputs, tags or protection of stacks to update"
    )


def _format_counts(counts: Counter[Action], order: Iterable[Action]) -> str:
    return ", ".join(f"{counts[action]} to {action}" for action in order if counts[action])


def build_document(plan: Plan) -> dict[str, Any]:
    changes = [_as_document(change) for change in plan.changes]
    return {
        "account": plan.account,
        "region": plan.region,
        "changes": changes,
        "settings": [attrs.asdict(setting) for setting in plan.settings],
        "losses": [_as_document(change) for change in plan.losses],
        "statements": [attrs.asdict(statement) for statement in plan.statements],
        "adopted": [resource.name for resource in ownership.list_adopted(plan.changes)],
        "refused": [
            {"resource": refusal.resource.name, "reason": refusal.reason} for refusal in plan.refusals
        ],
        "not_checked": list(plan.unasked),
        "permissions": [attrs.asdict(permission) for permission in plan.permissions],
        "busy": plan.busy,
        "removed_from_file": plan.removed_from_file,
        "phases": [attrs.asdict(phase) for phase in plan.phases],
        "cost": {"currency": "USD", "low": round(plan.cost.low, 2), "high": round(plan.cost.high, 2)},
    }


def format_day_cost(cost: Estimate) -> str:
    low = cost.low / HOURS * _DAY_HOURS
    high = cost.high / HOURS * _DAY_HOURS
    return f"{low:,.0f} to {high:,.0f} USD a day"


def show_losses(output: Output, plan: Plan) -> None:
    for change in plan.losses:
        where = f"{change.resource.system} {change.resource.what} {change.resource.name}"
        output.print(f"  {change.action} {where}, which deletes {change.data_loss}", alarm=True)
        for why in change.why:
            output.print(f"      because {why}")
        if not change.why:
            output.print("      because it is no longer in the deployment file")


def show_permissions(output: Output, changes: Iterable[PermissionChange]) -> None:
    """Show permissions in full, because users approve them."""
    for change in changes:
        mark = " allows more" if change.broadens else ""
        output.print(
            f"  {change.type.removeprefix('AWS::')} {change.logical_id} in {change.stack}{mark}",
            alarm=change.broadens,
        )
        for line in change.added:
            output.print(f"      + {line}")
        for line in change.removed:
            output.print(f"      - {line}")


def _print_permissions(output: Output, plan: Plan) -> None:
    lines = [
        permission for permission in plan.permissions if output.verbose or permission.stack in plan.deployed
    ]
    if lines:
        output.print("\nPermissions:")
        show_permissions(output, lines)
    if new := len(plan.permissions) - len(lines):
        output.print(f"\nPermissions: {new} policies in new stacks (--verbose lists each)")


def _show_system(output: Output, plan: Plan, system: str) -> None:
    mine = [change for change in plan.changes if change.resource.system == system]
    if not mine:
        return
    output.print(f"\n{system}: {_format_counts(plan.counts(system), GRAVEST)}")
    shown = mine
    if system == AWS and not output.verbose:
        shown = [change for change in mine if change.action is not Action.CREATE]
    if shown:
        output.table(_COLUMNS, list(_build_rows(shown, output.verbose)))
    if len(shown) < len(mine):
        created = Counter(change.resource.stack for change in mine if change.action is Action.CREATE)
        counted = ", ".join(f"{count} in {stack}" for stack, count in created.items())
        output.print(f"create {counted} (--verbose lists each)")


def _build_rows(changes: Iterable[Change], verbose: bool) -> Iterator[list[str]]:
    """Yield a row for each group of resources with the same type, action and reasons."""
    groups: dict[tuple[Action, str, str], list[str]] = {}
    for change in _sort_by_severity(changes):
        why = "; ".join(map(str, change.why))
        groups.setdefault((change.action, change.resource.what, why), []).append(change.resource.name)
    for (action, kind, why), names in groups.items():
        shown = names if verbose or action is not Action.CREATE else names[:_MAX_NAMES]
        more = f" and {len(names) - len(shown)} more" if len(shown) < len(names) else ""
        yield [action.upper() if action.deletes else str(action), kind, ", ".join(shown) + more, why]


def _sort_by_severity(changes: Iterable[Change]) -> list[Change]:
    return sorted(changes, key=lambda change: GRAVEST.index(change.action))


def _as_document(change: Change) -> dict[str, Any]:
    resource = change.resource
    return {
        "stack": resource.stack,
        "system": resource.system,
        "type": resource.kind or resource.type,
        "logical_id": resource.logical_id,
        "name": resource.name,
        "action": str(change.action),
        "why": [attrs.asdict(why) | {"effect": str(why.effect)} for why in change.why],
        "data_loss": change.data_loss,
    }
