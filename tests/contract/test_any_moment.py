"""An interrupt or an error at any moment of a second fit: the old fit is whole, or the new one."""

import pickle
import signal
import sys
import warnings

import numpy as np
import pytest

from checks.answers import answers, difference
from checks.watched import table_with_holes
from contract.registry import DEFAULTS

SIZES = {"n_chains": 1, "n_warmup": 1, "n_draws": 2}


class _Injection:
    """Raise an error at the k-th call of a Python function of the library; count the calls."""

    def __init__(self, k=None, error=None):
        self.k, self.error, self.n_calls = k, error, 0

    def __enter__(self):
        self._before = sys.getprofile()
        sys.setprofile(self._on_event)
        return self

    def __exit__(self, *exception):
        sys.setprofile(self._before)

    def _on_event(self, frame, event, argument):
        # Not between two signal handlers: what holds Ctrl-C back cannot be held back itself.
        if event != "call" or "/skbnp/" not in frame.f_code.co_filename:
            return
        if frame.f_code.co_filename.endswith("interrupt.py"):
            return
        self.n_calls += 1
        if self.n_calls == self.k:
            sys.setprofile(None)
            raise self.error(f"at call {self.k}, of {frame.f_code.co_qualname}")


def refit(estimator, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator.set_params(random_state=2).fit(X, y)


@pytest.mark.parametrize("n_moments", [3, pytest.param(200, marks=pytest.mark.fuzz)])
@pytest.mark.parametrize("setting", DEFAULTS, ids=str)
def test_one_fit_or_the_other(setting, n_moments):
    X, other = table_with_holes(8, seed=1), table_with_holes(12, seed=2)
    if not setting.takes_holes:
        X, other = np.nan_to_num(X), np.nan_to_num(other)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first = pickle.dumps(setting.fit(X, **SIZES))

    def fitted():
        return pickle.loads(first)

    def said(estimator):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return answers(estimator, other)

    old = said(fitted())
    estimator = fitted()
    with _Injection() as whole:
        refit(estimator, other, setting.target(other))
    new = said(estimator)
    assert difference(old, new) is not None
    random = np.random.default_rng(0)
    moments = np.unique(random.integers(1, whole.n_calls + 1, size=n_moments))
    # The last ones, where things are attached, all.
    moments = np.union1d(moments, np.arange(max(1, whole.n_calls - 4), whole.n_calls + 1))
    outcomes, handler = {"old": 0, "new": 0}, signal.getsignal(signal.SIGINT)
    for k in moments:
        estimator = fitted()
        error = [KeyboardInterrupt, MemoryError][random.integers(2)]
        raised = None
        with _Injection(k, error):
            try:
                refit(estimator, other, setting.target(other))
            except error as caught:
                raised = caught
        assert signal.getsignal(signal.SIGINT) is handler
        found = said(estimator)
        which = [name for name, x in (("old", old), ("new", new)) if difference(found, x) is None]
        assert which, f"{raised} left neither: {difference(found, old)}, {difference(found, new)}"
        outcomes[which[0]] += 1
        assert raised is not None or which == ["new"]
    assert outcomes["old"] > 0
