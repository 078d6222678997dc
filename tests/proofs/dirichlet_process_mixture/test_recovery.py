"""Does it find what is there? Clusters, densities, missing cells, limits.

z-scores here have null N(0, 1) and limit 4: false alarm 6e-5 each, about 200 of them, fixed seeds.
"""

from functools import partial
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit
from sklearn.metrics import adjusted_rand_score

from checks.dirichlet_process_mixture import (
    case_data,
    case_prior,
    exact_posterior,
    gaussian_cases,
    make_sampler,
)
from checks.enumeration import canonical
from checks.monte_carlo import z_score, z_score_two_sample
from checks.proofs import proof, record
from checks.slow import slow_where
from skbnp import DirichletProcessMixture
from skbnp.dirichlet_process_mixture._model import STARTS, log_marginal
from skbnp.dirichlet_process_mixture._searching import COMPARED_SWEEPS
from skbnp.laws import Beta
from skbnp.samplers import MixtureSampler
from skbnp.summaries.partitions import expected_loss

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

KINDS = ["full", "diag", "spherical"]
PROCESSES = {
    "dirichlet process": {},
    "pitman-yor": {"discount": 0.3},
    "finite": {"n_components": 4},
}


def blobs(seed, n_clusters=8, n=240, d=5, apart=10.0):
    """Unit Gaussians whose centres are at least `apart` standard deviations from each other."""
    rng = np.random.default_rng(seed)
    while True:
        center = rng.uniform(-12, 12, (n_clusters, d))
        distance = np.linalg.norm(center[:, None] - center, axis=2)
        if distance[np.triu_indices(n_clusters, 1)].min() >= apart:
            break
    truth = np.arange(n) % n_clusters
    return center[truth] + rng.normal(size=(n, d)), truth


# -- clusters


# Too short for a chain to be compared with others and to go on from them.
UNCOMPARED = dict(n_warmup=2 * COMPARED_SWEEPS - 1, n_draws=300)


class OneChain(DirichletProcessMixture):
    """One chain from a given start."""

    start = STARTS[0]

    def _prepare(self, X):
        return partial(super()._prepare(X), start=self.start)


def consensus_from(start, seed, **options):
    X, truth = blobs(seed)
    dpm = OneChain(n_chains=1, random_state=seed, **options)
    dpm.start = start
    return adjusted_rand_score(dpm.fit(X).labels_, truth)


@proof(chains=(4, 20), seed=0, smoke=STARTS[0])
@pytest.mark.parametrize("start", STARTS)
def test_every_chain_finds_the_blobs(start, size, seed):
    for one in range(seed, seed + size):
        assert record(consensus_from(start, one, **UNCOMPARED)) == 1


@proof(chains=20, seed=0)
def test_without_split_merge_it_would_not(size, seed):
    """Gibbs alone sticks when all rows start in one block: the test above can fail."""
    alone = MixtureSampler(n_split_merge=0)
    seeds = range(seed, seed + size)
    found = [consensus_from("one_block", one, sampler=alone, **UNCOMPARED) for one in seeds]
    assert record(np.mean(np.array(found) == 1)) < 0.2


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("process", PROCESSES)
def test_number_of_clusters(kind, process):
    """Three round clusters: three is the most probable number, and few draws have many more."""
    X, truth = blobs(100, n_clusters=3, n=90, d=3)
    options = dict(PROCESSES[process])
    if kind == "spherical":  # one scale for all columns, so that round clusters stay round
        options["covariance_prior"] = 1.0
    dpm = DirichletProcessMixture(
        covariance_type=kind, n_chains=2, n_warmup=50, n_draws=200, random_state=0, **options
    ).fit(X)
    k = dpm.posterior_.traces["n_clusters"].astype(int)
    assert np.bincount(k.ravel()).argmax() == 3
    assert k.min() == 3 and k.mean() < 4.5
    assert adjusted_rand_score(dpm.labels_, truth) == 1
    assert_array_equal(dpm.predict(X), dpm.labels_)


@pytest.fixture(scope="module")
def ambiguous():
    """Three clusters that overlap, of unequal size."""
    rng = np.random.default_rng(3)
    center = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 4.0]])
    return center[rng.choice(3, 60, p=[0.5, 0.3, 0.2])] + rng.normal(size=(60, 2))


