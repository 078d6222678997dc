import pickle
import sys
import types
import warnings

import numpy as np
import pytest

from checks.toy_samplers import ToySampler
from skbnp.mcmc import Posterior, diagnostics, run_chains


@pytest.fixture(scope="module")
def posterior():
    return run_chains(ToySampler, n_chains=3, n_warmup=20, n_draws=40, thin=2, seed=1)


@pytest.fixture
def numbered():
    """Two chains of five draws that hold their own place."""
    draws = [[{"place": np.array([c, t])} for t in range(5)] for c in range(2)]
    return Posterior(draws, {"log_joint": np.zeros((2, 5))})


def test_indexing(numbered):
    assert numbered[1, 2]["place"].tolist() == [1, 2]
    assert numbered[-1, -5]["place"].tolist() == [1, 0]
    assert numbered[np.int64(0), 4]["place"].tolist() == [0, 4]
    for index in [(2, 0), (-3, 0), (0, 5), (0, -6)]:
        with pytest.raises(IndexError, match="out of range"):
            numbered[index]
    for index in [3, (0, slice(None)), (0, 1, 2), (0, 1.0)]:
        with pytest.raises(TypeError, match=r"posterior\[chain, draw\]"):
            numbered[index]


def test_length_and_iteration(numbered):
    assert len(numbered) == numbered.n_stored == 10
    assert (numbered.n_chains, numbered.n_draws) == (2, 5)
    places = [draw["place"].tolist() for draw in numbered]
    assert places == [[c, t] for c in range(2) for t in range(5)]
    assert numbered.nbytes == 10 * 16 + 10 * 8


@pytest.mark.parametrize(
    "max_draws, places",
    [(1, [5]), (2, [2, 7]), (3, [1, 5, 8]), (5, [1, 3, 5, 7, 9]), (10, range(10)), (99, range(10))],
)
def test_evenly_spaced(numbered, max_draws, places):
    found = [draw["place"] @ [5, 1] for draw in numbered.evenly_spaced(max_draws)]
    assert found == list(places)


def test_evenly_spaced_needs_a_draw(numbered):
    with pytest.raises(ValueError, match="max_draws must be >= 1, got 0"):
        numbered.evenly_spaced(0)


def test_arrays_are_read_only(posterior):
    for copy in (posterior, pickle.loads(pickle.dumps(posterior))):
        with pytest.raises(ValueError, match="read-only"):
            copy[0, 0]["path"][0] = 1
        with pytest.raises(ValueError, match="read-only"):
            copy.traces["x"][0, 0] = 1


def test_pickling(posterior):
    copy = pickle.loads(pickle.dumps(posterior))
    assert repr(copy) == repr(posterior)
    np.testing.assert_array_equal(copy.traces["x"], posterior.traces["x"])
    np.testing.assert_array_equal(copy[2, 7]["path"], posterior[2, 7]["path"])
    np.testing.assert_equal(copy.acceptance, posterior.acceptance)
    np.testing.assert_equal(copy.final_states, posterior.final_states)


def test_acceptance():
    counts = {"split": [(1, 4), (0, 0)]}
    posterior = Posterior([[{}], [{}]], {"log_joint": [[0.0], [0.0]]}, acceptance=counts)
    split = posterior.acceptance["split"]
    assert split["accepted"].tolist() == [1, 0]
    assert split["proposed"].tolist() == [4, 0]
    np.testing.assert_array_equal(split["rate"], [0.25, np.nan])


def test_rhat_and_ess_name_every_trace(posterior):
    names = ["log_joint", "x", "y", "step"]
    assert list(posterior.rhat()) == list(posterior.ess()) == names
    assert posterior.rhat()["x"] == diagnostics.rhat(posterior.traces["x"])
    assert posterior.ess()["x"] == diagnostics.ess(posterior.traces["x"])


def test_summary(posterior):
    pytest.importorskip("pandas", reason="the summary is a DataFrame where pandas is installed")
    table = posterior.summary()
    assert list(table.index) == list(posterior.traces)
    assert list(table) == ["mean", "sd", "5%", "95%", "mcse", "ess_bulk", "ess_tail", "rhat"]
    x = posterior.traces["x"]
    assert table.loc["x", "mean"] == x.mean()
    assert table.loc["x", "sd"] == x.std(ddof=1)
    assert table.loc["x", "95%"] == np.quantile(x, 0.95)
    assert table.attrs == {"n_chains": 3, "n_draws": 40, "n_warmup": 20, "n_stored": 120}


def test_summary_without_pandas(posterior, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    rows = posterior.summary()
    assert rows["y"]["mean"] == posterior.traces["y"].mean()
    assert rows["y"]["rhat"] == posterior.rhat()["y"]


def test_summary_of_odd_traces():
    traces = {
        "log_joint": np.zeros((1, 1)),
        "infinite": np.full((1, 1), np.inf),
        "missing": np.full((1, 1), np.nan),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Posterior([[{}]], traces).summary()
        longer = {name: np.repeat(trace, 10, axis=1) for name, trace in traces.items()}
        longer["infinite"] = np.where(np.arange(10) < 5, longer["infinite"], 0.0)
        Posterior([[{}] * 10], longer).summary()


def test_repr(posterior):
    assert repr(posterior).startswith(
        "Posterior(3 chains of 40 draws after 20 sweeps of warm-up, 0.0"
    )
    assert repr(posterior).endswith("traces: log_joint, x, y, step)")


@pytest.mark.parametrize(
    "draws, traces, message",
    [
        ([], {"log_joint": np.zeros((0, 0))}, "at least one chain"),
        ([[{}], []], {"log_joint": np.zeros((2, 1))}, "must have 1 stored .* got 0"),
        ([[{}]], {}, "must hold 'log_joint'"),
        ([[{}]], {"log_joint": np.zeros((1, 2))}, "must have 2 stored .* got 1"),
        ([[{}]], {"log_joint": [[0.0]], "x": [[0.0, 1.0]]}, r"'x' must .* shapes \[\(2,\)\]"),
    ],
)
def test_shapes_must_agree(draws, traces, message):
    with pytest.raises(ValueError, match=message):
        Posterior(draws, traces)


def test_to_arviz(posterior):
    arviz = pytest.importorskip("arviz", reason="ArviZ is an optional dependency")
    data = posterior.to_arviz()
    assert list(data["posterior"].data_vars) == ["x", "y", "step"]
    assert data["posterior"]["x"].dims == ("chain", "draw")
    np.testing.assert_array_equal(data["posterior"]["x"], posterior.traces["x"])
    np.testing.assert_array_equal(data["sample_stats"]["lp"], posterior.traces["log_joint"])
    rate = data["sample_stats"]["acceptance_rate_walk"]
    assert rate.shape == (3, 40)
    np.testing.assert_array_equal(rate[:, 0], posterior.acceptance["walk"]["rate"])
    table = arviz.summary(data, var_names=["x"], round_to="none")
    assert table.loc["x", "ess_bulk"] == pytest.approx(posterior.ess()["x"], rel=0.01)


@pytest.mark.parametrize("version", ["0.23.4", "1.2.0"])
def test_to_arviz_speaks_to_both_versions(posterior, monkeypatch, version):
    def from_dict(data=None, **groups):
        assert (data is None) == version.startswith("0")
        return data or groups

    fake = types.SimpleNamespace(__version__=version, from_dict=from_dict)
    monkeypatch.setitem(sys.modules, "arviz", fake)
    assert set(posterior.to_arviz()) == {"posterior", "sample_stats"}


def test_to_arviz_without_arviz(posterior, monkeypatch):
    monkeypatch.setitem(sys.modules, "arviz", None)
    with pytest.raises(ImportError, match=r"pip install 'skbnp\[arviz\]'"):
        posterior.to_arviz()
