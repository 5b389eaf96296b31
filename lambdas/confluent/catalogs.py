"""A cluster's integrations with catalogs: whether they work, and how one that has failed is taken up again."""

from __future__ import annotations

from typing import Any, Final

from lambdas.confluent import errors as confluent_errors
from lambdas.confluent.lookup import Ctx
from lambdas.confluent.plane import Plane, path
from lambdas.confluent.reading import at, text
from lambdas.shared.errors import DETAIL_LENGTH, Faulty

ROUTE: Final = "/tableflow/v1/catalog-integrations"
#: A new role reaches all of AWS within minutes: seconds after which a failure is the role's own.
FAULT_PATIENCE: Final = 900.0
_RESUME_EVERY: Final = 60.0


def require_working(context: Ctx, plane: Plane, found: dict[str, Any], place: dict[str, Any]) -> None:
    """Raises Faulty, with Confluent's reason, for one that has failed, and resumes it once a minute."""
    if text(found, "status", "phase") == "FAILED" or at(found, "spec", "suspended") is True:
        _resume(context, plane, text(found, "id"), place)
        raise fault(f"catalog integration {text(found, 'id')}", text(found, "status", "error_message"))


def fault(what: str, reason: str) -> Faulty:
    told = f"{what}: {reason[:DETAIL_LENGTH] or 'no reason given'}"
    return Faulty(confluent_errors.CATALOG_FAILED, told, patience=FAULT_PATIENCE)


def _resume(context: Ctx, plane: Plane, integration_id: str, place: dict[str, Any]) -> None:
    note = f"resumed {integration_id}"
    if context.clock.time() - float(context.notes.get(note, "0")) >= _RESUME_EVERY:
        context.notes[note] = str(context.clock.time())
        plane.patch(ROUTE + path(integration_id), {"spec": {**place, "suspended": False}})
