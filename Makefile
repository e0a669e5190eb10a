# `make demo` and `make test` need Python 3.11+, make and a package index; everything else they create.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# The CPU build of PyTorch is asked for by version, before anything that depends on torch.
TORCH := torch==2.13.0
BENCH := .bench-venv
# Measured on request, with COVERAGE='--cov --cov-report=term': it takes a third of the time again.
COVERAGE ?=
# Hostile calls of make fuzz, and the seed that chooses them.
CALLS ?= 100000
SEED ?= 0
BENCHMARKS := imports wasserstein decomposition deconvolution calibration items annotations sizes

# Those that run on a CPU; the last writes the tables of experiments/README.md.
EXPERIMENTS := xray cifar10h_table entropy_histograms galleries calibration_errors ferplus_table binary_regression \
	items prototypes halves panels label_pairs item_methods first_order scales worlds random_worlds single_items left_open \
	label_efficiency certificate_widths limit_widths entropy_limits hard_use ranking monitor monitor_streams judges next_labels set_coverage budget_split head_convergence agreement tables

.PHONY: help demo test fuzz simulations check docs notebooks picture oldest bench bench-tiny reproduce clean
.DELETE_ON_ERROR:

help:
	@echo "make demo       install and run the demonstration"
	@echo "make test       install everything and run all tests but long simulations"
	@echo "make simulations failure rates over many simulated worlds, and other tests that take long"
	@echo "make fuzz       a hundred thousand hostile calls of the public functions; SEED and CALLS choose others"
	@echo "make check      ruff and mypy"
	@echo "make docs       build the documentation into site/ and check that its examples run"
	@echo "make notebooks  run the tutorials again and keep what they print and draw"
	@echo "make picture    take the pictures of the report that README shows, in Chromium"
	@echo "make oldest     core tests on the oldest supported versions of what hocal needs"
	@echo "make bench      timings against peers, into benchmarks/results"
	@echo "make bench-tiny the same on small data in a minute, to see that everything still runs and agrees"
	@echo "make reproduce  experiments that run on a CPU, into experiments/results"

$(VENV)/core: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet --editable ".[app]"
	touch $@

$(VENV)/dev: $(VENV)/core
	$(BIN)/pip install --quiet $(TORCH)
	$(BIN)/pip install --quiet --editable ".[dev]"
	# For the axe.min.js it carries, which checks the page for accessibility; what it depends on is not used.
	$(BIN)/pip install --quiet --no-deps axe-playwright-python==0.1.8
	# Its interpreter runs the kernel for GPUs on a machine without one.
	$(BIN)/pip install --quiet --no-deps 'triton==3.9.0; platform_system == "Linux"'
	touch $@

demo: $(VENV)/core
	$(BIN)/hocal demo --force

# Tests start many processes, each of which would compile all of hocal again.
unexport PYTHONDONTWRITEBYTECODE
# One thread per worker: the workers fill the cores, and threads of linear algebra that wait for each other spin.
test simulations oldest: export OMP_NUM_THREADS := 1
test: $(VENV)/dev
	$(BIN)/python -m pytest -n auto --dist loadgroup -m "not slow" $(COVERAGE)

fuzz: $(VENV)/dev
	OMP_NUM_THREADS=1 PYTHONPATH=tests $(BIN)/python tests/hardening/public_calls.py $(CALLS) $(SEED)

simulations: $(VENV)/dev
	$(BIN)/python -m pytest -n auto --dist loadgroup -m slow

check: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(VENV)/dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build
	$(BIN)/python -m pytest -q tests/test_documentation.py

notebooks: $(VENV)/dev
	OMP_NUM_THREADS=1 $(BIN)/python docs/_notebooks/execute.py

picture: $(VENV)/dev
	$(BIN)/python docs/_pictures/page.py

oldest:
	$(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/pip install --quiet --constraint tests/oldest.txt --editable ".[app]" \
		pandas polars hypothesis pytest pytest-xdist
	.venv-oldest/bin/python -m pytest -q -n auto --dist loadgroup -m "not slow" tests --ignore=tests/networks \
		--ignore=tests/test_documentation.py --ignore=tests/test_experiments.py --ignore=tests/test_notebooks.py \
		--ignore=tests/metric_worker.py \
		--ignore=tests/test_package.py --ignore=tests/test_stories.py --ignore=tests/test_install_line.py

$(BENCH)/ready: pyproject.toml benchmarks/peers.txt
	$(PYTHON) -m venv $(BENCH)
	$(BENCH)/bin/pip install --quiet --upgrade pip
	$(BENCH)/bin/pip install --quiet $(TORCH)
	$(BENCH)/bin/pip install --quiet --editable ".[app,spark]" --requirement benchmarks/peers.txt
	# Both want torchvision or lightning at their import; the single modules that are timed do not.
	$(BENCH)/bin/pip install --quiet --no-deps probly==0.3.0 torch-uncertainty==0.13.0
	touch $@

bench: $(BENCH)/ready
	for name in $(BENCHMARKS); do $(BENCH)/bin/python benchmarks/$$name.py || exit 1; done
	$(BENCH)/bin/python benchmarks/tables.py

bench-tiny: $(BENCH)/ready
	for name in $(BENCHMARKS) decomposition_gpu; do $(BENCH)/bin/python benchmarks/$$name.py --tiny || exit 1; done

reproduce: $(VENV)/dev
	for name in $(EXPERIMENTS); do OMP_NUM_THREADS=1 $(BIN)/python experiments/$$name.py || exit 1; done

clean:
	rm -rf $(VENV) $(BENCH) .venv-oldest site build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage
