# `make` builds the package into .venv; `make test` and `make test-all` are what continuous integration runs.
# It needs Python 3.10 or newer, cargo and the package registries; `make test` also Java 17 or 21, for Spark,
# Chromium, which it installs as root on Debian, npm, for Azure's emulator and a reader of Parquet in Chromium, and Go,
# for an adapter of the conformance kit.

PYTHON ?= python3
# The tools that build wheels, by version, so that a commit builds to the same bytes.
MATURIN := maturin==1.16.0
ZIG := ziglang==0.15.2

BIN := .venv/bin
CARGO := cargo --locked
CRATE := --manifest-path rust/Cargo.toml
JARS := $(CURDIR)/.cache/jars
DELTA_JAR := $(JARS)/delta-spark_4.2_2.13-4.4.0.jar
# Delta has no JARs for the newest Spark yet: it is tested without them, beside the one of .venv.
NEWEST_SPARK := 4.3.0
NEWEST_PYSPARK := $(CURDIR)/.cache/pyspark-$(NEWEST_SPARK)
OLD_SPARKS := 4.0.2 4.1.1
OLD_PYSPARKS := $(addprefix $(CURDIR)/.cache/pyspark-,$(OLD_SPARKS))
# The master of the server of Spark Connect.
CONNECT := 'local[2,3]'
# A folder for each engine of the conformance kit that has packages of its own: `tools/engines.sh` installs the others.
ENGINES := .cache/engines
JAVA_ENGINES := $(addprefix $(ENGINES)/,parquet-java iceberg)
# Delta Kernel for Java, a reference of catalog-managed tables.
KERNEL := $(CURDIR)/.cache/kernel
# Hadoop's mini cluster, for a nightly test with HDFS: `make .cache/hdfs`.
HDFS := .cache/hdfs
AZURITE_VERSION := 3.35.0
AZURITE := $(CURDIR)/.cache/azurite
# A reader of Parquet in a browser, and what it decompresses by.
HYPARQUET := $(CURDIR)/.cache/hyparquet
# Adapters of the conformance kit in other languages, built: the one in Java runs from its source.
ADAPTERS := $(CURDIR)/.cache/adapters
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

# Lines that the unit tier and the Rust tests cover, in per cent: `make coverage` fails below them.
PYTHON_FLOOR := 93
RUST_FLOOR := 89
LLVM_COV_VERSION := 0.9.1
LLVM_COV := $(CURDIR)/.cache/cargo/bin/cargo-llvm-cov

.PHONY: adapters archive build check test test-all spark-connect newest-spark old-spark rust-tests test-rust coverage \
  coverage-rust coverage-python corpora browser downloads jars bench docs demo demo-spark wheel dist clean
.DEFAULT_GOAL := build

build: .venv/built .venv/kit

.venv/created:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "Python 3.10 or newer is needed: make PYTHON=…")'
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet '$(MATURIN)'
	touch $@

# Python files are used where they lie: only Rust and the dependencies ask for a new build.
.venv/built: .venv/created pyproject.toml $(NATIVE_SOURCES)
	$(BIN)/maturin develop --release --extras dev
	touch $@

# The conformance kit, also used where it lies.
.venv/kit: pyproject.toml conformance/pyproject.toml conformance/hatch_build.py | .venv/built
	$(BIN)/pip install --quiet --no-deps --editable ./conformance
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

# The library, for which one core compiles for minutes, is built beside the Rust tests and the downloads.
test:
	$(MAKE) --jobs 3 build rust-tests downloads
	$(MAKE) test-rust
	$(PYTEST) -m "not long and not nightly"
	SPARK_REMOTE=$(CONNECT) $(PYTEST) tests/spark/test_core.py

# What `make test` leaves out, except what has a target of its own (coverage, other Sparks) and what runs at night.
test-all: build
	$(PYTEST) -m long
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

rust-tests: .venv/created
	$(CARGO) test --quiet --no-run $(CRATE) --workspace

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
	$(WHEEL_ENV)/bin/pip install --quiet --force-reinstall --no-deps $(TESTED_WHEEL) ./conformance
	mkdir -p .cache/coverage $(WHEEL_ENV)/run
	cd $(WHEEL_ENV)/run && PATH=$(WHEEL_ENV)/bin:/usr/bin:/bin PYTHONPATH= COVERAGE_FILE=$(CURDIR)/.cache/coverage/data \
	  pytest $(PYTEST_OPTIONS) --config-file $(CURDIR)/pyproject.toml --rootdir $(CURDIR) $(CURDIR)/tests -m unit \
	  --cov --cov-config $(CURDIR)/pyproject.toml --cov-report term:skip-covered --cov-fail-under $(PYTHON_FLOOR)

$(WHEEL_ENV)/created: .venv/created pyproject.toml
	rm -rf $(WHEEL_ENV)
	$(BIN)/python -m venv $(WHEEL_ENV)
	touch $@

# The time of the commit, instead of that of the build: a commit builds to the same bytes.
archive wheel dist: export SOURCE_DATE_EPOCH := $(shell git log -1 --format=%ct)

# The library is that of `build`. It runs on Linux systems with the C library of this one or a newer one; `make dist`
# builds for older ones, and compiles everything again.
wheel: build
	rm -rf .cache/wheels
	$(BIN)/maturin build --release --locked --compatibility linux --interpreter $(PYO3_PYTHON) --out .cache/wheels

# The archive of the conformance cases, for other projects.
archive: build
	$(BIN)/python protocol_fixtures/build/archive.py dist

