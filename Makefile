# On a fresh machine, `make demo` and `make test` set everything up themselves, in .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt
# What pip would do on one core; templates that are no Python are among the files.
COMPILE := $(BIN)/python -W ignore -m compileall -qq -j 0 $(VENV)/lib || true

.PHONY: demo test tests lint types docs bench torture kernels clean

demo: $(VENV)/core  ## a small classifier on all of MNIST-C: its table, and its report in demo/
	$(BIN)/beaufort demo --output demo

test: lint  ## what CI runs: lint, types, tests
	$(MAKE) --jobs 2 types tests

# One process more than cores: many tests wait for servers and for processes of their own. Tests of a group share what
# takes long to make, such as the rehearsal of a study, and so a process.
# Many start commands: those find our own modules compiled, also where PYTHONDONTWRITEBYTECODE keeps them from doing it.
tests: $(VENV)/dev
	$(BIN)/python -m compileall -q src
	$(BIN)/python -m pytest -n $$($(BIN)/python -c 'import os; print(os.cpu_count() + 1)') --dist loadgroup

lint: $(VENV)/dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(VENV)/dev
	$(BIN)/mypy

docs: $(VENV)/docs  ## the documentation, in site/, with pictures made by the code
	$(BIN)/python tools/docs_pages.py
	$(BIN)/zensical build --strict

bench: $(VENV)/core  ## how fast the corruptions are, beside imagecorruptions, and the intervals
	$(BIN)/python benchmarks/corruptions.py --json benchmarks/corruptions.json
	$(BIN)/python benchmarks/intervals.py speed

torture: $(VENV)/dev  ## kills, damage, hostile files and services, crowds, in twenty minutes; KILLS=1000: many kills of runs
ifdef KILLS
	$(BIN)/python -m tests.torture.thousand --kills $(KILLS) --output results/reliability
else
	$(BIN)/python -m tests.torture --output torture.md
endif

kernels: $(VENV)/dev  ## every Triton kernel in Triton's interpreter, without a GPU; takes minutes
	TRITON_INTERPRET=1 BEAUFORT_KERNELS=1 $(BIN)/python -m pytest -n auto tests/corruptions/kernels -k interpreter

clean:
	rm -rf $(VENV) .venv-bench demo site torture.md docs/assets/gallery docs/assets/gallery-mnist docs/tutorials/*.md docs/reference/api

$(VENV)/python:
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/core: $(VENV)/python pyproject.toml constraints.txt
	$(PIP) -e .
	$(COMPILE)
	touch $@

$(VENV)/dev: $(VENV)/python pyproject.toml constraints.txt
	$(PIP) -e '.[dev]'
	$(COMPILE)
	touch $@ $(VENV)/core

$(VENV)/docs: $(VENV)/python pyproject.toml constraints.txt
	$(PIP) -e '.[docs]'
	$(COMPILE)
	touch $@ $(VENV)/core
