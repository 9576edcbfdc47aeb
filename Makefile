# Two commands set everything up: `make run` opens the window on a scratch copy of the samples,
# `make test` does what CI does. Both make their own virtual environment in .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# Workers for the parallel tests; timing tests run afterwards, alone.
JOBS ?= 2

.PHONY: run test check proof gpu-proof bench tables pictures format clean help

help:  ## what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

run: $(VENV)/.installed-run  ## open the window on a scratch copy of sample_kernels
	@root=$$($(BIN)/klineage demo --prepare) && exec $(BIN)/klineage-tui "$$root"

test: $(VENV)/.installed-test tools/system-packages.stamp check  ## everything CI runs
	$(BIN)/python -m pytest -q -n $(JOBS) --dist loadgroup -m "not serial and not proof and not gpu"
	$(BIN)/python -m pytest -q -m "serial and not proof and not gpu"

check: $(VENV)/.installed-test  ## format, lint, types, direction of imports
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

proof: $(VENV)/.installed-test tools/system-packages.stamp  ## the long proofs: crash, soak, GPU if there is one
	$(BIN)/python -m pytest -q -m proof --timeout 1800

gpu-proof:  ## everything that needs a CUDA GPU, with the interpreter that has torch
	$(PYTHON) tools/gpu_proof.py

bench: $(VENV)/.installed-test  ## how fast, how small; writes results/
	$(BIN)/python bench/loop.py

tables: $(VENV)/.installed-test  ## render results/ into README and docs
	$(BIN)/python tools/tables.py

pictures: $(VENV)/.installed-test  ## export the window as SVG from a live daemon
	$(BIN)/python tools/picture.py

format: $(VENV)/.installed-test  ## format and fix what can be fixed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:  ## remove what this Makefile made
	rm -rf $(VENV) build dist *.egg-info tools/system-packages.stamp

# Where $(PYTHON) has torch and Triton and sees a GPU, the environment sees them too, and the samples
# are Triton's; elsewhere they are OpenCL's.
SEES_GPU := import sys, torch, triton; sys.exit(not torch.cuda.is_available())

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo 'klineage-tui needs Python 3.11 or newer; set PYTHON=/path/to/python3.11' >&2; exit 2; }
	$(PYTHON) -m venv $(VENV) $$($(PYTHON) -c '$(SEES_GPU)' 2>/dev/null && echo --system-site-packages)

# torch before the rest: with it in place nothing below asks for another build of it.
$(VENV)/.installed-test: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) install -c constraints.txt torch
	$(PIP) install -c constraints.txt -e '.[cpu,triton,dev]'
	@touch $@ $(VENV)/.installed-run

$(VENV)/.installed-run: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) install -c constraints.txt -e '.[cpu]'
	@touch $@

# The end-to-end tests type into a real terminal and save with a real editor. Installed only where
# they are missing and apt-get is there; elsewhere the tests that need them say so and skip.
tools/system-packages.stamp:
	@missing=; for tool in tmux vim git; do command -v $$tool >/dev/null || missing="$$missing $$tool"; done; \
	if [ -n "$$missing" ] && command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
		echo "installing$$missing for the end-to-end tests"; \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $$missing >/dev/null; \
	elif [ -n "$$missing" ]; then echo "the end-to-end tests want$$missing"; fi
	@touch $@
