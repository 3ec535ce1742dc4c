# Everything a developer or a CI machine does. `make help` lists it.
SHELL := /bin/sh
.DEFAULT_GOAL := help
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
LOCKS := requirements-build.lock requirements-dev.lock
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet
# A fixed order, so that a commit has one result (`pytest` alone uses a random order).
PYTEST := $(BIN)/python -m pytest -q --randomly-seed=1
# Test files run in parallel processes, in the order of tests/conftest.py; each process has its own
# JVMs, and takes up to 3 GB.
PROCESSES := 2
PARALLEL := --numprocesses=$(PROCESSES) --dist=loadfile --no-loadscope-reorder
SHARED := $(PYTEST) $(PARALLEL)
# Tests of brokers and daemons wait more than they compute: up to four processes, by free memory.
WAITING := $(shell cat /proc/meminfo 2>/dev/null | \
  awk '/MemAvailable/ { n = int($$2 / 3145728) } END { print (n < 2 ? 2 : (n > 4 ? 4 : n)) }')
COMPAT := tests/compat
INTEGRATION := tests/integration tests/docker tests/cli
CHAOS := tests/chaos tests/live
CHECKED := ingestd tests bench docs
NATIVE := $(VENV)/.native
CLASSES := $(VENV)/.classes
NATIVE_SOURCES := $(wildcard native/*.toml native/*.lock native/*.pyi native/src/*.rs \
  native/src/python/*.rs)
FUZZ_SECONDS := 60
# Timestamps in archives are those of the commit, so that builds are reproducible.
DATED := SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct 2>/dev/null || echo 1580601600)}
GUARDED := ingest/main floors upsert cold/small latency tiny
# Sources and tests are compiled once for all processes, also where the environment says otherwise.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(READY): $(LOCKS) pyproject.toml paimon/pyproject.toml .ci/interpreter
	@python=$$(.ci/interpreter) && echo "creating $(VENV) with $$python (some minutes the first time)" \
	  && $$python -m venv --clear $(VENV)
	@$(PIP) --require-hashes -r requirements-build.lock
	@$(PIP) --require-hashes --no-build-isolation -r requirements-dev.lock
	@$(PIP) --no-deps --no-build-isolation --editable ./paimon --editable .
	@touch $@

# Continues without cargo: see .ci/native.
$(NATIVE): $(READY) $(NATIVE_SOURCES) .ci/native
	@.ci/native $(abspath $(BIN)/python)
	@touch $@

# Spark's JVMs start in half the time with the archive of its classes. Daemons create it in the
# background, which does not get on while tests use all processors.
$(CLASSES): $(READY)
	@$(BIN)/python -m ingestd.spark.startup.training >/dev/null || true
	@touch $@

.PHONY: require
require:
	@.ci/interpreter >/dev/null

.PHONY: setup
setup: require $(READY) $(NATIVE) $(CLASSES) ## create .venv with everything installed, from the hashed lock files

.PHONY: fmt
fmt: setup ## format and sort imports
	$(BIN)/ruff format $(CHECKED)
	$(BIN)/ruff check --fix $(CHECKED)

.PHONY: lint
lint: setup ## formatting and lint
	$(BIN)/ruff format --check $(CHECKED)
	$(BIN)/ruff check $(CHECKED)

.PHONY: types
types: setup ## mypy --strict
	$(BIN)/mypy

.PHONY: layers
layers: setup ## imports point down only
	$(BIN)/lint-imports --no-logo

.PHONY: rust
rust: setup ## format, lint and tests of the native extension, if cargo is installed
	@.ci/rust

.PHONY: workflows
workflows: ## lint of .github/workflows, if go is installed
	@.ci/workflows

.PHONY: rust-memory
rust-memory: ## the tests in Rust under AddressSanitizer and Miri, if there is a nightly toolchain
	@.ci/rust-memory

.PHONY: words
words: setup ## words and phrases that no text or name may have
	$(PYTEST) tests/house/test_words.py

# Two at a time: each of them uses one core.
CHECKS := lint layers types words rust workflows
AT_ONCE := @$(MAKE) --jobs=2 --output-sync=target
.PHONY: check
check: setup ## lint, layers, types, words, the native extension, the workflows
	$(AT_ONCE) $(CHECKS)

# Processes that each import only their own files: those that share a list of tests would each
# import all of them, and report every step of ten thousand tests to another process. The last two
# wait more than they compute.
UNIT_SHARES := unit-tables unit-records unit-services unit-others
SERVICES := tests/unit/daemon tests/unit/kafka tests/unit/spark tests/unit/telemetry
.PHONY: unit $(UNIT_SHARES)
unit: setup ## fast tests: no network, no Spark
	@$(MAKE) --jobs=4 --output-sync=target $(UNIT_SHARES)
unit-tables:
	$(PYTEST) tests/unit/paimon tests/bench
unit-records:
	$(PYTEST) tests/unit/cdc tests/unit/ingest tests/house
unit-services:
	$(PYTEST) $(SERVICES)
unit-others:
	$(PYTEST) tests/unit tests/mutation --ignore=tests/unit/paimon --ignore=tests/unit/cdc \
	  --ignore=tests/unit/ingest $(SERVICES:%=--ignore=%)

.PHONY: property
property: setup ## property tests, irregular messages for every decoder, the model of recovery
	$(SHARED) tests/property tests/fuzz tests/recovery

.PHONY: property-long
property-long: setup ## property tests in their long form: all damages, 2,000 table histories, the whole model (hours)
	INGESTD_LONG=1 $(PYTEST) tests/property/test_damage.py tests/property/test_table_life.py \
	  tests/property/test_mixed_lives.py tests/recovery

MUTANTS := 60
SEED := 1
.PHONY: mutants
mutants: setup ## mutation tests: MUTANTS small changes of the code, chosen by SEED (20 s for each)
	$(BIN)/python -m tests.mutation.mutants --count $(MUTANTS) --seed $(SEED)

.PHONY: fuzz
fuzz: setup ## coverage-guided fuzzing of every decoder, FUZZ_SECONDS for each
	@.ci/fuzz $(abspath $(BIN)/python) $(FUZZ_SECONDS)

.PHONY: compat
compat: setup ## compatibility with Java Paimon, pypaimon and paimon-rust, reading and writing
	$(SHARED) $(COMPAT)

.PHONY: matrix
matrix: setup ## test all readers again and write docs/compatibility.json and .md
	$(PYTEST) tests/compat/test_matrix.py --matrix
	$(BIN)/python -m docs.generate

.PHONY: integration
integration: setup ## tests with a Kafka broker and Spark, the command line, the Dockerfile
	$(SHARED) --numprocesses=$(WAITING) --one-broker $(INTEGRATION)

.PHONY: chart
chart: setup ## check the chart with helm, Kubernetes' schemas and promtool
	$(SHARED) tests/chart

.PHONY: chart-e2e
chart-e2e: setup ## the chart on a real control plane, its pods as processes, and a real Prometheus
	INGESTD_LONG=1 $(PYTEST) -s tests/chart/test_api_server.py tests/chart/test_chart_e2e.py \
	  tests/chart/test_executors.py

.PHONY: image-check
image-check: setup ## run the stages of the image in a folder, without a container engine; check size and start
	$(PYTEST) -s tests/docker

.PHONY: page
page: setup ## the daemon's page in a browser, if one is installed
	$(SHARED) tests/page

.PHONY: chaos
chaos: setup ## tests that kill processes; a short run with a live database
	$(SHARED) --numprocesses=$(WAITING) --one-broker $(CHAOS)

.PHONY: live
live: setup ## two minutes of PostgreSQL, Debezium, a broker and ingestd, with a random seed
	INGESTD_LONG=1 $(PYTEST) -s tests/live

# First what needs no other processes, all at once; `words` is a part of the unit tests. Then the
# other tests in one run: the broker and the JVMs are started once, short files run beside long ones.
.PHONY: test
test: setup ## all checks and tests, fastest first; prints the slowest tests
	@$(MAKE) --jobs=4 --output-sync=target $(filter-out words,$(CHECKS)) site $(UNIT_SHARES)
	$(SHARED) --numprocesses=$(WAITING) --one-broker --durations=15 --durations-min=5 \
	  $(INTEGRATION) $(CHAOS) $(COMPAT) tests/chart tests/page tests/docs tests/property tests/fuzz \
	  tests/recovery

TESTS := tests
.PHONY: test-long
test-long: setup ## every test in its long form (a day; or TESTS=...)
	INGESTD_LONG=1 $(SHARED) --one-broker $(TESTS)

# PY=/path/to/python3.13: each Python gets its own environment.
.PHONY: test-python
test-python: setup ## the unit tests with another Python (PY=...) and the same native wheel
	@.ci/python "$(PY)" $(abspath $(BIN)/python) locked tests/unit

# Tests with older or newer packages than those of the lock files.
.PHONY: lowest
lowest: setup ## unit, property and compat with the oldest packages that pyproject.toml allows
	@.ci/python $(BIN)/python $(abspath $(BIN)/python) lowest-direct $(PARALLEL) \
	  tests/unit tests/property $(COMPAT)

.PHONY: newest
newest: setup ## unit, property and compat with the newest packages, without the lock files
	@.ci/python $(BIN)/python $(abspath $(BIN)/python) highest $(PARALLEL) \
	  tests/unit tests/property $(COMPAT)

.PHONY: newcomer
newcomer: require ## run every command of the README, and the tutorial, in a new clone
	@rm -rf build/newcomer
	@python=$$(.ci/interpreter) && $$python -m tests.support.newcomer build/newcomer

.PHONY: installed
installed: setup ## run `ingestd demo` with the wheels in an empty environment (minutes)
	INGESTD_LONG=1 $(PYTEST) -s tests/docs/test_wheels.py

.PHONY: library
library: setup ## tests of ingestd-paimon in an environment without Spark and Kafka, also with Java
	INGESTD_LONG=1 $(PYTEST) -s tests/docs/test_library_alone.py

.PHONY: demo
demo: setup ## run a broker, a workload and the daemon, and show the tables
	$(BIN)/ingestd demo

.PHONY: bench
bench: setup ## all benchmarks including peers: results, plots, docs/performance.md
	$(BIN)/python -m bench.run --publish

.PHONY: bench-check
bench-check: setup ## measure the ratios again and report regressions
	$(BIN)/python -m bench.run --only $(GUARDED) --runs 3 --fresh --log build/bench/check.jsonl
	$(BIN)/python -m bench.check --log build/bench/check.jsonl

.PHONY: docs
docs: setup ## write the generated parts of docs/
	$(BIN)/python -m docs.generate

.PHONY: site
site: setup ## build/site/html: the documentation as a site; broken links are errors
	@.ci/site $(abspath $(BIN)/python)

COMPILE := $(BIN)/uv pip compile -q --upgrade --universal --python-version 3.11 --generate-hashes \
  --no-header --no-annotate --no-emit-index-url --no-emit-find-links --no-emit-package ingestd-paimon
.PHONY: lock
lock: setup ## pin the newest versions that the projects allow
	$(COMPILE) --extra aws --extra compare --extra hdfs --extra jdbc --extra otel pyproject.toml \
	  -o requirements.lock
	$(COMPILE) --extra dev --extra aws --extra compare --extra hdfs --extra jdbc --extra otel \
	  -c requirements.lock pyproject.toml -o requirements-dev.lock
	$(COMPILE) --extra dev --extra hdfs -c requirements-dev.lock paimon/pyproject.toml \
	  -o paimon/requirements-dev.lock
	printf '%s\n' 'hatchling>=1.27' 'editables>=0.5' 'maturin>=1.9,<2' 'setuptools>=80' wheel \
	  | $(COMPILE) - -o requirements-build.lock
	printf '%s\n' 'sphinx>=9,<10' 'myst-parser>=5,<6' 'furo>=2025.12.19' \
	  | $(COMPILE) - -o .ci/site.lock
	printf '%s\n' 'pip-audit>=2.9,<3' | $(COMPILE) - -o .ci/audit.lock
	printf '%s\n' 'ziglang>=0.15' 'auditwheel>=6.4' 'cyclonedx-bom>=7' \
	  | $(COMPILE) - -o .ci/release.lock

# The auditor has its own environment, and queries a vulnerability database over the network.
# ADVISORIES="FOLDER ...": reads copies of databases instead, without a network.
.PHONY: audit
audit: setup ## known vulnerabilities: locked packages, base images (ADVISORIES=FOLDER: offline, jars)
ifdef ADVISORIES
	@$(BIN)/python -m docs.audit $(ADVISORIES)
else
	$(BIN)/python -m venv --clear build/audit
	build/audit/bin/python -m pip --disable-pip-version-check install --quiet --require-hashes \
	  -r .ci/audit.lock
	@found=0; .ci/audit build/audit/bin/pip-audit requirements.lock || found=$$?; \
	  .ci/audit-images Dockerfile || found=$$?; exit $$found
endif

.PHONY: wheels
wheels: setup ## dist/: ingestd, ingestd-paimon, and the native reader for every Python from 3.11 on
	$(DATED) $(BIN)/python -m pip --disable-pip-version-check wheel --quiet --no-deps \
	  --no-build-isolation --wheel-dir dist ./paimon .
	$(DATED) PATH="$(abspath $(BIN)):$$PATH" maturin build --quiet --release --locked --out dist \
	  --manifest-path native/Cargo.toml --target-dir build/native

TARGETS := x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu
.PHONY: native-wheels
native-wheels: require ## dist/: wheels of the native extension for TARGETS, Linux' for glibc 2.28
	@$(DATED) .ci/native-wheels $$(.ci/interpreter) $(TARGETS)

.PHONY: sbom
sbom: wheels ## build/sbom.json: the bill of materials of the wheels and of the lock file
	@.ci/sbom $(abspath $(BIN)/python) build/sbom.json dist/ingestd-*.whl \
	  dist/ingestd_native-*_$$(uname -m).whl

# TAG=v1.2.3: all files must agree with it. ADDRESS=https://...: the repository's, named in packages.
.PHONY: release-check
release-check: setup ## dist/: packages, wheels, chart, image, SBOM and notes, built and checked
	@$(DATED) .ci/release $(abspath $(BIN)/python) $(TAG)

.PHONY: publish
publish: setup ## publish dist/ of a tag; needs accounts, and is run by the workflow
	@.ci/publish $(abspath $(BIN)/uv)

.PHONY: clean
clean: ## remove the environment and caches
	rm -rf $(VENV) build dist demo .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
