# make run [REPO=PATH]                 talk about a repository (default: this one)
# make ask Q="..." [REPO=PATH]         ask one question
# make serve [REPO=PATH]               answer a team in Slack and Discord
# make install | test | lint           set up; run the tests; ruff and mypy
# make bench [SOURCE=PATH]             measure retrieval; with the source of a large project, indexing as well
#
# Each installs what it needs into .venv first. Works with GNU make 3.81 and any POSIX shell.

SHELL := /bin/sh
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
INSTALLED_DEV := $(VENV)/.installed-dev

# Text of the person at the keyboard: taken as it is, `$` and all, and handed on in the environment,
# so that neither make nor the shell ever executes it.
override Q := $(value Q)
override REPO := $(value REPO)
export Q REPO

# Beside this file a .env is ours; elsewhere citebot reads none that it was not told of.
CITEBOT_ENV_FILE ?= $(wildcard .env)
export CITEBOT_ENV_FILE

.PHONY: run serve ask install test lint bench clean

run: $(INSTALLED)
	@exec $(BIN)/python -m bot chat $${REPO:+--repo "$$REPO"}

serve: $(INSTALLED)
	@exec $(BIN)/python -m bot serve $${REPO:+--repo "$$REPO"}

ask: $(INSTALLED)
	@if [ -z "$$Q" ]; then echo 'Usage: make ask Q="where are event retries handled?" [REPO=PATH]' >&2; exit 2; fi
	@exec $(BIN)/python -m bot ask $${REPO:+--repo "$$REPO"} -- "$$Q"

install: $(INSTALLED)
	@echo "citebot is installed: $(BIN)/citebot"

test: $(INSTALLED_DEV)
	$(BIN)/python -m pytest --numprocesses=auto

lint: $(INSTALLED_DEV)
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m mypy

bench: $(INSTALLED_DEV)
	$(BIN)/python -m benchmarks.retrieval
	$(BIN)/python -m benchmarks.agent
	$(if $(SOURCE),$(BIN)/python -m benchmarks.index --source "$(SOURCE)",@echo 'For indexing: make bench SOURCE=FOLDER-OR-TAR.GZ' >&2)

$(INSTALLED): pyproject.toml constraints.txt
	@sh scripts/setup.sh $(VENV) .
	@touch $@

$(INSTALLED_DEV): pyproject.toml constraints.txt
	@sh scripts/setup.sh $(VENV) ".[dev]"
	@touch $(INSTALLED) $@

clean:
	rm -rf $(VENV) build *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
