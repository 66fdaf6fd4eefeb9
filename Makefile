# One command per task; `make help` prints them.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
RUN_STAMP := $(VENV)/.installed-to-run

.DEFAULT_GOAL := help
.PHONY: help setup demo up test simulation properties chaos bench bench-large bench-rival flame quality understanding model recordings model-rival adapters dialogues natural recall screens docs lint format generate lock clean hostile

help: ## print this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-13s %s\n", $$1, $$2}'

# What the two stamps stand for: all packages, and those that `mnemolog` needs to run.
$(STAMP): requirements-dev.lock pyproject.toml
	@$(call install,dev)
$(RUN_STAMP): requirements.lock pyproject.toml
	@$(call install,run)
INSTALLED := $(if $(wildcard $(STAMP)),$(STAMP),$(RUN_STAMP))

define install
$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Mnemolog needs Python 3.11 or newer: make PYTHON=python3.12 ..."; exit 2; }; \
test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { echo "python3 -m venv failed; on Debian: apt-get install python3-venv"; exit 2; }; \
$(BIN)/python scripts/install.py $(1) && touch $@
endef

setup: $(STAMP) ## create .venv with every locked package

demo: $(INSTALLED) ## the whole stack, a real conversation, the result on the screen
	@$(BIN)/mnemolog demo

up: $(INSTALLED) ## Kafka, Postgres and all stages over ./.mnemolog until Ctrl-C
	@$(BIN)/mnemolog up

test: $(STAMP) ## every test but the long ones; PROCESSES=n side by side, ARGS=...
	@env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest --numprocesses $(or $(PROCESSES),auto) --inline-snapshot disable --durations 10 $(ARGS)

test: missing_tools

# What some tests run besides Python, with the Debian package that brings it.
TOOLS := kcat:kcat promtool:prometheus psql:postgresql-client
missing_tools:
	@for tool in $(TOOLS); do command -v $${tool%%:*} >/dev/null || \
	  echo "$${tool%%:*} is not installed, tests that run it are skipped: apt-get install $${tool##*:}"; done

chaos: $(STAMP) ## every fault of machines many times; nothing may be lost or doubled; 20 ROUNDS write docs/reliability.md
	@MNEMOLOG_CHAOS_PAGE=1 MNEMOLOG_CHAOS_ROUNDS=$${ROUNDS:-20} $(BIN)/python -m pytest tests/chaos -s --timeout=7200

hostile: $(STAMP) ## thousands of hostile records: each ends, nobody else is touched; N=10000
	@MNEMOLOG_HOSTILE_RECORDS=$${N:-10000} $(BIN)/python -m pytest tests/hostile -s --timeout=3600

properties: $(STAMP) ## decisions over N=2000 generated histories; SEED=0, FAULTS=1 for the table of faults found
	@$(BIN)/python -m tests.properties --histories $(or $(N),2000) --seed $(or $(SEED),0) $(if $(FAULTS),--faults) $(ARGS)

simulation: $(STAMP) ## delivery over a simulated broker: SEEDS=2000 FIRST=... ONLY=situation, SEED=... again, FAULTS=1 the table
	@PYTHONHASHSEED=0 $(BIN)/python -W ignore -m tests.simulation --seeds $(or $(SEEDS),2000) --first $(or $(FIRST),0) \
	  $(if $(ONLY),--only $(ONLY)) $(if $(SEED),--seed $(SEED)) $(if $(FAULTS),--faults)

bench: $(STAMP) ## measure, and write docs/performance.md
	@$(BIN)/python -m tests.bench

RIVAL := .venv-rival
RIVAL_STAMP := $(RIVAL)/.installed
$(RIVAL_STAMP): tests/bench/rival/requirements.lock | $(STAMP)
	@test -x $(RIVAL)/bin/python || $(PYTHON) -m venv $(RIVAL)
	@$(BIN)/uv pip sync --quiet --python $(RIVAL)/bin/python --require-hashes --compile-bytecode $<
	@touch $@

bench-rival: $(STAMP) $(RIVAL_STAMP) ## the same with mem0 in one run, for the page of `make bench`; ARGS=--quick
	@$(BIN)/python -m tests.bench.rival $(ARGS)

ADAPTERS := .venv-adapters
ADAPTERS_STAMP := $(ADAPTERS)/.installed
$(ADAPTERS_STAMP): tests/adapters/requirements.lock | $(STAMP)
	@test -x $(ADAPTERS)/bin/python || $(PYTHON) -m venv $(ADAPTERS)
	@$(BIN)/uv pip sync --quiet --python $(ADAPTERS)/bin/python --require-hashes --compile-bytecode $<
	@touch $@