@pytest.mark.parametrize("loss", ["vi", "binder", "map"])
def test_point_estimates(ambiguous, loss):
    dpm = DirichletProcessMixture(
        point_estimate=loss, n_chains=2, n_warmup=50, n_draws=100, random_state=0
    ).fit(ambiguous)
    draws = np.array([draw["label"] for draw in dpm.posterior_], dtype=np.int32)
    kind = "vi" if loss == "map" else loss
    components = dpm.component_labels_
    assert_allclose(dpm.expected_loss_, expected_loss(components, draws, kind))
    if loss == "map":
        best = dpm.posterior_.traces["log_joint"].argmax()
        assert canonical(components.tolist()) == canonical(draws[best].tolist())
    else:
        assert dpm.expected_loss_ <= min(expected_loss(draw, draws, kind) for draw in draws) + 1e-9
        others = [np.zeros(60, int), np.arange(60), np.arange(60) % 3]
        # One cluster is the optimum for "vi" here.
        assert dpm.expected_loss_ <= min(expected_loss(x, draws, kind) for x in others) + 1e-9


def test_labels_by_size():
    """By decreasing size, ties by first row; predict_proba's columns and names follow."""
    sizes = [5, 20, 9, 9]
    truth = np.repeat(np.arange(4), sizes)
    X = blobs(0)[0].mean() + 30.0 * np.eye(4)[truth]
    X = X + np.random.default_rng(4).normal(size=X.shape)
    dpm = DirichletProcessMixture(n_chains=1, n_warmup=50, n_draws=50, random_state=0).fit(X)
    assert_array_equal(dpm.labels_, np.array([3, 0, 1, 2])[truth])
    assert_array_equal(np.bincount(dpm.labels_), [20, 9, 9, 5])
    assert_array_equal(dpm.predict_proba(X).argmax(axis=1), dpm.labels_)
    assert list(dpm.get_feature_names_out()) == [f"cluster{k}" for k in range(4)]


@pytest.mark.parametrize("kind", slow_where(KINDS, lambda kind: kind != "full"))
def test_rows_in_another_order(ambiguous, kind):
    """The same posterior: means of all traces and of whether rows are together. 60 z-scores."""
    rows = np.random.default_rng(5).permutation(60)
    options = dict(
        covariance_type=kind, n_chains=4, n_warmup=100, n_draws=1000, discount=Beta(1, 9)
    )
    one = DirichletProcessMixture(random_state=1, **options).fit(ambiguous)
    other = DirichletProcessMixture(random_state=2, **options).fit(ambiguous[rows])
    place = np.argsort(rows)  # where each row of the first is in the second

    z = {
        name: z_score_two_sample(trace, other.posterior_.traces[name])
        for name, trace in one.posterior_.traces.items()
    }
    shape = (4, 1000, 60)
    label = np.array([draw["label"] for draw in one.posterior_]).reshape(shape)
    label_other = np.array([draw["label"] for draw in other.posterior_]).reshape(shape)[..., place]
    for i, j in np.random.default_rng(6).integers(60, size=(15, 2)):
        if i != j:
            z[i, j] = z_score_two_sample(
                (label[..., i] == label[..., j]).astype(float),
                (label_other[..., i] == label_other[..., j]).astype(float),
            )
    assert max(map(abs, z.values())) < 4, z


def test_consensus_in_another_order():
    X, truth = blobs(1)
    rows = np.random.default_rng(7).permutation(len(X))
    options = dict(n_chains=1, n_warmup=50, n_draws=50, random_state=0)
    one = DirichletProcessMixture(**options).fit(X).labels_
    other = DirichletProcessMixture(**options).fit(X[rows]).labels_
    assert canonical(one[rows].tolist()) == canonical(other.tolist())


# -- densities


@pytest.fixture(scope="module")
def small():
    """2-d, N = 50."""
    rng = np.random.default_rng(8)
    X = rng.normal(size=(50, 2)) @ [[1.0, 0.5], [0.0, 0.7]]
    X[20:] += [4.0, 1.0]
    return X * [0.1, 50.0] + [3.0, -100.0]


def fit_small(X, kind, process, **options):
    return DirichletProcessMixture(
        covariance_type=kind,
        n_chains=2,
        n_warmup=50,
        n_draws=10,
        predict_draws=20,
        random_state=0,
        **PROCESSES[process],
        **options,
    ).fit(X)


