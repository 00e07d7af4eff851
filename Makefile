# `make` builds the package into .venv; `make test` is what continuous integration runs.
# It needs Python 3.10 or newer, cargo and the package registries; `make test` also Java 17 or 21, for Spark,
# Chromium, which it installs as root on Debian, and npm, for Azure's emulator.

PYTHON ?= python3
# The tools that build wheels, by version, so that a commit builds to the same bytes.
MATURIN := maturin==1.16.0
ZIG := ziglang==0.15.2

BIN := .venv/bin
CARGO := cargo --locked
CRATE := --manifest-path rust/Cargo.toml
DEMO := .cache/demo
JARS := $(CURDIR)/.cache/jars
DELTA_JAR := $(JARS)/delta-spark_4.2_2.13-4.4.0.jar
STORAGE_JAR := $(JARS)/delta-storage-4.4.0.jar
# Delta has no JARs for the newest Spark yet: it is tested without them, beside the one of .venv.
NEWEST_SPARK := 4.3.0
NEWEST_PYSPARK := $(CURDIR)/.cache/pyspark-$(NEWEST_SPARK)
OLD_SPARKS := 4.0.2 4.1.1
OLD_PYSPARKS := $(addprefix $(CURDIR)/.cache/pyspark-,$(OLD_SPARKS))
# The master of the server of Spark Connect.
CONNECT := 'local[2,3]'
# A folder for each engine of the conformance kit that has packages of its own.
ENGINES := .cache/engines
SYSTEMATIC := .cache/systematic
PYTHON_ENGINES := $(addprefix $(ENGINES)/,chdb datafusion delta-kernel pyiceberg)
JAVA_ENGINES := $(addprefix $(ENGINES)/,parquet-java iceberg)
# Delta Kernel for Java, a reference of catalog-managed tables.
KERNEL := $(CURDIR)/.cache/kernel
AZURITE_VERSION := 3.35.0
AZURITE := $(CURDIR)/.cache/azurite
NATIVE_SOURCES := rust/Cargo.toml rust/Cargo.lock $(shell find rust/src -name '*.rs')

# One Python for every build of the crate, and no libpython to link: Rust's own tests call none of it.
export PYO3_PYTHON := $(CURDIR)/$(BIN)/python
export PYO3_BUILD_EXTENSION_MODULE := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# Data of other projects, which tests and the fuzzer read: `make corpora` assembles it.
DELTA_VARIANT_CORPORA ?= $(CURDIR)/../shared/corpora
override DELTA_VARIANT_CORPORA := $(abspath $(DELTA_VARIANT_CORPORA))
export DELTA_VARIANT_CORPORA

# The order of the files is that of tests/tiers.py: the longest first. Spark that hangs once may hang in each test, so
# the number of failures is limited. A new worker would repeat the test that ended the last one.
PYTEST_OPTIONS := --numprocesses 2 --dist loadfile --no-loadscope-reorder --durations 40 \
  --maxfail 20 --max-worker-restart 0
PYTEST := $(BIN)/pytest $(PYTEST_OPTIONS)

