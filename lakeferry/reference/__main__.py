"""Writes the pages: `python -m lakeferry.reference`."""

from __future__ import annotations

from lakeferry.reference import pages

if __name__ == "__main__":
    pages.write()
