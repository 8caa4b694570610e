# make demo | test | check | bench | quality | install. Everything happens in .venv, which is made when it is missing.

PYTHON ?= python3
BIN := .venv/bin
export PYTHONPATH :=
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: install demo test check format bench quality clean

install: .venv/ready

# torch goes first: what comes after it then finds the CPU build already there
.venv/ready: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "dragoman needs Python 3.11 or newer")'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet 'torch>=2.9,<2.14' 'numpy>=2'
	$(BIN)/pip install --quiet --editable '.[dev]'
	touch $@

demo: install
	$(BIN)/dragoman demo

test: install
	$(BIN)/python -m pytest -n 2

check: install
	$(BIN)/ruff format --check src tests benchmarks
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/mypy
	$(BIN)/lint-imports

format: install
	$(BIN)/ruff format src tests benchmarks
	$(BIN)/ruff check --fix src tests benchmarks

bench: install
	for file in benchmarks/speed_*.py; do $(BIN)/python $$file || exit 1; done

quality: install
	for file in benchmarks/quality_*.py; do $(BIN)/python $$file || exit 1; done

clean:
	rm -rf .venv demo build
