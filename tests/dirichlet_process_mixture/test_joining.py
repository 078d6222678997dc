"""Clusters are components that overlap, joined: labels_, and all that follows them."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from skbnp import DirichletProcessMixture
from skbnp.dirichlet_process_mixture import _clustering
from skbnp.dirichlet_process_mixture._training_rows import TrainingRows
from skbnp.laws import Beta, ShiftedBetaNegativeBinomial
from skbnp.mcmc.io import FileFormatError
from skbnp.plot import CoclusteringDisplay
from skbnp.samplers import MixtureSampler
from skbnp.summaries.consensus import stable_consensus, support
from skbnp.summaries.joining import cluster_shares, joined_draws, joined_shares, merge_tree
from skbnp.summaries.partitions import credible_ball, expected_loss

quiet = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
SHORT = dict(n_chains=2, n_warmup=60, n_draws=40, random_state=0)


def skewed_pair(seed=1, n=240):
    """Two log-normal clusters, far apart."""
    rng = np.random.default_rng(seed)
    X = np.exp(0.5 * rng.normal(size=(n, 2)))
    truth = np.arange(n) % 2
    X[truth == 1] = 12.0 - X[truth == 1]
    return X, truth


@pytest.fixture(scope="module")
def pair():
    return skewed_pair()


@pytest.fixture(scope="module")
def fitted(pair):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return DirichletProcessMixture(**SHORT).fit(pair[0])


def again(model, X, **changes):
    """The same chains without another sweep."""
    other = DirichletProcessMixture(**SHORT | {"warm_start": True})
    vars(other).update(vars(model))
    return other.set_params(warm_start=True, **changes).fit(X)


def test_pieces_of_a_skewed_cluster_are_one(fitted, pair):
    X, truth = pair
    assert len(np.unique(fitted.component_labels_)) > 2
    assert fitted.n_clusters_ == 2 and adjusted_rand_score(truth, fitted.labels_) > 0.95
    assert np.median(fitted.merged_n_clusters_) == 2
    assert np.mean(fitted.predict(X) == fitted.labels_) > 0.98


@quiet
@pytest.mark.parametrize("kind", ["full", "diag"])
def test_holes_do_not_join_what_is_far_apart(kind, monkeypatch):
    """Two clusters in the first column alone, which three rows of ten lack."""
    rng = np.random.default_rng(1)
    truth = np.repeat([0, 1], 100)
    X = rng.normal(size=(200, 2))
    X[:, 0] += 10 * truth
    X[rng.random(200) < 0.3, 0] = np.nan
    X[7] = np.nan
    model = DirichletProcessMixture(covariance_type=kind, **SHORT)
    with pytest.warns(UserWarning, match="no observed value"):
        model.fit(X)
    known = ~np.isnan(X[:, 0])
    assert model.n_clusters_ == 2 and model.merge_tree_.overlap[-1] < 0.01
    assert adjusted_rand_score(truth[known], model.labels_[known]) > 0.99
    # By labels alone, and of a part of the rows, as in large tables.
    monkeypatch.setattr(_clustering, "_MANY_ROWS", 150)
    with pytest.warns(UserWarning, match="no observed value"):
        many = again(model, X)
    assert many.n_clusters_ == 2 and many.merge_tree_.overlap[-1] < 0.1


@quiet
@pytest.mark.parametrize("point_estimate", ["vi", "binder"])
def test_rows_that_may_be_of_either_cluster_do_not_make_them_one(point_estimate, tmp_path):
    """Half of the rows lack the column by which alone two of three clusters differ."""
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1, 2], [120, 90, 60])
    complete = np.array([[0, 0], [10, 0], [0, 10]])[truth] + rng.normal(size=(270, 2))
    X = complete.copy()
    X[rng.random(270) < 0.5, 0] = np.nan
    model = DirichletProcessMixture(point_estimate=point_estimate, **SHORT).fit(X)
    known = ~np.isnan(X[:, 0])
    assert model.n_clusters_ == 3 and set(model.merged_n_clusters_) == {3}
    assert adjusted_rand_score(truth[known], model.labels_[known]) == 1.0
    # Neither do they blur what is known of others, here and in a file.
    assert adjusted_rand_score(truth, model.predict(complete)) > 0.98
    proba = model.predict_proba(complete)
    assert np.mean(proba.max(axis=1) > 0.9) > 0.98
    model.save(tmp_path / "mixture.skbnp")
    loaded = DirichletProcessMixture.load(tmp_path / "mixture.skbnp")
    assert_array_equal(loaded.predict_proba(complete), proba)
    assert np.mean(model.predict(X) == model.labels_) > 0.98
    # Of the others all are of one of the two that they may be of, or of the third.
    assert adjusted_rand_score(truth == 2, model.labels_ == model.labels_[-1]) > 0.95
    for labels in (model.labels_, model.component_labels_):
        assert (np.diff(np.bincount(labels)) <= 0).all()
    assert_array_equal(model.merge_tree_.sizes, np.bincount(model.component_labels_))
    loss = expected_loss(
        model.component_labels_, [draw["label"] for draw in model.posterior_], point_estimate
    )
    assert_allclose(model.expected_loss_, loss)
    assert len(model.partition_info_["support"]) == 3


@quiet
@pytest.mark.parametrize("kind", ["full", "diag"])
@pytest.mark.parametrize("n_seen", [2, 5])
def test_a_column_that_is_nearly_empty_joins_nothing(kind, n_seen):
    """Each draw has a law of its own for it, under which cells of another draw are nowhere."""
    rng = np.random.default_rng(2)
    truth = np.repeat([0, 1, 2], 60)
    X = rng.normal(size=(180, 3)) @ rng.normal(size=(3, 3))
    X[:, :2] += 8.0 * np.array([[0, 0], [1, 0], [0, 1]])[truth]
    X[n_seen:, 2] = np.nan
    model = DirichletProcessMixture(covariance_type=kind, **SHORT).fit(X)
    assert model.n_clusters_ == 3 and adjusted_rand_score(truth, model.labels_) > 0.95
    assert model.merge_tree_.overlap[0] < 0.15 and np.median(model.merged_n_clusters_) == 3


@quiet
@pytest.mark.filterwarnings("ignore:X has 20 row")
def test_support_is_in_the_order_of_the_clusters():
    """Rows that lack cells move once clusters are numbered."""
    rng = np.random.RandomState(13)
    X = np.array([[0, 0], [3, 0], [0, 3]])[np.arange(120) % 3] + rng.randn(120, 2)
    X[rng.rand(120, 2) < 0.4] = np.nan
    model = DirichletProcessMixture(merge_overlap=None, **SHORT).fit(X)
    known = ~np.isnan(X).any(axis=1)
    found = support(model.labels_[known], [draw["label"][known] for draw in model.posterior_])
    assert_array_equal(np.argsort(found), np.argsort(model.partition_info_["support"]))
    assert len(found) == 3


@quiet
def test_gaussian_clusters_stay_apart():
    rng = np.random.default_rng(1)
    truth = np.arange(200) % 4
    X = 5.0 * np.array([[0, 0], [1, 0], [0, 1], [1, 1]])[truth] + rng.normal(size=(200, 2))
    model = DirichletProcessMixture(**SHORT).fit(X)
    assert model.n_clusters_ == 4 and adjusted_rand_score(truth, model.labels_) > 0.9
    assert len(model.merge_tree_.sizes) == 4 and model.merge_tree_.overlap.max() < 0.25


def test_attributes_are_their_definitions(fitted):
    draws = fitted.posterior_.evenly_spaced(40)
    labels = [draw["label"] for draw in draws]
    components, n = fitted.component_labels_, len(fitted.labels_)
    found, expected, info = stable_consensus(
        [draw["label"] for draw in fitted.posterior_.evenly_spaced(300)],
        max_work=10**8,
        random_state=fitted.seed_ % 2**32,
    )
    assert_array_equal(components, found)
    assert fitted.expected_loss_ == expected
    # Each row of the shares given all others.
    shares = cluster_shares(
        components, labels, [fitted._training_rows.shares(draw) for draw in draws]
    )
    tree = merge_tree(shares.T @ shares, np.bincount(components), "share", "capped")
    assert_array_equal(fitted.merge_tree_.pairs, tree.pairs)
    assert_array_equal(fitted.merge_tree_.overlap, tree.overlap)
    assert fitted.merge_tree_.rows[-1] == n
    joined = joined_draws(labels, 0.3, "share", "capped")
    assert_array_equal(fitted.merged_n_clusters_, [len(set(draw.tolist())) for draw in joined])
    assert len(fitted.partition_info_["support"]) == fitted.n_clusters_
    assert min(fitted.partition_info_["support"]) >= 0.5
    assert fitted.partition_info_["dropped"][: len(info["dropped"])] == info["dropped"]


@quiet
def test_probabilities_are_added_over_what_is_joined(fitted, pair):
    X = pair[0]
    apart = again(fitted, X, merge_overlap=None)
    assert_array_equal(apart.labels_, fitted.component_labels_)
    assert_array_equal(apart.component_labels_, fitted.component_labels_)
    assert_array_equal(apart.merge_tree_.overlap, fitted.merge_tree_.overlap)
    n_blocks = [draw["label"].max() + 1 for draw in fitted.posterior_.evenly_spaced(40)]
    assert_array_equal(apart.merged_n_clusters_, n_blocks)
    cluster = fitted.merge_tree_.cut(0.25)
    assert_array_equal(cluster[fitted.component_labels_], fitted.labels_)  # nothing was dropped
    new = np.r_[X[:20] + 0.1, [[6.0, 6.0], [np.nan, 1.0], [np.nan, np.nan]]]
    proba = fitted.predict_proba(new)
    assert proba.shape == (23, 2)
    assert_allclose(proba, joined_shares(apart.predict_proba(new), cluster), atol=1e-12)
    assert_array_equal(fitted.transform(new), proba)
    assert_array_equal(fitted.predict(new), proba.argmax(axis=1))
    assert list(fitted.get_feature_names_out()) == ["cluster0", "cluster1"]
    assert_allclose(fitted.novelty_proba(new), apart.novelty_proba(new), rtol=1e-12)
    assert_array_equal(fitted.score_samples(new), apart.score_samples(new))
    rows, labels = fitted.sample(200, random_state=0)
    assert_array_equal(rows, apart.sample(200, random_state=0)[0])
    assert set(labels) <= {-1, 0, 1}


@quiet
def test_pairs_are_in_one_cluster_as_their_blocks_are(fitted):
    """By definition: labels of two training rows drawn from the blocks of a draw."""
    labels, together = fitted.labels_, 0.0
    draws = [draw["label"] for draw in fitted.posterior_.evenly_spaced(300)]
    for draw in draws:
        of_row = np.array([[np.mean(labels[draw == b] == k) for k in (0, 1)] for b in draw])
        together = together + of_row @ of_row.T / len(draws)
    np.fill_diagonal(together, 1.0)
    assert_allclose(fitted.coclustering(), together, atol=1e-12)
    assert_array_equal(
        fitted.coclustering([4, -1, 4], [4, 30]), fitted.coclustering()[np.ix_([4, -1, 4], [4, 30])]
    )


@quiet
def test_sets_of_partitions_are_of_joined_draws(fitted, pair):
    apart = again(fitted, pair[0], merge_overlap=None)
    labels = [draw["label"] for draw in fitted.posterior_.evenly_spaced(40)]
    joined = joined_draws(labels, 0.3, "share", "capped")
    found = fitted.credible_ball(0.9)
    assert found.radius == credible_ball(fitted.labels_, joined, "vi", level=0.9).radius
    for model in (fitted, apart):
        together = model.coclustering([0, 3], "all", joined=False)
        assert_array_equal(together, apart.coclustering([0, 3], "all"))
        assert model.credible_ball(joined=False).radius == apart.credible_ball().radius
    assert (fitted.coclustering() >= fitted.coclustering(joined=False) - 0.15).all()
    with pytest.raises(ValueError, match="joined must be a bool, got 1"):
        fitted.coclustering(joined=1)


@quiet
def test_rows_that_lack_cells_stay_in_the_blocks_of_each_draw():
    """What they might be if complete says which blocks overlap, and not where they are."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)) + (np.arange(60) % 2)[:, np.newaxis] * 8
    X[:10] = np.nan, np.nan, 4.0
    model = DirichletProcessMixture(**SHORT).fit(X)
    together = model.coclustering(range(10), range(10, 60))
    assert np.ptp(together, axis=0).max() < 0.4 and np.ptp(together[:, ::2]) < 0.5
    for draw, joined in zip(
        model.posterior_.evenly_spaced(40), model._joined_label_draws(), strict=True
    ):
        n_clusters = [len(set(joined[draw["label"] == k])) for k in range(draw["label"].max() + 1)]
        assert set(n_clusters) == {1}
    assert not (model.coclustering() < model.coclustering(joined=False) - 0.2).any()


