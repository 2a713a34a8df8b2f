# Developer commands. Most targets first run scripts/setup.sh, which installs missing tools.

SHELL := /bin/bash
TARGET := $(or $(CARGO_TARGET_DIR),target)
TOOLS := .centile/tools
# Built once per version and kept until `make clean`.
SQLX_VERSION := 0.9.0
SQLX := $(TOOLS)/sqlx-cli-$(SQLX_VERSION)/bin/cargo-sqlx
DENY_VERSION := 0.20.2
DENY := $(TOOLS)/cargo-deny-$(DENY_VERSION)/bin/cargo-deny
CYCLONEDX_VERSION := 0.5.9
CYCLONEDX := $(TOOLS)/cargo-cyclonedx-$(CYCLONEDX_VERSION)/bin/cargo-cyclonedx
# Duration of `make fuzz` per target, in seconds.
FUZZ_SECONDS := 600
# Selects tests: make test TESTARGS='--test it http::'
TESTARGS := --tests

.DEFAULT_GOAL := help
.PHONY: help setup run test kafka-test cluster-test cluster-bench check advisories clients dist bench bench-full bench-computation torture fuzz slow screenshots fmt schema prepare clean

help: ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | while IFS=$$'\t' read -r name text; do printf '  make %-17s %s\n' "$$name" "$$text"; done

setup: ## Install PostgreSQL, Redis and a C compiler if missing; starts no service
	@scripts/setup.sh

run: setup ## Build and run the demo with its own PostgreSQL and Redis; Ctrl-C stops it
	cargo build --release
	@exec $(TARGET)/release/centile demo

# Many tests mostly wait, so run two tests per core.
test: export RUST_TEST_THREADS ?= $(shell echo $$(($$(nproc) * 2)))
# Servers of a test process stop shortly after it. Wait until they have removed their folders.
test: setup ## Run all tests against private servers
	@scripts/setup.sh test
	@mkdir -p $(TARGET); status=0; set -o pipefail; \
	cargo test $(TESTARGS) 2>&1 | tee $(TARGET)/test.log || status=$$?; \
	for _ in {1..100}; do compgen -G '.centile/test-*' >/dev/null || break; sleep 0.1; done; \
	[ $$status = 0 ] || { echo 'The reasons, from $(TARGET)/test.log:'; grep -A3 'panicked at' $(TARGET)/test.log; }; \
	exit $$status

kafka-test: setup ## Lint and test the feature kafka, which is off by default; 15 minutes
	@scripts/setup.sh kafka
	cargo clippy --features kafka --all-targets -- -D warnings
	@$(MAKE) --no-print-directory test TESTARGS='--features kafka --lib --test it kafka'

CLUSTER_TESTS := cluster:: http::concurrency::answers_are_exact http::concurrency::an_id http::export http::property \
	real_data scoring::kill::a_killed_service
cluster-test: setup ## Test a cluster; CITUS=FOLDER has the source of Citus, or a PostgreSQL with Citus; 25 minutes
	@scripts/setup.sh test
	@if [ -z "$(CITUS)" ]; then echo 'cluster-test: skipped, because CITUS names no folder: see CONTRIBUTING.md'; exit; fi; \
	programs=$$(scripts/citus.sh "$(CITUS)") && \
	PATH=$$programs:$$PATH CENTILE_TEST_CLUSTER=1 RUST_TEST_THREADS=1 cargo test --test it -- --include-ignored $(CLUSTER_TESTS)

cluster-bench: setup ## Compare a cluster with a single server, with Citus as for cluster-test; 5 minutes
	@scripts/setup.sh bench
	@programs=$$(scripts/citus.sh "$(CITUS)") && PATH=$$programs:$$PATH cargo bench --bench cluster

check: setup $(DENY) ## Check format, lints, and dependencies (licences, sources, advisories)
	cargo fmt --check
	cargo fmt --check --manifest-path tests/fuzz/Cargo.toml
	$(DENY) --locked check --hide-inclusion-graph licenses bans sources
	@$(MAKE) --no-print-directory advisories
	cargo clippy --all-targets --test torture -- -D warnings

# The advisory database is a separate repository. If it cannot be fetched, `make check` continues
# without it.
advisories: $(DENY) ## Check dependencies for known vulnerabilities, if the advisory database is reachable
	@if $(DENY) fetch db; then $(DENY) --locked --offline check advisories; \
	else echo 'advisories not checked: cannot fetch the advisory database'; fi

clients: ## Generate the clients in clients/ from docs/openapi.json
	@scripts/setup.sh test

