"""Columns that another one nearly determines: when they are looked up there, and what is filled."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import dirichlet_multinomial
from sklearn.base import clone

from skbnp import BNPImputer
from skbnp.imputer import default_model
from skbnp.imputer._lookups import PRIOR_ROWS, Lookup, Lookups, codes_of, with_cells
from skbnp.tables.columns import columns_of

NAN = np.nan


def short(X, **options):
    """An imputer whose model is the default one in shorter chains."""
    model = default_model(X).set_params(n_chains=2, max_work=0.2, n_jobs=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of chains
        return BNPImputer(estimator=model, random_state=0, **options).fit(X)


def codes_and_words(n=240, seed=0):
    """(complete, given): words, a code of each, a noisy copy of these, beside skewed columns."""
    rng = np.random.default_rng(seed)
    code = rng.choice([3, 5, 8], size=n, p=[0.5, 0.3, 0.2])
    words = pd.Series(code).map({3: "apple", 5: "pear", 8: "quince tree"})
    other = np.where(rng.random(n) < 0.9, words, rng.choice(["apple", "pear"], size=n))
    table = pd.DataFrame(np.exp(rng.normal(size=(n, 10)))).add_prefix("x")
    table = table.assign(code=code.astype(float), words=words.astype(object), other=other)
    holes = rng.random((n, 3)) < 0.2
    holes[:40] = np.resize([[1, 0, 0], [0, 1, 0], [1, 1, 1]], (40, 3))
    given = table.copy()
    given[["code", "words", "other"]] = given[["code", "words", "other"]].mask(holes)
    return table, given


@pytest.fixture(scope="module")
def fitted():
    """(complete, given, imputer)."""
    table, given = codes_and_words()
    return table, given, short(given)


def posterior(counts):
    """Shares of levels, and what the sizes of the prior have by the law of all counts."""
    shares = (counts.sum(axis=0) + 1 / counts.shape[1]) / (counts.sum() + 1)
    log_p = [dirichlet_multinomial(size * shares, counts.sum(axis=1)) for size in PRIOR_ROWS]
    log_p = np.array([law.logpmf(counts).sum() for law in log_p])
    weights = np.exp(log_p - log_p.max())
    return shares, weights / weights.sum()


def mean_law(counts, of_a_code):
    """The mean of Dirichlet laws given those counts, over sizes of the prior by all of them."""
    shares, weights = posterior(counts)
    laws = [(of_a_code + size * shares) / (of_a_code.sum() + size) for size in PRIOR_ROWS]
    return weights @ laws


def as_lists(X):
    return {name: [None if x is None or x != x else x for x in X[name]] for name in X}


def test_counts_leave_the_row_out():
    """Against a loop over rows, each looked up by all others."""
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 4, size=(6, 3)) * rng.integers(0, 2, size=(6, 3))
    counts[0] = 1, 0, 0
    counts[1] = 2, 1, 0
    counts[2] = 3, 3, 0
    one, n_wrong, n_ties = Lookup(7, counts), 0.0, 0
    for code, level in np.argwhere(counts):
        rest = counts[code].copy()
        rest[level] -= 1
        others = np.delete(rest, level).max()
        is_tie = rest[level] == others > 0
        n_ties += is_tie
        n_wrong += counts[code, level] * (0.5 if is_tie else rest[level] <= others)
        p = one.probabilities_of_others(np.array([code]), np.array([level]))[0]
        assert_allclose(p, mean_law(counts, rest))
    assert n_ties and one.n_wrong == n_wrong
    for code, p in enumerate(one.probabilities(np.arange(6))):
        assert_allclose(p, mean_law(counts, counts[code]))
    assert_array_equal(one.is_known(np.array([-1, 0, 1])), [False, True, True])
    assert not Lookup(0, np.array([[0, 0], [2, 3]])).is_known(np.array([0, -1])).any()
    single = Lookup(0, np.array([[4], [1]]))
    assert single.n_wrong == 0.0 and not single.is_worth_a_try


def test_worth_a_try():
    """At most half of the errors of the most frequent level, five fewer, of 20 rows or more."""
    assert Lookup(0, np.array([[40, 0], [0, 60]])).is_worth_a_try
    assert Lookup(0, np.array([[30, 10], [10, 50]])).is_worth_a_try
    assert not Lookup(0, np.array([[30, 11], [10, 50]])).is_worth_a_try
    assert not Lookup(0, np.array([[4, 0], [0, 60]])).is_worth_a_try
    assert Lookup(0, np.array([[5, 0], [0, 60]])).is_worth_a_try
    assert Lookup(0, np.array([[10, 0], [0, 10]])).is_worth_a_try
    assert not Lookup(0, np.array([[9, 0], [0, 10]])).is_worth_a_try
    # A key of rows tells nothing of other rows.
    assert not Lookup(0, np.repeat(np.eye(2, dtype=int), 30, axis=0)).is_worth_a_try


def test_the_best_known_column_comes_first():
    """Of two the one with fewer errors; where it is missing, or not seen beside any, the other.

    What is observed comes before what is drawn.
    """
    ab = np.array(["a", "b"], dtype=object)
    x, y, z = (np.resize(list(cells), 60).astype(object) for cells in ("ab", "ab", "abababaabb"))
    table = pd.DataFrame({"z": z, "y": y, "x": x})
    lookups = Lookups([ab] * 3, [False] * 3).worth_a_try(columns_of(table))
    assert [one.by for one in lookups.tables[2]] == [1, 0]
    c = np.array(["a", "b", "c"], dtype=object)
    tables = {
        2: [Lookup(1, np.array([[9, 0], [0, 9], [0, 0]])), Lookup(0, np.array([[0, 9], [9, 0]]))]
    }
    lookups = Lookups([ab, c, ab], [False] * 3, tables)
    asked = pd.DataFrame({"z": list("aaa") + [None], "y": ["a", None, "c", "c"], "x": [None] * 4})
    holes = asked.isna().to_numpy()
    found = {}
    for j, rows, values, std in lookups.fill(columns_of(asked), holes):
        assert j == 2 and (std < 0.3).all()
        found |= dict(zip(rows.tolist(), values, strict=True))
    assert found == {0: "a", 1: "b", 2: "b"}
    drawn = [
        np.array(list("aaaa"), object),
        np.array(list("aacc"), object),
        np.full(4, "?", object),
    ]
    drawn[2][3] = "a"
    sure = {2: [replace(one, counts=one.counts * 10**9) for one in tables[2]]}
    Lookups([ab, c, ab], [False] * 3, sure).draw(columns_of(asked), [drawn], holes, 0)
    assert drawn[2].tolist() == ["a", "b", "b", "b"]


def test_as_good_as_the_model():
    """One error more of 100 is too many, as many are not; other rows are left out of the count."""
    ab = np.array(["a", "b"], dtype=object)
    x = np.resize(ab, 100)
    y = x.copy()
    y[:5] = y[1:6]
    table = columns_of(pd.DataFrame({"x": x, "y": y}))
    lookups = Lookups([ab, ab], [False, False]).worth_a_try(table)
    for n_wrong, is_taken in ((4, False), (5, True), (6, True)):

        def fills(j, rows, changed=slice(20, 20 + n_wrong)):
            values = np.array([x, y])[j].copy()
            values[changed] = np.where(values[changed] == "a", "b", "a")
            return values[rows]

        assert (1 in lookups.as_good_as(fills, table).tables) == is_taken


def test_codes_and_cells():
    levels = np.array(["a", "bcd"], dtype=object)
    column = columns_of(pd.DataFrame({"x": ["bcd", None, "z", "a"]}))[0]
    assert_array_equal(codes_of(column, levels), [1, -1, -1, 0])
    held = with_cells(np.array(["a", "b"]), np.array([0]), np.array(["longer"]))
    assert held.tolist() == ["longer", "b"]
    assert with_cells(np.array([1, 2]), np.array([1]), np.array([0.5])).tolist() == [1.0, 0.5]
    mixed = with_cells(np.array([True, False]), np.array([1]), np.array(["x"], dtype=object))
    assert mixed.tolist() == [True, "x"]
    lookups = Lookups([np.array([2.0, 4.0]), levels], [True, False])
    assert lookups.as_codes(0, np.array([2.0, 3.0, 4.0])).tolist() == [0.0, 0.5, 1.0]
    assert lookups.as_codes(1, levels[[1, 0]]).tolist() == [1.0, 0.0]


def test_fills_names_and_numbers(fitted):
    table, given, imputer = fitted
    code, words, other = 10, 11, 12
    assert imputer.looked_up_[code][0] == words and imputer.looked_up_[words][0] == code
    assert set(imputer.looked_up_[other]) <= {code, words}
    filled = imputer.transform(given)
    std = imputer.standard_deviations(given)
    known = given["words"].isna() & given["code"].notna()
    assert (filled["words"] == table["words"])[known].all() and known.sum() > 20
    assert std["words"][known].between(1e-6, 0.05).all()
    numbers = given["code"].isna() & given["words"].notna()
    assert_allclose(filled["code"][numbers], table["code"][numbers], atol=0.02)
    assert (std["code"][numbers] > 0.0).all()
    counts = pd.crosstab(given["code"], given["words"])
    pears = mean_law(counts.to_numpy(), counts.loc[5.0].to_numpy())[1]
    five = given["code"].eq(5.0) & given["words"].isna()
    assert_allclose(std["words"][five], np.sqrt(pears * (1 - pears)))
    # Where another column is not known either, the model fills the cell.
    alone = short(given, lookup=False)
    assert alone.looked_up_ == {}
    both = given[["words", "code", "other"]].isna().all(axis=1)
    by_model = alone.transform(given)
    assert both.any() and (filled["words"] == by_model["words"])[both].all()
    assert (by_model["words"] != table["words"])[known].mean() > 0.1
    assert_array_equal(filled.iloc[:, :10], by_model.iloc[:, :10])
    trained = clone(imputer).fit_transform(given)
    assert (trained["words"] == filled["words"])[known].all()


def test_draws_go_together(fitted):
    table, given, imputer = fitted
    tables = imputer.multiple(20)
    hidden, both = given["other"].isna(), given[["words", "code"]].isna().all(axis=1)
    names = table.set_index("code")["words"].to_dict()
    go_together = [one["words"] == one["code"].map(names) for one in tables]
    assert np.mean([right[given["words"].isna()] for right in go_together]) > 0.95
    assert both.any() and np.mean([len(set(one["words"][both])) for one in tables]) > 1.5
    agree = np.mean([(one["other"] == one["words"])[hidden].mean() for one in tables])
    seen = given[["other", "words"]].dropna()
    assert abs(agree - (seen["other"] == seen["words"]).mean()) < 0.08
    # Laws of levels are drawn as well: tables differ in what is nearly known.
    again = imputer.multiple(20)
    assert all(one.equals(other) for one, other in zip(tables, again, strict=True))
    assert not tables[0].equals(tables[1])
    low, high = imputer.intervals(given)
    seen = given["code"].isna() & given["words"].notna()
    assert ((low["code"] <= table["code"]) & (table["code"] <= high["code"]))[seen].mean() > 0.9


def test_spread_of_drawn_laws():
    """Shares of a level in completed tables vary as those under a Dirichlet law of one row more."""
    levels = [np.array(["a", "b"], dtype=object)] * 2
    lookup = Lookup(0, np.array([[40, 0], [1, 3]]))
    lookups = Lookups(levels, [False, False], {1: [lookup]})
    n, m = 400, 4000
    X = pd.DataFrame({"x": ["b"] * n, "y": [None] * n})
    holes = np.tile([False, True], (n, 1))
    x, y = np.array(["b"] * n, dtype=object), np.array(["a"] * n, dtype=object)
    tables = [[x, y] for _ in range(m)]
    lookups.draw(columns_of(X), tables, holes, 0)
    shares = np.array([np.mean(one[1] == "b") for one in tables])
    # A beta law for each size of the prior, then n cells.
    of_all, weights = posterior(lookup.counts)
    means = (3 + PRIOR_ROWS * of_all[1]) / (4 + PRIOR_ROWS)
    p = weights @ means
    law = weights @ (means * (1 - means) / (5 + PRIOR_ROWS) + (means - p) ** 2)
    variance = law + (p * (1 - p) - law) / n
    assert p == pytest.approx(lookup.probabilities(np.array([1]))[0, 1])
    assert abs(shares.mean() - p) < 4 * np.sqrt(variance / m)
    assert_allclose(shares.var(), variance, rtol=4 * np.sqrt(2 / m))
    assert y.tolist() == ["a"] * n


def test_in_turn():
    """What is drawn for one column is what the next is looked up by; never the reverse."""
    levels = [np.array(["a", "b"], dtype=object)] * 2
    sure = np.array([[10**9, 0], [0, 10**9]])
    lookups = Lookups(levels, [False, False], {0: [Lookup(1, sure)], 1: [Lookup(0, sure)]})
    X = pd.DataFrame({"x": [None, None, "b"], "y": [None, "a", None]})
    holes = X.isna().to_numpy()
    for model in (["a", "b"], ["b", "a"]):
        drawn = [np.array([model[0], "b", "b"], object), np.array([model[1], "a", "a"], object)]
        lookups.draw(columns_of(X), [drawn], holes, 0)
        # Of the first row x is the model's, and y is of that x.
        assert drawn[0].tolist() == [model[0], "a", "b"]
        assert drawn[1].tolist() == [model[0], "a", "b"]


@pytest.mark.parametrize("order", ["rsz", "zsr", "srz"])
def test_draws_follow_in_any_order(order):
    """A region is drawn by a state that is drawn by what is known of it, wherever columns are."""
    r, s, z = (order.index(name) for name in "rsz")
    levels = [np.array(["a", "b"], dtype=object)] * 3
    sure = np.array([[10**9, 0], [0, 10**9]])
    lookups = Lookups(levels, [False] * 3, {r: [Lookup(s, sure)], s: [Lookup(z, sure)]})
    cells = [None, None, None]
    cells[z] = "b"
    X = pd.DataFrame([cells], columns=list(order), dtype=object)
    drawn = [np.array(["a"], object) for _ in order]
    drawn[z] = np.array(["b"], object)
    lookups.draw(columns_of(X), [drawn], X.isna().to_numpy(), 0)
    assert [column[0] for column in drawn] == ["b", "b", "b"]
    # Without it both are of the model's state, which is looked up nowhere that is known.
    drawn = [np.array([value], object) for value in ("b", "b", "b")]
    drawn[z][0] = "a"
    X[order[z]] = None
    lookups.draw(columns_of(X), [drawn], X.isna().to_numpy(), 0)
    assert [drawn[k][0] for k in (r, s, z)] == ["a", "a", "a"]


def test_how_much_the_prior_counts_is_learned():
    """Columns that never differ are nearly sure after five rows; others are as noisy as seen."""
    codes, each = np.arange(6), np.eye(6, dtype=int)
    sure = Lookup(0, 5 * each)
    p = np.diag(sure.probabilities(codes))
    assert (p > 0.98).all() and (p < 1.0).all()
    rng = np.random.default_rng(0)
    noisy = Lookup(0, np.array([rng.multinomial(40, 0.64 * one + 0.06) for one in each]))
    seen = np.diag(noisy.counts).sum() / noisy.counts.sum()
    assert abs(np.diag(noisy.probabilities(codes)).mean() - seen) < 0.06
    assert noisy.posterior @ PRIOR_ROWS > 10 * (sure.posterior @ PRIOR_ROWS)


def test_only_where_as_good_as_the_model():
    """A copy with errors of a name that a measurement tells without."""
    rng = np.random.default_rng(0)
    name = np.where(rng.random(300) < 0.5, "a", "b")
    table = pd.DataFrame({"x": np.where(name == "a", -4.0, 4.0) + rng.normal(size=300)})
    copied = np.where(rng.random(300) < 0.85, name, np.where(name == "a", "b", "a"))
    table = table.assign(name=name.astype(object), copy=copied.astype(object))
    given = table.mask(rng.random(table.shape) < [0.0, 0.2, 0.0])
    lookups = Lookups([None, *[np.array(["a", "b"], dtype=object)] * 2], [False] * 3)
    assert 1 in lookups.worth_a_try(columns_of(given)).tables
    imputer = short(given)
    assert 1 not in imputer.looked_up_
    hidden = given["name"].isna()
    assert (imputer.transform(given)["name"] == table["name"])[hidden].all()


def test_arrays_and_frames_alike():
    table, given = codes_and_words(n=120)
    imputer = short(given)
    filled = imputer.transform(given)
    array = given.to_numpy(dtype=object, na_value=None)
    of_array = short(array)
    assert set(of_array.looked_up_) == set(imputer.looked_up_)
    assert of_array.transform(array)[:, 11].tolist() == filled["words"].tolist()
    frame = pl.DataFrame(as_lists(given))
    of_polars = short(frame)
    assert set(of_polars.looked_up_) == set(imputer.looked_up_)
    assert of_polars.transform(frame)["words"].to_list() == filled["words"].tolist()
    kinds = given.astype({"words": "category", "other": "string"})
    assert short(kinds).transform(kinds)["words"].astype(object).equals(filled["words"])


def test_two_values_in_an_array():
    """0 and 1 are filled with a chance, which is what the copies of a copy say."""
    rng = np.random.default_rng(0)
    X = np.exp(rng.normal(size=(200, 4)))
    X[:, 2] = rng.random(200) < 0.5
    X[:, 3] = np.where(rng.random(200) < 0.95, X[:, 2], 1 - X[:, 2])
    given = X.copy()
    given[:50, 2], given[30:90, 3] = NAN, NAN
    imputer = short(given)
    assert set(imputer.looked_up_) == {2, 3}
    filled, std = imputer.transform(given), imputer.standard_deviations(given)
    p = np.where(given[:30, 3] == 1, filled[:30, 2], 1 - filled[:30, 2])
    assert ((p > 0.9) & (p < 1.0)).all()
    assert_allclose(std[:30, 2], np.sqrt(p * (1 - p)))
    assert set(np.unique(imputer.multiple(2)[0][:, 2:])) == {0.0, 1.0}


def test_unseen_names_say_nothing(fitted):
    _, given, imputer = fitted
    new = given.iloc[:2].assign(words=["plum", "quince tree"], code=[NAN, NAN], other=[None, None])
    with pytest.warns(UserWarning, match="has not seen, in column 'words'"):
        filled = imputer.transform(new)
    assert filled["words"].tolist() == ["plum", "quince tree"]
    assert abs(filled["code"][1] - 8.0) < 0.02 < 1.0 < 8.0 - filled["code"][0]


def test_the_report_names_them(fitted):
    _, given, imputer = fitted
    text = str(imputer.report())
    assert "Cells of words are filled from code" in text
    record = {one["column"]: one for one in imputer.report().sections["cells"].table}
    assert record["words"]["deviation"] < 0.15
    assert "quince tree" in record["words"]["filled with"]
    assert "are filled from" not in str(short(given, lookup=False).report())


def test_the_parameter_is_checked():
    with pytest.raises(ValueError, match="lookup"):
        BNPImputer(lookup="yes").fit(np.ones((3, 2)))


def test_wide_tables_are_left_to_the_model(monkeypatch):
    """Pairs of columns grow with the square of their number, and so do those of levels."""
    levels = np.array([0.0, 1.0])
    x = np.resize([0.0, 1.0], 60)
    for width, n in ((100, 100), (101, 0)):
        columns = columns_of(np.column_stack([x] * width))
        assert len(Lookups([levels] * width, [True] * width).worth_a_try(columns).tables) == n
    many = np.arange(1001.0)
    columns = columns_of(np.column_stack([many, many]).repeat(2, axis=0))
    assert not Lookups([many] * 2, [True] * 2).worth_a_try(columns).tables
    assert Lookups([many[:999]] * 2, [True] * 2).worth_a_try(columns).tables
    # What the model is asked is bounded.
    asked = []

    def fills(j, rows):
        asked.append(len(rows))
        return np.full(len(rows), 0.5)

    for width, n in ((4, 500), (50, 100), (100, 50)):
        asked.clear()
        columns = columns_of(np.column_stack([np.resize(x, 900)] * width))
        tried = Lookups([levels] * width, [True] * width).worth_a_try(columns)
        taken = tried.as_good_as(fills, columns)
        assert asked == [n] * width and set(taken.tables) == set(range(width))
