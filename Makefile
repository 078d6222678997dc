# Each target makes what it needs, environments included, and makes again what has changed.
#
#   make demo       cluster iris and wine without K and fill holes; pictures in demo_output/
#   make test       the fast tests, against the wheel built from the sdist; of the proofs one or two
#                   a model, short, and whether all are in the ledger
#   make test-slow  the longer tests, in the same way, and short all proofs that are not in the ledger
#   make test-cost  the fast tests; fails when one takes more than 2 CPU seconds
#   make test-lowest  the fast tests, beside the lowest versions that pyproject.toml allows
#   make test-extras  the wheel with each extra alone: it installs, and what the extra is for imports
#   make prove      the proofs that changed sources have made due, at their long size, each written
#                   to tests/proofs/LEDGER.jsonl when it has passed; MODEL=tree_factor_model: its own
#   make plan       which those are, and how long each is expected to take
#   make prove-all  all proofs again at their long size, compared with the ledger; writes nothing
#   make test-debug the fast tests of kernels and models, with bounds checks and sanitizers
#   make test-debug-smoke  every kernel once, with bounds checks: quick to build
#   make fuzz       a thousand random cases of each estimator, damaged files, kills, interrupts;
#                   with FUZZ_FIRST=1000 the next thousand
#   make lint       ruff and cython-lint
#   make bench      one screen: kernels beside their floors, estimators beside peers, as ratios
#   make bench-all  all benchmarks, short form
#   make bench-compare OLD=DIR  fits and predictions by the build of another checkout and by this one,
#                   by turns; fails when one is slower by more than a tenth
#   make doc        HTML pages in doc/_build/html; fails on any warning, and on a blank figure
#   make install    editable development install in .venv
#   make clean      back to a fresh clone
#
# The kernels of test-debug are in build/debug and build/sanitize, those of everything else stay as
# they are. SKBNP_DEBUG and SKBNP_SANITIZE in setup.py say how each kind is compiled.
#
# .venv-EXTRA holds the wheel with one extra of pyproject.toml and nothing else, so that a
# dependency nobody declared is found here and not by a user.

PYTHON ?= python3
PYTEST_ARGS ?=
BENCH_ARGS ?= --quick
FUZZ_FIRST ?= 0

SOURCES := $(sort $(shell find skbnp -name '*.py' -o -name '*.pyx' -o -name '*.pxd')) \
           pyproject.toml setup.py MANIFEST.in README.md LICENSE
