# Each target makes what it needs, environments included, and makes again what has changed.
#
#   make demo       cluster iris and wine without K and fill holes; pictures in demo_output/
#   make test       the fast tests, against the wheel built from the sdist
#   make test-slow  the longer statistical tests, in the same way
#   make lint       ruff and cython-lint
#   make bench      benchmarks, short form
#   make doc        HTML pages in doc/_build/html
#   make install    editable development install in .venv
#   make clean      back to a fresh clone
#
# .venv-EXTRA holds the wheel with one extra of pyproject.toml and nothing else, so that a
# dependency nobody declared is found here and not by a user.

PYTHON ?= python3
PYTEST_ARGS ?=
BENCH_ARGS ?= --quick

SOURCES := $(sort $(shell find skbnp -name '*.py' -o -name '*.pyx' -o -name '*.pxd')) \
           pyproject.toml setup.py MANIFEST.in README.md LICENSE
BENCHMARKS := $(filter-out benchmarks/_%,$(wildcard benchmarks/*.py))

# Chains, searches and test workers share the cores; BLAS threads on top would only get in their way.
ONE_BLAS_THREAD := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 MKL_NUM_THREADS=1

# Tests run from an empty directory, so that `import skbnp` can only find the installed wheel.
RUN_TESTS = mkdir -p build/test && cd build/test && env $(ONE_BLAS_THREAD) MPLBACKEND=Agg \
    SKBNP_TEST_INSTALLED=1 ../../.venv-test/bin/python -m pytest -c ../../pyproject.toml \
    -p no:cacheprovider -n auto --dist worksteal ../../tests

# $(call requirements,TABLE): a list of requirements in pyproject.toml, one a line.
requirements = $(PYTHON) -c "import tomllib; \
    print(*tomllib.load(open('pyproject.toml', 'rb'))$(1), sep='\n')"

# $(call environment,DIRECTORY): made anew when the declared dependencies may have changed.
environment = @$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and \
    "skbnp needs Python 3.11 or newer: make PYTHON=/path/to/python3.11")' && \
    { test $(1)/pyvenv.cfg -nt pyproject.toml || $(PYTHON) -m venv --clear $(1); }

.PHONY: demo test test-slow lint bench doc install clean FORCE

demo: .venv-plot/installed
	env $(ONE_BLAS_THREAD) .venv-plot/bin/python examples/demo.py --output demo_output

test: .venv-test/installed
	$(RUN_TESTS) $(PYTEST_ARGS)

test-slow: .venv-test/installed
	$(RUN_TESTS) -m slow $(PYTEST_ARGS)

lint: .venv-lint/installed
	.venv-lint/bin/ruff check .
	.venv-lint/bin/ruff format --check .
	PATH="$(CURDIR)/.venv-lint/bin:$$PATH" cython-lint skbnp benchmarks

bench: .venv-bench/installed
	@for script in $(BENCHMARKS); do .venv-bench/bin/python $$script $(BENCH_ARGS) || exit 1; done

doc: .venv-doc/installed
	.venv-doc/bin/sphinx-build -b html doc doc/_build/html

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

# The wheel's version need not change when its content does: reinstall it, then what it asks for.
.venv-%/installed: dist/built
	$(call environment,.venv-$*)
	.venv-$*/bin/python -m pip install --quiet --force-reinstall --no-deps dist/*.whl
	.venv-$*/bin/python -m pip install --quiet "$$(echo dist/*.whl)[$*]"
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
