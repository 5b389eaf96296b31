"""The Flink worker.

It runs in a process and a virtual environment (.venv-flink) of its own; ../engine.py starts it.
"""
