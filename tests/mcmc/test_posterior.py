import pickle
import sys
import warnings

import numpy as np
import pytest

from checks.toy_samplers import ToySampler
from skbnp.mcmc import Posterior, diagnostics, io, run_chains


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


def test_html_for_notebooks(posterior):
    html = posterior._repr_html_()
    assert html.count("<tr>") == 1 + len(posterior.summary()) and "R-hat" not in html
    assert f"{posterior.n_chains} chain" in html and "rhat" in html
    for name in posterior.traces:
        assert f">{name}</td>" in html
    assert "<table>" not in Posterior([[]], {})._repr_html_()  # before the first draw


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


# -- draws that are not all stored, or not equally many in each chain


def ragged(lengths=(11, 8), store_every=1, **options):
    """Chains of several lengths whose draws and traces hold their own place."""
    draws = [
        [{"place": np.array([c, t])} for t in range(store_every - 1, n, store_every)]
        for c, n in enumerate(lengths)
    ]
    traces = [np.arange(n) + 100.0 * c for c, n in enumerate(lengths)]
    return Posterior(draws, {"log_joint": traces}, store_every=store_every, **options)


def test_the_shortest_chain_ends_the_posterior():
    posterior = ragged()
    assert (posterior.n_draws, posterior.n_stored, len(list(posterior))) == (8, 16, 16)
    np.testing.assert_array_equal(posterior.traces["log_joint"][0], np.arange(8))
    assert posterior[0, -1]["place"].tolist() == [0, 7]
    assert posterior.in_order(8)["place"].tolist() == [1, 0]
    assert [len(chain) for chain in posterior.all_draws()] == [11, 8]
    assert ragged(n_draws=5).n_draws == 5
    assert ragged(n_draws=50).n_draws == 8


def test_stored_draws_belong_to_their_traces():
    posterior = ragged((16, 12), store_every=4)
    assert posterior.stored.tolist() == [3, 7, 11]
    assert (posterior.n_stored, posterior.n_draws) == (6, 12)
    for c in range(2):
        for t, place in enumerate(posterior.stored):
            assert posterior[c, t]["place"].tolist() == [c, place]
            assert posterior.traces["log_joint"][c, place] == 100 * c + place
    assert posterior.highest()["place"].tolist() == [1, 11]
    with pytest.raises(IndexError, match="draw 3 is out of range for 3 stored draws per chain"):
        posterior[0, 3]
    assert "12 draws (1 in 4 stored) after" in repr(posterior)


@pytest.mark.parametrize("store_every", [1, 2, 4])
@pytest.mark.parametrize("k", [1, 2, 3, 4, 6])
def test_thin(store_every, k):
    posterior = ragged((24, 25), store_every, n_warmup=3, sweeps_per_draw=2, seed=9)
    thinned = posterior.thin(k)
    assert (thinned.n_draws, thinned.sweeps_per_draw, thinned.seed) == (24 // k, 2 * k, 9)
    np.testing.assert_array_equal(
        thinned.traces["log_joint"], posterior.traces["log_joint"][:, k - 1 :: k]
    )
    for c in range(2):
        for t, place in enumerate(thinned.stored):
            chain, draw = thinned[c, t]["place"]
            assert thinned.traces["log_joint"][c, place] == 100 * chain + draw
    assert thinned.n_stored == 2 * (24 // np.lcm(k, store_every))
    assert thinned.final_states == []


@pytest.mark.parametrize("k", [0, 6, 2.0, True])
def test_thin_needs_a_number_of_draws(numbered, k):
    with pytest.raises(ValueError, match="k must be an integer from 1 to n_draws = 5, got"):
        numbered.thin(k)


# -- files


def assert_same_posterior(one, other):
    assert repr(one) == repr(other)
    for name, trace in one.traces.items():
        np.testing.assert_array_equal(trace, other.traces[name])
    for draw, other_draw in zip(one, other, strict=True):
        assert list(draw) == list(other_draw)
        for name, value in draw.items():
            np.testing.assert_array_equal(value, other_draw[name])
            if isinstance(value, np.ndarray):
                assert value.dtype == other_draw[name].dtype
                assert not other_draw[name].flags.writeable
            else:
                assert type(value) is type(other_draw[name])
    np.testing.assert_equal(one.acceptance, other.acceptance)
    np.testing.assert_equal(one.final_states, other.final_states)


def test_save_and_load(posterior, tmp_path):
    path = tmp_path / "posterior.skbnp"
    posterior.save(path)
    loaded = Posterior.load(path)
    assert_same_posterior(posterior, loaded)
    assert (loaded.seed, loaded.n_warmup, loaded.sweeps_per_draw) == (1, 20, 2)
    assert loaded.rhat() == posterior.rhat()


def test_save_and_load_what_is_left_of_an_early_stop(tmp_path):
    path = tmp_path / "posterior.skbnp"
    ragged((16, 12), store_every=4).save(path)
    loaded = Posterior.load(path)
    assert_same_posterior(ragged((16, 12), store_every=4), loaded)
    assert [len(chain) for chain in loaded.all_draws()] == [4, 3]


def test_draws_of_any_type_come_back(tmp_path):
    """Dtypes and shapes may change from draw to draw, as labels and blocks do."""
    draws = [
        {"label": np.arange(3, dtype=np.uint8), "scale": 0.1, "n": 3, "table": np.zeros((0, 2))},
        {"label": np.arange(3, dtype=np.int32), "scale": np.inf, "n": 2**70, "table": np.eye(2)},
        {"label": np.array(5.0), "scale": 5e-324, "n": -1, "table": np.full((1, 2), np.nan)},
    ]
    path = tmp_path / "posterior.skbnp"
    Posterior([draws], {"log_joint": np.zeros((1, 3))}).save(path)
    assert_same_posterior(Posterior([draws], {"log_joint": np.zeros((1, 3))}), Posterior.load(path))


def test_a_draw_that_is_no_data_is_refused(tmp_path):
    path = tmp_path / "posterior.skbnp"
    posterior = Posterior([[{"f": print}]], {"log_joint": np.zeros((1, 1))})
    with pytest.raises(TypeError, match="'f' of a draw must be an array or a number"):
        posterior.save(path)
    assert list(tmp_path.iterdir()) == []


def test_another_kind_of_file(posterior, tmp_path):
    path = tmp_path / "file"
    io.write(path, "checkpoint", {})
    with pytest.raises(io.FileFormatError, match="holds a checkpoint, not a posterior"):
        Posterior.load(path)
    io.write(path, "posterior", {**posterior.to_data(), "store_every": 0})
    with pytest.raises(io.FileFormatError, match="is damaged: store_every is 0"):
        Posterior.load(path)
