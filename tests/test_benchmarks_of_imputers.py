"""The benchmark scripts of imputers on generated tables with names start."""

import warnings

import numpy as np
import pytest

from checks.scripts import load_benchmark as load
from skbnp import DirichletProcessMixture


def test_lookups(monkeypatch):
    module = load("lookups", monkeypatch)
    short = DirichletProcessMixture(n_chains=2, n_warmup=2, n_draws=5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lines = [
            line
            for name in module.TABLES
            for line in module.compare(name, 0, 80, {"estimator": short})
        ]
    assert len(lines) == len(module.TABLES) * len(module.METHODS)
    found = {(line["table"], line["method"]): line for line in lines}
    for name in module.TABLES:
        lookup, model = found[name, "lookup"], found[name, "model"]
        assert lookup["right"] > model["right"] and lookup["together"] > model["together"]
        assert lookup["error of numbers"] == model["error of numbers"]
        assert 0.6 < lookup["in truth"] <= 1.0 and 0.2 < model["claimed"] < 1.0
    table = module.players(4000, np.random.default_rng(0))
    assert module.together(table, table["x0"] > 0) == pytest.approx(0.95, abs=0.02)
    # A near copy is no riddle to regressions on columns of 0 and 1.
    both = table[["league", "next"]][:200]
    given = both.mask(np.resize([[True, False], [False, True], [False, False]], (200, 2)))
    filled = module.by_dummies(given.assign(x=np.arange(200.0)), 0)
    assert (filled[["league", "next"]] == both).mean(axis=None) > 0.9


def test_semicontinuous(monkeypatch):
    module = load("semicontinuous", monkeypatch)
    short = DirichletProcessMixture(n_chains=2, n_warmup=2, n_draws=5)
    few = list(module.TABLES)[:2]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lines = [line for name in few for line in module.compare(name, 0, 60, {"estimator": short})]
    assert len(lines) == len(few) * len(module.METHODS)
    for line in lines:
        errors = [x for key, x in line.items() if "error" in key]
        assert len(errors) == 2 and max(errors) < 5.0
        assert (line["method"] == "IterativeImputer") == np.isnan(line["others, score"])
    for name, (make, columns) in module.TABLES.items():
        table = make(200, np.random.default_rng(1))
        assert table.notna().all(axis=None) and len(module.names_of(table)) >= 1, name
        assert set(columns) <= set(table)
    first, *_ = module.ratios(lines)
    errors = {(line["table"], line["method"]): line["others, error"] for line in lines}
    expected = [np.log(errors[name, "two parts"] / errors[name, "one part"]) for name in few]
    assert first["others, error"] == pytest.approx(np.exp(np.mean(expected)))
