# `make demo` serves the memo example; `make test` runs every test. Both install what is missing.

CARGO ?= cargo
CLIENTS = crates/kirin-memcache/tests/install_clients.sh

SUITES = lint test-perl test-memo test-rust test-sockets test-browser
.PHONY: demo build test $(SUITES) bench bench-packages score deb docs fuzz clean

demo: ## Build and serve examples/memo on http://127.0.0.1:8080/
	scripts/install-packages demo
	scripts/build-ring
	$(CARGO) build --release -p kirin
	cd examples/memo && perl seed.pl
	@echo
	@echo "    memo: http://127.0.0.1:8080/   (sign in as demo, password demo; Ctrl-C ends it)"
	@echo
	target/release/kirin serve --config examples/memo/kirin.toml

build:
	scripts/build-ring
	$(CARGO) build -p kirin

test: ## Everything that can be wrong; a suite that fails does not keep the others from running
	scripts/install-packages test
	scripts/run-suites $(SUITES)

lint:
	$(CARGO) fmt --all -- --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	$(CARGO) clippy --workspace --exclude kirin-tests --exclude kirin-doubling --lib --bins -- \
	    -D warnings -D clippy::unwrap_used -D clippy::expect_used -D clippy::panic
	python3 -B scripts/deny
	scripts/tidy-perl --check
	python3 -B -m unittest discover -q -s scripts/tests
	python3 -B scripts/circles.py --most 6
	python3 -B scripts/comment-lint

test-rust: build
	$(CLIENTS)
	tests/install_h2spec.sh
	tests/install_otelcol.sh
	tests/install_pebble.sh
	$(CARGO) test --workspace --no-fail-fast
	$(CARGO) test -p kirin-ring --features loom --lib

# What concerns applications once more, without the ring.
SOCKET_TESTS = failures lifecycle plack_suite responses app_background app_files apps \
    graceful_stop plack preload psgi_extensions real_software restart_under_load shares \
    slow_clients upgrade worker_limits

test-sockets: build ## Applications over sockets, as without the compiled part of the adapter
	KIRIN_RING=0 $(CARGO) test --workspace --no-fail-fast $(addprefix --test ,$(SOCKET_TESTS))

test-perl: build
	cd adapters/perl && KIRIN_BINARY=$(CURDIR)/target/debug/kirin prove -lr t
	cd adapters/perl && KIRIN_RING=0 KIRIN_BINARY=$(CURDIR)/target/debug/kirin prove -lr t
	cd adapters/ring && prove t

test-memo:
	cd examples/memo && prove -lr t

test-browser: build ## The memo example through Kirin, in a headless Chromium
	scripts/browser-test

bench: bench-packages ## Comparisons with nginx, h2o, memcached, Starlet, …; takes about half an hour
	$(CARGO) build --release -p kirin -p kirin-floor
	bench/compare.py all

score: bench-packages ## A contest on the memo example: nginx + Starman + memcached against Kirin; takes four minutes
	$(CARGO) build --release -p kirin -p kirin-score
	bench/contest.py

bench-packages:
	scripts/install-packages bench
	scripts/build-ring

deb: ## A Debian package in target/debian
	scripts/install-packages demo
	scripts/build-ring
	$(CARGO) build --release -p kirin
	packaging/build-deb

docs: ## What is generated
	$(CARGO) run -q -p kirin -- config-reference > docs/configuration.md

clean:
	$(CARGO) clean

fuzz: ## Each fuzz target for a minute; needs a nightly toolchain and cargo-fuzz
	cd fuzz && for target in $$(cargo +nightly fuzz list); do \
	    cargo +nightly fuzz run $$target -- -max_total_time=60 -max_len=4096 || exit 1; done