dist: setup clients $(CYCLONEDX) ## Build and pack a release for this machine: target/dist/centile-VERSION-ARCH-linux.tar.gz
	cargo build --release --locked --bin centile
	@PATH="$(CURDIR)/$(dir $(CYCLONEDX)):$$PATH" scripts/dist.sh

bench: setup ## Compare Centile with plain SQL, bucket tables and Redis: 1 M players, 30 minutes
	@scripts/setup.sh bench
	cargo bench --bench compare -- --players 1000000 --seconds 3 --mix-seconds 60 --out $(TARGET)/compare

bench-full: setup ## Run the same comparison with 10 M players and a 5-minute mix; takes hours
	@scripts/setup.sh bench
	cargo bench --bench compare -- --players 10000000 --seconds 10 --mix-seconds 300 --mix-rounds 3 --stale-seconds 240 \
		--out $(TARGET)/compare-full

bench-computation: setup ## Time code that needs no server: keys, batches, bodies; 1 minute; compares with the last run
	cargo bench --bench computation

# Tests that `make test` leaves out because they take long; each names its reason.
LONG_TESTS := http::instances ranking::index::replay ranking::real_data maintenance::verify::load periods::rolling cli::migrate::serving

# Trials come first: they write target/torture/report.md, and most of them take only minutes.
torture: setup ## Run the long trials and benches: faults, overload, soak, fuzzing, closing, 10 M players; takes hours
	@scripts/setup.sh bench
	@scripts/setup.sh test
	@status=0; cargo test --release --test torture -- --nocapture --test-threads 1 || status=$$?; cat $(TARGET)/torture/report.md; exit $$status
	CENTILE_FULL=1 cargo test --test it
	CENTILE_FULL=1 cargo test --test it -- --ignored $(LONG_TESTS)
	CENTILE_FULL=1 $(MAKE) --no-print-directory kafka-test
	cargo bench --bench close
	cargo bench --bench layout
	cargo bench --bench growth
	cargo bench --bench snapshot
	cargo bench --bench window
	cargo bench --bench combine
	cargo bench --bench export
	cargo bench --bench instances
	cargo bench --bench counts
	cargo bench --bench lanes
	cargo bench --bench replica
	cargo bench --bench stream
	cargo bench --bench submit
	cargo bench --bench settings

fuzz: setup ## Fuzz the parsers of requests and files, 10 minutes each; FUZZ_SECONDS=60 for less
	for target in period key import metadata; do tests/fuzz.sh $$target $(FUZZ_SECONDS) || exit; done

slow: setup ## Open 1,000 slow connections of each kind of slowhttptest; 1 minute
	cargo build --release
	@scripts/slow.sh $(TARGET)/release/centile

screenshots: setup ## Retake the screenshots in docs/img after a change of the pages
	@scripts/setup.sh test
	cargo test --test it -- --ignored http::browser::picture

fmt: ## Format the Rust code
	cargo fmt

schema: setup ## Regenerate sql/schema.sql and sql/README.md after a change of migrations/ or sql/
	UPDATE_SNAPSHOTS=1 cargo test --quiet --test it -- store::generated::the_dump store::contract

# A query that is missing in .sqlx breaks the build, including devdb. The devdb of the last build
# works too, because it reads migrations/ and sql/ at run time.
prepare: setup ## Regenerate .sqlx after a change of queries
	@cargo build --quiet --example devdb 2>/dev/null || test -x $(TARGET)/debug/examples/devdb || \
	{ echo 'examples/devdb.rs does not build: see "Changing a query" in CONTRIBUTING.md'; exit 1; }
	@$(MAKE) --no-print-directory $(SQLX)
	PATH="$(CURDIR)/$(dir $(SQLX)):$$PATH" $(TARGET)/debug/examples/devdb cargo sqlx prepare -- --all-targets

$(SQLX):
	cargo install sqlx-cli --version $(SQLX_VERSION) --locked --no-default-features --features postgres --root $(TOOLS)/sqlx-cli-$(SQLX_VERSION)

$(DENY):
	cargo install cargo-deny --version $(DENY_VERSION) --locked --root $(TOOLS)/cargo-deny-$(DENY_VERSION)

$(CYCLONEDX):
	cargo install cargo-cyclonedx --version $(CYCLONEDX_VERSION) --locked --root $(TOOLS)/cargo-cyclonedx-$(CYCLONEDX_VERSION)

clean: ## Remove build output and the demo's data
	cargo clean
	for link in .centile/*/elsewhere .centile/*/*/elsewhere; do ! test -L "$$link" || rm -rf "$$(readlink "$$link")"; done
	rm -rf .centile clients/typescript/{node_modules,build,readme.ts}
