"""Where a user's files are, and which stage a command takes that names none."""

from __future__ import annotations

from pathlib import Path
from typing import Final

#: This folder's parent: a checkout. Not a path of the file system where the code runs from a zip.
ROOT: Final = Path(__file__).resolve().parents[1]
#: The folder of deployments/, exports/, topics/ and flink/.
PROJECT: Final = ROOT / "project"
DEFAULT_STAGE: Final = "dev"
