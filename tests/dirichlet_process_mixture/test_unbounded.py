"""Components along which densities have no bound are named: copies, ties, dependent columns."""

import numpy as np
import pytest

from skbnp import DirichletProcessMixture
from skbnp.dirichlet_process_mixture._unbounded import _dependence, _rows_of_copies
from skbnp.mcmc.remedies import Illness
from skbnp.reports import convergence

quiet = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
SHORT = dict(n_chains=2, n_warmup=60, n_draws=40, random_state=0)


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
    why = f"({n_copies} rows are in groups of equal rows)"
    assert f"and densities of rows {why}" in report and f"the number of clusters {why}" in report
    assert model.partition_info_["near_copies"] == 0
    # Levels may be equal in all rows of a component.
    levels = np.repeat(truth, 2)[:, np.newaxis]
    names = DirichletProcessMixture(family="categorical", **short).fit(levels)
    assert names.partition_info_["copies"] == 0


@quiet
def test_rows_that_were_measured_twice_are_named():
    """In chains longer than these every pair has a component of its own."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    twice = np.concatenate([X, X + 1e-3 * rng.normal(size=X.shape)])
    assert DirichletProcessMixture(**SHORT).fit(X).partition_info_["near_copies"] == 0
    model = DirichletProcessMixture(**SHORT).fit(twice)
    model.component_labels_ = np.tile(np.arange(60), 2)
    model._find_unbounded(twice)
    assert model.partition_info_["near_copies"] == 120
    with pytest.warns(UserWarning, match="120 rows are in components of a few rows that are nearl"):
        model._judge_chains()
    words = " ".join(str(model.report()).split())
    assert "(120 rows are in groups of a few that are nearly equal)" in words
    assert "With care: which cluster a row is of, and densities of rows" in words
    verdicts = model.report().sections["chains"].verdicts
    assert verdicts and all(one.part != convergence.DENSITY for one in verdicts)
    (advice,) = model._lacks_of_chains().advice
    assert advice.illness is Illness.UNBOUNDED


def test_few_rows_that_are_near_by_chance_are_none():
    """Pairs of rows at a tenth of the usual distance: two of them are no news, three are."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 3)) * [1.0, 1e3, 0.0]
    components = np.repeat([0, 1, 2, 3], [54, 2, 2, 2])
    assert _rows_of_copies(X, components) == (0, 0)
    for n_pairs, n_near in ((2, 0), (3, 6)):
        near = X.copy()
        for k in range(1, n_pairs + 1):
            first, second = np.flatnonzero(components == k)
            near[second] = near[first] * [1 + 1e-3, 1 - 1e-3, 1.0]
        assert _rows_of_copies(near, components) == (0, n_near)
    # At about half of the usual distance they are neighbours and no more.
    half = X.copy()
    for k in (1, 2, 3):
        first, second = np.flatnonzero(components == k)
        half[second] = half[first] + 0.08 * X.std(axis=0)
    assert _rows_of_copies(half, components) == (0, 0)
    near[:9, 1], near[:9, 0] = np.nan, 1e300  # elsewhere
    assert _rows_of_copies(near, components) == (0, 6)
    near[-1, 0] = np.nan
    assert _rows_of_copies(near, components) == (0, 0)
    equal = np.repeat(X[:20], 3, axis=0)
    assert _rows_of_copies(equal, np.repeat(np.arange(20), 3)) == (60, 0)
    assert _rows_of_copies(np.zeros((5, 0)), np.zeros(5, int)) == (0, 0)


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
