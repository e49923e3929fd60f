# Every target sets up what it needs. Nothing but Python >= 3.11 and a C++ compiler has to be there.
PYTHON ?= python3
VENV   ?= .venv
BIN     = $(VENV)/bin

# A dead machine-wide OMP setting must not reach the judge's own processes.
export PYTHONUNBUFFERED = 1

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-full check lint test-gpu bench bench-builtin clean

help:  ## Show this list.
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

setup: $(VENV)/.ready  ## Make a virtual environment and install Kernel-Smith into it.

$(VENV)/.ready: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Kernel-Smith needs Python >= 3.11; this is $$($(PYTHON) --version). Try: make PYTHON=python3.12"; exit 2; }
	@command -v $${CXX:-g++} >/dev/null || command -v clang++ >/dev/null || \
	  { echo "Kernel-Smith needs a C++ compiler on the CPU; install g++ (Debian: apt-get install g++)"; exit 2; }
	@echo "setting up $(VENV) (a few minutes the first time)"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --disable-pip-version-check -q -c constraints.txt -e '.[dev,triton,agent,service]'
	@touch $@

# What training needs, for its tests. Not compiled ahead: few of its thousands of modules are ever imported. By
# name, not as an extra of this package: that would take it away for a moment, while others are tested.
$(VENV)/.ready-train: $(VENV)/.ready
	$(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["train"], sep="\n")' > $(VENV)/train.txt
	$(BIN)/pip install --disable-pip-version-check -q --no-compile -c constraints.txt -r $(VENV)/train.txt
	@touch $@

demo: setup  ## Make a bundled task faster on this machine's CPU and show how much.
	$(BIN)/kernelsmith optimize tasks/logsumexp.py --preset quick --steps 6 --budget-seconds 60

# Tests that time little or nothing: they run beside the others, on the second core.
BESIDE = tests/propose tests/bench tests/search tests/domain tests/report tests/tasks tests/training tests/test_layers.py \
  tests/cli/test_train.py tests/cli/test_model_folder.py tests/evaluate/checks

test: setup  ## Lint, types and all tests that need no GPU and little time.
	@echo "two runs side by side; the second, lint, types and what is hardly timed, is shown at the end"
	@($(MAKE) --no-print-directory $(VENV)/.ready-train lint && \
	  $(BIN)/python -m pytest -m "not slow" --durations=5 $(BESIDE)) > .pytest-beside.log 2>&1 & beside=$$!; \
	$(BIN)/python -m pytest -m "not slow" --durations=10 $(addprefix --ignore=,$(BESIDE)); first=$$?; \
	wait $$beside; second=$$?; \
	grep -v '^[.sx]* *\[ *[0-9]*%\]$$' .pytest-beside.log; exit $$(( first || second ))

test-full: setup $(VENV)/.ready-train lint  ## The same with the slow tests.
	$(BIN)/python -m pytest --durations=20

check: setup lint  ## Lint, types and the tests that start no process: under a minute.
	$(BIN)/python -m pytest tests/domain tests/evaluate/checks tests/evaluate/timing tests/evaluate/backends/test_null.py tests/search tests/test_layers.py

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test-gpu: setup  ## Tests that need an NVIDIA GPU: backend, faults, the GPU's zoo (skipped without one).
	$(BIN)/python -m pytest -m triton -rs --durations=10

bench: setup  ## Measure noise, throughput, memory, catch rate (KERNELBENCH=checkout to run beside).
	$(BIN)/python -m benchmarks.noise
	$(BIN)/python -m benchmarks.throughput $(if $(KERNELBENCH),--kernelbench $(KERNELBENCH))
	$(BIN)/python -m benchmarks.memory
	$(BIN)/python -m benchmarks.cheats $(if $(KERNELBENCH),--kernelbench $(KERNELBENCH))

bench-builtin: setup  ## The rules on every built-in task, on this machine; hours. Ctrl-C and again goes on.
	$(BIN)/kernelsmith bench builtin --preset quick --out runs/bench/builtin

clean:  ## Remove the virtual environment and caches.
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache
