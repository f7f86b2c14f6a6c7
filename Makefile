# `make demo` and `make test` do all set-up themselves; a second run finds it done.
PYTHON ?= python3
BIN := .venv/bin
INSTALL = $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable

.PHONY: demo docs examples images package test attack lint bench bench-quick bench-scaling bench-scale bench-serving bench-quality papers universal clean

demo: .venv/.train
	$(BIN)/entourage demo --out runs/demo --overwrite

# the pictures of the documentation that come from the demo; CONTRIBUTING.md says where the others come from
images: demo
	cd runs/demo && cp drift.png query.png retrieval.png steps.png ../../docs/images

# a process for each core, each with one thread: they would only get into each other's way
test: .venv/.dev lint
	OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 $(BIN)/pytest -n auto --maxprocesses 4 --dist worksteal

# kills at every step, tampering with every field: `make test` does a sample of it; whatever is marked so, wherever it is
attack: .venv/.dev
	OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 $(BIN)/pytest -n auto --maxprocesses 4 --dist worksteal -m attack tests

lint: .venv/.dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

# strictly: a dead link or anchor is an error
docs: .venv/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

# what the numbered scripts print, as text, notebook and page: those that have changed
examples: .venv/.dev
	$(BIN)/python examples/make.py

# wheel and sdist, checked, and used in an environment with the core dependencies alone
package:
	PYTHON=$(PYTHON) .ci/package

bench: .venv/.bench
	$(BIN)/python benchmarks/speed

bench-quick: .venv/.bench
	$(BIN)/python benchmarks/speed --quick

bench-scaling: .venv/.bench
	$(BIN)/python benchmarks/speed/scaling.py

bench-scale: .venv/.bench
	$(BIN)/python benchmarks/scale.py
	$(BIN)/python benchmarks/scale.py --crossover

bench-serving: .venv/.dev
	$(BIN)/python benchmarks/serving.py search
	$(BIN)/python benchmarks/serving.py changes
	$(BIN)/python benchmarks/serving.py clients

bench-quality: .venv/.train
	$(BIN)/python benchmarks/compare_real.py --half $(or $(HALF),train)

# every table and figure of the papers at small scale, and the pages that show them
papers: .venv/.train
	$(BIN)/entourage reproduce all --small --out runs/reproduce
	$(BIN)/python benchmarks/papers.py --take runs/reproduce/small

universal: .venv/.train
	$(BIN)/python benchmarks/make_universal.py

clean:
	rm -rf .venv runs build

.venv/.python:
	$(PYTHON) -m venv .venv
	touch $@

.venv/.train: .venv/.python pyproject.toml constraints.txt
	$(INSTALL) '.[explorer,train]'
	touch $@

.venv/.bench: .venv/.train
	$(INSTALL) '.[bench]'
	touch $@

.venv/.docs: .venv/.python pyproject.toml constraints.txt
	$(INSTALL) '.[docs]'
	touch $@

.venv/.dev: .venv/.train
	$(INSTALL) '.[dev]'
	touch $@
