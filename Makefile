# Two commands do all set-up: `make demo` and `make test`. Each builds the environment it needs.
PYTHON ?= python3
BIN := .venv/bin
# As a variable the constraints hold for the build's own environment too.
PIP := PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_CONSTRAINT=constraints.txt $(BIN)/pip install --quiet

SLOW := slow or browser or thirdparty

.PHONY: demo test test-all check format docs clean browser audit faults

demo: .venv/installed
	$(BIN)/selectmdp demo

test: check

check: .venv/installed-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/pytest -m "not ($(SLOW))"

# What takes longer or needs more than Python: pages in a real browser, whole experiments, Ray, and
# the faults in small. Beside `make test`, not instead of it.
test-all: .venv/installed-all browser
	$(BIN)/python -c "import mobile_env, pyRDDLGym, ray" # else their tests would be left out
	$(BIN)/pytest -m "$(SLOW)"

# Debian's Chromium, where the machine may install it; the tests say so where it is missing.
browser:
	command -v chromium >/dev/null && command -v chromedriver >/dev/null || test "$$(id -u)" != 0 \
	  || (apt-get update -qq && apt-get install -y -qq --no-install-recommends \
	  chromium chromium-driver fonts-dejavu-core >/dev/null)

# Bad days, with figures: the table in the README.
faults: .venv/installed-all
	$(BIN)/python -m benchmarks.faults --trials 200 --out benchmarks/results/faults.json

# Known holes in the pinned dependencies; needs a network that reaches PyPI.
audit: .venv/installed
	$(PIP) pip-audit
	$(BIN)/pip-audit --strict --no-deps --disable-pip -r constraints.txt

# The site of docs/ in site/; a dead link fails.
docs: .venv/installed-docs
	$(BIN)/python docs/make_pictures.py
	$(BIN)/python docs/make_api.py
	$(BIN)/python docs/make_choice.py
	$(BIN)/python docs/make_results.py
	$(BIN)/python docs/make_tables.py
	$(BIN)/mkdocs build --strict # not --quiet, with which nothing fails

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

.venv/installed-all: .venv/installed-dev
	$(PIP) --editable ".[dev,envs,ray]"
	touch $@

.venv/installed-docs: .venv/installed
	$(PIP) --editable ".[docs]"
	touch $@

clean:
	rm -rf .venv site .mypy_cache .pytest_cache .ruff_cache .hypothesis
