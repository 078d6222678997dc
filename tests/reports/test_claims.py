"""What a report calls sure is true of simulated mixtures."""

import pytest

from checks.scripts import load_benchmark

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
SHORT = dict(n_chains=2, n_warmup=60, n_draws=60)


@pytest.fixture
def benchmark(monkeypatch):
    return load_benchmark("report", monkeypatch)


def small(benchmark, monkeypatch):
    monkeypatch.setattr(
        benchmark, "mixture", lambda separation, seed, make=benchmark.mixture: make(
            separation, seed, n_rows=120, n_kinds=3
        ),
    )  # fmt: skip


def test_pairs_that_are_called_sure(benchmark, monkeypatch):
    """At least 95 % of the pairs that draws have together, or apart, are so in truth."""
    small(benchmark, monkeypatch)
    line = benchmark.measure(3.0, 3, **SHORT)
    assert line["pairs together"] > 300 and line["pairs apart"] > 3000
    assert line["of them in truth"] >= 0.95 and line["of these in truth"] >= 0.95
    # The truth is no matter of course: of all pairs two thirds are apart.
    assert line["right"] >= line["mean p"] - 0.05
    assert line["right there"] < line["right"]


def test_wrong_claims_are_seen(benchmark, monkeypatch):
    """Were pairs called sure from a probability of .3 on, they would not hold."""
    small(benchmark, monkeypatch)
    monkeypatch.setattr("skbnp.reports.partition.SURE", 0.3)
    line = benchmark.measure(2.0, 1, **SHORT)
    assert line["of them in truth"] < 0.95
