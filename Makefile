# On a fresh machine, `make demo` and `make test` set everything up themselves, in .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
PIP := $(INSTALL) -c constraints-dev.txt
# pip would compile on one core, and some packages contain templates that are not valid Python.
COMPILE := $(BIN)/python -W ignore -m compileall -qq -j 0 $(VENV)/lib || true
# One process more than cores, because many tests wait for servers and subprocesses. Tests of a group share expensive
# fixtures and therefore a process. Compiled tests are kept even where PYTHONDONTWRITEBYTECODE is set.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n $$($(BIN)/python -c 'import os; print(os.cpu_count() + 1)') --dist loadgroup --max-worker-restart 0

.PHONY: help demo check test test-all test-newest tests lint types docs bench torture kernels lock package release-check clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 16

demo: $(VENV)/core  ## evaluate a small classifier on all of MNIST-C; results and report in demo/
	$(BIN)/beaufort demo --output demo

check: lint  ## before every commit: lint, types and fast tests
	$(MAKE) --jobs 2 types fast

test: lint  ## what CI runs: lint, types and tests
	$(MAKE) --jobs 2 types tests

test-all: lint types compiled  ## nightly and before a release: also the heavy scenarios
	BEAUFORT_KILLS=30 $(PYTEST)

test-newest: $(VENV)/python  ## tests with the newest releases of all dependencies, in .venv-newest
	$(MAKE) VENV=.venv-newest .venv-newest/python
	.venv-newest/bin/python -m pip install --quiet --upgrade --upgrade-strategy eager -e '.[dev]'
	.venv-newest/bin/python -m pytest -n auto --dist loadgroup -m 'not nightly'

fast: compiled
	$(PYTEST) -m 'not slow and not nightly'

tests: compiled
	$(PYTEST) -m 'not nightly'

# Many tests start commands, which find the modules compiled even where PYTHONDONTWRITEBYTECODE is set.
compiled: $(VENV)/dev
	$(BIN)/python -m compileall -q src

lint: $(VENV)/dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(VENV)/dev
	$(BIN)/mypy

docs: $(VENV)/docs  ## build the documentation in site/, with galleries and notebooks made by the code
	$(BIN)/python tools/docs_pages.py
	$(BIN)/zensical build --strict

bench: $(VENV)/core  ## compare the speed of the corruptions with imagecorruptions, and time the intervals
	$(BIN)/python -m benchmarks corruptions --json benchmarks/corruptions.json
	$(BIN)/python -m benchmarks intervals speed --json benchmarks/intervals.json

torture: $(VENV)/dev  ## killed processes, damaged and hostile files, many reviewers: 20 minutes; KILLS=1000 kills that many runs
ifdef KILLS
	$(BIN)/python -m tests.torture.thousand --kills $(KILLS) --output results/reliability
else
	$(BIN)/python -m tests.torture --output torture.md
endif

kernels: $(VENV)/dev  ## every Triton kernel in Triton's interpreter, without a GPU: some minutes
	TRITON_INTERPRET=1 BEAUFORT_KERNELS=1 $(BIN)/python -m pytest -n auto tests/corruptions/kernels -k interpreter

lock: $(VENV)/python  ## resolve all extras again and write constraints-dev.txt
	$(INSTALL) --upgrade --upgrade-strategy eager -c constraints.txt -e '.[dev]'
	$(BIN)/python tools/lock.py

package: $(VENV)/dev  ## build wheel and source distribution, check their size and try both in empty environments
	rm -rf dist
	$(BIN)/python -m build --no-isolation
	$(BIN)/python tools/smoke_test.py dist/*.whl dist/*.tar.gz

release-check: $(VENV)/dev  ## everything that must hold before a release
	$(BIN)/python tools/release_check.py

clean:
	rm -rf $(VENV) .venv-bench .venv-newest dist demo site torture.md docs/assets/gallery docs/assets/gallery-mnist docs/tutorials/*.md docs/reference/api docs/reference/command-line

$(VENV)/python:
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/core: $(VENV)/python pyproject.toml constraints-dev.txt
	$(PIP) -e .
	$(COMPILE)
	touch $@

$(VENV)/dev: $(VENV)/python pyproject.toml constraints-dev.txt
	$(PIP) -e '.[dev]'
	$(COMPILE)
	touch $@ $(VENV)/core

$(VENV)/docs: $(VENV)/python pyproject.toml constraints-dev.txt
	$(PIP) -e '.[docs]'
	$(COMPILE)
	touch $@ $(VENV)/core
