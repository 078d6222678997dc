"""The benchmark scripts start: the code which they measure has not moved away from under them."""

import importlib.util
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "dirichlet_process_mixture.py"


@pytest.mark.parametrize("shape", ["full", "diag", "spherical"])
def test_mixture(monkeypatch, shape):
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    spec = importlib.util.spec_from_file_location("mixture_benchmark", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    X, label = module.blobs(60, 3, 2)
    sampler = module.start_chain(X, label, shape)
    assert sampler.n_clusters >= 1