@quiet
def test_joins_are_those_of_the_fit(fitted, pair, tmp_path):
    model = again(fitted, pair[0])
    found = model.coclustering(), model.credible_ball().radius, str(model.report())
    model.set_params(merge_overlap=None)
    model.save(tmp_path / "mixture")
    for one in (model, DirichletProcessMixture.load(tmp_path / "mixture")):
        assert_array_equal(one.coclustering(), found[0])
        assert one.credible_ball().radius == found[1] and str(one.report()) == found[2]


@quiet
def test_rows_of_one_gaussian_are_together():
    """Components that are copies of one another are no clusters (seen: .43 without joins)."""
    X = np.random.default_rng(0).normal(size=(150, 3))
    model = DirichletProcessMixture(max_work=0.5, random_state=0).fit(X)
    assert model.n_clusters_ == 1
    assert model.coclustering(joined=False).mean() < 0.6
    assert model.coclustering().mean() > 0.95
    assert model.credible_ball().radius < 0.1
    display = CoclusteringDisplay.from_estimator(model, rows=[0, 1, 2])
    assert_array_equal(display.probability, model.coclustering([0, 1, 2]))


@quiet
def test_changed_after_sampling(fitted, pair):
    X = pair[0]
    all_one = again(fitted, X, merge_overlap=1e-12)
    assert all_one.n_clusters_ <= 2 and all_one.seed_ == fitted.seed_
    for loss in ("binder", "map"):
        other = again(fitted, X, point_estimate=loss)
        assert other.posterior_.n_draws == fitted.posterior_.n_draws
        assert other.n_clusters_ == 2 and len(other.merge_tree_.sizes) > 2
        assert len(other.partition_info_["support"]) == 2
        if loss == "map":
            best = fitted.posterior_.highest()["label"]
            assert adjusted_rand_score(best, other.component_labels_) == 1.0
    more = again(fitted, X, n_draws=60)
    assert more.posterior_.n_draws == 60 and more.n_clusters_ == 2
    with pytest.raises(ValueError, match=r"goes on with the chains .* differs in .*thin"):
        again(fitted, X, thin=2)


