"""`make docs`."""

from __future__ import annotations

import sys

from lakeferry.bootstrap import ROOT
from lakeferry.site import building

OUT = ROOT / "build" / "site"


def main() -> None:
    count = building.build(ROOT, OUT)
    sys.stderr.write(f"{count} pages in build/site. Open build/site/index.html in a browser.\n")


if __name__ == "__main__":
    main()
