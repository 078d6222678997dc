"""Default lengths: a warm-up in rounds, and work that is counted."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

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
    ("n_rows", "seconds"),
    [(10, 6.7), (100, 6.7), (150, 10.0), (450, 30.0), (1_000, 66.7), (10**6, 66.7)],
)
def test_work_that_is_allowed_by_default(n_rows, seconds):
    X = np.broadcast_to(0.0, (n_rows, 1))
    assert CIBPBeliefNet()._work_allowed(X) == pytest.approx(seconds, abs=0.05)
    assert CIBPBeliefNet(max_work=3)._work_allowed(X) == 3.0


def test_units_that_chains_start_with():
    rows = (2, 60, 100, 119, 120, 240, 10_000)
    net = CIBPBeliefNet()
    assert [net._n_init_units(n, clustered=False) for n in rows] == [1, 10, 16, 19, 20, 20, 20]
    assert [net._n_init_units(n, clustered=True) for n in rows] == [1, 10, 16, 19, 20, 40, 40]
    given = CIBPBeliefNet(sampler=BeliefNetSampler(n_init_units=33))
    assert given._n_init_units(60, clustered=False) == 33


@pytest.fixture(scope="module")
def wide():
    return np.random.default_rng(1).normal(size=(12, 40))


def test_many_columns_get_many_short_chains_and_row_clusters(wide):
    with warnings.catch_warnings():
        # Chains that are many and short need not agree.
        warnings.simplefilter("error", ConvergenceWarning)
        net = CIBPBeliefNet(max_work=0.1, random_state=0).fit(wide)
    assert 4 < net.n_chains_ < 16 and 70 <= net.n_warmup_ < 90 and net.n_draws_ == 4
    assert net.row_clusters_ and net.max_layers_ == 1 and net.posterior_.warmup is None
    assert net._prior.row_clusters and net.n_layers_ <= 1


def test_work_goes_to_more_chains_first_and_then_to_longer_ones():
    found = []
    for n_rows in (100, 1000, 2000, 5000, 50_000):
        rows = np.broadcast_to(0.0, (n_rows, 100))
        net = CIBPBeliefNet()
        net.n_chains_ = net._auto_n_chains(rows)
        found.append((net.n_chains_, net._auto_lengths(rows)[0]))
    assert found[0] == (16, 300) and found[-1] == (4, 70)
    assert found[1][0] == found[2][0] == 16 and 300 > found[1][1] > found[2][1] > 70
    assert 4 < found[3][0] < 16 and found[3][1] < 90
    # What is given is the limit, and what is not is larger than in few columns.
    assert CIBPBeliefNet(max_work=3)._work_allowed(rows) == 3.0
    assert CIBPBeliefNet()._work_allowed(rows) == 1.5 * CIBPBeliefNet()._work_allowed(rows[:, :9])
    assert CIBPBeliefNet()._work_allowed(rows[:20]) == 15.0


@pytest.mark.parametrize(
    ("changes", "n_chains", "row_clusters", "max_layers"),
    [
        ({}, 16, True, 1),
        ({"max_layers": 1}, 16, True, 1),
        ({"max_layers": 2}, 16, False, 2),
        ({"max_layers": None}, 16, False, None),
        ({"skip_connections": True}, 4, False, 3),
        ({"row_clusters": False}, 16, False, 3),
        ({"row_clusters": True, "max_layers": 2}, 16, True, 2),
        ({"max_units": 0}, 16, False, 3),
        ({"n_warmup": 250}, 4, True, 1),
    ],
    ids=str,
)
def test_what_many_columns_stand_for(wide, changes, n_chains, row_clusters, max_layers):
    net = CIBPBeliefNet(**changes)
    assert net._auto_n_chains(wide) == n_chains
    assert net._has_row_clusters(wide) is row_clusters
    assert net._largest_number_of_layers(wide) == max_layers


def test_fewer_columns_have_none_of_it(wide):
    net = CIBPBeliefNet()
    narrow = wide[:, :39]
    assert net._auto_n_chains(narrow) == 4 and not net._is_ensemble(narrow.shape[1])
    assert not net._has_row_clusters(narrow) and net._largest_number_of_layers(narrow) == 3
    assert CIBPBeliefNet(row_clusters=True)._largest_number_of_layers(narrow) == 1


def test_chains_are_as_many_as_the_work_allows(wide):
    rows = np.broadcast_to(wide[:1], (4_000, 40))
    few, default = (CIBPBeliefNet(max_work=work)._auto_n_chains(rows) for work in (1, "auto"))
    assert few == 4 < default < 16
    assert CIBPBeliefNet()._auto_n_chains(np.broadcast_to(0.0, (20_000, 784))) == 4


PIXELS = np.random.default_rng(2).integers(0, 4, size=(12, 40)) / 3.0


@pytest.mark.parametrize(
    ("X", "changes", "bounds"),
    [
        (PIXELS, {}, (0.0, 1.0)),
        (PIXELS, {"visible": "gaussian"}, None),
        (PIXELS, {"visible": "sigmoid"}, None),
        (PIXELS, {"feature_bounds": (-1, 2)}, (-1, 2)),
        (PIXELS[:, :39], {}, None),
        (np.where(PIXELS == 1.0, 1.0 + np.arange(40), PIXELS), {}, None),
        (np.column_stack([PIXELS, np.full((12, 2), 2020.0)]), {}, (0.0, 1.0)),
        # A flag and a constant do not make an end of anything.
        (np.column_stack([10 + PIXELS, np.arange(12) % 2, np.full(12, 2020.0)]), {}, None),
        (np.where(np.arange(40) < 19, PIXELS, 0.5 + PIXELS / 4), {}, None),
        (np.zeros((12, 40)), {}, None),
        (np.full((12, 40), np.nan), {}, None),
    ],
)
def test_ends_at_which_cells_pile_up_are_bounds(X, changes, bounds):
    assert CIBPBeliefNet(**changes)._bounds(X) == bounds


def test_pixels_are_the_activations_of_their_units():
    X = PIXELS.copy()
    X[0, 0] = np.nan
    net = CIBPBeliefNet(n_chains=1, n_warmup=2, n_draws=4, random_state=0).fit(X)
    assert net.visible_ == "sigmoid" and 0.0 < net.X_imputed_[0, 0] < 1.0
    assert net._units.is_outside(np.full((1, 40), 1.2))[0]
