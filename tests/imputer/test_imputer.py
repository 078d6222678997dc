"""BNPImputer where scikit-learn's imputers fit, and what it has beyond them."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from skbnp import (
    BNPImputer,
    CIBPBeliefNet,
    DirichletProcessMixture,
    ICPNetworkRegressor,
    TreeFactorModel,
)
from skbnp.estimators import interval_calibration
from skbnp.imputer import _model, _reporting, default_model
from skbnp.imputer._default import MOST_MIXTURE_COLUMNS
from skbnp.reports import cells
from skbnp.tables.columns import columns_of

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
SHORT = dict(n_chains=2, n_warmup=10, n_draws=10, random_state=0)


def mixture(**options):
    return BNPImputer(estimator=DirichletProcessMixture(**SHORT), **options)


def tree(**options):
    return BNPImputer(estimator=TreeFactorModel(max_depth=2, **SHORT), **options)


BOTH = pytest.mark.parametrize("make", [mixture, tree])


@pytest.fixture
def X():
    """Three columns that depend on one another, with holes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 1)) * [1.0, 2.0, -1.0] + 0.3 * rng.normal(size=(40, 3))
    X[rng.random(X.shape) < 0.2] = np.nan
    X[0] = np.nan, 1.0, 2.0
    return X


def mixed():
    """A table of all kinds with holes, a column of one value and an empty one."""
    rng = np.random.default_rng(1)
    group = rng.integers(2, size=40)
    table = pd.DataFrame(
        {
            "height": rng.normal(3.0 * group),
            "site": np.where(group == 1, "north", "south"),
            "wet": pd.array(rng.random(40) < 0.2 + 0.6 * group, dtype="boolean"),
            "size": pd.Categorical(np.where(rng.random(40) < 0.5, "big", "small")),
            "year": pd.array([2024] * 40, dtype="Int64"),
            "notes": [None] * 40,
        },
        index=np.arange(40) + 100,
    )
    for name in ("height", "site", "wet", "size"):
        table.loc[rng.random(40) < 0.2, name] = None
    table.loc[103, "year"] = None
    return table