def wide_grid(n, center, scale):
    """Points that crowd around the centre and reach 4,000 scales out, and their spacing."""
    u = np.linspace(-9, 9, n)
    return center + scale * np.sinh(u), scale * np.cosh(u) * (u[1] - u[0])


# Densities read kind and process apart: all of each, the combinations are slow tests.
densities = pytest.mark.parametrize(
    "process, kind",
    slow_where(
        product(PROCESSES, KINDS),
        lambda case: case[0] != "dirichlet process" and case[1] != "full",
    ),
)


@densities
def test_density_integrates_to_one(small, kind, process):
    """In two dimensions, in one given the other missing, and with half the cells removed.

    The heaviest tail is that of the new block, t with 3 degrees of freedom: about 1e-9 of it
    lies beyond the grid.
    """
    holed = small.copy()
    holed[::2, 1] = np.nan
    for X in (small, holed):
        dpm = fit_small(X, kind, process)
        x, dx = wide_grid(241, small[:, 0].mean(), small[:, 0].std())
        y, dy = wide_grid(241, small[:, 1].mean(), small[:, 1].std())
        grid = np.stack(np.meshgrid(x, y, indexing="ij"), axis=-1).reshape(-1, 2)
        density = np.exp(dpm.score_samples(grid)).reshape(len(x), len(y))
        assert_allclose(dx @ density @ dy, 1.0, atol=1e-4)

        only_x = np.column_stack([x, np.full(len(x), np.nan)])
        marginal = np.exp(dpm.score_samples(only_x))
        assert_allclose(dx @ marginal, 1.0, atol=1e-4)
        inner = slice(72, 169)
        assert_allclose((density @ dy)[inner], marginal[inner], rtol=1e-3)


@pytest.mark.parametrize(
    "process, kind",
    slow_where(product(PROCESSES, KINDS), lambda case: case != ("dirichlet process", "full")),
)
def test_samples_follow_the_density(small, kind, process):
    """E_p[q / (p + q)] = E_q[p / (p + q)] for any density q: Gaussians at several places.

    The ratios lie between 0 and 1, however little p and q overlap; a plain q / p would not. And
    given x the label of a sample has the probabilities of companions that predict_proba and
    novelty_proba state.
    """
    dpm = fit_small(small, kind, process)
    X, labels = dpm.sample(10_000, random_state=1)
    score = dpm.score_samples(X)
    rng = np.random.default_rng(2)
    z = {}
    for t, i in enumerate([0, 7, 30, 44]):
        for width in (0.3, 1.0, 3.0):
            scale = width * small.std(axis=0)

            def log_q(X, center=small[i], scale=scale):
                r = (X - center) / scale
                return -0.5 * np.sum(r**2, axis=1) - np.log(2 * np.pi * scale.prod())

            other = small[i] + scale * rng.normal(size=(10_000, 2))
            of_p = expit(log_q(X) - score)
            of_q = expit(dpm.score_samples(other) - log_q(other))
            error = np.sqrt((of_p.var() + of_q.var()) / 10_000)
            z[t, width] = (of_p.mean() - of_q.mean()) / error
    novelty = dpm.novelty_proba(X)
    share = dpm.predict_proba(X) * (1 - novelty)[:, None]
    for k in range(-1, dpm.n_clusters_):
        p = novelty if k == -1 else share[:, k]
        z["label", k] = np.sum((labels == k) - p) / np.sqrt(np.sum(p * (1 - p)))
        tilted = ((labels == k) - p) * np.tanh((X[:, 0] - small[:, 0].mean()) / small[:, 0].std())
        z["tilted", k] = tilted.sum() / np.sqrt(np.sum(tilted**2))
    assert max(map(abs, z.values())) < 4, z


def test_samples_of_one_draw(small):
    dpm = fit_small(small, "full", "dirichlet process")
    first = dpm.sample(10, random_state=3)
    again = dpm.sample(10, random_state=3)
    assert_array_equal(first[0], again[0])
    assert_array_equal(first[1], again[1])
    X, labels = dpm.sample()
    assert X.shape == (1, 2) and labels.shape == (1,)


