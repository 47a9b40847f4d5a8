# make run [REPO=PATH]                 talk about a repository (default: this one)
# make ask Q="..." [REPO=PATH]         ask one question
# make demo [REPO=PATH]                try it in a chat workspace in the browser, without an account
# make serve [REPO=PATH]               answer a team in Slack and Discord
# make help                            list these targets
# make install                         set up .venv
# make test                            run the tests, in about six minutes
# make test-fast                       run the quick tests, in less than a minute
# make test-all                        run all tests, with kills at every step, outages, a browser and sandbox escapes
# make lint                            run ruff and mypy
# make bench [SOURCE=PATH]             measure retrieval, and indexing if SOURCE is a large project
# make fuzz [SECONDS=600]              feed random text to the parsers
# make audit                           check the dependencies for known vulnerabilities
# make pins                            pin the packages of the container
# make lock                            pin the packages of `make install`, with uv
# make sbom                            list the packages of the container (SBOM)
# make pictures                        make the pictures of the README, with Chromium
# make clean                           remove .venv and build results
#
# Each target first installs its dependencies into .venv. Works with GNU make 3.81 and any POSIX shell.

SHELL := /bin/sh
# This folder, empty if it is the current one: `make -f` elsewhere must read nothing from there.
HERE := $(filter-out ./,$(dir $(lastword $(MAKEFILE_LIST))))
VENV := $(HERE).venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
INSTALLED_DEV := $(VENV)/.installed-dev
INSTALLED_AUDIT := $(VENV)/.installed-audit

# Typed text is passed on verbatim in the environment, `$` included, so neither make nor the shell executes it.
override Q := $(value Q)
override REPO := $(value REPO)
export Q REPO
override SECONDS := $(if $(value SECONDS),$(value SECONDS),600)
export FUZZ_SECONDS := $(SECONDS)

# Trust a .env and a citebot.toml beside this file; elsewhere, citebot trusts none that nobody named.
CITEBOT_ENV_FILE ?= $(wildcard $(HERE).env)
export CITEBOT_ENV_FILE
ifneq ($(wildcard $(HERE)citebot.toml),)
CITEBOT_CONFIG ?= $(abspath $(HERE)citebot.toml)
export CITEBOT_CONFIG
endif

.PHONY: run serve demo ask help install test test-fast test-all lint bench audit pins lock sbom pictures fuzz clean

run: $(INSTALLED)
	@exec $(BIN)/python -P -m bot chat $${REPO:+--repo "$$REPO"}

serve: $(INSTALLED)
	@exec $(BIN)/python -P -m bot serve $${REPO:+--repo "$$REPO"}

demo: $(INSTALLED)
	@exec $(BIN)/python -P -m bot demo $${REPO:+--repo "$$REPO"}

ask: $(if $(Q),$(INSTALLED))
	@if [ -z "$$Q" ]; then echo 'Usage: make ask Q="where are event retries handled?" [REPO=PATH]' >&2; exit 2; fi
	@exec $(BIN)/python -P -m bot ask $${REPO:+--repo "$$REPO"} -- "$$Q"

help:
	@sed -n 's/^# \(make .*\)/\1/p' $(HERE)Makefile

install: $(INSTALLED)
	@echo "citebot is installed: $(BIN)/citebot"

test: $(INSTALLED_DEV)
	$(BIN)/python -m pytest --numprocesses=auto --dist=worksteal

test-fast: $(INSTALLED_DEV)
	$(BIN)/python -m pytest --numprocesses=auto --dist=worksteal --fast

test-all: $(INSTALLED_DEV)
	$(BIN)/python -m pytest --numprocesses=auto --dist=worksteal --all

lint: $(INSTALLED_DEV)
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m mypy

bench: $(INSTALLED_DEV)
	$(BIN)/python -m benchmarks.retrieval
	$(BIN)/python -m benchmarks.agent
	$(if $(SOURCE),$(BIN)/python -m benchmarks.index --source "$(SOURCE)",@echo 'For indexing: make bench SOURCE=FOLDER-OR-TAR.GZ' >&2)

# Round after round, each with other texts, until the time is over or one is found that breaks a promise.
fuzz: $(INSTALLED_DEV)
	@case "$$FUZZ_SECONDS" in *[!0-9]*) echo 'Usage: make fuzz [SECONDS=600]' >&2; exit 2;; esac; \
	end=$$(($$(date +%s) + $$FUZZ_SECONDS)) && while [ "$$(date +%s)" -lt "$$end" ]; do \
		CITEBOT_FUZZ_EXAMPLES=2000 $(BIN)/python -m pytest --numprocesses=auto --timeout=3600 --all tests/fuzz || exit 1; \
	done

audit: $(INSTALLED_AUDIT)
	$(BIN)/python -m pip_audit --strict --require-hashes --disable-pip --requirement requirements/container.txt
	$(BIN)/python -m pip_audit --strict --require-hashes --disable-pip --requirement requirements/build.txt
	$(BIN)/python -m pip_audit --strict --require-hashes --disable-pip --requirement requirements/cluster.txt

pins sbom: $(INSTALLED_AUDIT)
	$(BIN)/python scripts/pin_container.py $@

# Needs uv: https://docs.astral.sh/uv/
lock:
	@uv pip compile --quiet --universal --python-version 3.11 --override requirements/unused.txt \
		--constraint constraints.txt --no-emit-index-url --no-annotate --no-header pyproject.toml > requirements/install.new
	@{ echo '# What `make install` installs, for Linux and macOS and Python 3.11 to 3.13: `make lock` writes this file.'; \
		grep -v "'never'\|== 'emscripten'" requirements/install.new; } > requirements/install.txt
	@rm requirements/install.new

pictures: $(INSTALLED_DEV)
	$(BIN)/python -m scripts.make_pictures

$(INSTALLED): $(HERE)pyproject.toml $(HERE)constraints.txt $(HERE)requirements/install.txt
	@$(if $(HERE),cd $(HERE) && )sh scripts/setup.sh .venv .
	@touch $@

$(INSTALLED_DEV): $(HERE)pyproject.toml $(HERE)constraints.txt
	@$(if $(HERE),cd $(HERE) && )sh scripts/setup.sh .venv ".[dev]"
	@touch $(INSTALLED) $@

$(INSTALLED_AUDIT): $(HERE)pyproject.toml $(HERE)constraints.txt
	@$(if $(HERE),cd $(HERE) && )sh scripts/setup.sh .venv ".[audit]"
	@touch $(INSTALLED) $@

clean:
	rm -rf $(VENV) build *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