BENCHMARKS := $(filter-out benchmarks/_%,$(wildcard benchmarks/*.py))

# Chains, searches and test workers share the cores; BLAS threads on top would only get in their way.
ONE_BLAS_THREAD := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 MKL_NUM_THREADS=1

# Tests run from an empty directory, so that `import skbnp` can only find the installed wheel.
TEST_VENV := .venv-test
RUN_PYTEST = mkdir -p build/test && cd build/test && env $(ONE_BLAS_THREAD) MPLBACKEND=Agg \
    SKBNP_TEST_INSTALLED=1 ../../$(TEST_VENV)/bin/python -m pytest -c ../../pyproject.toml \
    -p no:cacheprovider
# Kernels that fast tests ask for; cached.
FACES = mkdir -p build/test && cd build/test && ../../$(TEST_VENV)/bin/python \
    ../../tests/checks/mutants.py faces
IN_PARALLEL := -n auto --dist worksteal
RUN_TESTS = $(RUN_PYTEST) $(IN_PARALLEL) ../../tests
# Half as many again as cores: some of the fast tests wait for processes that they have started.
RUN_FAST_TESTS = $(RUN_PYTEST) -n $(shell $(PYTHON) -c 'import os; print(3 * (os.cpu_count() or 1) // 2)') \
    --dist worksteal ../../tests

# Where proofs are: all, or those of MODEL.
MODEL ?=
PROOFS = $(addprefix ../../,$(if $(MODEL),$(or $(wildcard tests/$(MODEL) tests/proofs/$(MODEL)), \
    $(error no tests of a model $(MODEL))),tests))

# What runs kernels, but for whole joint-distribution and recovery runs: under sanitizers those
# take most of an hour, and kernels do nothing in them that they do not do in the others.
DEBUG_TESTS := $(addprefix $(CURDIR)/,$(sort $(filter-out tests/checks/ tests/mcmc/ tests/plot/ \
    tests/proofs/,$(dir $(wildcard tests/*/test_*.py tests/proofs/*/test_*.py)))))
# Other proofs run short, in the ledger or not: it is memory that is looked at.
DEBUG_ARGS := --ignore-glob='*_geweke.py' --ignore-glob='*_recovery.py' --proofs=short
SMOKE_TESTS := $(CURDIR)/tests/contract/test_kernels_smoke.py

SANITIZERS := address,undefined,float-cast-overflow
# Python itself is not built with the runtimes, so they are loaded before it; empty where the
# compiler has none (without a file of that name it answers with the name alone).
RUNTIMES := $(filter /%,$(foreach name,asan ubsan,$(shell $(CC) -print-file-name=lib$(name).so)))
# What lives to the end of a process in CPython and NumPy is no leak of ours. An allocation that is
# too large ends in a MemoryError, as without the sanitizer. Python's own allocator would hide
# writes beyond small blocks.
SANITIZED := LD_PRELOAD='$(RUNTIMES)' PYTHONMALLOC=malloc \
    ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1

# $(call run_debug,KIND,ENVIRONMENT,TESTS): a process may report to a file what fails no test.
run_debug = @rm -rf build/$(1)/reports && mkdir -p build/$(1)/reports && cd build/$(1)/reports && \
    status=0; env $(ONE_BLAS_THREAD) MPLBACKEND=Agg SKBNP_REPORTS="$$PWD" \
    PYTHONPATH=$(CURDIR)/build/$(1)/lib:$(CURDIR)/tests/checks/debug $(2) $(CURDIR)/.venv-debug/bin/python -m pytest \
    -c $(CURDIR)/pyproject.toml -q -p no:cacheprovider -n auto --dist worksteal \
    -W error::pytest.PytestUnraisableExceptionWarning $(3) $(PYTEST_ARGS) || status=$$?; \
    if cat * 2>/dev/null; then echo "$@: reports, see above"; status=1; fi; \
    echo "$@ of build/$(1): $$(test $$status = 0 && echo passed || echo FAILED)"; exit $$status

# $(call requirements,TABLE): a list of requirements in pyproject.toml, one a line.
requirements = $(PYTHON) -c "import tomllib; \
    print(*tomllib.load(open('pyproject.toml', 'rb'))$(1), sep='\n')"

# $(call environment,DIRECTORY): made anew when the declared dependencies may have changed.
environment = @$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and \
    "skbnp needs Python 3.11 or newer: make PYTHON=/path/to/python3.11")' && \
    { test $(1)/pyvenv.cfg -nt pyproject.toml || $(PYTHON) -m venv --clear $(1); }

.PHONY: demo test test-slow test-cost test-lowest test-extras prove plan prove-all test-debug \
    test-debug-smoke fuzz lint bench bench-all doc bench-compare install clean FORCE

demo: .venv-plot/installed
	env $(ONE_BLAS_THREAD) .venv-plot/bin/python examples/demo.py --output demo_output

test: .venv-test/installed
	@$(FACES)
	$(RUN_FAST_TESTS) --proofs=smoke $(PYTEST_ARGS)

test-slow: .venv-test/installed
	$(RUN_TESTS) -m "slow or proof" --proofs=due $(PYTEST_ARGS)

# One process: tests that share their fits with others pay for them once.
test-cost: .venv-test/installed
	@$(FACES)
	$(RUN_PYTEST) ../../tests --proofs=smoke --cpu-seconds=2 $(PYTEST_ARGS)

test-lowest: TEST_VENV := .venv-lowest
test-lowest: .venv-lowest/installed
	@$(FACES)
	$(RUN_TESTS) $(PYTEST_ARGS)

test-extras: dist/built
	$(PYTHON) .ci/extras.py dist/*.whl

# What is left of a run that was killed is in the ledger: start it again.
prove: .venv-test/installed
	$(RUN_PYTEST) $(IN_PARALLEL) $(PROOFS) -m proof --proofs=prove $(PYTEST_ARGS)

plan: .venv-test/installed
	$(RUN_PYTEST) $(PROOFS) -q -m proof --proofs=plan $(PYTEST_ARGS)

prove-all: .venv-test/installed
	$(RUN_PYTEST) $(IN_PARALLEL) $(PROOFS) -m proof --proofs=prove-all $(PYTEST_ARGS)

test-debug: $(if $(RUNTIMES),build/sanitize/built,build/debug/built)
ifeq ($(RUNTIMES),)
	@echo "$(CC) has no sanitizers: bounds checks alone"
	$(call run_debug,debug,,$(DEBUG_TESTS) $(DEBUG_ARGS))
else
	$(call run_debug,sanitize,$(SANITIZED),$(DEBUG_TESTS) $(DEBUG_ARGS))
endif

test-debug-smoke: build/debug/built
	$(call run_debug,debug,,$(SMOKE_TESTS))

fuzz: .venv-test/installed
	export SKBNP_FUZZ_FIRST=$(FUZZ_FIRST) && $(RUN_TESTS) -m fuzz -v $(PYTEST_ARGS)
	export SKBNP_FUZZ=500 && $(RUN_TESTS) -k test_properties $(PYTEST_ARGS)

lint: .venv-lint/installed
	.venv-lint/bin/ruff check .
	.venv-lint/bin/ruff format --check .
	PATH="$(CURDIR)/.venv-lint/bin:$$PATH" cython-lint skbnp benchmarks

bench-compare:
	$(PYTHON) benchmarks/_compare_builds.py $(OLD) .

bench: .venv-bench/installed
	$(ONE_BLAS_THREAD) .venv-bench/bin/python benchmarks/overview.py

bench-all: .venv-bench/installed
	@for script in $(BENCHMARKS); do .venv-bench/bin/python $$script $(BENCH_ARGS) || exit 1; done

doc: .venv-doc/installed
	env $(ONE_BLAS_THREAD) MPLBACKEND=Agg .venv-doc/bin/sphinx-build -W --keep-going -b html doc doc/_build/html

install:
	$(call environment,.venv)
	$(call requirements,['build-system']['requires']) > .venv/requirements.txt
	.venv/bin/python -m pip install --quiet -r .venv/requirements.txt
	.venv/bin/python -m pip install --quiet --no-build-isolation -e ".[test,plot,progress,lint,doc]"

clean:
	rm -rf build dist *.egg-info .venv .venv-* .pytest_cache .ruff_cache demo_output
	rm -rf doc/_build doc/auto_examples doc/generated doc/sg_execution_times.rst
	find $(wildcard skbnp tests examples benchmarks doc) -name __pycache__ -prune -exec rm -rf {} +
	find skbnp -name '*.so' -delete

# -- what the targets stand on

# Without options the front end makes the sdist, and the wheel from that sdist.
dist/built: $(SOURCES) build/sources .venv-build/installed
	rm -rf dist
	.venv-build/bin/pyproject-build --outdir dist .
	@touch $@

# Changes only when a source comes or goes: a deleted file must leave the wheel too.
build/sources: FORCE
	@mkdir -p build
	@printf '%s\n' $(SOURCES) | cmp -s - $@ || printf '%s\n' $(SOURCES) > $@

# Copies of modules are made anew, so that a deleted one leaves the build; kernels stay, they are slow.
build/debug/built: $(SOURCES) build/sources .venv-debug/installed
	rm -rf build/debug/lib/skbnp/*.py build/debug/lib/skbnp/*/*.py
	env SKBNP_DEBUG=1 .venv-debug/bin/python setup.py --quiet build
	@touch $@

build/sanitize/built: $(SOURCES) build/sources .venv-debug/installed
	rm -rf build/sanitize/lib/skbnp/*.py build/sanitize/lib/skbnp/*/*.py
	env SKBNP_SANITIZE=$(SANITIZERS) .venv-debug/bin/python setup.py --quiet build
	@touch $@

# Without skbnp: what builds it and what its tests need.
.venv-debug/installed: pyproject.toml
	$(call environment,.venv-debug)
	$(call requirements,['build-system']['requires']) > .venv-debug/requirements.txt
	$(call requirements,['project']['dependencies']) >> .venv-debug/requirements.txt
	$(call requirements,['project']['optional-dependencies']['test']) >> .venv-debug/requirements.txt
	.venv-debug/bin/python -m pip install --quiet -r .venv-debug/requirements.txt
	@touch $@

# The wheel's version need not change when its content does: reinstall it, then what it asks for.
.venv-%/installed: dist/built
	$(call environment,.venv-$*)
	.venv-$*/bin/python -m pip install --quiet --force-reinstall --no-deps dist/*.whl
	.venv-$*/bin/python -m pip install --quiet "$$(echo dist/*.whl)[$*]"
	@touch $@

# Libraries that only tests are written with stay free.
.venv-lowest/installed: dist/built .ci/lowest.py
	$(call environment,.venv-lowest)
	$(PYTHON) .ci/lowest.py plot progress arviz dask cli polars > .venv-lowest/constraints.txt
	.venv-lowest/bin/python -m pip install --quiet --upgrade pip
	.venv-lowest/bin/python -m pip install --quiet --force-reinstall --no-deps dist/*.whl
	.venv-lowest/bin/python -m pip install --quiet --constraint .venv-lowest/constraints.txt \
	    "$$(echo dist/*.whl)[test]"
	@touch $@

.venv-build/installed: pyproject.toml
	$(call environment,.venv-build)
	.venv-build/bin/python -m pip install --quiet build
	@touch $@

.venv-lint/installed: pyproject.toml
	$(call environment,.venv-lint)
	$(call requirements,['project']['optional-dependencies']['lint']) > .venv-lint/requirements.txt
	.venv-lint/bin/python -m pip install --quiet -r .venv-lint/requirements.txt
	@touch $@
