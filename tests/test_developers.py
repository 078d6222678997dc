"""What the pages for developers tell to write, written: a move, a family, a model."""

import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from checks.dirichlet_process_mixture import enumerate_posterior, gaussian_prior, partition_z_scores
from checks.joint_distribution import assert_z_scores_small, paired_one_step
from checks.mutants import compiled, with_state
from contract.registry import Setting
from skbnp.dirichlet_process_mixture import _model, _sweep
from skbnp.dirichlet_process_mixture._sampler import Sampler

FOLDER = "../doc/developers"
PAGES = Path(__file__).resolve().parents[1] / "doc" / "developers"
sys.path.insert(0, str(PAGES))

from exponential_prior import ExponentialPrior  # noqa: E402
from gaussian_columns import GaussianColumns  # noqa: E402
from gaussian_columns import _model as columns_model  # noqa: E402
from gaussian_columns._sampler import Means  # noqa: E402
from gaussian_columns._sampler import Sampler as ColumnsSampler  # noqa: E402

# -- a move


def moves_with_a_line(new, after):
    """The moves of a sweep, were that line of imports in ``_sweep.py`` after another."""
    lines = Path(_sweep.__file__).read_text().splitlines()
    place = next(i for i, line in enumerate(lines) if line.endswith(f" import {after}"))
    namespace = {"__name__": "sweep_with_a_line"}
    exec("\n".join([*lines[: place + 1], new, *lines[place + 1 :]]), namespace)
    return namespace["MOVES"]


def swapping(name):
    """The mixture's sampler with the move of the page, or a wrong one: one file and one line."""
    sys.modules["swap"] = compiled("swap", FOLDER)
    moves = moves_with_a_line(f"from swap import {name}", after="SplitMerge")
    assert [move.NAME for move in moves][2:4] == ["split_merge", "swap"]
    return type("Swapping", (Sampler,), {"MOVES": {move.NAME: move for move in moves}})


def z_scores_of_swaps(name, n):
    prior = gaussian_prior("full", np.zeros(2), 0.5, 8.0, 4.0 * np.eye(2))
    kind = swapping(name)

    class Alone:
        def __init__(self, sampler):
            self.sampler = sampler

        def sweep(self):
            self.sampler.sweep_only("swap")

    def make(rng):
        state, X = _model.draw_joint(prior, 8, rng)
        state["concentration"] = 2.0
        bits = np.random.default_rng(rng.integers(2**62)).bit_generator
        start = {name: state[name] for name in ("concentration", "discount", "prior_scale")}
        return Alone(kind(X, prior, state["label"], bits, start=start, n_split_merge=0))

    def statistics(alone):
        sampler = alone.sampler
        X, label = sampler.completed_data(), sampler.labels
        sizes = np.bincount(label)[label]
        return {
            "log joint": sampler.log_joint(),
            "first two together": float(label[0] == label[1]),
            "size of the first": float(sizes[0]),
            "size x norm": float(sizes @ np.log1p((X**2).sum(axis=1))),
        }

    return paired_one_step(make, statistics, n, seed=1)


def test_the_move_of_the_page_is_right():
    assert_z_scores_small(z_scores_of_swaps("Swap", 3000))


def test_a_wrong_one_is_noticed():
    z = z_scores_of_swaps("OneSided", 3000)
    assert max(map(abs, z.values())) > 6, z


def test_what_follows_from_a_move():
    """Counts, snapshots and single moves, without a line for them."""
    X = np.random.default_rng(0).normal(size=(20, 2))
    prior = gaussian_prior("full", np.zeros(2), 0.5, 8.0, 4.0 * np.eye(2))
    kind = swapping("Swap")
    one, other = (
        kind(X, prior, np.arange(20) % 3, np.random.PCG64(seed), n_split_merge=2)
        for seed in range(2)
    )
    for _ in range(10):
        one.sweep()
    accepted, proposed = one.acceptance()["swap"]
    assert 0 < accepted < proposed
    other.set_state(one.get_state())
    for _ in range(10):
        one.sweep()
        other.sweep()
    assert np.array_equal(one.labels, other.labels) and one.acceptance() == other.acceptance()


# -- a family

TIMES = np.array([[0.2, 1.0], [0.3, np.nan], [0.1, 0.6], [4.0, 9.0], [6.0, 3.0], [np.nan, 5.0]])
WAITING = _model.Prior(
    (ExponentialPrior(np.arange(2), np.array([1.5, 2.0]), np.array([1.0, 2.0])),),
    concentration=1.0,
)


