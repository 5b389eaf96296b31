"""Athena's engine, in a process of its own for each query: PyIceberg reads under the caller's credentials, DuckDB computes.

It runs in the project's interpreter, because the embedded AWS has neither of the two. `engine.py` says what it is told and tells.
"""
