"""Write the pages: `python -m dev.docs`."""

from __future__ import annotations

from dev.docs import pages

if __name__ == "__main__":
    pages.write()
