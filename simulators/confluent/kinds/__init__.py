"""One module for each kind of object; registry.py lists them."""
