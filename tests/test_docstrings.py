"""The examples in the docstrings print what they say."""

import doctest
import importlib
from pathlib import Path

import matplotlib
import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCES = sorted(path for suffix in ("py", "pyx") for path in (ROOT / "skbnp").rglob(f"*.{suffix}"))
MODULES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in SOURCES
    if ">>>" in path.read_text(encoding="utf-8")
]


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