def joining_warnings(X, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = DirichletProcessMixture(**SHORT | options).fit(X)
    return model, [str(one.message) for one in caught if "joined from" in str(one.message)]


def test_few_draws_are_not_joined(pair):
    X = pair[0]
    model, found = joining_warnings(X, n_chains=3, n_draws=13)
    assert found == [
        "components that overlap are joined from 40 draws on, got 39: labels_ are "
        "component_labels_. Raise n_draws, or set merge_overlap=None"
    ]
    assert_array_equal(model.labels_, model.component_labels_)
    assert model.labels_ is not model.component_labels_
    assert model.n_clusters_ == len(model.merge_tree_.sizes) > 2
    assert len(model.merged_n_clusters_) == 39
    assert len(model.partition_info_["support"]) == model.n_clusters_
    for options in (dict(n_draws=20), dict(n_draws=5, merge_overlap=None)):
        assert joining_warnings(X, **options)[1] == []
    # Draws that were let go count for nothing.
    assert len(joining_warnings(X, store=0.03)[1]) == 1


@quiet
def test_a_part_of_many_rows(fitted, pair, monkeypatch):
    X = pair[0]
    monkeypatch.setattr(_clustering, "_MANY_ROWS", 100)

    def never(self, draw):
        pytest.fail("all rows were looked at")

    monkeypatch.setattr(TrainingRows, "shares", never)
    model = again(fitted, X)
    assert_array_equal(model.component_labels_, fitted.component_labels_)
    assert model.n_clusters_ == 2
    assert adjusted_rand_score(model.labels_, fitted.labels_) > 0.95
    assert model.merge_tree_.rows[-1] == len(X)
    assert_array_equal(again(fitted, X).merge_tree_.overlap, model.merge_tree_.overlap)


def test_files(fitted, pair, tmp_path):
    fitted.save(tmp_path / "file")
    loaded = DirichletProcessMixture.load(tmp_path / "file")
    for name in ("labels_", "component_labels_", "merged_n_clusters_"):
        assert_array_equal(getattr(loaded, name), getattr(fitted, name))
    for name in ("sizes", "pairs", "overlap", "rows"):
        assert_array_equal(getattr(loaded.merge_tree_, name), getattr(fitted.merge_tree_, name))
    assert loaded.merge_overlap == 0.3
    assert_array_equal(loaded.predict_proba(pair[0]), fitted.predict_proba(pair[0]))


@pytest.mark.parametrize(
    ("name", "value", "match"),
    [
        ("component_labels_", np.zeros(3, dtype=int), "component_labels_ must have one entry"),
        ("component_labels_", np.zeros(240, dtype=int), "component_labels_ must be 0 to"),
        ("component_labels_", np.full(240, 10**12), "component_labels_ must be 0 to"),
        ("component_labels_", None, "its component_labels_ is a NoneType"),
        ("merged_n_clusters_", np.zeros(40, dtype=int), "integers from 1 to 240"),
        ("merged_n_clusters_", np.full(40, 241), "integers from 1 to 240"),
        ("merged_n_clusters_", np.ones(40), "one number per draw"),
        ("merged_n_clusters_", np.empty(0, dtype=int), "one number per draw"),
        ("merge_tree_", merge_tree(np.eye(2), [120, 120]), "component_labels_ must be 0 to 1"),
        ("merge_tree_", None, "its merge_tree_ is a NoneType"),
    ],
)
def test_files_that_were_spoiled(fitted, tmp_path, name, value, match):
    model = DirichletProcessMixture()
    vars(model).update(vars(fitted))
    setattr(model, name, value)
    model.save(tmp_path / "file")
    with pytest.raises(FileFormatError, match=match):
        DirichletProcessMixture.load(tmp_path / "file")


def test_a_tree_of_other_components(fitted, tmp_path):
    tree = fitted.merge_tree_
    model = DirichletProcessMixture()
    vars(model).update(vars(fitted))
    model.merge_tree_ = merge_tree(np.eye(len(tree.sizes)), tree.sizes[::-1])
    model.save(tmp_path / "file")
    with pytest.raises(FileFormatError, match="sizes of merge_tree_"):
        DirichletProcessMixture.load(tmp_path / "file")


@quiet
@pytest.mark.parametrize(
    "options",
    [
        {"covariance_type": "diag"},
        {"covariance_type": "spherical"},
        {"n_components": ShiftedBetaNegativeBinomial(1, 4, 3)},
        {"n_components": 8, "sampler": MixtureSampler(algorithm="gibbs")},
        {"sampler": MixtureSampler(algorithm="parallel")},
        {"discount": Beta(1, 9)},
    ],
    ids=str,
)
def test_all_kinds_of_mixtures(pair, options):
    X, truth = pair[0].copy(), pair[1]
    X[::9, 1] = np.nan
    model = DirichletProcessMixture(**SHORT | {"n_draws": 30} | options).fit(X)
    assert adjusted_rand_score(truth, model.labels_) > 0.9
    assert model.n_clusters_ < len(model.merge_tree_.sizes)
    assert model.predict_proba(X).shape == (len(X), model.n_clusters_)


def test_rows_that_only_just_are_one_cluster_are_told_so():
    """Two Gaussians that touch, under a limit a tenth below their overlap, and half of it."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(300, 2)) + 3.0 * (np.arange(300) % 2)[:, np.newaxis] * [1, 0]
    options = dict(n_chains=2, n_warmup=60, n_draws=60, random_state=0, warm_start=True)
    model = DirichletProcessMixture(**options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X)
    tree = model.merge_tree_
    assert len(tree.sizes) > 1
    close = model.set_params(merge_overlap=tree.overlap.min() / 1.1)
    with pytest.warns(UserWarning, match="all rows are one cluster because .* keeps . apart"):
        close.fit(X)
    assert close.n_clusters_ == 1 and close.partition_info_["joined_across"] == 0.0
    far = model.set_params(merge_overlap=tree.overlap.min() / 2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        far.fit(X)
    assert far.n_clusters_ == 1
    assert not [one for one in caught if "all rows are one cluster" in str(one.message)]


def test_draws_that_join_what_labels_keep_apart_are_named(monkeypatch, pair):
    """Clusters of all draws, and draws each of whose blocks are joined to one."""
    X = pair[0]
    whole = [np.zeros(len(X), dtype=np.int8)] * 40
    module = "skbnp.dirichlet_process_mixture._clustering"
    monkeypatch.setattr(f"{module}.joined_draws", lambda *_, **__: whole)
    monkeypatch.setattr(f"{module}.support", lambda labels, *_: np.ones(labels.max() + 1))
    monkeypatch.setattr(f"{module}.drop_unsupported", lambda labels, *_, **__: (labels, []))
    with pytest.warns(UserWarning, match="100% are together in single draws, .* to 1 as a rule"):
        model = DirichletProcessMixture(**SHORT).fit(X)
    assert model.partition_info_["joined_across"] == 1.0
