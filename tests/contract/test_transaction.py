"""A fit is attached whole or not at all, whatever goes wrong and whenever."""

import itertools
import signal

import numpy as np
import pytest

from checks.answers import answers, assert_same_answers
from contract.registry import DEFAULTS, SETTINGS, SHORTEST, others_slow

pytestmark = pytest.mark.filterwarnings("ignore")


def table(seed=0, n_samples=24):
    """Two clusters in three columns."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, 3))
    X[: n_samples // 2] += 4
    return X


# Where a fit may be cut off: what is called there, and at which time.
PLACES = ["_check_training", "_prepare", "_where_to_start", "_attach_rows", "_summarise"]


@pytest.mark.parametrize("setting", DEFAULTS, ids=str)
def test_a_second_fit_that_fails_leaves_the_first(setting, monkeypatch):
    """Among others new draws beside old labels, or old draws in the units of new data."""
    X, other = table(), 1000 * table(1)
    estimator = setting.fit(X, **SHORTEST)
    before, fields = answers(estimator, X), vars(estimator).copy()
    for place, when, error in itertools.product(
        PLACES, ["before", "after"], [KeyboardInterrupt, MemoryError]
    ):
        inner = getattr(setting.kind, place)

        def failing(self, *args, inner=inner, when=when, error=error, **kwargs):
            if when == "after":
                inner(self, *args, **kwargs)
            raise error

        with monkeypatch.context() as patch, pytest.raises(error):
            patch.setattr(setting.kind, place, failing)
            estimator.fit(other, setting.target(other))
        assert vars(estimator).keys() == fields.keys(), (place, when)
        assert all(vars(estimator)[name] is fields[name] for name in fields), (place, when)
        if when == "after" and error is MemoryError:
            assert_same_answers(answers(estimator, X), before)


@pytest.mark.parametrize("setting", others_slow(SETTINGS), ids=str)
def test_a_fit_that_fails_while_it_samples_leaves_the_first(setting, monkeypatch):
    X, other = table(), 1000 * table(1)
    estimator = setting.fit(X, **SHORTEST)
    before = answers(estimator, X)

    def failing(*args, **kwargs):
        raise MemoryError

    with monkeypatch.context() as patch, pytest.raises(MemoryError):
        patch.setattr("skbnp.estimators.chains.run_chains", failing)
        estimator.fit(other, setting.target(other))
    assert_same_answers(answers(estimator, X), before)
    again = estimator.fit(other, setting.target(other))
    assert_same_answers(answers(again, other), answers(setting.fit(other, **SHORTEST), other))


@pytest.mark.parametrize("setting", DEFAULTS, ids=str)
def test_a_first_fit_that_fails_leaves_nothing(setting, monkeypatch):
    X = table()
    estimator = setting.make(**SHORTEST)
    before = vars(estimator).copy()

    def failing(self, X):
        raise MemoryError

    monkeypatch.setattr(setting.kind, "_summarise", failing)
    with pytest.raises(MemoryError):
        estimator.fit(X, setting.target(X))
    assert vars(estimator) == before


@pytest.mark.parametrize("setting", DEFAULTS, ids=str)
@pytest.mark.parametrize("n_pressed", [1, 2])
def test_ctrl_c_during_the_summaries(setting, n_pressed, monkeypatch):
    """One waits for the end of the summaries, and nothing is lost; two go through at once."""
    X, other = table(), 1000 * table(1)
    estimator = setting.fit(X, **SHORTEST)
    before, expected = answers(estimator, X), answers(setting.fit(other, **SHORTEST), other)
    inner = setting.kind._summarise

    def pressed(self, table):
        for _ in range(n_pressed):
            signal.raise_signal(signal.SIGINT)
        inner(self, table)

    handler = signal.getsignal(signal.SIGINT)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt) as raised:
        patch.setattr(setting.kind, "_summarise", pressed)
        estimator.fit(other, setting.target(other))
    assert signal.getsignal(signal.SIGINT) is handler
    if n_pressed == 1:
        assert "the estimator is fitted" in str(raised.value)
        assert_same_answers(answers(estimator, other), expected)
    else:
        assert_same_answers(answers(estimator, X), before)


@pytest.mark.parametrize("setting", DEFAULTS, ids=str)
def test_a_fit_going_on_that_fails_can_go_on_again(setting, monkeypatch):
    """The state that the chains were left in is not touched by what comes after."""
    X = table()
    y = setting.target(X)
    estimator = setting.fit(X, **SHORTEST, warm_start=True)
    inner = setting.kind._summarise

    def failing(self, table):
        inner(self, table)
        raise MemoryError

    with monkeypatch.context() as patch, pytest.raises(MemoryError):
        patch.setattr(setting.kind, "_summarise", failing)
        estimator.set_params(n_draws=5).fit(X, y)
    estimator.fit(X, y)
    assert_same_answers(
        answers(estimator, X), answers(setting.fit(X, **SHORTEST | {"n_draws": 5}), X)
    )