@proof(seed=9)
def test_held_out_density_is_near_that_of_the_truth(seed):
    """400 rows of a known mixture: the loss per row is a few parameters over the rows.

    Null of the upper bound: twice the 27 parameters / (2 N) that maximum likelihood would lose.
    """
    rng = np.random.default_rng(seed)
    center, weight = np.array([[0.0, 0, 0], [4, 0, 2], [0, 5, -3]]), np.array([0.5, 0.3, 0.2])

    def draw(n):
        return center[rng.choice(3, n, p=weight)] + rng.normal(size=(n, 3))

    dpm = DirichletProcessMixture(n_chains=2, n_warmup=100, n_draws=100, random_state=0)
    dpm.fit(draw(400))
    test = draw(4000)
    squares = np.sum((test[:, None] - center) ** 2, axis=2)
    truth = np.log(np.exp(-0.5 * squares) @ weight) - 1.5 * np.log(2 * np.pi)
    loss = truth - dpm.score_samples(test)
    assert 0 < record(loss.mean()) < 27 / 400


# -- missing cells


ROOTS = {
    "full": [[1.0, 0.8, 0.3], [0.0, 0.5, 0.4], [0.0, 0.0, 0.6]],
    "diag": np.diag([1.0, 0.5, 2.0]),
    "spherical": np.eye(3),
}


def mixture_with_holes(kind, n, seed):
    """Three Gaussians of the kind, each row lacking one of its three cells at random."""
    rng = np.random.default_rng(seed)
    center = np.array([[0.0, 0, 0], [6, 1, 9], [-5, 8, 2]])
    X = center[rng.integers(3, size=n)] + rng.normal(size=(n, 3)) @ ROOTS[kind]
    holes = np.arange(3) == rng.integers(3, size=n)[:, None]
    return X, holes


@proof(seed=10)
@pytest.mark.parametrize("kind", KINDS)
def test_missing_cells(kind, seed):
    """Better than column means, in training rows and new ones, and as sure as it says.

    Clusters are known from the two other cells, so a cell is Gaussian up to the uncertainty of
    300 rows and lies within two standard deviations with probability 0.954: binomial z-score,
    one cell a row.
    """
    X, holes = mixture_with_holes(kind, 300, seed)
    holes &= np.random.default_rng(11).random((300, 1)) < 0.5
    holed = np.where(holes, np.nan, X)
    dpm = DirichletProcessMixture(
        covariance_type=kind, n_chains=2, n_warmup=50, n_draws=100, random_state=0
    ).fit(holed)

    def error(filled, data, where):
        return np.sqrt(np.mean((filled - data)[where] ** 2))

    means = np.broadcast_to(np.nanmean(holed, axis=0), X.shape)
    assert error(dpm.X_imputed_, X, holes) < 0.5 * error(means, X, holes)
    assert_array_equal(dpm.X_imputed_[~holes], X[~holes])

    X, holes = mixture_with_holes(kind, 1000, 12)
    holed = np.where(holes, np.nan, X)
    filled, std = dpm.impute(holed, return_std=True)
    means = np.broadcast_to(means[0], X.shape)
    assert error(filled, X, holes) < 0.5 * error(means, X, holes)
    assert filled[~holes].tobytes() == X[~holes].tobytes()
    assert (std[~holes] == 0).all()
    assert_array_equal(dpm.impute(holed), filled)
    # The best that can be done knows cluster and covariance: the conditional Gaussian.
    precision = np.linalg.inv(np.transpose(ROOTS[kind]) @ ROOTS[kind])
    best = np.sqrt(np.mean((1 / np.diag(precision))[np.nonzero(holes)[1]]))
    assert error(filled, X, holes) < 1.1 * best

    inside = np.abs(filled - X)[holes] < 2 * std[holes]
    p = 0.9545
    z = record((inside.mean() - p) / np.sqrt(p * (1 - p) / len(inside)))
    assert abs(z) < 4, inside.mean()
    # Squares of standardised errors: mean 1, variance 2 for Gaussians; 4 sd and 3 % for the t.
    squares = ((filled - X)[holes] / std[holes]) ** 2
    assert abs(squares.mean() - 1) < 4 * np.sqrt(2 / len(squares)) + 0.03


