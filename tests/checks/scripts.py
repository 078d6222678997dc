"""Scripts of examples/ and benchmarks/ as modules."""

import importlib.util
import sys
from pathlib import Path

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def load(path, monkeypatch):
    """The script at a path as a module that finds its neighbours, as when it is run."""
    monkeypatch.syspath_prepend(str(path.parent))
    # Under a name of its own: a neighbour may import it by the plain one.
    spec = importlib.util.spec_from_file_location(f"script_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


def load_benchmark(name, monkeypatch):
    """A script of benchmarks/ as a module."""
    return load(BENCHMARKS / f"{name}.py", monkeypatch)
