"""`python -m simulators.confluent --port N`: runs a simulated Confluent Cloud organization on loopback."""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import datetime

from simulators.aws import settings
from simulators.confluent.flink.engine import FLINK_PYTHON, FlinkEngine, FlinkWorker
from simulators.confluent.model import Plane
from simulators.confluent.organization import Delays
from simulators.confluent.server import Listening
from simulators.confluent.simulation import REGION, Simulation
from simulators.confluent.tableflow_lake import Lake
from simulators.core import cli, server

WHAT = "simulator of Confluent Cloud"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = cli.build_vendor_parser("simulators.confluent", "A simulator of Confluent Cloud.", 8090)
    parser.add_argument(
        "--start",
        type=datetime.fromisoformat,
        metavar="TIME",
        help="time at which the simulation starts (default: now)",
    )
    parser.add_argument(
        "--delays", type=float, default=1.0, metavar="X", help="multiply simulated delays by X (default: 1)"
    )
    parser.add_argument("--organization", default="", metavar="ID", help="id of the organization")
    parser.add_argument(
        "--flink", action="store_true", help="run statements on real Flink, installed in .venv-flink"
    )
    options = parser.parse_args(arguments)
    if options.flink and not FLINK_PYTHON.exists():
        remedy = "Run `.venv/bin/python -m lakeferry.local.bootstrap flink`"
        return cli.report_not_started(WHAT, f"Flink is not installed (.venv-flink is missing). {remedy}")
    region = options.region or REGION
    with ExitStack() as stack:
        try:
            listening = Listening(options.port, stack)
        except OSError as error:
            return cli.report_not_started(WHAT, cli.describe_port_taken(options.port, error))
        worker = FlinkWorker() if options.flink else None
        start = options.start.timestamp() if options.start else None
        lake = None
        if options.aws:
            lake = Lake(options.aws, region, settings.ACCESS_KEY_ID, settings.SECRET_ACCESS_KEY)
        engine = FlinkEngine(worker) if worker else None
        simulation = Simulation(
            listening.addresses,
            time_scale=options.time_scale,
            start=start,
            delays=Delays().scale(options.delays),
            region=region,
            seed=options.seed,
            lake=lake,
            engine=engine,
            organization_id=options.organization,
        )
        if options.stop_with_stdin:
            cli.stop_with_stdin()
        if worker:
            stack.callback(worker.close)
            threading.Thread(target=worker.warm, daemon=True).start()
        addresses = {
            "url": listening.addresses[Plane.CLOUD],
            "iceberg_catalog_url": listening.addresses[Plane.CATALOG],
            "schema_registry_url": listening.addresses[Plane.REGISTRY],
        }
        announcement = {**addresses, **simulation.credentials, "region": region}
        sockets = list(listening.sockets.values())
        server.serve(listening.build_server(simulation), sockets, announcement, as_json=options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