# The wheel that the unit tier runs on, and its environment. `make coverage-python WHEEL=dist/….whl` tests another one.
WHEEL :=
WHEEL_ENV := $(CURDIR)/.cache/wheel-env
TESTED_WHEEL = $(abspath $(or $(WHEEL),$(shell ls .cache/wheels/*.whl)))
# Without Go, the workflows are not checked here.
ACTIONLINT := $(if $(shell command -v go),$(CURDIR)/.cache/go/bin/actionlint)
ACTIONLINT_VERSION := 1.7.12
CARGO_DENY_VERSION := 0.20.2
CARGO_DENY := $(CURDIR)/.cache/cargo/bin/cargo-deny

# Lines that the unit tier and the Rust tests cover, in per cent: `make coverage` fails below them.
PYTHON_FLOOR := 93
RUST_FLOOR := 89
LLVM_COV_VERSION := 0.9.1
LLVM_COV := $(CURDIR)/.cache/cargo/bin/cargo-llvm-cov

.PHONY: build check test spark-connect newest-spark old-spark test-rust coverage coverage-rust coverage-python corpora browser faults \
  conformance engines fuzz bench docs demo demo-spark wheel dist advisories clean
.DEFAULT_GOAL := build

build: .venv/built

.venv/created:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "Python 3.10 or newer is needed: make PYTHON=…")'
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet '$(MATURIN)'
	touch $@

# Python files are used where they lie: only Rust and the dependencies ask for a new build.
.venv/built: .venv/created pyproject.toml $(NATIVE_SOURCES)
	$(BIN)/maturin develop --release --extras dev
	touch $@

check: build $(ACTIONLINT)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/typos
	$(BIN)/mypy
	cargo fmt $(CRATE) --all --check
	$(CARGO) clippy $(CRATE) --workspace --all-targets --all-features -- -D warnings
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc $(CRATE) --no-deps --document-private-items
	$(BIN)/python rust/third_party_licenses.py --check
	$(ACTIONLINT)

test: build browser $(AZURITE)
	$(MAKE) test-rust
	$(PYTEST) -m "not nightly"
	SPARK_REMOTE=$(CONNECT) $(PYTEST) tests/spark/test_core.py
	$(MAKE) docs

# All tests of the pipeline on Spark Connect: `make test` runs its core. The driver of the crashes has a session of its
# own.
spark-connect: build
	SPARK_REMOTE=$(CONNECT) $(PYTEST) tests/spark --ignore tests/spark/test_driver_crashes.py

# All tests of the pipeline on the newest Spark.
newest-spark: build $(NEWEST_PYSPARK)
	PYTHONPATH=$(NEWEST_PYSPARK) $(PYTEST) tests/spark

# The core of the pipeline on the older versions of Spark that it supports.
old-spark: build $(OLD_PYSPARKS)
	for folder in $(OLD_PYSPARKS); do PYTHONPATH=$$folder $(PYTEST) --numprocesses 1 tests/spark/test_core.py || exit; done

# The Rust tests, and the unit tier of the Python tests. Python's tests cover the binding in rust/src/python, too, but
# this is not measured.
coverage: coverage-rust coverage-python

test-rust: build
	$(CARGO) test --quiet $(CRATE) --workspace

coverage-rust: build $(LLVM_COV)
	rustup --quiet component add llvm-tools
	$(LLVM_COV) llvm-cov --locked --quiet $(CRATE) --workspace --summary-only \
	  --ignore-filename-regex 'src/python/|/fuzz/' --fail-under-lines $(RUST_FLOOR)

# The unit tier runs on a wheel, as users install it: in an environment of its dependencies, all of them from wheels,
# without cargo, and in a folder without the sources, so that the tests cannot import them.
coverage-python: $(if $(WHEEL),,wheel) $(WHEEL_ENV)/created
	$(WHEEL_ENV)/bin/pip install --quiet --only-binary :all: '$(TESTED_WHEEL)[test]'
	$(WHEEL_ENV)/bin/pip install --quiet --force-reinstall --no-deps $(TESTED_WHEEL)
	mkdir -p .cache/coverage $(WHEEL_ENV)/run
	cd $(WHEEL_ENV)/run && PATH=$(WHEEL_ENV)/bin:/usr/bin:/bin PYTHONPATH= COVERAGE_FILE=$(CURDIR)/.cache/coverage/data \
	  pytest $(PYTEST_OPTIONS) --config-file $(CURDIR)/pyproject.toml --rootdir $(CURDIR) $(CURDIR)/tests -m unit \
	  --cov --cov-config $(CURDIR)/pyproject.toml --cov-report term:skip-covered --cov-fail-under $(PYTHON_FLOOR)

$(WHEEL_ENV)/created: .venv/created pyproject.toml
	rm -rf $(WHEEL_ENV)
	$(BIN)/python -m venv $(WHEEL_ENV)
	touch $@

# The time of the commit in the list of crates, instead of that of the build: a commit builds to the same bytes.
wheel dist: export SOURCE_DATE_EPOCH := $(shell git log -1 --format=%ct)

# The library is that of `build`. It runs on Linux systems with the C library of this one or a newer one; `make dist`
# builds for older ones, and compiles everything again.
wheel: build
	rm -rf .cache/wheels
	$(BIN)/maturin build --release --locked --compatibility linux --interpreter $(PYO3_PYTHON) --out .cache/wheels

# The sdist, and wheels for Linux. zig is the linker and the C compiler for any target and version of the C library.
dist: TARGETS := x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu
dist: COMPATIBILITY := manylinux2014
dist: .venv/created
	$(BIN)/pip install --quiet '$(MATURIN)' '$(ZIG)'
	$(BIN)/maturin sdist --out dist
	rustup --quiet target add $(TARGETS)
	for target in $(TARGETS); do PATH=$(CURDIR)/$(BIN):$$PATH maturin build --release --locked --zig --target $$target \
	  --compatibility $(COMPATIBILITY) --out dist || exit; done

$(LLVM_COV):
	cargo install --quiet --locked --root .cache/cargo cargo-llvm-cov@$(LLVM_COV_VERSION)

$(NEWEST_PYSPARK) $(OLD_PYSPARKS): | build
	$(BIN)/pip install --quiet --target $@.part pyspark==$(patsubst pyspark-%,%,$(@F))
	mv $@.part $@

# Tables on Azure lie in its emulator. Where npm cannot install that, their tests are skipped, and say so.
$(AZURITE):
	@! command -v npm > /dev/null || { npm install --silent --no-save --fetch-timeout 60000 --prefix $@.part \
	  azurite@$(AZURITE_VERSION) && mv $@.part $@; } || rm -rf $@.part

# Licenses, known vulnerabilities and sources of the crates and of the Python packages.
advisories: .venv/created $(CARGO_DENY)
	$(CARGO_DENY) --manifest-path rust/Cargo.toml --locked --workspace check
	$(BIN)/pip install --quiet 'pip-audit>=2.9'
	$(BIN)/pip-audit .

ifneq ($(ACTIONLINT),)
$(ACTIONLINT):
	GOBIN=$(dir $@) go install github.com/rhysd/actionlint/cmd/actionlint@v$(ACTIONLINT_VERSION)
endif

$(CARGO_DENY):
	cargo install --quiet --locked --root .cache/cargo cargo-deny@$(CARGO_DENY_VERSION)

# The corpora of tests/support/corpora.toml, from the repositories that they come from. DELTA_VARIANT_CORPORA names the
# folder.
corpora: DIR := $(DELTA_VARIANT_CORPORA)
corpora: .venv/created
	$(BIN)/python tests/support/corpora.py $(DIR)

# Interleavings of concurrent operations, which take 15 to 30 minutes on two cores; then concurrent writers on a
# disk and on S3, and processes that are killed at any step, with figures; then drivers and executors of Spark that
# are killed, which needs Java. A seed that fails is repeated by `tests/faults/interleavings.py --seed N`.
INTERLEAVINGS := 20000
faults: build
	$(BIN)/python tests/faults/interleavings.py --count $(INTERLEAVINGS) --workers 2
	$(BIN)/python tests/faults/measure.py
	RANDOM_CRASHES=20 $(BIN)/pytest -m nightly tests/spark/test_driver_crashes.py
	CLUSTER_RUNS=20 $(BIN)/pytest -m nightly tests/spark/test_killed_executors.py tests/spark/test_speculation.py

# The page of an audit is looked at in Chromium. Where it cannot be installed here, a test says what is missing.
browser:
	@command -v chromedriver > /dev/null || [ "$$(id -u)" != 0 ] || ! command -v apt-get > /dev/null || \
	  { apt-get update --quiet; DEBIAN_FRONTEND=noninteractive apt-get install --quiet --yes \
    --no-install-recommends chromium chromium-driver; }

# An engine that does not start, such as Spark without Java, is reported and left out.
conformance: build engines
	$(BIN)/maturin develop --release --extras dev,conformance
	rm -rf $(SYSTEMATIC)
	$(BIN)/python protocol_fixtures/build/systematic.py $(SYSTEMATIC)
	$(BIN)/delta-variant conformance --cases protocol_fixtures --cases $(DELTA_VARIANT_CORPORA)/parquet-testing \
	  --cases $(SYSTEMATIC) --packages $(ENGINES) --history docs/about/conformance-history.json \
	  --html .cache/conformance.html --json > .cache/conformance.json
	PYTHONPATH=tests $(BIN)/python tests/support/conformance_matrix.py

# Engines whose packages are large or exclude others have a folder of their own, with fixed versions. They use the
# pyarrow of .venv.
$(ENGINES)/chdb: PACKAGES := --no-deps chdb==4.4.0 chdb-core==26.9.0
$(ENGINES)/datafusion: PACKAGES := --no-deps datafusion==55.0.0 cloudpickle==3.1.2
$(ENGINES)/delta-kernel: PACKAGES := --no-deps delta-kernel-rust-sharing-wrapper==0.3.3
$(ENGINES)/pyiceberg: PACKAGES := pyiceberg==0.12.0

engines: $(PYTHON_ENGINES) $(ENGINES)/spark-newest

$(PYTHON_ENGINES): | build
	$(BIN)/pip install --quiet --target $@.part $(PACKAGES)
	mv $@.part $@

$(ENGINES)/spark-newest: $(NEWEST_PYSPARK)
	mkdir -p $(ENGINES)
	ln -sfn $< $@

# Without Maven, Spark fetches Delta's JARs by itself at each start, and the engines of Java are left out.
ifneq ($(shell command -v mvn),)
engines test: $(JAVA_ENGINES) $(KERNEL)
test conformance: $(DELTA_JAR)
conformance: export PYSPARK_SUBMIT_ARGS := --jars $(DELTA_JAR),$(STORAGE_JAR) \
  --driver-class-path $(DELTA_JAR):$(STORAGE_JAR) pyspark-shell
endif

# Maven waits for half an hour for a server that does not answer, unless told otherwise: version 3.8 and 3.9.
MAVEN_TIMEOUTS := -Dmaven.wagon.rto=60000 -Daether.connector.requestTimeout=60000

$(DELTA_JAR):
	mvn -q -B $(MAVEN_TIMEOUTS) -f tests/interop/pom.xml dependency:copy-dependencies -DoutputDirectory=$(JARS)

$(KERNEL):
	mvn -q -B --strict-checksums $(MAVEN_TIMEOUTS) -f tests/interop/kernel/pom.xml \
	  dependency:copy-dependencies -DoutputDirectory=$@.part
	mv $@.part $@

# `--strict-checksums` rejects a JAR whose checksum is not that of the repository.
$(JAVA_ENGINES):
	mvn -q -B --strict-checksums $(MAVEN_TIMEOUTS) -f delta_variant/conformance/engines/java/$(@F).xml \
	  dependency:copy-dependencies -DoutputDirectory=$(CURDIR)/$@.part
	mv $@.part $@

# `make bench PAIRS=write/orjson` runs one pair, in at most three minutes once its tables exist.
bench: PAIRS :=
bench: build
	$(BIN)/maturin develop --release --extras dev,conformance,bench
	$(BIN)/python benchmarks/run.py $(PAIRS)

# The documentation site. A broken link or reference is an error, and nothing is downloaded while it is built.
docs: build
	$(BIN)/maturin develop --release --extras dev,docs
	$(BIN)/sphinx-build --fail-on-warning --keep-going --quiet -c docs . .cache/site
	@echo 'file://$(CURDIR)/.cache/site/index.html'

# Each target for so many seconds; by default 24 minutes in all.
fuzz: SECONDS := 240
fuzz: build
	$(BIN)/python rust/fuzz/run.py --seconds $(SECONDS)

demo: build $(DEMO)/bioregistry.ndjson
	rm -rf $(DEMO)/registry
	@printf '\n== Write JSON lines to a Delta table: common paths become columns of their own ==\n'
	$(BIN)/delta-variant write $(DEMO)/bioregistry.ndjson $(DEMO)/registry --column entry
	@printf '\n== How the file is shredded: paths, types, how full they are, bytes, bounds (the first 24) ==\n'
	$(BIN)/delta-variant inspect $(DEMO)/registry | head -n 24
	@printf '\n== A query over paths: only their columns are read ==\n'
	$(BIN)/delta-variant read $(DEMO)/registry -c prefix=entry:prefix::string -c name=entry:name::string \
	  -c license=entry:license::string --where "entry:license::string like 'CC0%'" --limit 10
	@printf '\n== The statistics that other engines skip files by ==\n'
	$(BIN)/delta-variant stats $(DEMO)/registry

demo-spark: build $(DEMO)/landing
	rm -rf $(DEMO)/spark
	$(BIN)/python examples/spark_pipeline.py $(DEMO)/landing $(DEMO)/spark stream monitor maintain \
	  --files-per-batch 1 --master 'local[2]'

# The changes between two releases.
$(DEMO)/landing: $(DEMO)/bioregistry.ndjson examples/registry_changes.py
	$(BIN)/pip install --quiet --no-deps --ignore-requires-python --target $(DEMO)/old bioregistry==0.12.0
	rm -rf $@
	$(BIN)/python examples/registry_changes.py $(DEMO)/old/bioregistry/data/bioregistry.json \
	  $(DEMO)/package/bioregistry/data/bioregistry.json $@

# Bioregistry is MIT, its data CC0. Its one JSON object becomes one line for each prefix.
$(DEMO)/bioregistry.ndjson: | build
	$(BIN)/pip install --quiet --no-deps --ignore-requires-python --target $(DEMO)/package bioregistry==0.15.6
	$(BIN)/python -c 'import json, sys; \
	  entries = json.load(open("$(DEMO)/package/bioregistry/data/bioregistry.json", encoding="utf-8")); \
	  sys.stdout.writelines(json.dumps({"prefix": prefix, **entry}) + "\n" for prefix, entry in entries.items())' > $@.part
	mv $@.part $@

clean:
	rm -rf .cache .venv rust/target
