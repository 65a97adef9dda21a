# `make demo` serves the memo example; `make test` runs every test. Both install what is missing.

CARGO ?= cargo
.PHONY: demo build quick test test-long chaos prepare lint bench bench-packages score score-machines deb release perl-dist python-dist ruby-dist docs site fuzz clean

# What `make demo` serves: perl, python or ruby (the memo example), or a folder of examples/.
APP = perl

demo: ## Build and serve the memo example on http://127.0.0.1:8080/; APP=python or ruby: the one in this language; APP=NAME: another example
	@CARGO=$(CARGO) scripts/demo "$(APP)"

build:
	scripts/build-ring
	scripts/build-python-ring
	scripts/build-ruby-ring
	$(CARGO) build -p kirin

quick: ## A first look: format, clippy, unit tests of what has changed, a smoke of each place
	scripts/build-ring
	scripts/build-python-ring
	scripts/build-ruby-ring
	scripts/run-tests --changed check units smoke

test: prepare ## Everything that can be wrong, within minutes
	scripts/run-tests check lint units programs sockets perl python ruby browser faults tutorial

test-long: prepare ## What takes too long for each change: packages, applications, guides, examples, random kills, all orders of threads, fuzzing
	scripts/install-packages test-long
	scripts/run-tests long docs

chaos: prepare ## A thousand plans of faults; a million requests under 200 reloads and under 50 upgrades, and machines that share items; ends with tables
	scripts/faults --build --seeds 1-1000
	$(CARGO) build --release -p kirin
	KIRIN_CHAOS=long KIRIN_BINARY=$(CURDIR)/target/release/kirin \
		$(CARGO) test -q -p kirin --test operating chaos::chaos -- --nocapture --test-threads=1

lint: ## The checks that start no program
	scripts/run-tests check lint

prepare:
	scripts/install-packages test
	scripts/install-tools
	scripts/build-ring
	scripts/build-python-ring
	scripts/build-ruby-ring

bench: bench-packages ## Comparisons with nginx, h2o, memcached, Starlet, …; takes about half an hour
	$(CARGO) build --release -p kirin -p kirin-floor
	bench/compare.py all

score: bench-packages ## A contest on the memo example: nginx + Starman + memcached against Kirin; takes four minutes
	$(CARGO) build --release -p kirin -p kirin-score
	bench/contest.py

score-machines: bench-packages ## The same visitors on three machines behind a balancer, which are killed and upgraded; ten minutes
	$(CARGO) build --release -p kirin -p kirin-score
	bench/contest_machines.py

bench-packages:
	scripts/install-packages bench
	scripts/build-ring
	scripts/build-python-ring
	scripts/build-ruby-ring

deb: ## A Debian package in target/debian, with a program that is optimised by training; twelve minutes
	scripts/install-packages deb
	scripts/build-ring
	scripts/build-python-ring
	scripts/build-ruby-ring
	packaging/build-optimised
	packaging/build-deb --program target/optimised/kirin

release: ## Everything of a release in target/dist: packages, archive, bill of materials, checksums; fifteen minutes
	scripts/install-packages deb
	packaging/build-optimised
	packaging/build-release

perl-dist: ## The Perl adapter as CPAN wants it, in target/dist/perl
	scripts/perl-dist

python-dist: ## The Python adapter as a source distribution and a wheel, in target/dist/python
	scripts/python-dist

ruby-dist: ## The Ruby adapter as a gem, in target/dist/ruby
	scripts/ruby-dist

site: ## The documentation as a web site in target/site
	scripts/site

docs: ## What is generated
	$(CARGO) run -q -p kirin -- config-reference > docs/configuration.md
	KIRIN_WRITE_DOCS=1 $(CARGO) test -q -p kirin-observe --lib the_documentation_lists_each_metric
	KIRIN_WRITE_DOCS=1 $(CARGO) test -q -p kirin-config --lib docs_reload_md

clean:
	$(CARGO) clean

fuzz: ## Each fuzz target for a minute
	scripts/fuzz
