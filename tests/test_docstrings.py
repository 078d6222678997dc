"""The examples in the docstrings print what they say."""

import doctest
import importlib
import pkgutil

import matplotlib
import pytest

import skbnp

MODULES = sorted(
    module.name for module in pkgutil.walk_packages(skbnp.__path__, "skbnp.") if not module.ispkg
)


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    matplotlib.use("Agg")
    module = importlib.import_module(name)
    assert doctest.testmod(module).failed == 0


def test_examples_are_found():
    # Also in compiled modules, where doctest could pass by seeing nothing.
    found = {
        test.name.removeprefix(f"{name}.")
        for name in ("skbnp.processes.crp", "skbnp.dirichlet_process_mixture._estimator")
        for test in doctest.DocTestFinder().find(importlib.import_module(name))
        if test.examples
    }
    assert {"sample", "log_prob", "expected_blocks", "DirichletProcessMixture"} <= found
