"""`python -m simulators.confluent --port N`: a Confluent Cloud organization of one's own, on loopback."""

from __future__ import annotations

import argparse
import sys
import threading
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from simulators.aws import settings
from simulators.confluent import controls
from simulators.confluent.flink.engine import FLINK_PYTHON, FlinkEngine, FlinkWorker
from simulators.confluent.model import Plane
from simulators.confluent.organization import Delays
from simulators.confluent.server import Listening
from simulators.confluent.simulation import REGION, Simulation
from simulators.confluent.tableflow_lake import Lake
from simulators.core import server as serving

EXIT_NOT_STARTED: Final = 3


def main(arguments: Sequence[str] | None = None) -> int:
    given = _parser().parse_args(arguments)
    if given.flink and not FLINK_PYTHON.exists():
        remedy = "Run `.venv/bin/python -m lakeferry.local.bootstrap flink`"
        sys.stderr.write(f"the simulator did not start: Flink is not installed (.venv-flink is missing). {remedy}\n")
        return EXIT_NOT_STARTED
    try:
        listening = Listening(given.port)
    except OSError as error:
        sys.stderr.write(f"the simulator did not start: port {given.port} can't be had ({error.strerror}). Use another, or 0\n")
        return EXIT_NOT_STARTED
    keys = (settings.ACCESS_KEY_ID, settings.SECRET_ACCESS_KEY)
    lake = Lake(given.aws, given.region, *keys) if given.aws else None
    worker = FlinkWorker() if given.flink else None
    simulation = Simulation(
        listening.addresses,
        time_scale=given.time_scale,
        start=given.start.timestamp() if given.start else None,
        delays=Delays().scaled(given.delays),
        region=given.region,
        seed=given.seed,
        lake=lake,
        engine=FlinkEngine(worker) if worker else None,
    )
    if given.stop_with_stdin:
        serving.stop_with_stdin()
    if worker:
        threading.Thread(target=worker.warm, daemon=True).start()
    try:
        sockets = list(listening.sockets.values())
        serving.serve(listening.server(simulation), sockets, _announcement(listening, simulation), as_json=given.json)
    finally:
        listening.close()
        if worker:
            worker.close()
    return 0


def _announcement(listening: Listening, simulation: Simulation) -> dict[str, str]:
    addresses = {"url": listening.addresses[Plane.CLOUD], "iceberg_catalog_url": listening.addresses[Plane.CATALOG]}
    return {**addresses, **controls.credentials(simulation), "region": simulation.world.region}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m simulators.confluent", description="Confluent Cloud, simulated.")
    parser.add_argument("--port", type=int, default=8090, help="of the control plane; 0 picks a free one (default: 8090)")
    parser.add_argument("--json", action="store_true", help="print one line of JSON")
    parser.add_argument("--stop-with-stdin", action="store_true", help="stop when standard input ends")
    parser.add_argument("--time-scale", type=float, default=1.0, metavar="X", help="time runs X times as fast (default: 1)")
    parser.add_argument("--start", type=datetime.fromisoformat, metavar="TIME", help="what time it is there (default: now)")
    parser.add_argument("--delays", type=float, default=1.0, metavar="X", help="all waiting X times as long (default: 1)")
    parser.add_argument("--aws", metavar="URL", help="an embedded AWS, started with --iam, that tables are written into")
    parser.add_argument("--flink", action="store_true", help="run statements on real Flink, from .venv-flink")
    parser.add_argument("--region", default=REGION, help=f"the region that is printed, for examples (default: {REGION})")
    parser.add_argument("--seed", type=int, help="the same ids in every run")
    return parser


if __name__ == "__main__":
    sys.exit(main())
