# make demo   set up, then the main job: preprocess, train four methods, evaluate, report
# make test   set up, then lint, types, tests
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SPT := $(BIN)/spt
METHODS := baseline spt spt-order-tag rotation-order-tag
JOBS ?= 2
# Any override of the demo's settings, such as DEMO_SET="--set train.epochs=2"
DEMO_SET ?=
DEMO_OUT ?= runs/demo

.PHONY: help setup demo demo-runs check test test-full smoke clean

help:
	@grep -E '^# make' $(firstword $(MAKEFILE_LIST)) | sed 's/^# //'

setup: $(VENV)/.installed

$(VENV)/.installed: pyproject.toml constraints.txt requirements-models.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "spt needs Python 3.11 or newer")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt "torch==$$(sed -n 's/^torch==//p' constraints.txt)"
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	$(BIN)/python -m pip install --quiet --no-deps --require-hashes --requirement requirements-models.txt
	touch $@

demo: setup
	$(SPT) preprocess configs/demo/base.yaml --output $(DEMO_OUT)
	$(MAKE) --no-print-directory --jobs=$(JOBS) $(addprefix demo-run-,$(METHODS))
	$(SPT) report $(addprefix $(DEMO_OUT)/,$(METHODS)) --output $(DEMO_OUT)

# Two methods at a time, one thread each; every line says whose it is.
demo-run-%:
	@OMP_NUM_THREADS=1 $(SPT) run configs/demo/$*.yaml --output $(DEMO_OUT)/$* \
	  --set data.segmented=$(DEMO_OUT)/segmented $(DEMO_SET) --json 2> >(sed -u 's/^/[$*] /' >&2) > /dev/null

check: setup
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/pytest tests/test_imports.py

test: check
	OMP_NUM_THREADS=1 $(BIN)/pytest -m 'not full' --ignore=tests/test_imports.py -n $(JOBS) --dist worksteal

test-full: check
	OMP_NUM_THREADS=1 $(BIN)/pytest --ignore=tests/test_imports.py -n $(JOBS) --dist worksteal

# A short end-to-end run of the demo, small enough for every commit.
smoke: setup
	rm -rf runs/smoke
	$(MAKE) --no-print-directory demo DEMO_OUT=runs/smoke DEMO_SET="--set train.epochs=2 --set evaluate.limit=40 --set evaluate.fluency_samples=20"
	$(BIN)/python -c 'import json; runs = json.load(open("runs/smoke/report.json"))["runs"]; assert len(runs) == 4, runs'
	rm -rf runs/smoke

# What was made to work; never runs/, which holds hours of it.
clean:
	rm -rf $(VENV) build dist ./*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
