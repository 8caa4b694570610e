# make demo | test | check | bench | quality | prove | web | docs | install. Everything happens in .venv, made when it is
# missing.

PYTHON ?= python3
BIN := .venv/bin
export PYTHONPATH :=
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: install browser demo test check format web web-check docs bench quality prove clean

install: .venv/ready

# torch goes first: what comes after it then finds the CPU build already there
.venv/ready: pyproject.toml setup.py $(wildcard src/dragoman/native/*pp)
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "dragoman needs Python 3.11 or newer")'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet 'torch>=2.9,<2.14' 'numpy>=2'
	$(BIN)/pip install --quiet --editable '.[dev]'
	touch $@

demo: install
	$(BIN)/dragoman demo

# bytecode is kept, whatever is set: two workers and thirty commands would each compile everything anew
test: install browser
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n 2 --durations=25

# the tests of the page drive a real browser: Debian's, where there is none
browser:
	@command -v chromium || command -v chromium-browser || command -v google-chrome || \
	  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends chromium; }

check: install web-check docs
	$(BIN)/ruff format --check src tests benchmarks
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/mypy
	$(BIN)/lint-imports

format: install
	$(BIN)/ruff format src tests benchmarks
	$(BIN)/ruff check --fix src tests benchmarks

# the page's source to its built files, which are committed: users need no node
web:
	cd web && npm ci --silent --no-audit --no-fund && npm run --silent check && npm run --silent build

# the built files are those of the source
web-check:
	@if command -v npm > /dev/null; then $(MAKE) --no-print-directory web && git diff --exit-code --stat -- src/dragoman/seeing/web; \
	else echo 'npm is missing: whether the page is built from web/ was not checked'; fi

# docs/ as pages that open from the disk; a dead link is an error
docs: install
	$(BIN)/mkdocs build --strict --quiet

bench: install
	$(BIN)/python benchmarks/write_speed.py

quality: install
	for file in benchmarks/quality_*.py; do $(BIN)/python $$file || exit 1; done

# the long runs behind docs/reliability.md: kills, flipped bits, workers, malformed input
prove: install
	for file in benchmarks/prove_*.py; do $(BIN)/python $$file || exit 1; done

clean:
	rm -rf .venv demo build site
