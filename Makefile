PYTHON ?= python3
# Byte code is kept, whatever the shell says: tests and benchmarks start hundreds of processes.
export PYTHONDONTWRITEBYTECODE :=
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help install test test-unit test-studio test-long test-connect test-cluster test-s3 test-stores test-tpch test-fuzz test-api test-soak test-load test-faults test-versions docs lint demo studio bench java browser clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(INSTALLED) ## create .venv with Penstock and its tools in it (PYTHON=python3.12 chooses the Python)

$(INSTALLED): pyproject.toml constraints.txt
	@.ci/create-venv "$(PYTHON)" $(VENV)
	@echo "Installing Penstock into $(VENV) (the first time takes a few minutes: Spark is large)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test,dev]'
	@touch $@

# Before install, so that nobody waits for a download only to hear that Java is missing.
java:
	@.ci/check-java

browser:
	@.ci/get-browser

# A process has either a classic session or one of Spark Connect, so what is run over Connect is run again.
CONNECT := $(addprefix tests/spark/test_,session.py aggregates.py consistency.py kills.py)
CONNECT_ALL := $(CONNECT) $(addprefix tests/spark/test_,as_of.py change_reading.py constructs.py event_windows.py expressions.py joins.py lateness.py marks.py \
    numbers.py ohlc_cascade.py partitioned_sources.py placement.py registry.py replaced_sources.py replacing.py \
    settings.py time_windows.py types.py vacuumed_sources.py verify.py connect.py)

test: java browser install lint ## check the code, then run every test
	$(BIN)/python -m pytest -n 2 --dist loadfile --ignore tests/s3 --ignore tests/hdfs --ignore tests/cluster
	PENSTOCK_TEST_CONNECT=1 $(BIN)/python -m pytest $(CONNECT)
	$(BIN)/python tests/operators_page.py check

test-studio: java browser install ## try the Studio in a browser (SHOTS=docs/studio also writes the pictures of the docs)
	PENSTOCK_SCREENSHOTS=$(SHOTS) $(BIN)/python -m pytest tests/studio

test-long: java install ## run the variations of tests that make test leaves out
	$(BIN)/python -m pytest -n 2 --dist loadfile -m long

test-s3: java install ## run Spark on a warehouse in S3; fetches hadoop-aws from Maven, several hundred megabytes, once
	$(BIN)/python -m pytest tests/s3

test-stores: java install ## tell the stories of object stores on servers for Azure's, Google's and HDFS; installs them once, with npm and go
	@.ci/get-stores
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[hdfs]'
	PENSTOCK_TEST_STORES="azure google hdfs" $(BIN)/python -m pytest tests/unit/test_files.py tests/spark/test_object_stores.py
	PENSTOCK_TEST_STORES=hdfs $(BIN)/python -m pytest tests/s3 tests/hdfs

test-connect: java install ## run the tests of views over a Spark Connect server
	PENSTOCK_TEST_CONNECT=1 $(BIN)/python -m pytest $(CONNECT_ALL)

ON_CLUSTER := PENSTOCK_TEST_CLUSTER=1 $(BIN)/python -m pytest

# In the first of these executors have no Python: the one that they are told of is not there.
test-cluster: java install ## run the tests of views on a Spark cluster of two workers, and over Spark Connect to it (hours)
	PYSPARK_PYTHON=/no/python/on/executors $(ON_CLUSTER) tests/cluster tests/spark/test_driver_bounds.py tests/spark/test_pipelines.py
	$(ON_CLUSTER) $(filter-out %/test_connect.py,$(CONNECT_ALL))
	PENSTOCK_TPCH_SF=$(if $(filter command line,$(origin SF)),$(SF),1) $(ON_CLUSTER) tests/tpch
	PENSTOCK_TEST_CONNECT=1 $(ON_CLUSTER) $(CONNECT) tests/spark/test_constructs.py tests/spark/test_joins.py

test-unit: install ## run the tests that need no Spark
	$(BIN)/python -m pytest -n 2 tests/unit tests/laws

FUZZED := $(addprefix tests/spark/test_,random_views.py schedules.py reading.py expression_fuzz.py)

test-fuzz: java install ## tell random stories for MINUTES=10 minutes
	PENSTOCK_FUZZ_MINUTES=$(or $(MINUTES),10) $(BIN)/python -m pytest $(FUZZED)

test-soak: java install ## kill and stop processes at work for MINUTES=10 minutes, and see that nothing is lost or wrong (STORE=s3: in an S3 server)
	$(BIN)/python tests/soak/soak.py --minutes $(or $(MINUTES),10) $(if $(STORE),--store)

test-load: java install ## ask a server with fifty readers and five writers for MINUTES=5 minutes, and check each answer
	$(BIN)/python tests/load/load.py --minutes $(or $(MINUTES),5)

test-versions: java ## run telling tests with every version of Spark and Delta Lake that is let in
	.ci/test-versions "$(PYTHON)" $(PAIRS)

docs: java install ## write docs/operators.md from what the tests executed
	$(BIN)/python -m pytest -n 2 --dist loadfile tests/spark/test_constructs.py tests/tpch
	$(BIN)/python tests/operators_page.py write

test-api: java install ## ask the server at least 2,000 questions of every kind
	PENSTOCK_API_EXAMPLES=40 $(BIN)/python -m pytest -s tests/serve/test_api_fuzz.py

SF ?= 0.1

test-faults: java install ## kill processes at every point of what changes a warehouse (half an hour)
	$(BIN)/python -m pytest -m "long or not long" tests/spark/test_kills.py -s
	PENSTOCK_TEST_CONNECT=1 $(BIN)/python -m pytest -m "long or not long" tests/spark/test_kills.py -s

test-tpch: java install ## keep the queries of TPC-H fresh on all its rows (SF=0.1 chooses the scale factor)
	PENSTOCK_DRIVER_MEMORY=$(or $(PENSTOCK_DRIVER_MEMORY),8g) PENSTOCK_TPCH_SF=$(SF) $(BIN)/python -m pytest tests/tpch

lint: install ## check style, types and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy src
	$(BIN)/lint-imports

demo: java install ## watch views being kept fresh
	@$(BIN)/penstock demo

studio: java install ## open a shop of twenty views in the Studio, with customers who go on buying
	@$(BIN)/penstock demo studio --port $(or $(PORT),8080)

bench: java install ## measure against other ways (hours; SCALE=0.01 is small, WORKLOADS="cascade nothing" are some)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[bench]'
	$(BIN)/penstock bench $(WORKLOADS) --scale $(or $(SCALE),1)

clean: ## remove caches and build output; .venv and warehouses stay
	rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	rm -rf spark-warehouse metastore_db derby.log
	find src tests -type d -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true
