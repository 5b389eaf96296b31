"""Copy the shipped deployment files to where the tests read them, and dev.toml with the files that it names
to the rehearsal's example: `python -m dev.shipped`.

For changes of these files only.
"""

from __future__ import annotations

import shutil
from typing import Final

from config.project import PROJECT, ROOT

FOLDER: Final = ROOT / "tests" / "data" / "shipped"
EXAMPLE: Final = ROOT / "lakeferry" / "rehearsal" / "example"


def main() -> None:
    for copy in FOLDER.glob("*.toml"):
        shutil.copy(PROJECT / "deployments" / copy.name, copy)
    for copy in EXAMPLE.rglob("*.*"):
        shutil.copy(PROJECT / copy.relative_to(EXAMPLE), copy)


if __name__ == "__main__":
    main()
