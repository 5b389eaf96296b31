"""Pages of docs/reference that are made from the code, so that they can't say anything else: `python -m tools.docs`."""
