# Everything a person or CI does here. `make` lists the targets.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
KAFKA_VERSION := 4.3.1
export OTTLA_KAFKA_LIBS ?= $(HOME)/.cache/kafka-$(KAFKA_VERSION)
# Sets and dicts iterate in the same order on every run, so a failing seed fails again.
export PYTHONHASHSEED ?= 0
PYTEST := $(BIN)/python -m pytest -q
# Tests of real processes fail now and then on a machine that stalls: such a test runs once more and is
# listed as RERUN. Simulation has no such excuse.
AGAIN := --reruns 1 -r fER

.DEFAULT_GOAL := help
.PHONY: help install up cluster test lint types unit crash fuzz conformance answers simulation simulate simulate-worlds spark cdc chaos power-loss slow test-spark demo bench jars lock coverage docs clean
# One after the other: each target already uses the whole machine.
.NOTPARALLEL:

help: ## List the targets.
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 22

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Ottla needs Python 3.11 or newer: make PYTHON=/path/to/python3.11 ..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.tested: requirements/test.txt $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/test.txt
	@touch $@

install: $(VENV)/.installed ## Make the environment and install Ottla into it.

up: install ## Start a broker on 127.0.0.1:9092 with its data in ./data; more options in ARGS.
	@exec $(BIN)/ottla up --data ./data $(ARGS)

cluster: install ## Start three brokers, 127.0.0.1:9092 to 9094, with their data in ./data-cluster.
	@exec $(BIN)/ottla up --brokers 3 --data ./data-cluster $(ARGS)

test: lint types unit crash fuzz conformance simulation spark cdc ## Run every check.

lint: $(VENV)/.tested ## Formatting, lint rules and the import layers.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(VENV)/.tested ## Static types.
	$(BIN)/mypy

# Some tests compare with Apache Kafka's jars; without Maven they skip, and fail under CI.
JARS_IF_POSSIBLE := $(if $(shell command -v mvn),jars)
unit: $(VENV)/.tested $(JARS_IF_POSSIBLE) ## Unit tests, scenarios and house rules (4 minutes).
	$(PYTEST) $(AGAIN) -n auto --session-timeout=420 tests/test_house.py tests/unit $(wildcard tests/scenarios)

crash: $(VENV)/.tested ## Crashes at every file operation, kill -9 under load, crowds (2 minutes).
	$(PYTEST) $(AGAIN) -n auto --timeout=100 --session-timeout=420 -m "not slow" tests/crash tests/process

fuzz: $(VENV)/.tested ## Malformed frames and messages against a live broker (1 minute).
	$(PYTEST) $(AGAIN) -n auto --timeout=100 --session-timeout=180 tests/fuzz

# A test whose time is up fails and the others go on; only one that is stuck in C takes its worker with it,
# which ends the run: xdist would try the same test again in one worker after the other.
BY_FILE := -n auto --dist=loadfile --timeout-method=signal --max-worker-restart=0 \
  -o faulthandler_timeout=660 -o faulthandler_exit_on_timeout=true
AGAINST ?= ottla
conformance: $(VENV)/.tested ## Real clients and Kafka's own tools (4 minutes); AGAINST=kafka for the reference.
	$(PYTEST) $(AGAIN) $(BY_FILE) --timeout=120 --session-timeout=$(if $(filter kafka,$(AGAINST)),1200,600) -m "not slow" \
	  tests/conformance --against=$(AGAINST)

answers: $(VENV)/.tested ## Record Apache Kafka's answers anew, for the conformance tests.
	$(BIN)/python -m tests.conformance.answers

simulation: $(VENV)/.tested ## A whole broker, and whole clusters, in virtual time, from seeds (3 minutes).
	$(PYTEST) -n auto --timeout=120 --session-timeout=420 tests/simulation

SEEDS ?= 1000
FIRST_SEED ?= 1
simulate: $(VENV)/.installed ## Many seeds of a cluster on all cores: SEEDS=10000, FIRST_SEED=1, BROKERS=3.
	$(BIN)/ottla simulate --brokers $(or $(BROKERS),3) --seed $(FIRST_SEED) --count $(SEEDS) --jobs 0

