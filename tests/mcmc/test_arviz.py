"""What `to_arviz` makes of a posterior that no estimator stands behind, on either line of ArviZ."""

import sys
import types

import arviz
import numpy as np
import pytest
import xarray

from checks.arviz_lines import assert_same, groups_of, through_netcdf, through_zarr
from checks.toy_samplers import ToySampler
from checks.watched import ToyModel
from skbnp.mcmc import Posterior, run_chains
from skbnp.mcmc.arviz import check_size
from skbnp.mcmc.chain_end import ChainEnd

pytestmark = pytest.mark.filterwarnings("ignore:Consolidated metadata")
OPTIONS = dict(n_chains=3, n_warmup=20, thin=2, seed=1)


@pytest.fixture(scope="module")
def posterior():
    return run_chains(ToySampler, n_draws=40, **OPTIONS)


class Rows:
    """Six rows of two columns, whose density nobody asks for."""

    def __call__(self, draw):
        return np.full(6, -1.5)

    def observed_data(self):
        return np.ones((6, 2))


def test_traces_are_the_posterior(posterior):
    data = posterior.to_arviz()
    assert groups_of(data).keys() == {"posterior", "sample_stats"}
    assert list(data["posterior"].data_vars) == ["x", "y", "step"]
    assert data["posterior"]["x"].dims == ("chain", "draw")
    np.testing.assert_array_equal(data["posterior"]["x"], posterior.traces["x"])
    np.testing.assert_array_equal(data["posterior"]["draw"], np.arange(40))
    np.testing.assert_array_equal(data["sample_stats"]["lp"], posterior.traces["log_joint"])
    rate = data["sample_stats"]["acceptance_rate_walk"]
    assert rate.shape == (3, 40)
    np.testing.assert_array_equal(rate[:, 0], posterior.acceptance["walk"]["rate"])
    assert data["posterior"].attrs["inference_library"] == "skbnp"
    assert data["posterior"].attrs["tuning_steps"] == 20
    table = arviz.summary(data, var_names=["x"], round_to="none")
    assert table.loc["x", "ess_bulk"] == pytest.approx(posterior.ess()["x"], rel=0.01)


def test_rows_without_names_are_numbered(posterior):
    knowing = posterior.thin(4)
    knowing.attach_rows(Rows())
    data = knowing.to_arviz(log_likelihood=9)
    assert data["observed_data"]["X"].dims == ("row", "feature")
    assert data["log_likelihood"]["X"].dims == ("chain", "draw", "row")
    assert data["log_likelihood"]["X"].shape == (3, 3, 6)
    # Of ten draws those in the middle of three stretches.
    np.testing.assert_array_equal(data["log_likelihood"]["draw"], [1, 5, 8])


@pytest.mark.parametrize("version", ["0.23.4", "1.2.0"])
def test_both_lines_get_their_own_type(posterior, monkeypatch, version):
    def inference_data(save_warmup, **groups):
        assert save_warmup
        return groups

    fake = types.SimpleNamespace(__version__=version, InferenceData=inference_data)
    monkeypatch.setitem(sys.modules, "arviz", fake)
    data = posterior.to_arviz(warmup=True)
    wanted = {"posterior", "sample_stats", "warmup_posterior", "warmup_sample_stats"}
    assert isinstance(data, dict if version.startswith("0") else xarray.DataTree)
    assert set(data) == wanted


def test_without_arviz(posterior, monkeypatch):
    monkeypatch.setitem(sys.modules, "arviz", None)
    with pytest.raises(ImportError, match=r"pip install 'skbnp\[arviz\]'"):
        posterior.to_arviz()


@pytest.mark.parametrize("through", [through_netcdf, through_zarr])
def test_files_hold_all_of_it(posterior, tmp_path, through):
    data = posterior.to_arviz(warmup=True)
    assert_same(data, through(data, tmp_path / "file"))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"log_likelihood": "all"}, TypeError, "log_likelihood must be a bool or a number"),
        ({"log_likelihood": 0}, ValueError, "log_likelihood must be .* >= 1, got 0"),
        ({"posterior_predictive": 2.5}, TypeError, "posterior_predictive must be .*, got 2.5"),
        ({"prior": -1}, ValueError, "prior must be .* >= 1, got -1"),
        ({"imputed": 1}, TypeError, "imputed must be True or False, got 1"),
        ({"scalars_only": None}, TypeError, "scalars_only must be True or False, got None"),
        ({"posterior_predictive": True}, ValueError, "posterior_predictive must be False where"),
        ({"prior": 3}, ValueError, "prior must be False where the posterior does not know"),
        ({"imputed": True}, ValueError, "imputed must be False where"),
        ({"log_likelihood": True}, ValueError, "must know the training rows"),
    ],
)
def test_what_cannot_be_had_is_refused(posterior, options, error, message):
    with pytest.raises(error, match=message):
        posterior.to_arviz(**options)


def test_large_tables_are_refused():
    check_size("prior", 100, (1000, 2500))
    with pytest.raises(ValueError, match=r"prior must be at most 100 .* \(1000, 2500\).* got 101"):
        check_size("prior", 101, (1000, 2500))


# -- the warm-up


class WatchedSampler(ToySampler):
    """Takes down what was true after each sweep."""

    seen = ()

    def log_joint(self):
        self.seen.append(super().log_joint())
        return self.seen[-1]


def test_the_warmup_is_what_came_before():
    WatchedSampler.seen = []
    posterior = run_chains(WatchedSampler, **OPTIONS | {"n_chains": 1}, n_draws=2)
    data = posterior.to_arviz(warmup=True)
    np.testing.assert_array_equal(data["warmup_sample_stats"]["lp"][0], WatchedSampler.seen[:20])
    np.testing.assert_array_equal(data["sample_stats"]["lp"][0], WatchedSampler.seen[21::2])
    assert list(data["warmup_posterior"].data_vars) == ["x", "y", "step"]
    assert data["warmup_posterior"]["x"].shape == (1, 20)


def test_a_run_that_goes_on_keeps_its_warmup(posterior, tmp_path):
    begun = run_chains(ToySampler, n_draws=5, **OPTIONS)
    begun.save(tmp_path / "begun")
    whole = run_chains(ToySampler, n_draws=40, start=Posterior.load(tmp_path / "begun"), **OPTIONS)
    assert_same(whole.to_arviz(warmup=True), posterior.to_arviz(warmup=True))


def test_no_warmup_is_said(posterior):
    message = "warmup must be False where the posterior holds no traces of a warm-up"
    none = run_chains(ToySampler, n_draws=5, **OPTIONS | {"n_warmup": 0})
    for silent in (posterior.thin(2), none, Posterior([[{}]], {"log_joint": [[0.0]]})):
        assert silent.warmup_traces == {}
        with pytest.raises(ValueError, match=message):
            silent.to_arviz(warmup=True)


@pytest.mark.parametrize("trace", [np.zeros((2, 2)), [0.0, 1.0], None])
def test_a_warmup_from_outside_is_checked(trace):
    with pytest.raises(ValueError, match="trace 'x' of warmup_traces must be an array"):
        ChainEnd(warmup_traces={"x": trace})


def test_an_estimator_that_keeps_no_rows_gives_its_traces():
    class Traced(ToyModel):
        """Nothing is known of it but its chains."""

    fitted = Traced(n_chains=2, n_warmup=5, n_draws=10, random_state=0).fit(np.zeros((4, 1)))
    assert groups_of(fitted.posterior_.to_arviz()).keys() == {"posterior", "sample_stats"}
    with pytest.raises(ValueError, match="prior must be False"):
        fitted.posterior_.to_arviz(prior=True)
