# Every target sets up what it needs: a virtual environment in .venv, from nothing but Python 3.11 or later.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo install test test-all bench docs lint java clean

demo: .venv/.package
	$(BIN)/sfumato demo

install: .venv/.package

test: .venv/.tools java lint
	$(BIN)/pytest -n auto --dist loadfile -m "not slow"

test-all: .venv/.tools java lint
	$(BIN)/pytest -n auto --dist loadfile

lint: .venv/.tools
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: .venv/.package
	$(BIN)/python docs/make_reference.py
	$(BIN)/python docs/make_pictures.py

bench: .venv/.package
	$(BIN)/python bench/run.py

# Spark runs on Java. Without it, and without the right to install it, its tests skip (under CI they fail).
java:
	@command -v java >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
	  apt-get update -q && apt-get install -y -q default-jre-headless; } || \
	  echo "Java was not found and could not be installed: the Spark tests will be skipped."

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "sfumato needs Python 3.11 or later; found $$($(PYTHON) --version). Say which to use: make PYTHON=python3.12 …"; exit 1; }
	$(PYTHON) -m venv .venv

.venv/.package: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

.venv/.tools: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --editable '.[dev,spark]'
	@touch $@ .venv/.package

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis
