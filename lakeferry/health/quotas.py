"""Quotas of AWS that a deployment can run into: told where they are small, as deploying more slowly is no failure."""

from __future__ import annotations

from typing import Final

from botocore.exceptions import BotoCoreError, ClientError

from lakeferry.deployment.context import Ground
from lakeferry.health.aws import GROUP
from lakeferry.health.model import Check
from lakeferry.inventory.aws_kinds import pages
from lambdas.shared.aws import error_code

#: Calls at once that a deployment's resources, made side by side, make use of; new accounts may have ten.
_CALLS: Final = 50
_DPU: Final = {"G.1X": 1, "G.2X": 2, "G.4X": 4}
_RUNS: Final = "concurrent job runs per account"
_DPUS: Final = "task dpus per account"
_RAISE: Final = "Ask for more in the console of Service Quotas, AWS {service}"


def functions(here: Ground) -> list[Check]:
    name = "Lambda: calls at once"
    limit = int(here.client("lambda").get_account_settings()["AccountLimit"]["ConcurrentExecutions"])
    if limit >= _CALLS:
        return [GROUP.ok(name, str(limit))]
    told = f"{limit}, for all functions of the account together: a deployment takes longer with so few"
    return [GROUP.warn(name, told, _RAISE.format(service="Lambda"), f"{_CALLS} or more")]


def jobs(here: Ground) -> list[Check]:
    """As many runs at once as there are exports, each with its workers."""
    exports, aws = max(1, len(here.deployment.exports)), here.deployment.aws
    dpus = aws.glue_workers * _DPU[aws.glue_worker_type]
    try:
        known = _of_glue(here)
    except (ClientError, BotoCoreError) as error:
        code = error_code(error) if isinstance(error, ClientError) else ""
        why = f"Service Quotas can't be asked: {code or type(error).__name__}"
        return [
            GROUP.warn(f"Glue: {name}", why, "Look at them in the console of Service Quotas") for name in ("runs at once", "DPUs")
        ]
    return [
        _enough("Glue: runs at once", known.get(_RUNS), 1, exports),
        _enough("Glue: DPUs", known.get(_DPUS), dpus, exports * dpus),
    ]


def _of_glue(here: Ground) -> dict[str, float]:
    """By the ends of their names, in small letters: what stands before differs."""
    found: dict[str, float] = {}
    for page in pages(here, "service-quotas", "list_service_quotas", ServiceCode="glue"):
        for quota in page["Quotas"]:
            for end in (_RUNS, _DPUS):
                if quota["QuotaName"].lower().endswith(end):
                    found[end] = float(quota["Value"])
    return found


def _enough(name: str, limit: float | None, least: int, all_at_once: int) -> Check:
    if limit is None:
        return GROUP.warn(name, "Service Quotas doesn't list it", "Look at it in the console of Service Quotas")
    fix = _RAISE.format(service="Glue")
    if limit < least:
        return GROUP.fail(name, f"{limit:g}", fix, f"{least} for one export")
    if limit < all_at_once:
        return GROUP.warn(
            name, f"{limit:g}; exports that start together wait or fail", fix, f"{all_at_once} for all exports at once"
        )
    return GROUP.ok(name, f"{limit:g}, for {all_at_once} at most")
