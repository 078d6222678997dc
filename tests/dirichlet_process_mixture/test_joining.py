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
from skbnp.dirichlet_process_mixture._unbounded import _dependence
from skbnp.laws import Beta, ShiftedBetaNegativeBinomial
from skbnp.mcmc.io import FileFormatError
from skbnp.mcmc.remedies import Illness
from skbnp.plot import CoclusteringDisplay
from skbnp.samplers import MixtureSampler
from skbnp.summaries.consensus import stable_consensus, support
from skbnp.summaries.joining import cluster_shares, joined_draws, joined_shares, merge_tree
from skbnp.summaries.partitions import coclustering, credible_ball, expected_loss

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
def test_copies_of_rows_are_named_where_they_make_components(recwarn):
    truth = np.repeat([0, 1], 15)
    X = 6.0 * truth[:, None] + np.random.default_rng(0).normal(size=(30, 3))
    short = SHORT | {"n_draws": 60}
    DirichletProcessMixture(**short).fit(X)
    assert not [one for one in recwarn if "densities have no bound" in str(one.message)]
    with pytest.warns(UserWarning, match="are in components of rows that are equal in all real"):
        model = DirichletProcessMixture(**short).fit(np.repeat(X, 3, axis=0))
    n_copies = model.partition_info_["copies"]
    assert 45 < n_copies <= 90 and model.partition_info_["ties"] == []
    report = " ".join(str(model.report()).split())
    assert f"and densities of rows ({n_copies} rows are in groups of equal rows)" in report
    assert f"the number of clusters ({n_copies} rows are in groups of equal rows)" in report
    # Levels may be equal in all rows of a component.
    levels = np.repeat(truth, 2)[:, np.newaxis]
    names = DirichletProcessMixture(family="categorical", **short).fit(levels)
    assert names.partition_info_["copies"] == 0


def with_two_values(n=120):
    """Rows of one cluster, of which the second column has two values or none."""
    X = np.random.default_rng(0).normal(size=(n, 3))
    X[:, 1] = np.where(np.arange(n) % 2, 0.3, -0.3)
    X[:10, 1] = np.nan
    return X


@quiet
def test_columns_of_single_values_are_named_where_components_follow_them(recwarn):
    X, short = with_two_values(), SHORT | {"n_draws": 60}
    model = DirichletProcessMixture(**short).fit(X)
    assert [one["column"] for one in model.partition_info_["ties"]] == [1]
    assert model.partition_info_["ties"][0]["share"] > 0.8
    assert model.partition_info_["ties"][0]["n_chains"] == 2
    assert [one for one in recwarn if "have one value in column(s) 1" in str(one.message)]
    report = " ".join(str(model.report()).split())
    assert "of the rows have one value in column(s) 1" in report
    assert "make columns of few values names" in report.lower()
    recwarn.clear()
    binary = X.copy()
    binary[:, 1] = np.where(np.isnan(X[:, 1]), np.nan, X[:, 1] > 0)
    kinds = ["gaussian", "bernoulli", "gaussian"]
    model = DirichletProcessMixture(family=kinds, **short).fit(binary)
    assert model.partition_info_["ties"] == []
    assert not [one for one in recwarn if "have one value" in str(one.message)]


def with_a_sum(n_wrong, n=150):
    """Two columns and their sum, which is wrong by seven in the first rows."""
    X = np.random.default_rng(0).normal(50, 10, (n, 2)).round(1)
    X = np.c_[X, X.sum(axis=1)]
    X[:n_wrong, 2] += 7
    return X


@quiet
@pytest.mark.parametrize("n_wrong", [0, 3])
def test_columns_that_follow_from_others_within_components(n_wrong, recwarn):
    model = DirichletProcessMixture(**SHORT | {"n_draws": 60}).fit(with_a_sum(n_wrong))
    found = model.partition_info_["dependent"]
    assert found["columns"] == [0, 1, 2] and found["share"] > 0.9 and found["n_chains"] == 2
    assert found["whole_table"] == (n_wrong == 0)
    assert model.partition_info_["ties"] == []
    # Said once, before sampling where it can be.
    said = [str(one.message) for one in recwarn if "follow from others" in str(one.message)]
    beforehand = [one for one in said if one.startswith("X should have no columns that follow")]
    assert len(beforehand) == (n_wrong == 0)
    advice = model._lacks_of_chains().advice
    assert len(said) == 1 + (n_wrong == 0 and bool(advice))
    assert all("columns that follow from others" in one.finding for one in advice)
    report = " ".join(str(model.report()).split())
    assert "Not to be trusted yet: densities of rows" in report
    assert "To be trusted: how well rows are described" not in report
    assert "leave out what follows from the rest" in report.lower()


