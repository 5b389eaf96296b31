"""`python -m simulators.snowflake --port N`: a Snowflake account of one's own, on loopback."""

from __future__ import annotations

import argparse
import signal
import socket
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from simulators.aws import settings
from simulators.core import server as serving
from simulators.snowflake.lake import Lake
from simulators.snowflake.server import web_server
from simulators.snowflake.simulation import REGION, Simulation

EXIT_NOT_STARTED: Final = 3


def main(arguments: Sequence[str] | None = None) -> int:
    given = _parser().parse_args(arguments)
    try:
        listener = serving.bound(given.port)
    except OSError as error:
        sys.stderr.write(f"the simulator did not start: port {given.port} can't be had ({error.strerror}). Use another, or 0\n")
        return EXIT_NOT_STARTED
    if given.stop_with_stdin:
        serving.stop_with_stdin()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # so that the folder goes, also before anything is served
    with listener, tempfile.TemporaryDirectory(prefix="lakeferry-snowflake-") as folder:
        _serve(given, listener, Path(folder))
    return 0


def _serve(given: argparse.Namespace, listener: socket.socket, folder: Path) -> None:
    region = given.region or (settings.REGION if given.aws else REGION)
    lake = Lake(given.aws, region, settings.ACCESS_KEY_ID, settings.SECRET_ACCESS_KEY) if given.aws else None
    simulation = Simulation(folder, time_scale=given.time_scale, seed=given.seed, region=region, aws=lake, name=given.account)
    announcement = {"url": serving.address(listener), **simulation.credentials, "region": region}
    serving.serve(web_server(simulation), [listener], announcement, as_json=given.json)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m simulators.snowflake", description="A Snowflake account, simulated.")
    parser.add_argument("--port", type=int, default=8091, help="0 picks a free one (default: 8091)")
    parser.add_argument("--json", action="store_true", help="print one line of JSON")
    parser.add_argument("--stop-with-stdin", action="store_true", help="stop when standard input ends")
    parser.add_argument("--time-scale", type=float, default=1.0, metavar="X", help="time runs X times as fast (default: 1)")
    parser.add_argument("--aws", metavar="URL", help="an embedded AWS, started with --iam, that tables are read from")
    parser.add_argument("--region", help=f"the account's own (default: {REGION}, or that of the embedded AWS)")
    parser.add_argument("--account", default="", help="its name, organization-account (default: made up)")
    parser.add_argument("--seed", type=int, help="the same names in every run")
    return parser


if __name__ == "__main__":
    sys.exit(main())
