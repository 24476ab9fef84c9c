# make demo    the example suite against its committed baselines; without a GPU the static gate alone
# make test    the test suite
# make lint    format, lint, types, import contract
# make check   the same, and the tests with branch coverage: what a change must pass
# make docs    the documentation as a site, in site/; a broken link or anchor or a page outside the menu is an error
# make exercises  all exercises of the textbook, in a copy of the suite: do they show what their pages say?
# make dist    what a release publishes, in dist/; the wheel gates an example in an environment of its own
# make matrix  the plugin beside versions of Python and pytest that are installed, and beside other plugins
#
# Each target sets itself up in .venv: it needs Python 3.10+ with venv, make and a package index, nothing
# else.  A stamp file remembers what was installed, so a repeated call goes straight to its work.

PY ?= python3
VENV := .venv
BIN := $(VENV)/bin
MANIFESTS := pyproject.toml constraints.txt

# Python need not compile the tests anew for each run, and in each of its processes.
unexport PYTHONDONTWRITEBYTECODE

# CuPy and CUPTI are large and of no use without a GPU: taken only where the driver lists one.
GPUS := $(shell nvidia-smi -L 2>/dev/null | grep -c '^GPU')
ifeq ($(GPUS),0)
MACHINE := cpu
DEMO_EXTRAS := static,xdist
DEMO_ARGS ?= -n auto --maxprocesses=4
TEST_ARGS ?= -n 2 --dist=worksteal
else
MACHINE := gpu
DEMO_EXTRAS := static,cuda13,cupti
DEMO_ARGS ?=
TEST_ARGS ?=
endif

PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

PIP_STAMP := $(VENV)/.installed-pip
DEMO_STAMP := $(VENV)/.installed-demo-$(MACHINE)
TEST_STAMP := $(VENV)/.installed-test-$(MACHINE)
CHECK_STAMP := $(VENV)/.installed-check-$(MACHINE)
DOCS_STAMP := $(VENV)/.installed-docs
SETUP_STAMP := $(VENV)/.installed-all-$(MACHINE)

.PHONY: setup demo test test-setup lint check docs exercises dist matrix format clean
.DEFAULT_GOAL := test

demo: $(DEMO_STAMP)
	$(BIN)/python -m pytest --gpuperf $(DEMO_ARGS) example_suite

test: $(TEST_STAMP)
	$(BIN)/python -m pytest $(TEST_ARGS)

test-setup: $(TEST_STAMP)

setup: $(SETUP_STAMP)

lint: $(CHECK_STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m mypy tests/typing
	MYPYPATH=tests $(BIN)/python -m mypy --ignore-missing-imports --exclude adapter_suites tests/gpu
	$(BIN)/lint-imports

check: lint
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest $(TEST_ARGS)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

# The variable silences the theme's notice about its successor, which is no warning about a page.
docs: $(DOCS_STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

exercises: $(TEST_STAMP)
	$(BIN)/python example_suite/exercises.py

dist: $(PIP_STAMP)
	rm -rf dist
	$(PIP_INSTALL) --group release
	$(BIN)/python -m hatchling build
	set -e; trial=$$(mktemp -d); trap 'rm -rf "$$trial"' EXIT; $(BIN)/python -m venv "$$trial/venv"; \
	PATH="$$trial/venv/bin:$$PATH"; pip install --quiet -c constraints.txt "$$(echo $(CURDIR)/dist/*.whl)[static]"; \
	cd "$$trial"; gpuperf doctor; gpuperf examples suite transpose32; cd suite; \
	pytest --update-baselines --gpuperf-allow-ci-update --gpuperf-arch=sm_90; pytest --gpuperf

matrix: $(PIP_STAMP)
	$(PIP_INSTALL) --group matrix
	$(BIN)/nox

format: $(CHECK_STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache .coverage .coverage.* dist site .gpuperf

$(BIN)/python:
	$(PY) -c 'import sys; sys.exit("gpuperf needs Python 3.10 or newer, $(PY) is " + sys.version.split()[0] + "; name another with make PY=...") if sys.version_info < (3, 10) else None'
	$(PY) -m venv $(VENV)

# Dependency groups need pip 25.1; venv brings whatever Python was released with.
$(PIP_STAMP): constraints.txt | $(BIN)/python
	$(PIP_INSTALL) pip
	touch $@

$(DEMO_STAMP): $(MANIFESTS) $(PIP_STAMP)
	$(PIP_INSTALL) -e '.[$(DEMO_EXTRAS)]'
	touch $@

$(TEST_STAMP): $(MANIFESTS) $(PIP_STAMP)
	$(PIP_INSTALL) -e '.[$(DEMO_EXTRAS)]' --group test
	touch $@

$(CHECK_STAMP): $(MANIFESTS) $(PIP_STAMP)
	$(PIP_INSTALL) -e '.[$(DEMO_EXTRAS)]' --group check
	touch $@

$(DOCS_STAMP): $(MANIFESTS) $(PIP_STAMP)
	$(PIP_INSTALL) --group site
	touch $@

# All of the above in one call, which takes half the time of three.
$(SETUP_STAMP): $(MANIFESTS) $(PIP_STAMP)
	$(PIP_INSTALL) -e '.[$(DEMO_EXTRAS)]' --group check --group site
	touch $(TEST_STAMP) $(CHECK_STAMP) $(DOCS_STAMP) $@
