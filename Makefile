# Two commands matter: `make demo` and `make test`. Both make the virtual environment first.

PYTHON ?= python3
BIN := .venv/bin
# Touched when the packages of pyproject.toml are in: those that evalpipe runs with, and those of its development.
INSTALLED := .venv/.installed
DEVELOPING := .venv/.developing

.PHONY: demo test test-agents lint check ui bench clean

demo: $(INSTALLED)
	$(BIN)/evalpipe demo

# Of these processes each takes whole files: what a file sets up is made once. In the order of evalpipe_tests/conftest.py:
# by itself xdist leaves the files of few tests, which are the longest, to the end, where one process works alone.
PYTEST = $(BIN)/python -m pytest --numprocesses $(PROCESSES) --dist loadfile --no-loadscope-reorder
# A process for each core, at most 4. Of the whole suite one more: some of its tests wait for daemons and time limits.
PROCESSES := $(shell n=$$(nproc); echo $$((n > 4 ? 4 : n)))

# Kept also where it is switched off: the tests start hundreds of processes, and each would compile evalpipe anew.
test check: export PYTHONDONTWRITEBYTECODE :=

test: PROCESSES := $(shell expr $(PROCESSES) + 1)
test: $(DEVELOPING)
	$(PYTEST)

lint: $(DEVELOPING)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The quick part: lint, types, import rules, and the tests that take seconds and no engine. Under two minutes.
check: lint
	$(PYTEST) -m "not slow and not docker"

ui: $(INSTALLED)
	$(BIN)/evalpipe ui

# Mining beside bare git, one process for each change, and PyDriller: about 20 minutes, most of them for the histories.
# Validation beside a loop of `docker run`: five minutes, where a Docker engine answers. A million graded rows beside
# plain pandas: a minute. A sweep through Dagster beside plain calls: seven minutes. The pages of the UI, in a Chromium:
# ten, most of them to fill it.
bench: $(DEVELOPING)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,bench]'
	$(BIN)/python -m benchmarks.mining
	$(BIN)/python -m benchmarks.validation
	$(BIN)/python -m benchmarks.reports
	$(BIN)/python -m benchmarks.gateway
	$(BIN)/python -m benchmarks.attempts
	$(BIN)/python -m benchmarks.sweep
	$(BIN)/python -m benchmarks.ui

# Every case of the real agents' programs in containers, each of which starts one: about half an hour.
test-agents: $(DEVELOPING)
	EVALPIPE_TEST_AGENTS=all $(PYTEST) evalpipe_tests/conformance/test_agents.py

clean:
	rm -rf .venv data/lake data/state data/task_sets/demo

$(INSTALLED): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "evalpipe needs Python 3.11 or newer; name one with: make PYTHON=python3.12 demo" >&2; exit 2; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

$(DEVELOPING): $(INSTALLED)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@
