"""``interval_calibration="holes"``: the cells that are hidden, the scales, what they scale."""

import signal

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from checks.answers import answers, assert_same_answers
from contract.registry import DEFAULTS
from skbnp import TreeFactorModel
from skbnp.estimators import interval_calibration
from skbnp.estimators.interval_calibration import (
    _scale,
    _share_of_first_holes,
    second_holes,
)
from skbnp.mcmc.io import FileFormatError

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

CALIBRATED = [one for one in DEFAULTS if hasattr(one.kind(), "interval_calibration")]
each = pytest.mark.parametrize("setting", CALIBRATED, ids=str)


def table(n=160, seed=0):
    """Correlated columns far from standard units, with holes in two of them at a time."""
    rng = np.random.default_rng(seed)
    X = 50.0 + 7.0 * (
        rng.normal(size=(n, 2)) @ rng.normal(size=(2, 5)) + 0.5 * rng.normal(size=(n, 5))
    )
    X[::2, 1:3] = np.nan
    X[1::6, 4] = np.nan
    return X


def test_there_are_some():
    assert {one.kind.__name__ for one in CALIBRATED} == {"CIBPBeliefNet", "TreeFactorModel"}


def test_hidden_cells_are_where_other_rows_lack_theirs():
    X = table()
    hidden = second_holes(X, np.random.default_rng(0))
    assert not (hidden & np.isnan(X)).any()
    assert hidden[:, [1, 2, 4]].any(axis=0).all() and not hidden[:, [0, 3]].any()
    assert_array_equal(hidden[1::2, 1], hidden[1::2, 2])


def test_a_column_does_not_lose_all_that_is_left_of_it():
    X = np.random.default_rng(0).normal(size=(200, 4))
    X[:60, 1], X[0, 2] = np.nan, np.nan
    hidden = second_holes(X, np.random.default_rng(1))
    assert 50 <= hidden[:, 1].sum() <= 90


def test_share_of_the_holes_that_are_not_new():
    """Half where a row's holes have doubled, none where it had none; other rows do not count."""
    X = np.zeros((3, 6))
    X[0, :2] = X[1, :2] = np.nan
    hidden = np.zeros((3, 6), dtype=bool)
    hidden[0, 2:4] = True
    assert _share_of_first_holes(X, hidden) == 0.5
    hidden[2, 2:4] = True
    assert _share_of_first_holes(X, hidden) == 0.25
    assert _share_of_first_holes(X, np.zeros((3, 6), dtype=bool)) == 0.0


def test_wider_holes_damp_the_scale_of_the_rows_that_were_seen(monkeypatch):
    monkeypatch.setattr(interval_calibration, "_scale", lambda *arguments: 1.44)
    options = dict(n_chains=1, n_warmup=2, n_draws=4, random_state=0)
    model = TreeFactorModel(interval_calibration="holes", **options)
    model.fit(table())
    assert model.new_std_scale_ == 1.44 and 1.2 < model.std_scale_ < 1.43
    model.fit(np.nan_to_num(table(), nan=50.0))
    assert model.new_std_scale_ == model.std_scale_ == 1.44


def test_deviations_are_widened_but_never_shortened(monkeypatch):
    monkeypatch.setattr(interval_calibration, "_scale", lambda *arguments: 0.7)
    options = dict(n_chains=1, n_warmup=2, n_draws=4, random_state=0)
    model = TreeFactorModel(interval_calibration="holes", **options).fit(table())
    assert model.std_scale_ == model.new_std_scale_ == 1.0
    assert model.n_hidden_cells_ >= 30


def test_without_holes_a_tenth_of_the_cells_is_hidden():
    hidden = second_holes(np.random.default_rng(0).normal(size=(200, 50)), np.random.default_rng(1))
    assert abs(hidden.mean() - 0.1) < 0.01


def test_rows_keep_a_cell_and_columns_two_values():
    rng = np.random.default_rng(0)
    for _ in range(50):
        X = rng.integers(3, size=(6, 3)).astype(float)
        X[rng.random(X.shape) < 0.6] = np.nan
        left = ~np.isnan(X) & ~second_holes(X, rng)
        seen = ~np.isnan(X)
        assert (left.any(axis=1) == seen.any(axis=1)).all()
        for j in range(3):
            before, after = (len(np.unique(X[which[:, j], j])) for which in (seen, left))
            assert after >= min(before, 2)


class Overconfident:
    """Fills with 0 and says that half of the deviation is all of it."""

    def impute(self, X, return_std):
        return np.nan_to_num(X), np.where(np.isnan(X), 0.5, 0.0)


def test_the_scale_is_what_deviations_lack():
    # Normal quantiles, so that 68 and 95 per cent of them are within one and two deviations.
    x = stats.norm.ppf((np.arange(2000) + 0.5) / 2000)[:, np.newaxis]
    hidden = np.ones(x.shape, dtype=bool)
    assert _scale(
        x, np.full(x.shape, np.nan), hidden, Overconfident(), "new rows"
    ) == pytest.approx(2, rel=0.01)


