"""`python -m simulators.aws --port N`: the embedded AWS by hand, in the environment .venv-aws."""

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
    given = vars(_parser().parse_args(arguments))
    as_json = given.pop("json")
    stdout = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what MiniStack prints belongs to the log

    def announce(credentials: dict[str, Any]) -> None:
        stdout.write((json.dumps(credentials) if as_json else _sentence(credentials)) + "\n")
        stdout.flush()

    try:
        run(Options(**given), announce)
    except (StartFailed, HookMissing) as failure:
        return cli.not_started("embedded AWS", failure)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = cli.parser("simulators.aws", "The embedded AWS (MiniStack).", 4566)
    parser.add_argument("--state-dir", type=Path, help="keep everything there, also for the next start")
    parser.add_argument("--scratch", type=Path, help="for temporary files; removed at the end")
    parser.add_argument("--iam", action="store_true", help="enforce policies; test/test is the account's root")
    parser.add_argument("--stock", action="store_true", help="leave the patches out")
    return parser


def _sentence(credentials: dict[str, Any]) -> str:
    return (
        f"embedded AWS at {credentials['url']}, account {credentials['account']}, region {credentials['region']}, "
        f"keys {credentials['access_key_id']}/{credentials['secret_access_key']}. Ctrl-C stops it"
    )


if __name__ == "__main__":
    sys.exit(main())
