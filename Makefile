# Two commands do all set-up: `make demo` and `make test`. Each builds the environment it needs.
PYTHON ?= python3
BIN := .venv/bin
PIP := PIP_DISABLE_PIP_VERSION_CHECK=1 $(BIN)/pip install --quiet --constraint constraints.txt

.PHONY: demo test check test-all format clean

demo: .venv/installed
	$(BIN)/selectmdp demo

test: check

check: .venv/installed-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/pytest

test-all: check
	$(BIN)/pytest -m slow

format: .venv/installed-dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

.venv/installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(PIP) --editable .
	touch $@

.venv/installed-dev: .venv/installed
	$(PIP) --editable ".[dev]"
	touch $@

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis
