"""Who watches a fit changes nothing in it, and sees what the fit itself reports."""

import numpy as np
import pytest

from checks.answers import assert_same_answers, draws
from checks.toy_samplers import Watcher
from contract.registry import SETTINGS
from skbnp.mcmc import progress, runner

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_watching_changes_no_draw(setting, monkeypatch):
    monkeypatch.setattr(runner, "_block_length", lambda *_: 1)
    # The figures of every state are looked at, also where nothing is kept.
    monkeypatch.setattr(progress, "_SHARE_OF_TIME", np.inf)
    X = setting.table()
    watcher, sizes = Watcher(), {"n_warmup": 4, "thin": 2, "n_draws": 4}
    estimator = setting.make(**sizes).set_callbacks(watcher)
    watched = estimator.fit(X, setting.target(X))
    assert_same_answers(draws(watched), draws(setting.fit(X, **sizes)))
    assert [told.n_swept for told in watcher.told] == [*range(12), 12]
    assert [told.phase for told in watcher.told] == ["warm-up"] * 4 + ["draws"] * 8 + ["done"]
    for told in watcher.told[1:]:
        assert {*watched._reported_traces, "log_joint"} <= told.figures.keys()
        assert all(np.isfinite(values).all() for values in told.figures.values())
    last = watcher.told[-1]
    for name, values in last.figures.items():
        np.testing.assert_array_equal(values, watched.posterior_.traces[name][:, -1])
    looked = [
        told.figures["log_density"] for told in watcher.told[1:] if "log_density" in told.figures
    ]
    assert len(np.unique(looked, axis=0)) > 4
