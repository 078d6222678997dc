"""``report()`` of every estimator: before fit, of arrays and frames, and after save and load."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal
from sklearn.exceptions import NotFittedError

from contract.registry import DEFAULTS, SETTINGS, VARIED
from skbnp import (
    BNPImputer,
    DirichletProcessMixture,
    ICPNetwork,
    InfiniteFactorClusterer,
    TreeFactorModel,
)
from skbnp.plot import ClusterProfileDisplay
from skbnp.reports import Report

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:X should have a column of kurtosis"),
    pytest.mark.filterwarnings("ignore:X has \\d+ rows to learn"),
    pytest.mark.filterwarnings("ignore:.*ten different whole numbers"),
]
SHORT = dict(n_chains=2, n_warmup=10, n_draws=10, random_state=0)
PARTITIONS = {"mixture", "tree", "clusterer"}


def setting_named(name):
    return next(setting for setting in SETTINGS if setting.name == name)


@pytest.mark.parametrize("setting", VARIED, ids=str)
def test_every_estimator_reports(setting, tmp_path):
    with pytest.raises(NotFittedError):
        setting.make().report()
    X = setting.table()
    model = setting.fit(X)
    report = model.report()
    assert isinstance(report, Report)
    text = str(report)
    assert setting.kind.__name__ in text and "24 rows" in text
    assert max(map(len, text.splitlines())) <= 100 and "nan" not in text
    names = list(report.sections)
    assert (
        names[:2] == ["summary", "table"] and names[-2:] == ["trust", "next"] and "chains" in names
    )
    assert ("cells" in names) == bool(np.isnan(X).any())
    assert ("clusters" in names) == (setting.name.partition("-")[0] in PARTITIONS)
    for section in report.sections.values():
        assert section.title and section.sentences
        assert all(one.keys() == section.table[0].keys() for one in section.table)
        for sentence in section.sentences:
            assert sentence[-1] in ".:" and "None" not in sentence
    # What is known before and after is the same, and no random number was drawn from the user's.
    model.save(tmp_path / "model")
    assert str(setting.kind.load(tmp_path / "model").report()) == text
    assert str(model.report()) == text


@pytest.mark.parametrize("setting", DEFAULTS, ids=str)
def test_little_to_speak_of(setting):
    """One draw of one chain, one column, values far from one."""
    X = setting.table()
    report = setting.fit(X, n_chains=1, n_draws=1).report()
    assert "the chains are too short to say" in str(report)
    report = setting.fit(1e8 * X[:, :1], n_draws=2, n_warmup=0).report()
    assert "1 column" in str(report) and report.to_frame().shape[0] > 0


@pytest.mark.parametrize("name", ["mixture", "icp-classifier", "clusterer", "cibp"])
def test_pages_have_their_pictures(name):
    setting = setting_named(name)
    report = setting.fit(setting.table()).report()
    n_pictures = sum(len(section.pictures) for section in report.sections.values())
    assert n_pictures >= 2
    assert report.to_html().count("data:image/png;base64,") == n_pictures
    assert len(report.to_frame()) == sum(len(one.table) for one in report.sections.values())


# -- names of rows and columns


def named_table():
    rng = np.random.default_rng(0)
    side = np.repeat([0, 1], 20)
    frame = pd.DataFrame({"height": rng.normal(size=40) + 9.0 * side, "age": rng.normal(size=40)})
    frame["sex"] = np.where(side, "f", "m")
    frame["visits"] = rng.poisson(2.0, 40)
    frame.loc[3, "height"] = np.nan
    frame.loc[4, "sex"] = None
    frame.index = [f"mouse {k}" for k in range(40)]
    return frame


def test_rows_and_columns_go_by_their_names(tmp_path):
    model = DirichletProcessMixture(**SHORT).fit(named_table())
    model.save(tmp_path / "model")
    for one in (model, DirichletProcessMixture.load(tmp_path / "model")):
        sections = one.report().sections
        assert {row["row"] for row in sections["rows"].table} == set(named_table().index)
        traits = {(row["column"], row["level"]) for row in sections["profiles"].table}
        assert traits == {("height", ""), ("age", ""), ("visits", ""), ("sex", "f"), ("sex", "m")}
        said = " ".join(sections["table"].sentences)
        assert "Taken for categories: sex." in said and "2 of 160 cells (1%)" in said
        heights = [row for row in sections["profiles"].table if row["column"] == "height"]
        frame = named_table()
        for row in heights:
            here = model.labels_ == row["cluster"]
            assert row["mean or share"] == pytest.approx(frame.loc[here, "height"].mean())


@pytest.mark.parametrize("library", ["polars", "array", "renamed"])
def test_tables_without_names_of_rows_have_numbers(library):
    frame = named_table()[["height", "age"]].reset_index(drop=True)
    table = {
        "polars": lambda: pl.from_pandas(frame),
        "array": frame.to_numpy,
        "renamed": lambda: frame.set_axis([("a", 1), 2], axis=1),
    }[library]()
    report = DirichletProcessMixture(**SHORT).fit(table).report()
    assert {row["row"] for row in report.sections["rows"].table} == set(map(str, range(40)))
    names = {"polars": ["height", "age"], "array": ["x0", "x1"], "renamed": ["('a', 1)", "2"]}
    assert [row["column"] for row in report.sections["table"].table] == names[library]


def test_columns_that_are_no_measurements_are_advised_against():
    frame = named_table()[["height", "age"]].assign(number=np.arange(5000, 5040), same=1.0)
    model = TreeFactorModel(**SHORT)
    with pytest.warns(UserWarning) as warned:
        model.fit(frame)
    assert any("another value in nearly every row" in str(one.message) for one in warned)
    said = " ".join(model.report().sections["table"].sentences)
    assert "another value in nearly every row of column(s) 'number'" in said
    assert "Without any variation, so that nothing follows from them: same." in said
    steps = [one["what"] for one in model.report().sections["next"].table]
    assert any("'number'" in step for step in steps)


def test_a_skewed_column_is_told():
    rng = np.random.default_rng(0)
    X = np.column_stack([np.exp(rng.normal(size=100)), rng.normal(size=100) + 9.0])
    report = TreeFactorModel(**SHORT).fit(X).report()
    assert "large values: x0." in " ".join(report.sections["table"].sentences)
    assert any("logarithm of x0" in one["what"] for one in report.sections["next"].table)


def test_cells_below_the_detection_limit_are_not_missing():
    setting = setting_named("clusterer")
    X = setting.table()
    X[5, 2] = -np.inf
    report = setting.make(detection_limit=-9.0).fit(X).report()
    said = " ".join(report.sections["table"].sentences)
    assert "1 of 72 cells (1%) are missing" in said and "1 cell are below" not in said
    assert "1 cell is below the detection limit" in said


def test_cells_below_the_detection_limit_are_low():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4)) - 60.0
    X[:30, :2] = X[30:, 2:] = -100.0
    model = InfiniteFactorClusterer(detection_limit=-80.0, **SHORT).fit(X)
    model.labels_ = np.repeat([0, 1], 30)
    report = model.report()
    said = " ".join(report.sections["profiles"].sentences)
    assert said.count("low x") == said.count("high x") == 4 and "no column differs" not in said
    assert not report.sections["table"].table[0]["missing"]
    profile = ClusterProfileDisplay.from_estimator(model)
    assert_array_equal(np.sign(profile.difference), [[-1, -1, 1, 1], [1, 1, -1, -1]])
    X[0, 3] = np.nan
    report = InfiniteFactorClusterer(detection_limit=-80.0, **SHORT).fit(X).report()
    (cells,) = report.sections["cells"].table
    assert np.isfinite(cells["relative to column"])
    assert "120 cells are below" in " ".join(report.sections["table"].sentences)


def test_rows_that_were_chosen_have_no_names():
    frame = named_table()[["height", "age"]]
    report = ICPNetwork(max_rows=25, **SHORT).fit(frame).report()
    assert report.sections["table"].sentences[0].startswith("The table has 25 rows")


def test_without_rows_it_speaks_of_the_chains_alone(monkeypatch):
    setting = setting_named("tree")
    model = setting.fit(setting.table())
    monkeypatch.setattr(setting.kind, "_observed_rows", lambda self: None)
    report = model.report()
    assert list(report.sections) == ["table", "chains", "trust", "next"]
    assert "rows are not kept" in str(report) and report.title.endswith("report on 3 columns")


# -- calibration


def test_calibrated_cells_are_trusted():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(160, 1)) + 0.3 * rng.normal(size=(160, 3))
    X[rng.random(X.shape) < 0.2] = np.nan
    X = X[~np.isnan(X).all(axis=1)]

    def verdict(n_rows=160, **options):
        model = TreeFactorModel(**SHORT, **options).fit(X[:n_rows])
        (found,) = [
            one for one in model.report().sections["trust"].table if "filled" in one["part"]
        ]
        return model, found

    model, found = verdict(interval_calibration="holes")
    assert found["trust"] == "yes" and f"{model.std_scale_:.2g}"[:3] in found["why"]
    with pytest.warns(UserWarning, match="are not calibrated"):
        _, found = verdict(30, interval_calibration="holes")
    assert found["trust"] == "with care" and "too few" in found["why"]
    plain, found = verdict()
    assert found["trust"] == "with care"
    steps = [one["what"] for one in plain.report().sections["next"].table]
    assert any('interval_calibration="holes"' in step for step in steps)


# -- the imputer


def test_the_imputer_says_what_it_did_itself():
    frame = named_table().assign(same="a", none=np.nan)
    frame.iloc[:3, frame.columns.get_loc("same")] = None
    imputer = BNPImputer(estimator=DirichletProcessMixture(**SHORT))
    with pytest.raises(NotFittedError):
        imputer.report()
    with pytest.warns(UserWarning, match="no observed value"):
        imputer.fit(frame)
    report = imputer.report()
    said = " ".join(report.sections["imputer"].sentences)
    assert "same has one value alone, a, which 3 cells got." in said
    assert "dropped: none." in said and "filled by a DirichletProcessMixture" in said
    assert {one["column"] for one in report.sections["cells"].table} == {"height", "sex"}
    assert any("multiple(n_tables=20)" in one["what"] for one in report.sections["next"].table)
    assert str(pickle.loads(pickle.dumps(imputer)).report()) == str(report)


def test_the_imputer_numbers_the_columns_of_the_whole_table():
    X = named_table()[["height", "age", "height"]].to_numpy().copy()
    X[:, 0] = 1.0
    X[7, 0] = X[9, 1] = np.nan
    X[11] = np.nan
    report = BNPImputer(estimator=DirichletProcessMixture(**SHORT)).fit(X).report()
    assert [one["column"] for one in report.sections["table"].table] == ["x1", "x2"]
    assert "1 row without any value" in " ".join(report.sections["imputer"].sentences)
    assert {one["row"] for one in report.sections["rows"].table} == set(map(str, range(40))) - {
        "11"
    }


def test_an_imputer_without_a_model():
    report = BNPImputer().fit([[1.0, 2.0], [np.nan, 2.0]]).report()
    assert list(report.sections) == ["imputer"]
    assert "there is no model" in str(report)
