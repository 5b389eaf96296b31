"""Local runs: setting up a clone, the demo, exports and queries on this machine.

Importing it needs only the standard library.
"""
