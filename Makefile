# From nothing: `make demo` or `make test` creates .venv and installs what it needs.

PYTHON ?= python3
WORKERS ?= 2
# Neighbouring tests stay with one worker, so that what a module sets up is set up once.
SPREAD = -n $(WORKERS) --dist worksteal
BIN := .venv/bin
INSTALL := -m pip install -qq --disable-pip-version-check
# Exact versions, so that what was tested is what is installed.
PIP := $(BIN)/python $(INSTALL) -c constraints.txt
# These tests alone must cover all lines of ring/, mesh/ and secure/ (`tool.coverage` names the rooms).
COVERING := tests/ring tests/mesh tests/secure tests/conformance

.DEFAULT_GOAL := help
.NOTPARALLEL:
.DELETE_ON_ERROR:
.PHONY: demo test test-all pytest mutants lint type format docs bench clean constraints audit help

$(BIN)/python:
	$(PYTHON) -m venv .venv

# Torch without CUDA, for the tests of device code: a package index of PyTorch's has it, PyPI has not,
# and there the tests say that they skip. The build with CUDA is too large to be installed unasked.
TORCH := torch==2.13.0+cpu

# Two stamps: what running needs, and what developing needs on top of it.
.venv/.installed: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing vertikal into .venv (once)"
	@$(PIP) -e ".[fast,node]"
	@touch $@

.venv/.installed-dev: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing vertikal and its development tools into .venv (once)"
	@$(PIP) -e ".[fast,dev]"
	@$(PIP) "$(TORCH)" 2>/dev/null || echo "No $(TORCH) at this package index: tests of device code skip"
	@touch .venv/.installed $@

demo: .venv/.installed  ## train with three processes over mutual TLS, and show who learned what
	@$(BIN)/vertikal demo

test: lint type pytest  ## lint, types, all but the slow tests, 100 % coverage of ring/, mesh/ and secure/

test-all: PYTEST_ARGS = -m ""
test-all: test  ## the same with the slow tests

# One BLAS thread per worker: two on a busy machine are slower than one. Tests start some two hundred
# processes, which read compiled modules if they may be written. Counting lines makes a test take half
# as long again, so it is done only where it is needed.
pytest: export OMP_NUM_THREADS = 1
pytest: export OPENBLAS_NUM_THREADS = 1
pytest: export PYTHONDONTWRITEBYTECODE =
pytest: .venv/.installed-dev
	$(BIN)/python -m coverage erase
	$(BIN)/python -m pytest $(SPREAD) --cov --cov-report= $(PYTEST_ARGS) $(COVERING)
	@$(BIN)/python -m coverage report --skip-covered --fail-under=100
	$(BIN)/python -m pytest $(SPREAD) $(PYTEST_ARGS) $(COVERING:%=--ignore=%)

mutants: .venv/.installed-dev  ## do small wrongs to the functions of the paper map; its tests must notice each
	$(BIN)/python -m tests.mutants

lint: .venv/.installed-dev  ## ruff: rules and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

type: .venv/.installed-dev  ## mypy, strict, on src
	$(BIN)/mypy

format: .venv/.installed-dev  ## rewrite files in the project's format
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

docs: export NO_MKDOCS_2_WARNING = 1
docs: .venv/.installed-dev  ## build the site into site/, warnings are errors
	$(BIN)/mkdocs build --strict

bench:  ## say how to run the benchmarks
	@echo "Benchmarks are modules; each writes one JSON with its settings. After 'make test', run one of"
	@grep -o '$(BIN)/python -m benchmarks[^`]*' benchmarks/README.md | sed 's|^|  |'

constraints:  ## write constraints.txt anew: the newest versions that pyproject.toml allows
	rm -rf build/newest
	$(PYTHON) -m venv build/newest
	build/newest/bin/python $(INSTALL) -e ".[fast,dev]"
	build/newest/bin/python -m pip list --format=freeze --exclude-editable --exclude pip --exclude setuptools > constraints.txt
	rm -rf build/newest

audit:  ## compare constraints.txt with the database of known vulnerabilities (needs the network)
	$(PYTHON) -m venv build/audit
	build/audit/bin/python $(INSTALL) pip-audit
	build/audit/bin/pip-audit --strict --requirement constraints.txt --no-deps --disable-pip

clean:  ## remove .venv, the built site and all caches
	rm -rf .venv site build dist htmlcov vertikal-demo .coverage .coverage.* \
	  .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
