# Everything this repository can do for itself. `make help` lists it.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
TORCH_VENV := .venv-torch
TORCH_STAMP := $(TORCH_VENV)/.installed
JOBS ?= 2
# The shapes in the types are checked in the ordinary tests of `test-all`: it makes them three times slower.
TYPED := neuromanifold.algebra,neuromanifold.networks,neuromanifold.symmetry,neuromanifold.certificates,neuromanifold.fibers,neuromanifold.geometry,neuromanifold.recovery,neuromanifold.paper.checks

.DEFAULT_GOAL := help
.PHONY: help setup test test-all test-torch test-browser screenshots check docs paper demo format bench clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 13

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $(STAMP)

setup: $(STAMP)  ## create .venv and install everything into it

check: $(STAMP)  ## format, lint, import layers, types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/pyrefly check

# The programs of the tests are small: to optimise them takes longer than to run them, a third of all the time.
# `test-all` compiles them as users do.
test: export JAX_DISABLE_MOST_OPTIMIZATIONS := 1
test: check docs  ## all checks and the test suite (under eight minutes on two cores)
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile -m "not slow"

test-all: check docs  ## the same with the shapes in the types checked, and the long runs
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile -m "not slow" --jaxtyping-packages=$(TYPED),beartype.beartype
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m slow

$(TORCH_STAMP): pyproject.toml constraints.txt
	test -x $(TORCH_VENV)/bin/python || $(PYTHON) -m venv $(TORCH_VENV)
	$(TORCH_VENV)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test-torch]'
	touch $(TORCH_STAMP)

test-torch: $(TORCH_STAMP)  ## the tests of PyTorch modules, in an environment of their own
	$(TORCH_VENV)/bin/python -m pytest -W default tests/pytorch

BROWSER := $(VENV)/.browser
$(BROWSER): $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,browser]'
	touch $(BROWSER)

test-browser: $(BROWSER)  ## the explorer in a real Chromium, with accessibility
	@command -v chromium >/dev/null || test -n "$$CHROMIUM" || { \
	  test "$$(id -u)" = 0 && command -v apt-get >/dev/null && apt-get update -qq && apt-get install -qq -y --no-install-recommends chromium; } || { \
	  echo "install Chromium (apt-get install chromium), or set CHROMIUM to its path" >&2; exit 2; }
	$(BIN)/python -m pytest tests/browser

screenshots: $(BROWSER)  ## pictures of every view for the documentation
	$(BIN)/python -m pytest tests/browser -k light --screenshots docs/_static

docs: $(STAMP)  ## build the documentation, warnings as errors, into docs/_build/html
	$(BIN)/sphinx-build -W -q -b html docs docs/_build/html

paper: $(STAMP)  ## check every statement of the paper and write report/index.html
	$(BIN)/neuromanifold paper --out report

demo: $(STAMP)  ## two proofs, a comparison and a page in demo/index.html, in a minute
	$(BIN)/python examples/demo.py demo

format: $(STAMP)  ## format the code and apply safe lint fixes
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(STAMP)  ## run every benchmark, without its options
	for script in benchmarks/*.py; do echo "== $$script"; $(BIN)/python $$script; done

clean:  ## remove the environment and all caches
	rm -rf $(VENV) $(TORCH_VENV) .pytest_cache .ruff_cache .hypothesis report docs/_build docs/reference/modules
