"""Write the pages: `python -m tools.docs`."""

from __future__ import annotations

from tools.docs import pages

if __name__ == "__main__":
    pages.write()
