# Two commands do everything: `make demo` and `make test`.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
# Two processes that take over each other's tests at the end.
PYTEST := -n 2 --dist worksteal --durations=20

.PHONY: demo reproduce docs pictures screenshots test lint types contracts tests test-slow test-page test-spark size bench bench-quick bench-tables field field-quick lock clean

demo: $(INSTALLED)
	$(BIN)/prudent demo --report demo-report.html

test: lint types contracts tests

lint: $(INSTALLED)
	@echo "== Style: ruff"
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(INSTALLED)
	@echo "== Types: mypy"
	$(BIN)/mypy

contracts: $(INSTALLED)
	@echo "== Which room imports which: import-linter"
	$(BIN)/lint-imports

tests: $(INSTALLED)
	@echo "== Tests and doctests, without those marked slow: four to five minutes on two cores"
	$(BIN)/pytest $(PYTEST) -m "not slow and not page and not spark"

test-slow: $(INSTALLED)
	@echo "== Tests marked slow: four to six minutes on two cores"
	$(BIN)/pytest $(PYTEST) -m "slow and not page and not spark"

# The studio's page in Chromium.
test-page: $(INSTALLED)
	@echo "== The studio's page in Chromium"
	$(BIN)/pytest $(PYTEST) -m page

# Spark is half a gigabyte and wants Java 17: it is installed when this is asked for, and only then. ALL=1 compares every
# guarantee and kills an executor, too.
test-spark: $(INSTALLED)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt "pyspark>=4.0"
	$(BIN)/pytest -m $(if $(ALL),spark,"spark and not slow")

# Tables of 10^8 rows in DuckDB, and 10^7 in Spark if it is installed, against a plain average over the same files;
# ROWS=1000000 SPARK_ROWS=0 for a smaller one.
ROWS ?= 100000000
SPARK_ROWS ?= 10000000
bench-tables: $(INSTALLED)
	$(BIN)/python -m benchmarks.tables --rows $(ROWS) --spark-rows $(SPARK_ROWS)

# Python tokens and files of the library by room; tests/test_size.py holds them to the budget.
size: $(INSTALLED)
	$(BIN)/python -m benchmarks.size

# Races against general solvers: most of an hour, or under two minutes with small sizes. See benchmarks/README.md.
bench: $(INSTALLED)
	$(BIN)/python -m benchmarks

bench-quick: $(INSTALLED)
	$(BIN)/python -m benchmarks --quick

# The paper's tables and figures, into results/: minutes on two cores; OPTIONS=--quick takes under a minute. DATA is the
# folder with the two data sets; an interrupted run continues.
DATA ?= ../shared/data
reproduce: $(INSTALLED)
	$(BIN)/python -m reproduction --data-dir $(DATA) --output results $(OPTIONS)

# Rules on real forecasters, past to future; an interrupted run continues. field-quick takes under three minutes.
field: $(INSTALLED)
	$(BIN)/python -m benchmarks.field --data-dir $(DATA)

field-quick: $(INSTALLED)
	$(BIN)/python -m benchmarks.field --data-dir $(DATA) --quick

# The documentation site, into site/; a warning stops it.
docs: $(INSTALLED)
	$(BIN)/zensical build --strict

# The pictures in README and documentation.
pictures: $(INSTALLED)
	$(BIN)/python docs/pictures.py

# The studio at three widths, light and dark, into screenshots/; and the two pictures of its guide.
screenshots: $(INSTALLED)
	PYTHONPATH=tests:. $(BIN)/python docs/screenshots.py
	PYTHONPATH=tests:. $(BIN)/python docs/screenshots.py --documentation

# Installs exactly the versions of constraints.txt, so that two installs months apart agree.
$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	@echo "== Installing the versions of constraints.txt into $(VENV)"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[dev]"
	touch $@

# Takes the newest versions that pyproject.toml allows and writes them down.
lock:
	rm -rf .venv-lock
	$(PYTHON) -m venv .venv-lock
	.venv-lock/bin/python -m pip install --quiet --disable-pip-version-check --editable ".[dev,all]"
	.venv-lock/bin/python -m pip freeze --exclude-editable --exclude pip --exclude setuptools > constraints.txt
	rm -rf .venv-lock

clean:
	rm -rf $(VENV) .venv-lock .mypy_cache .ruff_cache .pytest_cache .hypothesis .cache site screenshots demo-report.html