@parametrize_with_checks(
    [
        BNPImputer(
            estimator=DirichletProcessMixture(n_chains=1, n_warmup=2, n_draws=4, random_state=0)
        ),
        BNPImputer(
            estimator=TreeFactorModel(
                structure="single", max_depth=1, n_chains=1, n_warmup=2, n_draws=4, random_state=0
            )
        ),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# -- answers


@BOTH
def test_training_rows_are_answered_by_the_model(make, X):
    imputer = make()
    filled = imputer.fit_transform(X)
    assert_array_equal(filled, imputer.estimator_.X_imputed_)
    assert_array_equal(filled, imputer.transform(X))
    assert_array_equal(imputer.standard_deviations(), imputer.estimator_.X_imputed_std_)
    assert_array_equal(filled[~np.isnan(X)], X[~np.isnan(X)])


@BOTH
def test_new_rows(make, X):
    imputer = make().fit(X)
    new = np.array([[1.0, np.nan, np.nan], [np.nan] * 3, [1.0, 2.0, 3.0]])
    expected, std = imputer.estimator_.impute(new, return_std=True)
    assert_array_equal(imputer.transform(new), expected)
    assert_array_equal(imputer.standard_deviations(new), std)
    assert np.isfinite(expected).all()


def test_a_fit_that_fails_leaves_the_imputer_as_it_was(X):
    imputer = tree().fit(X)
    before, model = imputer.transform(X), imputer.estimator_
    imputer.set_params(estimator__n_warmup=-1)
    with pytest.raises(ValueError, match="n_warmup"):
        imputer.fit(pd.DataFrame(2.0 * X[:, :3], columns=["a", "b", "c"]))
    imputer.set_params(estimator__n_warmup=10)
    assert imputer.estimator_ is model and not hasattr(imputer, "feature_names_in_")
    assert_array_equal(imputer.transform(X), before)
    new = tree().set_params(estimator__n_warmup=-1)
    with pytest.raises(ValueError, match="n_warmup"):
        new.fit(X)
    with pytest.raises(NotFittedError):
        new.transform(X)


def test_what_cannot_draw_has_intervals_by_deviations(X):
    network = CIBPBeliefNet(n_chains=1, n_warmup=2, n_draws=4, random_state=0)
    imputer = BNPImputer(estimator=network)
    filled, std = imputer.fit_transform(X), imputer.standard_deviations()
    low, high = imputer.intervals(level=0.9)
    assert_allclose((low + high) / 2, filled)
    assert_allclose((high - low) / 2, 1.6448536 * std)
    with pytest.raises(ValueError, match="estimator must have the method sample_missing"):
        imputer.multiple(2)


@BOTH
def test_completed_tables(make, X):
    imputer = make().fit(X)
    tables = imputer.multiple(3, random_state=0)
    assert len(tables) == 3 and not np.array_equal(tables[0], tables[1])
    for table, again in zip(tables, imputer.multiple(3, random_state=0), strict=True):
        assert_array_equal(table, again)
        assert np.isfinite(table).all()
        assert_array_equal(table[~np.isnan(X)], X[~np.isnan(X)])
    assert_array_equal(imputer.multiple(2, np.ones((2, 3)))[1], np.ones((2, 3)))


@BOTH
def test_a_draw_in_place_of_the_mean(make, X):
    imputer = make(sample_posterior=True, random_state=3)
    filled = imputer.fit_transform(X)
    assert_array_equal(filled, imputer.multiple(1)[0])
    means = imputer.set_params(sample_posterior=False).transform(X)
    assert not np.allclose(filled, means)


@BOTH
def test_intervals_are_quantiles_of_draws(make, X, monkeypatch):
    monkeypatch.setattr(_model, "_TABLES_FOR_QUANTILES", 30)
    imputer = make().fit(X)
    low, high = imputer.intervals(level=0.5, random_state=0)
    cells = np.array(imputer.multiple(30, random_state=0))
    assert_allclose([low, high], np.quantile(cells, [0.25, 0.75], axis=0))
    assert_array_equal(low[~np.isnan(X)], X[~np.isnan(X)])
    wide = imputer.intervals(level=0.9, random_state=0)
    assert (wide[0] <= low).all() and (high <= wide[1]).all()
    with pytest.raises(ValueError, match="level must be between 0 and 1, got 2"):
        imputer.intervals(level=2)
    with pytest.raises(TypeError, match=r"X must be a table or None, got 0.5: write level=0.5"):
        imputer.intervals(0.5)


def test_intervals_follow_deviations_that_are_calibrated(monkeypatch):
    monkeypatch.setattr(interval_calibration, "_scale", lambda *arguments: 1.5)
    rng = np.random.default_rng(2)
    X = rng.normal(size=(200, 1)) * [1.0, 2.0, -1.0] + 0.3 * rng.normal(size=(200, 3))
    X[rng.random(X.shape) < 0.2] = np.nan
    network = TreeFactorModel(max_depth=2, **SHORT, interval_calibration="holes")
    imputer = BNPImputer(estimator=network).fit(X)
    assert imputer.estimator_.std_scale_ > 1.2
    low, high = imputer.intervals(level=0.9)
    assert_allclose((high - low) / 2, 1.6448536 * imputer.standard_deviations())


@pytest.mark.parametrize("as_table", [np.asarray, pd.DataFrame])
def test_marks_are_found_in_narrow_floats(X, as_table):
    marked = as_table(np.where(np.isnan(X), -999.9, X).astype(np.float32))
    assert (np.asarray(tree(missing_values=-999.9).fit_transform(marked)) > -500).all()


@pytest.mark.parametrize("marks", [-9, "?", [-9], {0: -9}])
def test_marks_are_said_to_the_imputer(X, marks):
    # The model would not see them as holes that the imputer has to fill.
    imputer = BNPImputer(estimator=DirichletProcessMixture(**SHORT, missing_values=marks))
    with pytest.raises(ValueError, match="missing_values must be said to the imputer"):
        imputer.fit(X)
    imputer.set_params(estimator__missing_values=np.nan).fit(X)


# -- in the place of scikit-learn's


@pytest.mark.parametrize("kind", [KNNImputer, mixture])
def test_in_pipelines_by_a_change_of_one_word(kind, X):
    y = np.nan_to_num(X).sum(axis=1)
    pipeline = make_pipeline(kind(), LinearRegression())
    name = type(pipeline[0]).__name__.lower()
    search = GridSearchCV(pipeline, {f"{name}__add_indicator": [False, True]}, cv=2).fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    columns = ColumnTransformer([("fill", kind(), [0, 1])], remainder="drop")
    assert columns.fit_transform(X).shape == (40, 2)


def test_parameters_of_the_model_are_nested(X):
    grid = {"estimator__covariance_type": ["full", "diag"], "estimator__n_draws": [4]}
    pipeline = make_pipeline(mixture(), LinearRegression())
    grid = {f"bnpimputer__{name}": values for name, values in grid.items()}
    search = GridSearchCV(pipeline, grid, cv=2).fit(X, np.arange(40.0))
    assert search.best_estimator_[0].estimator_.n_draws_ == 4
    with pytest.raises(ValueError, match="estimator__n_draws cannot be set where estimator is 'a"):
        BNPImputer().set_params(estimator__n_draws=3)


@pytest.mark.parametrize("make", [mixture])
@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("indicator", [False, True])
@pytest.mark.filterwarnings("ignore:X has no observed value")
def test_forms_are_those_of_knn(make, keep, indicator, X):
    """Columns, names and all cells that no model is asked about: as KNNImputer answers."""
    X = np.column_stack([X, np.full(40, np.nan), np.full(40, 7.0), np.arange(40.0) / 3])
    X[1, 4] = np.nan
    X[2] = np.nan
    options = dict(keep_empty_features=keep, add_indicator=indicator)
    ours, theirs = make(**options), KNNImputer(**options)
    found, expected = ours.fit_transform(X), theirs.fit_transform(X)
    assert found.shape == expected.shape and found.dtype == expected.dtype
    # KNNImputer leaves the columns that it keeps out of its names.
    simple = SimpleImputer(**options)
    assert_array_equal(ours.get_feature_names_out(), simple.fit(X).get_feature_names_out())
    same = np.ones(found.shape, dtype=bool)
    kept = X[:, [0, 1, 2, 3, 4, 5] if keep else [0, 1, 2, 4, 5]]
    same[:, : kept.shape[1]] = ~np.isnan(kept)
    same[:, [4, 3] if keep else [3]] = True
    assert_array_equal(found[same], expected[same])
    assert np.isfinite(found).all()
    for frame in (pd.DataFrame(X, columns=list("abcdef")), pl.DataFrame(X, list("abcdef"))):
        out = ours.fit_transform(frame)
        assert isinstance(out, type(frame))
        assert list(out.columns) == list(simple.fit(frame).get_feature_names_out())
        assert_allclose(np.asarray(out.to_numpy(), dtype=float), found)
        assert_array_equal(ours.transform(frame).to_numpy(), out.to_numpy())
    new = np.where(np.isnan(X[:5]), 1.0, np.nan)
    assert ours.fit(X).transform(new).shape == theirs.transform(new).shape


@pytest.mark.parametrize("mark", [-1, -1.0])
def test_marks(mark, X):
    marked = np.where(np.isnan(X), mark, X)
    expected = mixture().fit_transform(X)
    assert_array_equal(mixture(missing_values=mark).fit_transform(marked), expected)
    for frame in (pd.DataFrame(marked), pl.DataFrame(marked)):
        out = mixture(missing_values=mark).fit_transform(frame)
        assert_array_equal(out.to_numpy(), expected)
    masked = np.ma.MaskedArray(marked, np.isnan(X))
    assert_array_equal(mixture().fit_transform(masked), expected)


def test_marks_of_names_and_integers():
    table = mixed().drop(columns="notes")
    options = dict(random_state=0)
    model = DirichletProcessMixture(family="auto", **SHORT)
    expected = BNPImputer(estimator=model, **options).fit_transform(table)
    marked = table.astype({"site": object})
    marked["site"] = marked["site"].where(marked["site"].notna(), "?")
    found = BNPImputer(estimator=model, missing_values="?", **options).fit_transform(marked)
    assert_array_equal(found["site"].to_numpy(), expected["site"].to_numpy())
    whole = np.array([[1, 2], [3, -1], [5, 6], [8, 7]])
    filled = mixture(missing_values=-1).fit_transform(whole)
    assert filled[1, 1] != -1 and filled[0, 0] == 1


@pytest.mark.parametrize("as_table", [pd.DataFrame, pl.DataFrame, np.asarray])
def test_text_that_is_all_numbers_without_its_marks_is_numbers(as_table, X):
    marked = np.where(np.isnan(X), "?", X.astype(str))
    names = [f"column {j}" for j in range(X.shape[1])]
    text = as_table(dict(zip(names, marked.T.tolist(), strict=True)))
    if as_table is np.asarray:
        text = marked
    imputer = mixture(missing_values="?")
    found = imputer.fit_transform(text)
    expected = mixture().fit_transform(X)
    assert_array_equal(np.asarray(found, dtype=float), expected)
    assert not np.isnan(np.asarray(imputer.intervals()[0], dtype=float)).any()
    # A part of the table may have no mark that shows it.
    whole = text[:1] if as_table is np.asarray else as_table({n: ["1.5"] for n in names})
    part = np.asarray(imputer.transform(whole))
    assert part.dtype == float
    if as_table is not np.asarray:
        with pytest.raises(ValueError, match="X must hold numbers, got column 'column 0'"):
            imputer.transform(as_table({n: ["many"] for n in names}))


def test_warnings_tell_whose_parameters_they_name(X):
    who = r"n_draws.* \(TreeFactorModel, the imputer's estimator, says so\.\)$"
    with pytest.warns(ConvergenceWarning, match=who):
        tree().fit(np.nan_to_num(X))
    with pytest.warns(ConvergenceWarning) as found:
        TreeFactorModel(max_depth=2, **SHORT).fit(X)
    assert "imputer" not in str(found[0].message)


@BOTH
def test_chains_are_judged_by_the_cells_that_they_fill_in(make, X):
    """They may agree on these while they differ in the number of clusters, or of branches."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        imputer = make().set_params(estimator__n_draws=30).fit(X)
    assert imputer.estimator_._lacks_of_chains()
    assert 1.0 < imputer.r_hat_ < 1.05
    assert f"R-hat is {imputer.r_hat_:.3g}" in " ".join(str(imputer.report()).split())
    assert np.isnan(BNPImputer().fit(np.ones((5, 2))).r_hat_)


def test_chains_that_fill_in_other_cells(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    X[:20, 1] = np.nan
    monkeypatch.setattr(_reporting, "MOST_RHAT", 1.0)
    with pytest.warns(
        ConvergenceWarning, match=r"differ in the missing cells that they fill in, by R"
    ):
        imputer = tree().set_params(estimator__n_draws=30).fit(X)
    assert imputer.r_hat_ > 1.0


def test_few_draws_and_ensembles_are_judged_by_the_model(X, monkeypatch):
    """Chains that have just begun may be alike; those of an ensemble are meant to differ."""
    with pytest.warns(ConvergenceWarning, match=r"says so\.\)$"):
        imputer = tree().fit(X)
    assert imputer.r_hat_ > 1.0
    assert not imputer.report().sections["imputer"].verdicts
    monkeypatch.setattr(TreeFactorModel, "_is_ensemble", lambda self, n_features: True)
    monkeypatch.setattr(_reporting, "MOST_RHAT", 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        imputer = tree().set_params(estimator__n_warmup=100, estimator__n_draws=30).fit(X)
    assert imputer.r_hat_ > 1.0
    assert not imputer.report().sections["imputer"].verdicts


def test_another_fit_within_says_what_it_has_to_say(X, monkeypatch):
    """A callback may fit a model: it is judged as ever."""
    fit, within = TreeFactorModel.fit, []

    def and_another(self, *args):
        if not within:
            within.append(True)
            with pytest.warns(ConvergenceWarning):
                TreeFactorModel(max_depth=2, **SHORT).fit(X)
        return fit(self, *args)

    monkeypatch.setattr(TreeFactorModel, "fit", and_another)
    tree().set_params(estimator__n_draws=30).fit(X)
    assert within


def test_parameters_of_the_model_are_validated(X):
    with pytest.raises(ValueError, match="'merge_overlap' parameter of DirichletProcessMixture"):
        mixture().set_params(estimator__merge_overlap=7).fit(X)


def test_the_report_begins_with_what_is_filled(X, monkeypatch):
    imputer = tree().set_params(estimator__n_draws=30).fit(X)
    report = imputer.report()
    assert report.sections["imputer"].verdicts[0].trust == "yes"
    assert "what fills missing cells" in str(report).partition("How the table is filled")[0]
    assert "Fit again" not in str(report)
    monkeypatch.setattr(_reporting, "MOST_RHAT", 1.0)
    monkeypatch.setattr(cells, "MOST_RHAT", 1.0)
    report = imputer.report()
    assert report.sections["imputer"].verdicts[0].trust == "no"
    assert "on which its chains do not agree yet" in " ".join(str(report).split())
    assert "Fit again" in str(report)


def test_the_report_names_positive_columns_that_are_filled_below_zero():
    """A line that goes on below zero where only the other column is seen."""
    both = np.linspace(-3.0, 9.0, 60)[:, np.newaxis] * [1.0, 1.0]
    both += 0.3 * np.random.default_rng(0).normal(size=both.shape)
    both[both[:, 0] < 1.0, 0] = np.nan
    imputer = mixture().fit(both)
    assert imputer.transform(both)[:, 0].min() < 0
    said = "Some cells of x0 are filled with numbers below zero"
    assert said in " ".join(str(imputer.report()).split())
    imputer.fit(both + 10.0)
    assert "numbers below zero" not in " ".join(str(imputer.report()).split())


@pytest.mark.parametrize("kind", ["pandas", "polars", "objects"])
def test_names_that_fit_has_not_seen(kind):
    """They stay, and what the rows lack is filled as if they were missing too."""
    table = pd.DataFrame(
        {"city": list("abc") * 20, "x": np.arange(60.0) % 7, "y": np.arange(60) % 3 + 0.5}
    )
    table.loc[::9, "x"] = np.nan
    new = pd.DataFrame({"city": ["z", None, "a"], "x": [np.nan, np.nan, 1.0], "y": [0.5, 0.5, 0.5]})
    given = {"pandas": lambda t: t, "polars": pl.from_pandas, "objects": pd.DataFrame.to_numpy}[
        kind
    ]
    imputer = BNPImputer(
        estimator=DirichletProcessMixture(family=["categorical", "gaussian", "gaussian"], **SHORT)
    )
    imputer.fit(given(table))
    with pytest.warns(
        UserWarning, match="that fit has not seen, in .*: other cells of these 1 row"
    ):
        filled = columns_of(imputer.transform(given(new)))
    assert filled[0].values[0] == "z" and filled[0].values[2] == "a"
    assert filled[1].values[0] == filled[1].values[1]
    with pytest.warns(UserWarning, match="has not seen"):
        std = columns_of(imputer.standard_deviations(given(new)))
    assert std[0].values[0] == 0.0 < std[0].values[1] and std[1].values[0] == std[1].values[1]
    with pytest.warns(UserWarning, match="has not seen"):
        (drawn,) = imputer.multiple(1, given(new))
    assert columns_of(drawn)[0].values[0] == "z"


def test_cells_that_are_no_names_are_refused_where_names_were():
    table = pd.DataFrame({"city": list("abc") * 20, "x": np.arange(60.0) % 7})
    table.loc[::9, "x"] = np.nan
    imputer = BNPImputer(
        estimator=DirichletProcessMixture(family=["categorical", "gaussian"], **SHORT)
    )
    imputer.fit(table)
    with pytest.raises(ValueError, match="unseen in fit"):
        imputer.transform(pd.DataFrame({"city": [1, 2], "x": [np.nan, 1.0]}))


def test_numbers_of_categories_that_fit_has_not_seen():
    X = np.column_stack([np.arange(60.0) % 3, np.arange(60.0) % 7])
    X[::9, 1] = np.nan
    model = DirichletProcessMixture(family=["categorical", "gaussian"], **SHORT)
    imputer = BNPImputer(estimator=model).fit(X)
    with pytest.warns(UserWarning, match="has not seen"):
        assert imputer.transform([[9.0, np.nan]])[0, 0] == 9.0


def test_a_table_of_constants_lacks_no_row():
    imputer = BNPImputer().fit(np.ones((5, 2)))
    assert "without any value" not in str(imputer.report())


@pytest.mark.parametrize("kind", ["pandas", "polars", "objects"])
@pytest.mark.filterwarnings("ignore:X has no observed value")
def test_mixed_tables(kind, monkeypatch):
    monkeypatch.setattr(_model, "_TABLES_FOR_QUANTILES", 30)
    table = mixed()
    given = {
        "pandas": table,
        "polars": pl.from_pandas(table.astype({"notes": "string"})),
        "objects": table.to_numpy(dtype=object),
    }[kind]
    imputer = BNPImputer(random_state=0)
    # The model is chosen by the table; its chains are as short as they can be.
    make = imputer._make

    def make_short(*arguments):
        model, parts = make(*arguments)
        return model.set_params(**SHORT), parts

    imputer._make = make_short
    filled = imputer.fit_transform(given)
    families = ["gaussian", *["categorical"] * 3]
    assert isinstance(imputer.estimator_, DirichletProcessMixture)
    assert list(imputer.estimator_.families_) == families
    for out in (filled, imputer.transform(given), imputer.multiple(2)[1]):
        out = out.to_pandas() if kind == "polars" else pd.DataFrame(out)
        assert out.shape == (40, 5) and not out.isna().any().any()
        for j, name in enumerate(table.columns[:5]):
            seen = table[name].notna().to_numpy()
            assert (out.iloc[seen, j].to_numpy() == table[name][seen].to_numpy()).all()
            if j:
                assert set(out.iloc[:, j]) <= set(table[name].dropna())
    if kind == "pandas":
        assert filled.index.equals(table.index)
        assert list(filled.dtypes) == list(table.dtypes[:5])
    low, high = (np.asarray(one, dtype=float) for one in imputer.intervals())
    assert np.isnan(low[:, 1:4]).all() and (low[:, 0] <= high[:, 0]).all()
    assert (np.asarray(imputer.standard_deviations(), dtype=float) >= 0).all()


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_set_output(library, X):
    given = pd.DataFrame(X, columns=list("abc"), index=np.arange(40) + 5)
    for table in (X, given, pl.DataFrame(X, list("abc"))):
        out = mixture().set_output(transform=library).fit_transform(table)
        assert type(out).__module__.startswith(library)
        assert list(out.columns) == (["x0", "x1", "x2"] if table is X else list("abc"))
        if table is given and library == "pandas":
            assert out.index.equals(given.index)


def test_columns_that_do_not_vary():
    """They are filled as SimpleImputer fills them, without a model or a word."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        X = np.array([[1.0, np.nan], [np.nan, 3.0], [1.0, 3.0]])
        imputer = BNPImputer().fit(X)
    assert imputer.estimator_ is None
    assert_array_equal(imputer.transform(X), SimpleImputer().fit_transform(X))
    assert_array_equal(imputer.transform([[np.nan, 9.0]]), [[1.0, 9.0]])
    assert not imputer.standard_deviations().any()
    assert_array_equal(imputer.intervals(), [np.array([[1.0, 3.0]] * 3)] * 2)
    assert_array_equal(imputer.multiple(2)[1], [[1.0, 3.0]] * 3)


def test_dropped_columns_are_named(X):
    table = pd.DataFrame(X, columns=list("abc")).assign(d=np.nan)
    with pytest.warns(UserWarning, match="no observed value in column 'd', dropped"):
        mixture().fit(table)


def test_the_default_follows_the_shape():
    rng = np.random.default_rng(0)
    for d, kind in ((3, DirichletProcessMixture), (MOST_MIXTURE_COLUMNS + 1, TreeFactorModel)):
        imputer = BNPImputer(n_jobs=1, random_state=4)
        X = rng.normal(size=(6, d))
        model, _ = imputer._make(X)
        assert type(model) is kind and (model.n_jobs, model.random_state) == (1, 4)
    X = np.column_stack([X[:, :2], [0.0, 1.0, 1.0, 0.0, np.nan, 1.0]])
    assert default_model(X).family == ["gaussian", "gaussian", "bernoulli"]
    assert default_model(X[:, :2]).family == "gaussian"


def test_few_columns_some_of_two_values():
    rng = np.random.default_rng(3)
    group = rng.integers(2, size=150)
    X = np.column_stack([rng.normal(4.0 * group), rng.normal(size=150), group])
    given = np.where(rng.random(X.shape) < 0.15, np.nan, X)
    short = default_model(given).set_params(max_work=0.3)
    imputer = BNPImputer(estimator=short, random_state=0)
    filled = imputer.fit_transform(given)
    assert ((filled[:, 2] >= 0.0) & (filled[:, 2] <= 1.0)).all()
    known = np.isnan(given[:, 2]) & ~np.isnan(given[:, 0])
    assert np.mean((filled[known, 2] > 0.5) == X[known, 2]) > 0.9
    assert set(np.unique(imputer.multiple(3)[2][:, 2])) == {0.0, 1.0}
    low, high = imputer.intervals()
    assert set(np.unique(low[:, 2])) | set(np.unique(high[:, 2])) == {0.0, 1.0}


def test_clones_pickles_and_refits(X):
    imputer = mixture(random_state=1)
    filled = imputer.fit_transform(X)
    assert_array_equal(pickle.loads(pickle.dumps(imputer)).transform(X), filled)
    assert_array_equal(clone(imputer).fit_transform(X), filled)
    assert imputer.fit_transform(X[:, :2]).shape == (40, 2)
    assert mixture(random_state=2).fit(X).estimator_.random_state == 2
    assert mixture().fit(X).estimator_.random_state == 0


def test_networks_take_holes_through_it(X):
    network = ICPNetworkRegressor(n_chains=1, n_warmup=2, n_draws=4, random_state=0)
    model = make_pipeline(mixture(), network).fit(X, np.arange(40.0))
    assert np.isfinite(model.predict(X)).all()


def test_refusals(X):
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        mixture().fit(sparse.csr_matrix(np.nan_to_num(X)))
    with pytest.raises(ValueError, match="infinity"):
        mixture().fit(np.where(np.isnan(X), np.inf, X))
    with pytest.raises(ValueError, match="estimator"):
        BNPImputer(estimator=LinearRegression()).fit(X)
    with pytest.raises(ValueError, match="missing_values must not be a bool"):
        BNPImputer(missing_values=True).fit(X)
    with pytest.raises(ValueError, match="n_tables must be an integer >= 1, got 0"):
        mixture().fit(X).multiple(0)
    dates = pd.DataFrame({"a": np.arange(4.0), "when": pd.date_range("2024", periods=4)})
    with pytest.raises(ValueError, match="no dates or times"):
        BNPImputer().fit(dates)


@BOTH
def test_bools_of_a_model_of_real_columns_become_numbers(make):
    rng = np.random.default_rng(2)
    table = pd.DataFrame({"size": rng.normal(size=30), "wet": pd.array(rng.random(30) < 0.5)})
    table.loc[4, "wet"] = pd.NA
    filled = make().fit_transform(table)["wet"]
    assert filled.dtype == pd.Float64Dtype() and 0.0 < filled[4] < 1.0
    assert_array_equal(filled.drop(4), table["wet"].drop(4).astype(float))