# The archive, the sdist, wheels for Linux with glibc and with musl, and the wheel of the conformance kit, which is for any system. zig is the linker and the C compiler for any target and version of the C library.
dist: TARGETS := $(foreach libc,gnu musl,x86_64-unknown-linux-$(libc) aarch64-unknown-linux-$(libc))
dist: archive .venv/created
	$(BIN)/pip install --quiet '$(MATURIN)' '$(ZIG)'
	$(BIN)/maturin sdist --out dist
	$(BIN)/pip wheel --quiet --no-deps --wheel-dir dist ./conformance
	rustup --quiet target add $(TARGETS)
	for target in $(TARGETS); do PATH=$(CURDIR)/$(BIN):$$PATH maturin build --release --locked --zig --target $$target \
	  --compatibility "$$(case $$target in *-musl) echo musllinux_1_2;; *) echo manylinux2014;; esac)" --out dist || exit; done

$(LLVM_COV):
	cargo install --quiet --locked --root .cache/cargo cargo-llvm-cov@$(LLVM_COV_VERSION)

$(NEWEST_PYSPARK) $(OLD_PYSPARKS): | build
	$(BIN)/pip install --quiet --target $@.part pyspark==$(patsubst pyspark-%,%,$(@F))
	mv $@.part $@

# Tables on Azure lie in its emulator. Where npm cannot install a package, its tests are skipped, and say so.
$(AZURITE): PACKAGES := azurite@$(AZURITE_VERSION)
$(HYPARQUET): PACKAGES := hyparquet@1.33.0 hyparquet-compressors@1.1.2
$(AZURITE) $(HYPARQUET):
	@! command -v npm > /dev/null || { npm install --silent --no-save --fetch-timeout 60000 --prefix $@.part \
	  $(PACKAGES) && mv $@.part $@; } || rm -rf $@.part

# Without Go or its modules, the tests of its adapter are skipped, and say so. Compiling without optimization takes half
# the time.
adapters: FLAGS := -ldflags='-s -w' -gcflags='all=-N -l'
adapters:
	@! command -v go > /dev/null || ! go mod download -C protocol_fixtures/adapters/go || \
	  CGO_ENABLED=0 go build -C protocol_fixtures/adapters/go $(FLAGS) -o $(ADAPTERS)/ ./...
	$(CARGO) build --quiet --manifest-path protocol_fixtures/adapters/rust/Cargo.toml --target-dir $(ADAPTERS)/rust

ifneq ($(ACTIONLINT),)
$(ACTIONLINT):
	GOBIN=$(dir $@) go install github.com/rhysd/actionlint/cmd/actionlint@v$(ACTIONLINT_VERSION)
endif

# One after the other: two runs of Maven do not share its folder.
downloads:
	unset MAKEFLAGS; $(MAKE) browser adapters jars $(AZURITE) $(HYPARQUET)

# The corpora of tests/support/corpora.toml, from the repositories that they come from. DELTA_VARIANT_CORPORA names the
# folder.
corpora: DIR := $(DELTA_VARIANT_CORPORA)
corpora: .venv/created
	$(BIN)/python tests/support/corpora.py $(DIR)

# The page of an audit is looked at in Chromium. Where it cannot be installed here, a test says what is missing.
browser:
	@command -v chromedriver > /dev/null || [ "$$(id -u)" != 0 ] || ! command -v apt-get > /dev/null || \
	  { apt-get update --quiet; DEBIAN_FRONTEND=noninteractive apt-get install --quiet --yes \
    --no-install-recommends chromium chromium-driver; }

$(ENGINES)/spark-newest: $(NEWEST_PYSPARK)
	mkdir -p $(ENGINES)
	ln -sfn $< $@

# The JARs of Delta, and of the engines of the conformance kit that run in a JVM.
ifneq ($(shell command -v mvn),)
jars: $(DELTA_JAR) $(JAVA_ENGINES) $(KERNEL)
endif
test-all: jars

# Maven waits for half an hour for a server that does not answer, unless told otherwise: version 3.8 and 3.9.
MAVEN_TIMEOUTS := -Dmaven.wagon.rto=60000 -Daether.connector.requestTimeout=60000

$(DELTA_JAR):
	mvn -q -B $(MAVEN_TIMEOUTS) -f tests/interop/pom.xml dependency:copy-dependencies -DoutputDirectory=$(JARS)

$(KERNEL): POM := tests/interop/kernel/pom.xml
$(HDFS): POM := tests/spark/hdfs/pom.xml
$(KERNEL) $(HDFS):
	mvn -q -B --strict-checksums $(MAVEN_TIMEOUTS) -f $(POM) \
	  dependency:copy-dependencies -DoutputDirectory=$(abspath $@).part
	mv $@.part $@

# `--strict-checksums` rejects a JAR whose checksum is not that of the repository.
$(JAVA_ENGINES):
	mvn -q -B --strict-checksums $(MAVEN_TIMEOUTS) -f conformance/delta_variant_conformance/engines/java/$(@F).xml \
	  dependency:copy-dependencies -DoutputDirectory=$(CURDIR)/$@.part
	mv $@.part $@

# `make bench PAIRS=write/orjson` runs one pair, in at most three minutes once its tables exist.
bench: PAIRS :=
bench: build
	$(BIN)/maturin develop --release --extras dev,bench
	$(BIN)/pip install --quiet --editable './conformance[engines]'
	$(BIN)/python benchmarks/run.py $(PAIRS)

# The documentation site. A broken link or reference is an error, and nothing is downloaded while it is built.
docs: build
	$(BIN)/maturin develop --release --extras dev,docs
	$(BIN)/sphinx-build --fail-on-warning --keep-going --quiet -c docs . .cache/site
	@echo 'file://$(CURDIR)/.cache/site/index.html'

demo:
	tools/demo.sh

demo-spark:
	tools/pipeline.sh

clean:
	rm -rf .cache .venv rust/target
