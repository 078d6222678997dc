"""90 % intervals of missing cells hold 90 % of them: training rows and new ones.

Tables are drawn from known laws and a fifth of their cells removed. Cells of a table depend on one
another, so errors come from the spread between tables: of T of them, |mean - .9| < 4 s / sqrt(T).
"""

from copy import copy

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import logsumexp

from checks.proofs import proof, record
from skbnp import DirichletProcessMixture
from skbnp.dirichlet_process_mixture import _cells, _model
from skbnp.mcmc.posterior import Posterior

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

LEVEL, WIDTH, SHARE, N_TABLES = 0.9, 1.645, 0.2, 200
# Three binomial errors of 640 cells.
BOUND = 0.035
NUMBERS = {
    **dict(mean_prior=[0.0, 0.0, 0.0], mean_precision_prior=0.1, degrees_of_freedom_prior=8.0),
    **dict(covariance_prior=np.diag([4.0, 3.0, 2.0]) + 1.0, prior_scale=1.0, concentration=1.0),
}


def holed(X, rng):
    """The table with a fifth of its cells removed, a row and a column never as a whole."""
    holes = rng.random(X.shape) < SHARE
    holes[holes.all(axis=1), 0] = False
    holes[:4] = False
    return np.where(holes, np.nan, X)


def from_the_prior(rng, n=140):
    """Rows of one mixture, whose prior is that of ``NUMBERS``."""
    part = _model.GaussianPrior(
        np.arange(3),
        "full",
        np.array(NUMBERS["mean_prior"]),
        NUMBERS["mean_precision_prior"],
        NUMBERS["degrees_of_freedom_prior"],
        NUMBERS["covariance_prior"],
    )
    prior = _model.Prior((part,), concentration=1.0, discount=0.0, prior_scale=1.0)
    return _model.draw_joint(prior, n, rng)[1]


def of_three_factors(rng, n=140, d=10):
    """Rows of one normal law: loadings normal, unique variances .3."""
    return rng.normal(size=(n, 3)) @ rng.normal(size=(3, d)) + 0.3**0.5 * rng.normal(size=(n, d))


def of_three_clusters(rng, n=100, d=20):
    """Rows of three such laws, each about its own mean."""
    cluster = rng.integers(3, size=n)
    X = 0.7 * np.concatenate([of_three_factors(rng, k, d) for k in np.bincount(cluster)])
    return (X + np.repeat(1.5 * rng.normal(size=(3, d)), np.bincount(cluster), axis=0))[
        rng.permutation(n)
    ]


def fitted(X, **options):
    options = dict(n_chains=2, n_warmup=100, n_draws=100, random_state=0) | options
    return DirichletProcessMixture(merge_overlap=None, **options).fit(X)


def inside(truth, given, answer):
    """Share of the removed cells within 1.645 standard deviations of what was filled in."""
    (mean, std), holes = answer, np.isnan(given)
    return np.mean(np.abs(truth - mean)[holes] <= WIDTH * std[holes])


def between(truth, given, tables):
    """Share of the removed cells between quantiles of completed tables."""
    low, high = np.quantile(tables, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    return np.mean(((truth >= low) & (truth <= high))[np.isnan(given)])


def shares(X, n, rng, **options):
    """Of one table, n rows to learn from: both shares, of training rows and of new ones."""
    given = holed(X, rng)
    model = fitted(given[:n], **options)
    found = []
    for rows in (slice(n), slice(n, None)):
        truth, some = X[rows], given[rows]
        found.append(between(truth, some, model.sample_missing(some, N_TABLES, random_state=0)))
        found.append(inside(truth, some, model.impute(some, return_std=True)))
    return found


@proof(tables=(20, 200), seed=1)
def test_tables_from_the_prior(size, seed):
    """The law of the model itself: quantiles are exact in the mean over tables, at any size."""
    rng = np.random.default_rng(seed)
    found = np.array([shares(from_the_prior(rng), 40, rng, **NUMBERS)[::2] for _ in range(size)])
    error = found.std(axis=0, ddof=1) / np.sqrt(len(found))
    assert (error < 0.02).all()
    for z in (found.mean(axis=0) - LEVEL) / error:
        assert abs(record(z)) < 4, found.mean(axis=0)


@proof(seed=2)
def test_defaults_on_one_normal_law(seed):
    """The learned prior is not exact: 10 columns, 4 tables, some 700 and 400 cells; within .035."""
    rng = np.random.default_rng(seed)
    found = np.array([shares(of_three_factors(rng), 90, rng) for _ in range(4)])
    for share in found.mean(axis=0):
        assert abs(record(share) - LEVEL) < BOUND, found.mean(axis=0)


def by_density(model, rows):
    """What `impute` must not do: each draw weighed by its density of the row's observed cells."""
    model = copy(model)
    vars(model).pop("_training_cells")
    logs, means, variances = [], [], []
    for draw in model.posterior_.evenly_spaced(50):
        model.posterior_ = Posterior([[draw]], {"log_joint": np.zeros((1, 1))})
        logs.append(model.score_samples(rows))
        mean, std = model.impute(rows, return_std=True)
        means.append(mean)
        variances.append(std**2)
    weight = np.exp(logs - logsumexp(logs, axis=0))[:, :, np.newaxis]
    mean = np.sum(weight * means, axis=0)
    return mean, np.sqrt(np.sum(weight * (variances + (means - mean) ** 2), axis=0))


@proof(seed=3)
@pytest.mark.filterwarnings("ignore:covariance_type=:UserWarning")
def test_wrong_intervals_are_seen(monkeypatch, seed):
    """New rows of 20 columns, 640 cells: deviations of the means alone, and weights of draws."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(4):
        X = of_three_clusters(rng)
        given = holed(X, rng)
        model, new = fitted(given[:60]), given[60:]
        answers = [model.impute(new, return_std=True), by_density(model, new)]
        with monkeypatch.context() as patch:
            right = _cells.conditional_moments

            def without_spread(*arguments, right=right):
                mean, variance = right(*arguments)
                return mean, 0.0 * variance

            patch.setattr(_cells, "conditional_moments", without_spread)
            answers.append(model.impute(new, return_std=True))
        found.append([inside(X[60:], new, answer) for answer in answers])
    right, weighed, of_means = map(record, np.mean(found, axis=0))
    assert abs(right - LEVEL) < BOUND, right
    assert LEVEL - weighed > BOUND, weighed
    assert LEVEL - of_means > BOUND, of_means


def test_guess_at_the_covariance_is_not_singular():
    """Pairwise correlations of incomplete rows are: columns would be known from the others."""
    rng = np.random.default_rng(3)
    X = of_three_factors(rng, n=103, d=14)
    X = (X - X.mean(axis=0)) / X.std(axis=0)

    def least(X):
        """The smallest variance of a column given all others."""
        return 1 / np.diag(np.linalg.inv(_model.shrunk_correlation(X))).max()

    assert least(X) > 0.02
    assert least(holed(X, rng)) > least(X)
    few_holes = np.where(np.arange(103)[:, np.newaxis] < 70, X, holed(X, rng))
    assert_allclose(_model.shrunk_correlation(few_holes), 0.99 * np.corrcoef(X.T), atol=0.15)
    off = ~np.eye(14, dtype=bool)
    assert np.abs(_model.shrunk_correlation(holed(X, rng))[off]).max() <= 0.5
