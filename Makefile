# Everything is built and run inside this folder, in .build and target: see docs/adr/0002-private-server.md.
# Each target can be called on its own; what it needs is made first, and is quick when it is there already.
SHELL := /bin/bash
harness := tests/harness
.DEFAULT_GOAL := help
.PHONY: help setup build install-dev all install install-pgmq package demo demo-stop lint clean
.PHONY: test test-architecture test-licenses test-unit test-isolation test-clients test-docs test-security test-fuzz test-dump
.PHONY: test-package test-upgrade test-prune test-cron test-demo test-model test-reliability test-assertions
.PHONY: test-matrix test-major upgrade-script mutants bench
.NOTPARALLEL:

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 20

setup: ## packages, cargo-pgrx, a private PostgreSQL 15 with PGMQ
	@$(harness)/setup.sh

build: setup ## compile the extension, with debug checks
	@source $(harness)/env.sh && cargo build

install-dev: setup ## compile for release and install into the private PostgreSQL
	@$(harness)/install.sh

all: ## compile for the PostgreSQL server of PG_CONFIG, for `make install` to copy
	@$(harness)/package/from_source.sh build "$$PG_CONFIG"

install: ## compile, and copy into the server of PG_CONFIG=..., PostgreSQL 15 to 18; with sudo where needed
	@$(harness)/package/from_source.sh install "$$PG_CONFIG"

install-pgmq: ## copy PGMQ into the server of PG_CONFIG=..., where it is missing
	@$(harness)/package/from_source.sh install-pgmq "$$PG_CONFIG"

package: setup ## archive, Debian packages and PGXN zip for PGFLOW_POSTGRES=pg15 to pg18, into .build/dist
	@$(harness)/package/release.sh

upgrade-script: ## write the update scripts of sql/ anew from sql/upgrade/
	@for source in sql/upgrade/*.sql; do step=$$(basename $$source .sql) && \
	  $(harness)/upgrade_script.sh $$step >sql/pgflow--$$step.sql || exit 1; done

demo: install-dev ## run a real flow with several workers
	@docs/examples/wordcount/demo.sh

demo-stop: ## stop the demo's server
	@$(harness)/server.sh stop demo

test: setup ## all tests, and one line that sums them up
	@$(harness)/run_all.sh

test-unit: setup ## Rust tests; make test-unit T=word for those with a word in their names
	@$(harness)/unit.sh $(T)

test-model: setup ## ten thousand random cases against the model, half an hour; or those from SEED on, RUNS of them
	@for seed in $(or $(SEED),$$(seq 1000 1000 10000)); do \
	  PGFLOW_MODEL_SEED=$$seed PGFLOW_MODEL_RUNS=$(or $(RUNS),$(if $(SEED),1,1000)) $(harness)/unit.sh seeds_asked_for || exit 1; \
	done

test-architecture: ## rules of the source tree
	@tests/architecture/run.sh

test-licenses: ## licences and sources of all crates, by cargo-deny, which may have to be compiled
	@tests/architecture/licenses.sh

test-isolation: install-dev ## interleavings of concurrent sessions
	@tests/isolation/run.sh

test-clients: install-dev ## the JavaScript client
	@tests/clients/run.sh

test-security: install-dev ## roles, hijacks, row security and memory
	@tests/security/run.sh

test-fuzz: install-dev ## 20,000 hostile calls, two minutes; or those of SEED, CALLS of them
	@PGFLOW_FUZZ_CALLS=$(or $(CALLS),20000) PGFLOW_FUZZ_SEED=$(or $(SEED),1) tests/fuzz/run.sh

test-dump: install-dev ## pg_dump and restore
	@tests/dump/run.sh

test-major: install-dev ## to the PostgreSQL of PGFLOW_POSTGRES=pg17 or pg18 from two versions before, by pg_upgrade and by a dump
	@tests/dump/major.sh

test-upgrade: install-dev ## adoption of 0.16.0, the upgrade from it, and upgrades that must fail
	@tests/upgrade/run.sh

test-prune: install-dev ## the optional pruning function
	@tests/prune/run.sh

test-cron: install-dev ## the cron functions with the real pg_cron
	@tests/cron/run.sh

test-docs: install-dev ## the documentation: SQL and its output, links, names, workers
	@tests/docs/run.sh

test-demo: install-dev ## the demo, and the statements that it proposes
	@tests/demo/run.sh

test-package: setup ## what make package makes, and make install; PART=refusals, archive, messages, pgxn, dockerfiles or debian
	@tests/package/run.sh $(PART)

test-reliability: install-dev ## load and faults for long, 25 minutes; PART=races, pairs, crashes, failover, pgbouncer, workers or queues
	@tests/reliability/suite.sh long $(PART)

test-assertions: ## on a PostgreSQL that is built with its assertions, half an hour
	@PGFLOW_POSTGRES=pg15-cassert $(harness)/setup.sh
	@PGFLOW_POSTGRES=pg15-cassert $(harness)/run_all.sh unit isolation clients reliability

test-matrix: ## every suite on PostgreSQL 15 to 18 with PGMQ 1.11.0 and 1.13.0, two hours; or PAIRS="17/1.13.0 ..."
	@$(harness)/matrix.sh $(PAIRS)

bench: install-dev ## pgflow against PL/pgSQL pgflow and the floor, half an hour; PART=cycle, growth, conditions, memory, first, or scaling
	@benches/run.sh $(PART)

mutants: setup ## breaks the engine on purpose, mistake by mistake: each must make a test fail; an hour
	@tests/mutants/run.sh

lint: setup ## formatting, and clippy with warnings denied
	@source $(harness)/env.sh && cargo fmt --check
	@source $(harness)/env.sh && cargo clippy -- -D warnings
	@source $(harness)/env.sh && cargo clippy --all-targets --features pg_test -- -D warnings

clean: ## stop every server and delete all that was built
	@$(harness)/clean.sh
