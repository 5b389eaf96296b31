"""What only a test asks for, at /_simulator.

GET  /_simulator            time, names of everything there is
POST /_simulator/clock      {"advance": seconds}
PUT  /_simulator/ways       {"partition_rows": 2, "most_rows": 5, "prefix": "API",
                             "slow": [{"statement": "^CREATE", "seconds": 60, "times": 1}]}; what isn't named stays
POST /_simulator/reset      a new account, whose address and user are answered
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from starlette.responses import JSONResponse, Response

from simulators.core import server as serving
from simulators.snowflake.simulation import Simulation


def respond(simulation: Simulation, method: str, path: str, body: bytes) -> Response:
    action = _ACTIONS.get((method, path.removeprefix(serving.CONTROLS)))
    if action is None:
        return JSONResponse({"error": "no such control"}, 404)
    try:
        return JSONResponse(action(simulation, json.loads(body or b"{}")))
    except (ValueError, TypeError, LookupError) as refused:
        return JSONResponse({"error": str(refused)}, 400)


def _state(simulation: Simulation, _: dict[str, Any]) -> dict[str, Any]:
    account = simulation.account
    account.clock.run_due()
    return {"now": account.clock.text(), "objects": account.objects()}


def _advance(simulation: Simulation, body: dict[str, Any]) -> dict[str, Any]:
    simulation.account.clock.advance(float(body["advance"]))
    return _state(simulation, {})


def _ways(simulation: Simulation, body: dict[str, Any]) -> dict[str, Any]:
    simulation.account.ways.change(body)
    return {}


def _reset(simulation: Simulation, _: dict[str, Any]) -> dict[str, Any]:
    simulation.reset()
    return simulation.credentials


_ACTIONS: Final[dict[tuple[str, str], Callable[[Simulation, dict[str, Any]], dict[str, Any]]]] = {
    ("GET", ""): _state,
    ("POST", "/clock"): _advance,
    ("PUT", "/ways"): _ways,
    ("POST", "/reset"): _reset,
}
