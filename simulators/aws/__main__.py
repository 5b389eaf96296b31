"""Runs the embedded AWS from the command line, in .venv-aws: `python -m simulators.aws --port N`."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from simulators.aws.hooks import HookMissing
from simulators.aws.launcher import Options, StartFailed, run
from simulators.core import cli


def main(arguments: Sequence[str] | None = None) -> int:
    options = vars(_build_parser().parse_args(arguments))
    as_json = options.pop("json")
    stdout = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    # MiniStack's own output goes to the log on standard error.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def announce(credentials: dict[str, Any]) -> None:
        if as_json:
            announcement = json.dumps(credentials)
        else:
            keys = f"{credentials['access_key_id']}/{credentials['secret_access_key']}"
            announcement = (
                f"embedded AWS at {credentials['url']}, account {credentials['account']}, region "
                f"{credentials['region']}, keys {keys}. Ctrl-C stops it"
            )
        stdout.write(announcement + "\n")
        stdout.flush()

    try:
        run(Options(**options), announce)
    except (StartFailed, HookMissing) as failure:
        return cli.report_not_started("embedded AWS", failure)
    return 0


def _build_parser() -> argparse.ArgumentParser:
    parser = cli.build_parser("simulators.aws", "The embedded AWS (MiniStack).", 4566)
    parser.add_argument("--state-dir", type=Path, help="directory that keeps all state for the next start")
    parser.add_argument(
        "--scratch", type=Path, help="directory for temporary files; deleted when the server stops"
    )
    parser.add_argument(
        "--iam", action="store_true", help="enforce IAM policies; the keys test/test are the root user's"
    )
    parser.add_argument("--stock", action="store_true", help="run MiniStack without the patches")
    return parser


if __name__ == "__main__":
    sys.exit(main())
