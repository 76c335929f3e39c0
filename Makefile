# make setup   .venv with the project (editable, all extras) and a Java runtime; quick when nothing changed
# make setup CONSTRAINTS=   the same with the newest versions that setup.cfg allows, where those of constraints.txt do not fit
# make lock    constraints.txt anew after a change of setup.cfg; UPGRADE=--upgrade takes newer versions
# make demo    name server and broker in one process, real messages through the client, a Spark report on the files
# make test    the whole test suite, side by side: pytest; trial and the client's tests on the newest Python; those with Apache's programs;
#              with plain Python, MQ_COMPILED=on: with rocketmq-twisted-speed
# make speed   rocketmq-twisted-speed into .venv, the compiled forms of batches; needs a C compiler and Python's headers
# make check   format, lint, types, layers, docs, known vulnerabilities of dependencies where an index is reached
# make docs    the pages in docs/, as HTML in build/docs
# make crash   thousands of kills and power cuts, every byte of the damage matrix; MQ_CRASH_ROUNDS says how many kills
# make fuzz    a million generated frames, also of gRPC clients (HTTP/2, protobuf), expressions, files, command lines; MQ_FUZZ_FRAMES, _SEED, _ROUND: how many, which, from where
# make record-apache   the recorded answers of Apache's programs anew (interop/captures/answers)
# make soak    20 minutes of strangers and a full disk beside an honest load of Apache's client; SOAK_SECONDS says how many
# make siege   20 minutes of all hostile cases beside honest sends, transactions, delayed messages, pops and a slave (SIEGE_SECONDS)
# make soak-client   20 minutes of load through each face of the client beside restarts (SOAK_SECONDS), 1,000 lives of each
# make soak-grpc   20 minutes of Apache's gRPC clients at a broker's own port and at a proxy (SOAK_SECONDS)
# make week    a week of operations in an hour, with real processes: retention, rotation, renewals, restarts, backup and restore,
#              a broker added and one removed, upgrades and back; MINUTES=60 says how long
# make simulate-rules  10^5 histories of ordered broker groups made of their rules alone; MQ_HISTORIES says how many
# make simulate   N=1000 simulated clusters with faults, from seed FIRST=1 on; SEED=7 shows the history of one (LOG=INFO: all);
#                 ACCOUNT=FILE writes there which lines of the services no seed reached
# make simulate-grpc   N=100 simulated worlds of gRPC clients with faults, from seed FIRST=1 on; SEED=7 shows the history of one
# make simulate-mutants   which seed finds each fault that is put in on purpose (tests.simulation.run_mutants)
# make mutate   N=1000 small faults in the sources, from SEED=1: how many do the tests notice? Goes on where it ended; AGAIN=1 survivors anew
# make order-cases  ordered groups under failures with sessions of 6 s, and without ZooKeeper for a minute
# make spark-proof   Spark beside kill -9 of driver, worker, broker (KILLS=200) of writing tasks (TASK_KILLS=50), and of exports (EXPORT_KILLS=200); latency, rates, reads, scale, exports
# make bench   the project's own benchmarks
# make release   a dry run: sdists and wheels in dist/, checked by twine, installed, the examples run with them; uploads nothing
# make cost    the worst turn of each request and port in its most adverse shapes: an hour
# make large-tables   a broker with 500,000 groups and 100 topics of 65,535 queues: start, answers, worst turns
# make suspended   slave, name server and master stand still for 30 s each under load: nothing acknowledged is lost
# make count   instructions of the hot paths of broker and client (valgrind), beside those in docs/measurements; MQ_COMPILED=on: compiled
#
# Which runner takes which test: a TestCase of trial below tests/twisted_mq (virtual clock or real reactor) runs under
# trial, everything else under pytest. tests/conftest.py marks those TestCases "trial"; `pytest` without -m runs all.

# Bytecode is kept, as that of an installed package is: a broker starts in 0.3 s less. Tools that change sources keep none.
unexport PYTHONDONTWRITEBYTECODE

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

BASE_PYTHON ?= python3
VENV ?= .venv
PYTHON := $(VENV)/bin/python
INSTALLED := $(VENV)/.installed
CONSTRAINTS ?= constraints.txt
PIP := $(PYTHON) -m pip --quiet --disable-pip-version-check
EXTRAS = $$($(BASE_PYTHON) -c "import configparser as c; p = c.ConfigParser(); p.read('setup.cfg'); print(','.join(p['options.extras_require']))")

