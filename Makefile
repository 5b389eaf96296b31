# Thin names for real commands. Each target does its own set-up, from the lock file, into this tree.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin

.PHONY: demo test lint bench setup lock clean

demo: setup
	@$(BIN)/lakeferry demo

test: setup
	@$(BIN)/python -m pytest

lint: setup
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

bench: setup
	@$(BIN)/python -m benchmarks

setup:
	@$(PYTHON) -m lakeferry.bootstrap

lock:
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11.7 --generate-hashes --no-emit-index-url --no-emit-find-links --no-header requirements.in --output-file requirements.txt
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11.7 --generate-hashes --no-emit-index-url --no-emit-find-links --no-header simulators/aws/requirements.in --output-file simulators/aws/requirements.txt

clean:
	rm -rf .venv .venv-aws .jars .lakeferry out build *.egg-info