def waiting_sampler(X, prior, label, seed=0, **options):
    family = compiled("gamma_exponential", FOLDER).GammaExponential
    kind = with_state(Sampler, _family_of=lambda state, X, p, start: family(X, p.shape, p.rate))
    return kind(X, prior, label, np.random.PCG64(seed), **options)


@pytest.mark.parametrize("algorithm", ["collapsed", "parallel"])
def test_the_family_of_the_page_by_enumeration(algorithm):
    exact = enumerate_posterior(TIMES, WAITING)
    options = dict(algorithm=algorithm, n_subset=1, n_split_merge=1)
    sampler = waiting_sampler(TIMES, WAITING, np.zeros(6, int), **options)
    z = partition_z_scores(sampler, lambda one: one.sweep(), exact, 8000)
    assert max(map(abs, z.values())) < 4, z
    state = {"label": sampler.labels, "concentration": 1.0, "discount": 0.0, "prior_scale": 1.0}
    assert sampler.log_joint() == pytest.approx(_model.log_joint(state, TIMES, WAITING))


@pytest.mark.parametrize("algorithm", ["collapsed", "parallel"])
def test_the_family_of_the_page_paired(algorithm):
    def make(rng):
        state, X = _model.draw_joint(WAITING, 8, rng)
        seed = int(rng.integers(2**62))
        return waiting_sampler(X, WAITING, state["label"], seed, algorithm=algorithm, n_subset=3)

    def statistics(sampler):
        size = np.bincount(sampler.labels)[sampler.labels]
        return {
            "clusters": float(sampler.n_clusters),
            "size x time": float(size @ np.tanh(sampler.completed_data()).sum(axis=1)),
            "log joint": sampler.log_joint(),
        }

    assert_z_scores_small(paired_one_step(make, statistics, 2000, seed=1))


# -- a model


SETTING = Setting("columns", GaussianColumns)
CHECKED = GaussianColumns(n_chains=2, n_warmup=5, n_draws=5, random_state=0)


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([CHECKED])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


class WrongMeans(Means):
    """The prior's precision left out of the mean's variance."""

    def run(self):
        before = self.state.prior
        self.state.prior = columns_model.Prior(1e8, before.shape, before.rate)
        status = super().run()
        self.state.prior = before
        return status


def z_scores_of_columns(kind, n=4000):
    prior = columns_model.Prior(1.0, 3.0, 3.0)
    holes = np.random.default_rng(5).random((6, 2)) < 0.2

    def make(rng):
        state, X = columns_model.draw_joint(prior, 6, 2, rng)
        bits = np.random.default_rng(rng.integers(2**62)).bit_generator
        sampler = kind(np.where(holes, np.nan, X), prior, bits)
        sampler.state.mean[:], sampler.state.precision[:] = state["mean"], state["precision"]
        return sampler

    def statistics(sampler):
        mean, log_precision = sampler.state.mean, np.log(sampler.state.precision)
        return {
            "mean": mean.sum(),
            "mean^2": mean @ mean,
            "log precision": log_precision.sum(),
            "log precision^2": log_precision @ log_precision,
            "product": (mean**2) @ log_precision,
            "log joint": sampler.log_joint(),
        }

    return paired_one_step(make, statistics, n, seed=1)


def test_the_sampler_of_the_page_is_right():
    assert_z_scores_small(z_scores_of_columns(ColumnsSampler))


def test_a_wrong_mean_is_noticed():
    wrong = type("Wrong", (ColumnsSampler,), {"MOVES": (WrongMeans, *ColumnsSampler.MOVES[1:])})
    assert max(map(abs, z_scores_of_columns(wrong).values())) > 6


def test_the_estimator_of_the_page(tmp_path):
    X = SETTING.table()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = SETTING.fit(X, n_draws=200)
        half = SETTING.fit(X, n_draws=100, warm_start=True)
        longer = half.set_params(n_draws=200).fit(X)
    loaded = GaussianColumns.load(fitted.save(tmp_path / "file") and tmp_path / "file")
    for other in (longer, loaded):
        assert np.array_equal(other.score_samples(X), fitted.score_samples(X))
    filled, std = fitted.impute(X, return_std=True)
    holes = np.isnan(X)
    assert np.array_equal(filled[~holes], X[~holes]) and (std[holes] > 0).all()
    assert np.abs(fitted.means_ - np.nanmean(X, axis=0)).max() < 0.2 * np.nanstd(X)
    assert fitted.sample(7, random_state=0).shape == (7, 3)
