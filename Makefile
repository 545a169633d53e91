# Every target sets up what it needs: a virtual environment in .venv, from nothing but Python 3.11 or later.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo serve install test test-slow test-all bench docs lint java chromium clean

demo: .venv/.package
	$(BIN)/sfumato demo

# Serves what the demo published; run `make demo` before.
serve: .venv/.package
	$(BIN)/sfumato serve demo/bundle

install: .venv/.package

test: .venv/.tools java chromium lint
	$(BIN)/pytest -n auto --dist loadfile -m "not slow"

# What takes minutes: whole grids, the papers, nearly all that runs on Spark and in a browser.
test-slow: .venv/.tools java chromium
	$(BIN)/pytest -n auto --dist loadfile -m slow

test-all: test test-slow

lint: .venv/.tools
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: .venv/.tools chromium
	$(BIN)/python docs/make_reference.py
	$(BIN)/python docs/make_papers.py
	$(BIN)/python docs/make_protection_costs.py
	$(BIN)/python docs/make_pictures.py
	$(BIN)/python docs/make_page_pictures.py

bench: .venv/.package java
	$(BIN)/python -m bench.run

# Spark runs on Java. Without it, and without the right to install it, its tests skip (under CI they fail).
java:
	@command -v java >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
	  apt-get update -q && apt-get install -y -q default-jre-headless; } || \
	  echo "Java was not found and could not be installed: the Spark tests will be skipped."

# The page is tested with a browser. Without one, and without the right to install it, its tests skip (under CI they fail).
chromium:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || \
	  { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -q && apt-get install -y -q chromium; } || \
	  echo "Chromium was not found and could not be installed (apt-get install chromium): the tests of the page will be skipped."

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
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis bench/.environments