@proof(draws=(300, 3000), seed=0)
@pytest.mark.parametrize("kind", KINDS)
def test_imputed_training_rows_do_not_count_themselves(kind, size, seed):
    """The imputation of a row is that of a fit without it, up to Monte Carlo error.

    One row lies far out along its observed cells; were it to learn from its own imputed cell,
    the two would disagree.
    """
    X, _ = mixture_with_holes(kind, 60, 13)
    X[0, 2] = np.nan
    options = dict(covariance_type=kind, n_chains=4, n_warmup=50, n_draws=size, predict_draws=1200)
    within = DirichletProcessMixture(random_state=seed, **options).fit(X)
    std = within.impute(X[:1], return_std=True)[1][0, 2]
    without = DirichletProcessMixture(random_state=seed + 1, **options).fit(X[1:]).impute(X[:1])
    assert abs(record((within.X_imputed_[0, 2] - without[0, 2]) / std)) < 0.2


# -- limits


def probabilities_of_k(case, n=6):
    partitions, p, _ = exact_posterior(case)
    k = np.array([max(label) + 1 for label in partitions])
    return np.array([p[k == j].sum() for j in range(1, n + 1)])


def test_finite_mixtures_approach_the_dirichlet_process():
    """M = 3, 6, 20, 100 with the same concentration, by enumeration: the error is O(1 / M)."""
    case = gaussian_cases()["gauss-full DP"]
    limit = probabilities_of_k(case)
    assert_allclose(limit, case["prob_K"], atol=6e-9)
    distance = {}
    for m in (3, 6, 20, 100, 10_000):
        finite = {**case, "n_components": m, "discount": -case["alpha"] / m}
        distance[m] = 0.5 * np.abs(probabilities_of_k(finite) - limit).sum()
    values = list(distance.values())
    assert all(b < a for a, b in zip(values, values[1:], strict=False)), distance
    assert distance[100] < 0.01 and distance[10_000] < 1e-4
    assert distance[20] / distance[100] == pytest.approx(5, rel=0.2)


@proof(sweeps=(40_000, 200_000), seed=(0, 1))
@pytest.mark.parametrize("m", [6, 20, 100])
def test_finite_mixtures_are_sampled(m, size, seed):
    """The sampler between its two ends: |z| < 4 for each P(K) above 0.001, six at most."""
    case = gaussian_cases()["gauss-full DP"]
    case = {**case, "n_components": m, "discount": -case["alpha"] / m}
    sampler = make_sampler(case_data(case), case_prior(case), np.zeros(6, int), seed=m + seed)
    k = np.empty(size)
    for t in range(len(k)):
        sampler.sweep()
        k[t] = sampler.n_clusters
    exact = probabilities_of_k(case)
    z = {j: z_score((k == j).astype(float), exact[j - 1]) for j in range(1, 7)}
    assert max(abs(z[j]) for j in z if exact[j - 1] > 1e-3) < 4, z


@pytest.mark.parametrize("kind", KINDS)
def test_one_component_is_one_gaussian(kind):
    """n_components=1: the predictive t as a ratio of marginals, averaged over draws."""
    X = np.random.default_rng(14).normal(size=(200, 2)) @ [[1.0, 0.4], [0.0, 0.8]] + [5.0, -3.0]
    dpm = DirichletProcessMixture(
        n_components=1, covariance_type=kind, n_chains=1, n_warmup=10, n_draws=50, random_state=0
    ).fit(X)
    assert dpm.n_clusters_ == 1
    assert_array_equal(dpm.predict_proba(X), np.ones((200, 1)))
    assert_allclose(dpm.novelty_proba(X), 0.0, atol=1e-300)
    new = np.array([[5.0, -3.0], [4.0, 0.0], [100.0, 100.0]])
    center, scale = X.mean(axis=0), X.std(axis=0)
    standard, prior = (X - center) / scale, dpm._prior
    for row, density in zip((new - center) / scale, dpm.score_samples(new), strict=True):
        ratio = [
            log_marginal(np.vstack([standard, row]), prior, draw)
            - log_marginal(standard, prior, draw)
            for draw in (dpm.posterior_[0, t] for t in range(50))
        ]
        expected = np.logaddexp.reduce(ratio) - np.log(50) - np.log(scale).sum()
        assert_allclose(density, expected, atol=1e-9)