adapters: $(ADAPTERS_STAMP) ## tests of mnemolog/adapters with the real frameworks, in a venv of their own; ARGS=...
	@PYTHONPATH=. $(ADAPTERS)/bin/python -m pytest --confcutdir tests/adapters -o filterwarnings=default tests/adapters $(ARGS)

flame: $(STAMP) ## flame graphs of the stages at work, by py-spy, into docs/images; ARGS=...
	@$(BIN)/python -m tests.bench.flame_graph $(ARGS)

bench-large: $(STAMP) ## rebuild FACTS=1000000 facts, beside COPY of the same rows, and search in so many
	@$(BIN)/python -m tests.bench.rebuild_speed --facts $${FACTS:-1000000}
	@$(BIN)/python -m tests.bench.search_load --facts $${FACTS:-1000000}

quality: $(STAMP) ## decide labelled conflicts; PROVIDER=openai SPLIT=dev|test RECORD=dir REPLAY=dir ARGS=...
	@$(BIN)/python -m tests.quality --provider $(or $(PROVIDER),offline) --split $(or $(SPLIT),all) \
	  $(if $(RECORD),--record $(RECORD)) $(if $(REPLAY),--replay $(REPLAY)) $(ARGS)

understanding: $(STAMP) ## what is understood of labelled dialogues; PROVIDER=, SPLIT=, RECORD=, REPLAY=, ARGS= as for quality
	@$(BIN)/python -m tests.quality.understanding --provider $(or $(PROVIDER),offline) --split $(or $(SPLIT),all) \
	  $(if $(RECORD),--record $(RECORD)) $(if $(REPLAY),--replay $(REPLAY)) $(ARGS)

model: $(STAMP) ## the conversation of the demo with a real language model (1.1 GB, once), into docs/model.md
	@$(BIN)/python -m scripts.model_demo

recordings: $(STAMP) ## ask a real model what tests/quality/replies lacks; SPLIT=dev|test, ARGS="--minutes 30"
	@$(BIN)/python -m scripts.model_recordings $(if $(SPLIT),--split $(SPLIT)) $(ARGS)

model-rival: $(STAMP) $(RIVAL_STAMP) ## the same cases with mem0 on the same model, for docs/model.md
	@$(BIN)/python -m scripts.model_recordings --rival $(ARGS)

dialogues: $(STAMP) ## entities, calls and speakers of recorded dialogues; ARGS=...
	@$(BIN)/python -m tests.quality.recorded $(ARGS)

screens: $(STAMP) ## write docs/screens.md: what commands print at 80 columns
	@$(BIN)/python -m scripts.screens

natural: $(STAMP) ## how much of natural sentences the offline provider keeps, and how truly
	@$(BIN)/python -m tests.quality.natural_sentences

recall: $(STAMP) ## how much of the evidence a search finds, over recorded dialogues; ARGS=--write-docs
	@$(BIN)/python -m tests.recall $(ARGS)

docs: $(STAMP) ## the pages as a site, into .mnemolog/site; a broken link is an error
	@$(BIN)/zensical build --strict

lint: $(STAMP) ## ruff, mypy, import contract, dependencies, generated files, links of the docs
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/deptry .
	@$(BIN)/python scripts/generate.py --check
	@$(BIN)/zensical build --strict

format: $(STAMP) ## format and fix with ruff
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

generate: $(STAMP) ## write JSON Schemas, settings and metrics tables anew
	@$(BIN)/python scripts/generate.py

RESOLVE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
  --no-header --no-annotate
lock: $(STAMP) ## resolve all locks anew from pyproject.toml
	@printf 'hatchling\neditables\n' | $(RESOLVE) --upgrade --extra all pyproject.toml - -o requirements.lock
	@printf 'hatchling\neditables\n' | $(RESOLVE) --upgrade --all-extras --constraint requirements.lock pyproject.toml - -o requirements-dev.lock
	@$(RESOLVE) --upgrade tests/bench/rival/requirements.in -o tests/bench/rival/requirements.lock
	@$(RESOLVE) --upgrade --extra offline pyproject.toml tests/adapters/requirements.in -o tests/adapters/requirements.lock
	@$(BIN)/python scripts/install.py dev
	@$(BIN)/python scripts/generate.py
	@touch $(STAMP)

clean: ## remove what the commands above have made
	rm -rf $(VENV) $(RIVAL) $(ADAPTERS) .mnemolog .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache *.egg-info
	find . -name __pycache__ -prune -exec rm -rf {} +
