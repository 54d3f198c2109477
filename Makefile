# Everything runs from a clone with only Python 3.11, make and git: the first target that needs it
# makes .venv from the hash-pinned lock. `make help` lists the targets.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check

# Proving keys take long to make; demo, tests and measurements share them.
export SLA_LEDGER_KEY_CACHE ?= $(CURDIR)/var/keys
# What Python compiled is kept: tests start the program several hundred times.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# --- environment -----------------------------------------------------------------------------
# Two stamps, so that an edit of pyproject.toml does not install every dependency again.
# `--only-binary` because a bare machine has no compiler, and because building a source
# distribution would fetch build tools that no hash in the lock covers.
$(VENV)/.deps: requirements.lock
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Python 3.11 or newer is needed; name one with: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	test -x $(BIN)/python || "$(PYTHON)" -m venv $(VENV)
	$(PIP) install --quiet --require-hashes --only-binary :all: -r requirements.lock
	@touch $@

$(VENV)/.project: $(VENV)/.deps pyproject.toml
	$(PIP) install --quiet --no-deps --no-build-isolation -e .
	@touch $@

.PHONY: venv .venv
venv .venv: $(VENV)/.project ## Make .venv from requirements.lock and install the project into it

.PHONY: lock
lock: $(VENV)/.project ## Resolve pyproject.toml into requirements.lock again (needs a package index)
	$(BIN)/python scripts/lock.py

# --- what a user runs ------------------------------------------------------------------------
.PHONY: demo
demo: $(VENV)/.project ## The main job on the sample in examples/; writes var/demo/. SERVE=1 then serves its dashboard
	$(BIN)/sla-ledger demo --out var/demo
	$(if $(SERVE),@exec $(BIN)/sla-ledger up --data var/demo --port $(or $(PORT),8000))

# --- tests -----------------------------------------------------------------------------------
.PHONY: test
test: $(VENV)/.project ## All tests, shared out among one process more than there are cores
	$(BIN)/python -m pytest -n auto

.PHONY: test-fast
test-fast: $(VENV)/.project ## The inner loop, under a minute: unit tests and scenarios, ten examples of a property, no server, nothing long or slow
	$(BIN)/python -m pytest -n auto -m "not slow and not long" -k "not postgres" --hypothesis-profile=fast tests/unit tests/test_scenarios.py

.PHONY: chaos
chaos: $(VENV)/.project ## Settle while everything is killed that can be (SEED=N repeats a run); about three minutes
	$(BIN)/python -m tests.chaos.main $(if $(SEED),--seed $(SEED))

.PHONY: mutate
mutate: $(VENV)/.project ## Change the domain in small ways and print what no test notices; goes on where it was stopped (ARGS=--write: into the table)
	$(BIN)/python -m tests.mutation.main $(ARGS)

.PHONY: compose-check
compose-check: $(VENV)/.project ## Check docker-compose.yml and settle a period with its command lines; about a minute
	$(BIN)/python -m tests.compose.check

# --- checks ----------------------------------------------------------------------------------
.PHONY: check
check: lint exact sizes types imports generated contracts circuits ## All static checks

.PHONY: lint
lint: $(VENV)/.project ## ruff (rules and format), and the lock fits pyproject.toml
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python scripts/lock.py --check

.PHONY: exact
exact: $(VENV)/.project ## No float in ledger/domain
	$(BIN)/python scripts/no_float.py

.PHONY: sizes
sizes: $(VENV)/.project ## No module over 400 lines, no function over 50
	$(BIN)/python scripts/sizes.py

.PHONY: types
types: $(VENV)/.project ## mypy --strict over ledger and api
	$(BIN)/mypy

.PHONY: imports
imports: $(VENV)/.project ## Import contracts of docs/architecture.md
	$(BIN)/lint-imports

.PHONY: generated
generated: $(VENV)/.project ## Generated files are those their sources give
	$(BIN)/sla-ledger generate --check
	$(BIN)/python scripts/with_node.py $(BIN)/python contracts/build.py --check

.PHONY: contracts
contracts: $(VENV)/.project ## Nothing new that solhint finds in the contracts
	$(BIN)/python scripts/with_node.py $(BIN)/python contracts/lint.py

.PHONY: circuits
circuits: $(VENV)/.project ## Nothing that circomspect finds in the circuits and circuits/ANALYSIS.md does not explain
	$(BIN)/python scripts/with_node.py $(BIN)/python toolchain/lint.py

.PHONY: slither
slither: $(VENV)/.project ## Nothing that slither finds in the contracts and contracts/ANALYSIS.md does not explain. First run: 120 MB
	$(BIN)/python scripts/with_node.py $(BIN)/python contracts/slither.py

.PHONY: format
format: $(VENV)/.project ## Let ruff mend what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# --- measurement -----------------------------------------------------------------------------
.PHONY: bench-main
bench-main: $(VENV)/.project ## Measure the main job; writes var/bench/main.json
	$(BIN)/python -m tests.bench.main

.PHONY: bench-ledger
bench-ledger: $(VENV)/.project ## Measure the ledger beside eventsourcing; writes var/bench/ledger.json
	$(BIN)/python -m tests.bench.ledger

.PHONY: bench-layers
bench-layers: $(VENV)/.project ## Measure the layers around the ledger; writes var/bench/layers.json
	$(BIN)/python -m tests.bench.layers

.PHONY: bench-settle
bench-settle: $(VENV)/.project ## Measure settling and violations of a month; writes var/bench/settle.json
	$(BIN)/python -m tests.bench.settle

.PHONY: bench-attest
bench-attest: $(VENV)/.project ## Measure proofs, verifiers and gas; writes var/bench/attest.json. Needs npm; makes keys when first run
	$(BIN)/python scripts/with_node.py $(BIN)/python -m tests.bench.attest

# --- housekeeping ----------------------------------------------------------------------------
.PHONY: clean
clean: ## Remove what builds and checks leave; keeps .venv and var/
	rm -rf build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -path ./$(VENV) -prune -o -type d -name __pycache__ -exec rm -rf {} +

.PHONY: distclean
distclean: clean ## Remove .venv and var/ (the demo's data and cached keys), too
	rm -rf $(VENV) var

.PHONY: help
help: ## This list
	@awk -F ':.*## ' '/^[a-z.][a-z. -]*:.*## / { split($$1, name, " "); printf "  make %-13s %s\n", name[1], $$2 }' $(MAKEFILE_LIST)
