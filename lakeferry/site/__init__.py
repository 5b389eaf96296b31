"""Makes a website of the pages in docs/: `python -m lakeferry.site`. Its pages ask nobody for anything."""
