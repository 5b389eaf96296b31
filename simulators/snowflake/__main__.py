"""`python -m simulators.snowflake --port N`: runs a simulated Snowflake account on loopback."""

from __future__ import annotations

import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from simulators.aws import settings
from simulators.core import cli, server
from simulators.snowflake.lake import Lake
from simulators.snowflake.server import build_web_server
from simulators.snowflake.simulation import REGION, Simulation


def main(arguments: Sequence[str] | None = None) -> int:
    parser = cli.build_vendor_parser("simulators.snowflake", "A simulator of a Snowflake account.", 8091)
    parser.add_argument(
        "--account", default="", help="the account identifier, ORGANIZATION-ACCOUNT (default: generated)"
    )
    options = parser.parse_args(arguments)
    try:
        listener = server.bind_socket(options.port)
    except OSError as error:
        return cli.report_not_started("simulator of Snowflake", cli.describe_port_taken(options.port, error))
    if options.stop_with_stdin:
        cli.stop_with_stdin()
    signal.signal(
        signal.SIGTERM, lambda *_: sys.exit(0)
    )  # so that the folder is deleted, even before the server runs
    default_region = settings.REGION if options.aws else REGION
    region = options.region or default_region
    lake = (
        Lake(options.aws, region, settings.ACCESS_KEY_ID, settings.SECRET_ACCESS_KEY) if options.aws else None
    )
    with listener, tempfile.TemporaryDirectory(prefix="lakeferry-snowflake-") as folder:
        simulation = Simulation(
            Path(folder),
            time_scale=options.time_scale,
            seed=options.seed,
            region=region,
            aws=lake,
            name=options.account,
        )
        announcement = {"url": server.get_address(listener), **simulation.credentials, "region": region}
        server.serve(build_web_server(simulation), [listener], announcement, as_json=options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