WORLD ?= quorum
simulate-worlds: $(VENV)/.tested ## Many cheap worlds of the pure machines: WORLD=quorum or replication, SEEDS, FIRST_SEED.
	$(BIN)/python -m tests.simulation.worlds $(WORLD) --first-seed $(FIRST_SEED) --count $(SEEDS)

spark: $(VENV)/.tested ## The Spark source and sinks in one Spark session (4 minutes).
	$(PYTEST) $(AGAIN) -n 0 --timeout=120 --session-timeout=480 -m "not own_jvm" tests/spark

cdc: $(VENV)/.tested ## Tails of a real PostgreSQL, killed and restarted (1 minute).
	$(PYTEST) $(AGAIN) -n auto --timeout=100 --session-timeout=300 -m "not slow" tests/cdc

MINUTES ?= 5
chaos: $(VENV)/.tested ## Three nodes killed, paused and cut apart under load (MINUTES=5 or SECONDS=, SEED=).
	$(BIN)/python -m tests.chaos $(if $(SECONDS),--seconds $(SECONDS),--minutes $(MINUTES)) $(addprefix --seed ,$(SEED))

ROUNDS ?= 24
power-loss: $(VENV)/.tested ## Nodes whose disks lose power under load, as root (ROUNDS=24, SEED=).
	$(BIN)/python -m tests.chaos.power_loss --rounds $(ROUNDS) $(addprefix --seed ,$(SEED))

slow: $(VENV)/.tested ## The tests that `make test` leaves out for their length.
	$(PYTEST) $(BY_FILE) --timeout=300 -m slow tests/conformance tests/cdc tests/process

test-spark: $(VENV)/.tested ## Spark again, where each test has a JVM of its own: kills, clusters, Kafka (long).
	$(PYTEST) -n 0 --timeout=300 -m own_jvm tests/spark

SECONDS_OF_ORDERS ?= 60
demo: $(VENV)/.tested ## The worked example: two applications, PostgreSQL, two groups and Spark, for a minute.
	$(BIN)/python -m pip install --quiet --disable-pip-version-check matplotlib
	$(BIN)/python -m examples.shop --seconds $(SECONDS_OF_ORDERS)

bench: $(VENV)/.tested jars ## Benchmarks beside Apache Kafka (ONLY="small fetch" for some).
	$(BIN)/python -m pip install --quiet --disable-pip-version-check matplotlib
	$(BIN)/python -m benchmarks $(ONLY)

jars: $(OTTLA_KAFKA_LIBS)/kafka_2.13-$(KAFKA_VERSION).jar ## Fetch Apache Kafka's jars once (Maven, Java 17).

$(OTTLA_KAFKA_LIBS)/kafka_2.13-$(KAFKA_VERSION).jar:
	mvn -q -B -f tests/conformance/java/pom.xml dependency:copy-dependencies \
	  -DoutputDirectory=$(OTTLA_KAFKA_LIBS) -DincludeScope=runtime

lock: ## Write requirements/test.txt anew from requirements/test.in.
	rm -rf build/lock && $(PYTHON) -m venv build/lock
	build/lock/bin/python -m pip install --quiet --disable-pip-version-check -r requirements/test.in
	{ echo "# Exact versions for the tests, written by 'make lock' from test.in."; \
	  build/lock/bin/python -m pip freeze --disable-pip-version-check; } > requirements/test.txt

coverage: $(VENV)/.tested ## Unit tests with branch coverage.
	$(BIN)/coverage run -m pytest -q tests/unit && $(BIN)/coverage combine -q && $(BIN)/coverage report

docs: $(VENV)/.installed ## Write docs/reference/settings.md from the definitions.
	$(BIN)/python docs/settings_page.py

clean: ## Remove the environment and every cache; keeps ./data.
	rm -rf $(VENV) build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