def test_laws_of_their_own_are_a_bound():
    """One law of nearly all rows counts, however these are divided; one for each component not."""
    X, halves = with_a_sum(0), np.repeat([0, 1], 75)
    share, columns = _dependence(X, halves)
    assert share == 1.0 and columns.tolist() == [0, 1, 2]
    X[140:, 2] += np.arange(10) + 1.0
    share, columns = _dependence(X, np.repeat([0, 1, 2], [70, 70, 10]))
    assert share == pytest.approx(140 / 150) and columns.tolist() == [0, 1, 2]
    of_each = with_a_sum(0)
    of_each[75:, 2] = 3.0 * of_each[75:, 0]
    assert _dependence(of_each, halves)[0] == 0.0
    # The same law with another constant.
    assert _dependence(with_a_sum(75), halves)[0] == 0.0


@quiet
def test_columns_that_vary_follow_from_no_others():
    """Correlations of .999, in units far apart, and rows of two laws."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 1)) + 0.04 * rng.normal(size=(150, 3))
    X[:70] += 5
    for table in (X, X * [1e-200, 1.0, 1e200]):
        model = DirichletProcessMixture(**SHORT).fit(table)
        assert model.partition_info_["dependent"] == {}
    diagonal = DirichletProcessMixture(covariance_type="diag", **SHORT).fit(with_a_sum(0))
    assert diagonal.partition_info_["dependent"] == {}
    # A prior that is given is a bound.
    given = DirichletProcessMixture(covariance_prior=200.0 * np.eye(3), **SHORT).fit(with_a_sum(0))
    assert np.bincount(given.component_labels_).max() > 100
    assert given.partition_info_["dependent"] == {}


@quiet
def test_a_law_of_columns_hides_no_ties(recwarn):
    X = np.c_[with_a_sum(3), np.arange(150) % 2]
    model = DirichletProcessMixture(**SHORT | {"n_draws": 60}).fit(X)
    assert model.partition_info_["dependent"] and model.partition_info_["ties"]
    said = " ".join(str(one.message) for one in recwarn)
    assert "follow from others" in said and "and those of" in said
    assert "have one value in column(s) 3" in said and "make columns of few values names" in said


@quiet
def test_ties_are_no_copies_where_cells_are_missing():
    """The only column that varies has two values; rows are copies where it has no holes."""
    X, short = with_two_values()[:, 1:2], SHORT | {"n_draws": 60}
    with pytest.warns(UserWarning):
        model = DirichletProcessMixture(**short).fit(X)
    (found,) = model.partition_info_["ties"]
    assert (found["column"], found["n_chains"]) == (0, 2) and found["share"] > 0.9
    with pytest.warns(UserWarning, match="are in components of rows that are equal in all real"):
        model = DirichletProcessMixture(**short).fit(X[10:])
    assert model.partition_info_["ties"] == [] and model.partition_info_["copies"] > 60


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
def test_columns_of_single_values_come_first_where_chains_disagree():
    """One chain alone follows them; more chains would not help."""
    model = DirichletProcessMixture(**SHORT).fit(with_two_values())
    ties = [{"column": 1, "share": 0.9, "n_chains": 1}]
    model.partition_info_["ties"] = ties
    found = model._lacks_of_chains()
    (advice,) = found.advice
    assert found.problems and advice.illness is Illness.UNBOUNDED
    assert "of 90% of the rows, in 1 of 2 chains, have one value in column(s) 1" in advice.finding
    model.partition_info_["ties"] = []
    assert "one value" not in model._lacks_of_chains().to_do()


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
    tree = merge_tree(shares.T @ shares, np.bincount(components), "share")
    assert_array_equal(fitted.merge_tree_.pairs, tree.pairs)
    assert_array_equal(fitted.merge_tree_.overlap, tree.overlap)
    assert fitted.merge_tree_.rows[-1] == n
    joined = joined_draws(labels, 0.285, "share")
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
def test_sets_of_partitions_are_of_joined_draws(fitted, pair):
    apart = again(fitted, pair[0], merge_overlap=None)
    labels = [draw["label"] for draw in fitted.posterior_.evenly_spaced(40)]
    joined = joined_draws(labels, 0.285, "share")
    assert_array_equal(fitted.coclustering(), coclustering(joined))
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
    model = DirichletProcessMixture(random_state=0).fit(X)
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
    assert loaded.merge_overlap == 0.285
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