.PHONY: help speed cost large-tables suspended siege setup java lock demo test record-apache check crash fuzz soak soak-client soak-grpc spark-proof order-cases bench count docs week simulate simulate-grpc simulate-mutants simulate-rules mutate release

help:
	@sed -n 's/^# \(make .*\)/\1/p' Makefile

setup: $(INSTALLED) java

$(INSTALLED): setup.cfg pyproject.toml $(CONSTRAINTS)
	@$(BASE_PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Python 3.11 or newer is needed: make setup BASE_PYTHON=python3.11" >&2; exit 1; }
	@$(PYTHON) -m pip --version > /dev/null 2>&1 || $(BASE_PYTHON) -m venv --clear $(VENV) \
	  || { echo "$(BASE_PYTHON) -m venv failed: on Debian, apt-get install python3-venv" >&2; exit 1; }
	@echo "installing the project with all extras into $(VENV)"
ifeq ($(CONSTRAINTS),)
	@$(PIP) install --editable ".[$(EXTRAS)]"
else
	@$(PIP) install --require-hashes --requirement $(CONSTRAINTS)
	@$(PIP) install --no-deps --no-build-isolation --editable .
endif
	@touch $@

lock:
	@$(PIP) install uv
	@$(PYTHON) -m uv pip compile --quiet --universal --python-version 3.11 --all-extras --generate-hashes \
	  --custom-compile-command "make lock" --no-annotate $(UPGRADE) --output-file constraints.txt setup.cfg

# Spark needs a Java runtime
java:
	@if command -v java > /dev/null; then exit 0; fi; \
	as_root=; if [ "$$(id -u)" != 0 ]; then as_root="sudo -n"; fi; \
	if command -v apt-get > /dev/null && $$as_root true 2> /dev/null; then \
	  echo "installing a Java runtime"; \
	  $$as_root apt-get update -qq; \
	  install="$$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends"; \
	  $$install openjdk-17-jre-headless > /dev/null || $$install default-jre-headless > /dev/null; \
	else \
	  echo "Java is missing, Spark and the tests against Apache's servers need it:" \
	    "install a Java 17 runtime (Debian: apt-get install openjdk-17-jre-headless), then run make again" >&2; \
	  exit 1; \
	fi

demo: setup
	@$(VENV)/bin/mq demo

speed: $(INSTALLED)
	@header="$$($(PYTHON) -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h"; \
	if command -v cc > /dev/null && test -f "$$header"; then \
	  $(PIP) install --no-deps --no-build-isolation ./speed; \
	else \
	  echo "rocketmq-twisted-speed is not built, its tests are skipped: it needs cc and $$header"; \
	fi

test: export MQ_COMPILED ?= off
test: setup speed
	$(PYTHON) -m interop.peers.setup
	$(PYTHON) -m tests.side_by_side

record-apache: setup
	$(PYTHON) -m interop.peers.setup
	MQ_RECORD_APACHE=$$(date +%F) $(PYTHON) -m pytest -k "[apache" interop/test_bad_requests.py interop/test_settings.py \
	  interop/test_access.py interop/test_mqadmin_all.py

check: $(INSTALLED) docs
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m ruff check .
	$(PYTHON) -m mypy
	$(PYTHON) -m tests.docs.types
	$(PYTHON) -m pytest tests/test_layers.py tests/test_layouts_home.py
	$(PYTHON) -m tests.packaging.audit

docs: $(INSTALLED)
	$(PYTHON) -m sphinx -W --keep-going -q -b html docs build/docs

crash: export MQ_CRASH_ROUNDS ?= 5000
crash: setup
	$(PYTHON) -m pytest tests/crash

fuzz: export MQ_FUZZ_FRAMES ?= 1000000
fuzz: setup
	$(PYTHON) -m pytest -s tests/fuzz

soak: setup
	$(PYTHON) -m interop.peers.setup
	$(PYTHON) -m tests.soak.run

siege: setup
	$(PYTHON) -m tests.siege.run

soak-client: export MQ_LIFE_ROUNDS ?= 1000
soak-client: setup
	$(PYTHON) -m pytest -k starts_and_stops tests/twisted_mq/aio tests/twisted_mq/blocking tests/twisted_mq/client/test_life.py
	$(PYTHON) -m tests.soak.clients.run

soak-grpc: setup
	$(PYTHON) -m interop.peers.setup
	$(PYTHON) -m tests.soak.grpc_clients

KILLS ?= 200
TASK_KILLS ?= 50
EXPORT_KILLS ?= 200
WHOLE_EXPORT_KILLS ?= 5
spark-proof: setup
	$(PYTHON) -m interop.peers.setup
	$(PYTHON) -m tests.spark_proof.kills --kills $(KILLS)
	$(PYTHON) -m tests.spark_proof.kills --kills $(KILLS) --backfill
	$(PYTHON) -m tests.spark_proof.sink --kills $(TASK_KILLS)
	$(PYTHON) -m tests.spark_proof.export_points --kills $(EXPORT_KILLS)
	for format in parquet delta iceberg; do $(PYTHON) -m tests.spark_proof.export_kills --kills $(WHOLE_EXPORT_KILLS) --format $$format || exit 1; done
	$(PYTHON) -m tests.spark_proof.latency
	$(PYTHON) -m tests.spark_proof.pulls
	$(PYTHON) -m tests.spark_proof.reads
	$(PYTHON) -m tests.spark_proof.scale
	$(PYTHON) -m tests.spark_proof.lake

MINUTES ?= 60

week: setup
	$(PYTHON) -m tests.week.run --minutes $(MINUTES)

simulate-rules: export MQ_HISTORIES ?= 100000
simulate-rules: setup
	$(PYTHON) -m pytest tests/twisted_mq/ordering/test_rules_histories.py tests/twisted_mq/ordering/test_terms_exhaustively.py

N ?= 1000
FIRST ?= 1
LOG ?= ERROR
simulate: $(INSTALLED)
	@$(PYTHON) -m tests.simulation.run $(if $(SEED),--seed $(SEED) --log $(LOG),--count $(N) --first $(FIRST) $(if $(ACCOUNT),--account $(ACCOUNT)))

simulate-grpc: setup
	$(PYTHON) -m tests.simulation.grpc_world $(if $(SEED),--seed $(SEED),--first $(or $(FIRST),1) --count $(or $(N),100))

simulate-mutants: $(INSTALLED)
	@$(PYTHON) -m tests.simulation.run_mutants

mutate: $(INSTALLED)
	@$(PYTHON) -m tests.mutation.run --count $(N) --seed $(or $(SEED),1) $(if $(SECONDS_EACH),--seconds $(SECONDS_EACH)) $(if $(PROCESSES),--processes $(PROCESSES)) $(if $(AGAIN),--again)

order-cases: export MQ_ORDER_LONG = 1
order-cases: setup
	$(PYTHON) -m interop.peers.setup
	$(PYTHON) -m pytest interop/test_ordered_groups.py interop/test_ordered_java.py interop/test_frozen_clocks.py

bench: setup
	@for file in tests/bench/bench_*.py; do \
	  echo "== $$file"; \
	  $(PYTHON) -m "$$(basename $$file .py | sed 's/^/tests.bench./')"; \
	done

cost: $(INSTALLED)
	@$(PYTHON) -m tests.cost.run

large-tables: $(INSTALLED)
	@$(PYTHON) -m tests.cost.large_tables

suspended: setup
	$(PYTHON) -m tests.crash.suspended

count: $(INSTALLED)
	@$(PYTHON) -m tests.bench.count

release: $(INSTALLED)
	rm -rf dist
	$(PYTHON) -m build --no-isolation --outdir dist
	$(PYTHON) -m build --no-isolation --outdir dist speed
	$(PYTHON) -m twine check --strict dist/*
	MQ_WHEEL=$$(ls $(CURDIR)/dist/rocketmq_twisted-*.whl) MQ_SPEED_WHEEL=$$(ls $(CURDIR)/dist/rocketmq_twisted_speed-*.whl) \
	  $(PYTHON) -m pytest tests/packaging/test_wheel.py tests/packaging/test_speed.py tests/packaging/test_examples.py
