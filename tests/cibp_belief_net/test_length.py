"""Default lengths: a warm-up in rounds, and work that is counted."""

import numpy as np
import pytest

from skbnp import CIBPBeliefNet
from skbnp.samplers import BeliefNetSampler

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).normal(size=(30, 2))


def test_rounds_end_when_the_work_is_spent(X):
    net = CIBPBeliefNet(max_work=0.35, n_chains=2, random_state=0).fit(X)
    sweeps = 0.35 / (2 * net.posterior_.warmup.work_per_sweep)
    assert net.posterior_.warmup.ended == "spent"
    assert net.n_warmup_ in (150, 450) and net.n_draws_ == 200
    assert 200 <= net.posterior_.sweeps_per_draw * 200 <= max(200, sweeps - net.n_warmup_)


def test_little_work_gives_what_there_was_before_rounds(X):
    net = CIBPBeliefNet(max_work=0.01, n_chains=1, random_state=0).fit(X)
    assert (net.n_warmup_, net.n_draws_, net.posterior_.sweeps_per_draw) == (500, 200, 1)


def test_numbers_are_lengths_as_they_are(X):
    net = CIBPBeliefNet(n_warmup=3, n_draws=5, n_chains=1, random_state=0).fit(X)
    assert (net.n_warmup_, net.n_draws_, net.posterior_.sweeps_per_draw) == (3, 5, 1)
    assert net.posterior_.warmup is None


@pytest.mark.parametrize(
    ("n_rows", "seconds"), [(10, 10.0), (150, 10.0), (450, 30.0), (1_000, 66.7), (10**6, 66.7)]
)
def test_work_that_is_allowed_by_default(n_rows, seconds):
    X = np.broadcast_to(0.0, (n_rows, 1))
    assert CIBPBeliefNet()._work_allowed(X) == pytest.approx(seconds, abs=0.05)
    assert CIBPBeliefNet(max_work=3)._work_allowed(X) == 3.0


def test_units_that_chains_start_with():
    units = [CIBPBeliefNet()._n_init_units(n) for n in (2, 60, 100, 119, 120, 10_000)]
    assert units == [1, 10, 16, 19, 20, 20]
    assert CIBPBeliefNet(sampler=BeliefNetSampler(n_init_units=40))._n_init_units(60) == 40