def test_cells_that_are_filled_without_error_scale_nothing():
    x = np.zeros((200, 1))
    hidden, holed = np.ones(x.shape, dtype=bool), np.full(x.shape, np.nan)
    assert _scale(x, holed, hidden, Overconfident(), "new rows") == 1.0
    x[:50] = 4.0  # a quarter of them: only the 95 % quantile says something
    assert _scale(x, holed, hidden, Overconfident(), "new rows") == pytest.approx(4.0)


def test_too_few_cells_scale_nothing():
    x = np.ones((10, 1))
    with pytest.warns(UserWarning, match="10 hidden cells are too few, 30 are needed"):
        scale = _scale(
            x, np.full(x.shape, np.nan), np.ones(x.shape, dtype=bool), Overconfident(), "new rows"
        )
    assert scale is None


class Undecided(Overconfident):
    """Has no second moment for most cells, and one value for some."""

    def impute(self, X, return_std):
        filled, std = super().impute(X, return_std)
        std[::2], std[1] = np.inf, 0.0
        return filled, std


def test_deviations_that_say_nothing_are_left_out():
    x = stats.norm.ppf((np.arange(2000) + 0.5) / 2000)[:, np.newaxis]
    x[::2] = 0.0
    hidden = np.ones(x.shape, dtype=bool)
    assert _scale(x, np.full(x.shape, np.nan), hidden, Undecided(), "new rows") == pytest.approx(
        2, rel=0.01
    )


@each
@pytest.mark.filterwarnings("ignore:the deviations of filled cells")
@pytest.mark.filterwarnings("ignore:X is constant")
@pytest.mark.parametrize("n, n_observed", [(2, 2), (4, 4), (10, 1), (10, 2)])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_small_tables_and_columns_with_few_values(setting, n, n_observed, seed):
    X = np.random.default_rng(seed).normal(size=(n, 3))
    X[n_observed:, 2] = np.nan
    options = {"n_warmup": 2, "n_draws": 2, "n_chains": 1, "random_state": seed}
    model = setting.kind(**options, interval_calibration="holes").fit(X)
    assert model.std_scale_ == model.new_std_scale_ == 1.0


@each
def test_it_can_be_asked_for_later(setting):
    X = table()
    model = setting.fit(X, warm_start=True)
    model.set_params(interval_calibration="holes").fit(X)
    assert model.std_scale_ == setting.fit(X, interval_calibration="holes").std_scale_


@each
def test_deviations_are_multiplied_and_nothing_else(setting, tmp_path):
    X, new = table(), table(30, seed=1)
    plain, scaled = setting.fit(X), setting.fit(X, interval_calibration="holes")
    assert not hasattr(plain, "std_scale_")
    assert scaled.std_scale_ != 1.0 and scaled.new_std_scale_ != 1.0
    assert_array_equal(scaled.X_imputed_, plain.X_imputed_)
    assert_allclose(scaled.X_imputed_std_, scaled.std_scale_ * plain.X_imputed_std_)
    for rows, scale in ((X, scaled.std_scale_), (new, scaled.new_std_scale_)):
        filled, std = scaled.impute(rows, return_std=True)
        expected, expected_std = plain.impute(rows, return_std=True)
        assert_array_equal(filled, expected)
        assert_allclose(std, scale * expected_std)
    assert_array_equal(scaled.score_samples(new), plain.score_samples(new))
    scaled.save(tmp_path / "file")
    loaded = setting.kind.load(tmp_path / "file")
    assert_same_answers(answers(loaded, X), answers(scaled, X))
    # A fit without it knows nothing of the scales of the one before.
    assert not hasattr(scaled.set_params(interval_calibration=None).fit(X), "std_scale_")


@each
@pytest.mark.parametrize("scale", [0.0, -1.0])
def test_files_with_a_scale_that_cannot_be(setting, tmp_path, scale):
    model = setting.fit(table(), interval_calibration="holes")
    model.std_scale_ = scale
    model.save(tmp_path / "file")
    with pytest.raises(FileFormatError, match="std_scale_ must be positive and finite"):
        setting.kind.load(tmp_path / "file")


@each
def test_ctrl_c_during_the_second_fit_keeps_the_first(setting, monkeypatch):
    X = table()

    def pressed(self, X):
        signal.raise_signal(signal.SIGINT)
        raise KeyboardInterrupt

    model = setting.make(interval_calibration="holes")
    monkeypatch.setattr(setting.kind, "_scales_by_holes", pressed)
    with (
        pytest.warns(UserWarning, match="deviations of filled cells are not calibrated: Ctrl-C"),
        pytest.raises(KeyboardInterrupt, match="the estimator is fitted"),
    ):
        model.fit(X)
    assert model.std_scale_ == model.new_std_scale_ == 1.0
    assert_array_equal(model.X_imputed_std_, setting.fit(X).X_imputed_std_)


@each
def test_a_second_fit_that_fails_leaves_what_was_there(setting, monkeypatch):
    X, other = table(), table(seed=1)
    model = setting.fit(X)
    before = answers(model, X)

    def failing(self, X):
        raise MemoryError

    monkeypatch.setattr(setting.kind, "_scales_by_holes", failing)
    with pytest.raises(MemoryError):
        model.set_params(interval_calibration="holes").fit(other)
    assert_same_answers(answers(model, X), before)
