"""Copy the shipped deployment files to where the tests read them: `python -m dev.shipped`.

For changes of these files only.
"""

from __future__ import annotations

import shutil
from typing import Final

from config.project import PROJECT, ROOT

FOLDER: Final = ROOT / "tests" / "data" / "shipped"


def main() -> None:
    for copy in FOLDER.glob("*.toml"):
        shutil.copy(PROJECT / "deployments" / copy.name, copy)


if __name__ == "__main__":
    main()
