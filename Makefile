# narrowcast: `make demo` shows what it does, `make test` checks that it does.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: help setup demo test lint docs dist check quick long snippets nightly soak bench lock clean

help:  ## list the commands
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: $(STAMP)  ## make .venv with every part, and find or provide Java

$(STAMP): requirements.lock pyproject.toml tools/provide-java
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "narrowcast needs Python 3.11 or newer; say which with PYTHON=python3.12"; exit 2; }
	@echo "Setting up .venv with $$($(PYTHON) --version): once, and again when requirements.lock changes"
	@$(PYTHON) -m venv $(VENV)
	@echo "Installing $$(grep -c == requirements.lock) packages, about 2 GB with Spark and Java: a few minutes"
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@tools/provide-java $(BIN)
	@echo "Keeping Spark's classes for quick starts: half a minute"
	-@$(BIN)/python -m narrowcast.data.spark.fast_start
	@touch $(STAMP)
	@echo "Ready: . .venv/bin/activate puts narrowcast on the path"

demo: setup  ## the main job on embedded defaults
	$(BIN)/narrowcast demo

test: setup  ## every test but the long ones, the nightly sizes and the documentation's snippets
	$(BIN)/python -m pytest -n 2 --dist loadgroup

long: setup  ## tests that take more than ten seconds each: whole systems, browsers, Spark killed and started again
	$(BIN)/python -m pytest -n 2 --dist loadgroup -m 'long and not nightly and not soak and not snippets'

snippets: setup  ## every command, snippet and example of the documentation, as printed
	$(BIN)/python -m pytest -n 2 --dist loadgroup -m snippets tests/docs

lint: setup  ## style, types, rooms
	$(BIN)/ruff check . && $(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

docs: setup  ## the documentation site, into site/; a broken link stops it
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "site/index.html is ready; to search in it: $(BIN)/python -m http.server -d site"

dist: setup  ## wheel and source archive, into dist/; HOME_URL=https://... fills in links for package indexes
	rm -rf dist
	NARROWCAST_HOME_URL=$(HOME_URL) $(BIN)/uv build --quiet --no-build-isolation --python $(BIN)/python --out-dir dist .
	@ls dist

check: setup  ## style, types, rooms, and the quick tests that need neither Java nor engines, side by side
	@$(MAKE) --no-print-directory -j2 lint quick

quick: setup
	$(BIN)/python -m pytest -n 2 --dist loadgroup -m 'not nightly and not soak and not snippets and not spark and not engines and not slow and not long'

nightly: setup  ## the large sizes: 10^5 profiles against SQLite, 10^4 against Spark SQL
	$(BIN)/python -m pytest -m nightly

soak: setup  ## faults and attacks as a table, hours of them; SOAK=--quick takes a few minutes
	$(BIN)/python tests/scorecard.py $(SOAK)

bench: setup  ## speed and quality against peers, as ratios in one run
	for b in benchmarks/speed/*.py benchmarks/quality/*.py; do [ -e "$$b" ] || continue; echo "== $$b"; $(BIN)/python $$b || exit 1; done

lock: setup  ## pin every dependency again, with hashes
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --all-extras --group dev --generate-hashes --no-header --no-annotate --no-emit-index-url pyproject.toml -o requirements.lock

clean:  ## remove what was built
	rm -rf $(VENV) dist build site artifacts .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache spark-warehouse
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
