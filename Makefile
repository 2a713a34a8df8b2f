# Everything a developer runs. Each target first installs what is missing (scripts/setup.sh: quick when nothing is).

SHELL := /bin/bash
TARGET := $(or $(CARGO_TARGET_DIR),target)
TOOLS := .centile/tools
# Built once for each version, and kept until `make clean`.
SQLX_VERSION := 0.9.0
SQLX := $(TOOLS)/sqlx-cli-$(SQLX_VERSION)/bin/cargo-sqlx
DENY_VERSION := 0.20.2
DENY := $(TOOLS)/cargo-deny-$(DENY_VERSION)/bin/cargo-deny
# How long `make fuzz` feeds each reader.
FUZZ_SECONDS := 600
# Which tests: make test TESTARGS='--test it http_'
TESTARGS := --tests

.DEFAULT_GOAL := help
.PHONY: help setup run test check advisories clients bench bench-full bench-computation torture fuzz slow screenshots fmt schema prepare clean

help: ## Shows this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | while IFS=$$'\t' read -r name text; do printf '  make %-17s %s\n' "$$name" "$$text"; done

setup: ## Installs PostgreSQL, Redis and a C compiler where they are missing; starts no service
	@scripts/setup.sh

run: setup ## Builds and runs the demo, with its own PostgreSQL and Redis; Ctrl-C ends it
	cargo build --release
	@exec $(TARGET)/release/centile demo

# Some tests wait more than they compute, so one more runs than there are cores.
test: export RUST_TEST_THREADS ?= $(shell echo $$(($$(nproc) + 1)))
# The servers of a test process end right after it; waiting for their folders leaves nothing behind.
test: setup ## Runs all tests, against servers of their own
	@scripts/setup.sh test
	@status=0; cargo test $(TESTARGS) || status=$$?; \
	for _ in {1..100}; do compgen -G '.centile/test-*' >/dev/null || break; sleep 0.1; done; \
	exit $$status

check: setup $(DENY) ## Checks format, lints, licences and sources of dependencies, and clients/
	cargo fmt --check
	cargo fmt --check --manifest-path tests/fuzz/Cargo.toml
	$(DENY) --locked check --hide-inclusion-graph licenses bans sources
	@$(MAKE) --no-print-directory advisories
	cargo clippy --all-targets --test torture -- -D warnings
	scripts/setup.sh test
	scripts/clients.sh check

# The database of advisories is a repository of its own; where it cannot be fetched the rest is checked all the same.
advisories: $(DENY) ## Looks for known faults in what is built on, where the database of advisories can be reached
	@if $(DENY) fetch db; then $(DENY) --locked --offline check advisories; \
	else echo 'advisories not checked: the database cannot be reached'; fi

clients: setup ## Makes clients/ anew, after a change of docs/openapi.json
	@scripts/setup.sh test
	scripts/clients.sh make

bench: setup ## Compares Centile with plain SQL, bucket tables and Redis: 1 M players, half an hour
	@scripts/setup.sh bench
	cargo bench --bench compare -- --players 1000000 --seconds 3 --mix-seconds 60 --out $(TARGET)/compare

bench-full: setup ## The same comparison with 10 M players and the mix held for 5 minutes; takes hours
	@scripts/setup.sh bench
	cargo bench --bench compare -- --players 10000000 --seconds 10 --mix-seconds 300 --mix-rounds 3 --stale-seconds 240 \
		--out $(TARGET)/compare-full

bench-computation: setup ## Times what needs no server: keys, batches, bodies; a minute, beside the last run
	cargo bench --bench computation

# Trials come first: they have a report (target/torture/report.md), and most of them take minutes.
torture: setup ## Tries and measures what takes hours: faults, overload, a soak, made-up bytes; closing, layouts, ten million players, a held snapshot, settings
	@scripts/setup.sh bench
	@scripts/setup.sh test
	@status=0; cargo test --release --test torture -- --nocapture --test-threads 1 || status=$$?; cat $(TARGET)/torture/report.md; exit $$status
	CENTILE_FULL=1 cargo test --test it
	cargo bench --bench close
	cargo bench --bench layout
	cargo bench --bench growth
	cargo bench --bench snapshot
	cargo bench --bench export
	cargo bench --bench settings

fuzz: setup ## Feeds what reads requests and files with made-up bytes, 10 minutes each; FUZZ_SECONDS=60 for less
	for target in period key signature import; do tests/fuzz.sh $$target $(FUZZ_SECONDS) || exit; done

slow: setup ## Opens a thousand slow connections of each kind that slowhttptest knows; a minute
	cargo build --release
	@scripts/slow.sh $(TARGET)/release/centile

screenshots: setup ## Writes the pictures in docs/img anew, after a change of how pages look
	@scripts/setup.sh test
	cargo test --test it -- --ignored browser::picture

fmt: ## Formats the Rust code
	cargo fmt

schema: setup ## Writes sql/schema.sql anew, after a change of migrations/ or sql/
	UPDATE_SNAPSHOTS=1 cargo test --quiet --test it sql_generated::the_dump

# A query that .sqlx does not hold yet keeps the crate from being built, and with it the tool that would help. The tool of
# the last build does as well: it reads migrations/ and sql/ as they are now.
prepare: setup $(SQLX) ## Writes .sqlx anew, after a change of queries
	cargo build --quiet --example devdb || test -x $(TARGET)/debug/examples/devdb
	PATH="$(CURDIR)/$(dir $(SQLX)):$$PATH" $(TARGET)/debug/examples/devdb cargo sqlx prepare -- --all-targets

$(SQLX):
	cargo install sqlx-cli --version $(SQLX_VERSION) --locked --no-default-features --features postgres --root $(TOOLS)/sqlx-cli-$(SQLX_VERSION)

$(DENY):
	cargo install cargo-deny --version $(DENY_VERSION) --locked --root $(TOOLS)/cargo-deny-$(DENY_VERSION)

clean: ## Removes what was built, and the demo's data
	cargo clean
	for link in .centile/*/elsewhere .centile/*/*/elsewhere; do ! test -L "$$link" || rm -rf "$$(readlink "$$link")"; done
	rm -rf .centile clients/typescript/{node_modules,build,readme.ts}
