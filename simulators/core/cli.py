"""The command-line options that all simulators share. Uses only the standard library."""

from __future__ import annotations

import argparse
import sys
import threading
from typing import Final

from simulators.core import processes

EXIT_NOT_STARTED: Final = 3


def build_parser(module: str, description: str, port: int) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=description)
    parser.add_argument(
        "--port", type=int, default=port, help=f"port to listen on; 0 picks a free one (default: {port})"
    )
    parser.add_argument("--json", action="store_true", help="print one line of JSON when the server is ready")
    parser.add_argument("--stop-with-stdin", action="store_true", help="stop when standard input ends")
    return parser


def build_vendor_parser(module: str, description: str, port: int) -> argparse.ArgumentParser:
    """Return a parser with the options of a vendor's simulator: time, AWS, region and seed."""
    result = build_parser(module, description, port)
    result.add_argument(
        "--time-scale", type=float, default=1.0, metavar="X", help="time runs X times as fast (default: 1)"
    )
    result.add_argument(
        "--aws", metavar="URL", help="the embedded AWS that holds the tables; start it with --iam"
    )
    result.add_argument("--region", help="default: that of the embedded AWS")
    result.add_argument(
        "--seed", type=int, help="seed of generated names; the same seed gives the same names"
    )
    return result


def report_not_started(program: str, reason: object) -> int:
    """Print why, and return the exit code."""
    sys.stderr.write(f"the {program} did not start: {reason}\n")
    return EXIT_NOT_STARTED


def describe_port_taken(port: int, error: OSError) -> str:
    return f"port {port} can't be had ({error.strerror}). Use another, or 0 for a free one"


def stop_with_stdin() -> None:
    """End this process when its parent ends. A thread watches for that."""
    threading.Thread(target=processes.end_with_parent, daemon=True).start()
