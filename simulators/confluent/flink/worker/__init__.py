"""Real Flink in a process and a virtual environment of its own (.venv-flink); ../engine.py starts it."""
