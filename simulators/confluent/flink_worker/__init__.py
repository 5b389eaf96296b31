"""Real Flink in a process and a virtual environment of its own (.venv-flink); ../flink_remote.py speaks with it."""
