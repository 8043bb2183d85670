# Everything a contributor or CI runs. Each target can be stopped at any moment and run again.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# Two processes that spin for work on two cores cost more than they gain.
QUIET_THREADS := OMP_WAIT_POLICY=passive KMP_BLOCKTIME=0

.DEFAULT_GOAL := help
.PHONY: help demo test check format install install-export install-executorch install-analysis install-dev nano-bundle nano-train schemas clean

include android_app/build.mk

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 16

demo: $(VENV)/base.done ## Measure the model that ships with the project on this machine
	$(BIN)/profile --device local --model nano

test: $(VENV)/dev.done android ## Install everything and run the tests, Kotlin's first
	$(QUIET_THREADS) $(BIN)/python -m pytest -n auto

check: $(VENV)/dev.done android-check ## Format, lint, types, import layers and Kotlin's warnings, as CI does
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

format: $(VENV)/dev.done ## Put the code into shape
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

install: $(VENV)/base.done ## Install the product into .venv

install-export: $(VENV)/export.done ## ... with what exporting needs

install-executorch: $(VENV)/executorch.done ## ... with what exporting to and measuring on ExecuTorch needs

install-analysis: $(VENV)/analysis.done ## ... with pandas and Parquet

install-dev: $(VENV)/dev.done ## ... with what the tests need

nano-bundle: $(VENV)/export.done ## Export the shipped nano bundle again
	$(BIN)/python -m scripts.renew_nano_bundle

nano-train: $(VENV)/export.done ## Train nano again from its seed
	$(BIN)/python -m scripts.nano.train all --work build/nano
	$(BIN)/python -m scripts.nano.score --work build/nano

schemas: $(VENV)/dev.done ## Write the JSON Schemas and examples in protocol/ again
	$(BIN)/python -m scripts.write_schemas

clean: ## Remove what these targets made
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis

# A stamp is written last, so a target that was stopped starts over and one that ended is not repeated.
$(VENV)/made.done:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed; name one: make PYTHON=python3.11 ..."; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo "Python's venv module is missing; on Debian: apt-get install python3-venv"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/base.done: pyproject.toml | $(VENV)/made.done
	$(PIP) --editable .
	@touch $@

$(VENV)/export.done: pyproject.toml | $(VENV)/made.done
	$(PIP) --editable '.[export]'
	@touch $@ $(VENV)/base.done

$(VENV)/executorch.done: pyproject.toml | $(VENV)/made.done
	$(PIP) --editable '.[export,executorch]'
	@touch $@ $(VENV)/export.done $(VENV)/base.done

$(VENV)/analysis.done: pyproject.toml | $(VENV)/made.done
	$(PIP) --editable '.[analysis]'
	@touch $@ $(VENV)/base.done

$(VENV)/dev.done: pyproject.toml | $(VENV)/made.done
	$(PIP) --editable '.[export,executorch,analysis,dev]'
	@touch $@ $(VENV)/export.done $(VENV)/executorch.done $(VENV)/analysis.done $(VENV)/base.done
