import pickle
import warnings

import numpy as np
import pytest
from arviz_stats.base import array_stats
from scipy.special import logsumexp
from scipy.stats import norm, rankdata

from skbnp.mcmc import Posterior
from skbnp.mcmc.chain_end import ChainEnd
from skbnp.mcmc.diagnostics import (
    apart_from,
    convergence_problems,
    drift,
    ess,
    least_ess,
    loo,
    mcse,
    never_moved,
    rhat,
)
from skbnp.mcmc.remedies import ChainsWarning, Illness, remedies, shortcomings_of_ensemble


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def autoregression(n_chains, n_draws, correlation, seed=0):
    """Stationary AR(1) chains with standard normal margins."""
    noise = np.random.default_rng(seed).normal(size=(n_chains, n_draws))
    x = noise.copy()
    for t in range(1, n_draws):
        x[:, t] = correlation * x[:, t - 1] + np.sqrt(1 - correlation**2) * noise[:, t]
    return x


def test_figures_are_those_of_arviz():
    x = autoregression(4, 200, 0.5)
    axes = {"chain_axis": 0, "draw_axis": 1}
    assert rhat(x) == array_stats.rhat(x, method="rank", **axes)
    assert ess(x) == array_stats.ess(x, method="bulk", **axes)
    assert ess(x, method="tail") == array_stats.ess(x, method="tail", prob=(0.05, 0.95), **axes)
    assert mcse(x) == array_stats.mcse(x, method="mean", **axes)


def test_ess_of_autoregression():
    # (1 - r) / (1 + r) of the draws are effective. Over 100 seeds the estimate has a standard
    # deviation of 6 %, that of the error 3.6 %: the bounds are at four of them.
    x = autoregression(4, 5000, 0.8)
    assert ess(x) == pytest.approx(x.size * 0.2 / 1.8, rel=0.24)
    assert mcse(x) == pytest.approx(np.sqrt(1.8 / 0.2 / x.size), rel=0.15)
    assert rhat(x) == pytest.approx(1.0, abs=0.01)


def test_rhat_of_chains_apart():
    x = autoregression(4, 300, 0.0)
    assert rhat(x) < 1.02
    x[0] += 3
    assert rhat(x) > 1.3


def test_one_chain_is_compared_with_itself():
    x = autoregression(1, 400, 0.0)
    assert rhat(x) < 1.03
    assert rhat(x + np.linspace(0, 5, 400)) > 1.3
    assert np.isnan(rhat(x[:, :7]))
    assert np.isfinite(rhat(x[:, :8]))
    assert np.isfinite(ess(x))
    x[0, 3] = np.inf
    assert np.isnan(rhat(x))


def test_rhat_of_one_chain_is_that_of_its_halves():
    # Vehtari et al. (2021), equations (1) to (4), of normal scores of the halves, unfolded here.
    x = np.append(autoregression(1, 301, 0.9) + np.linspace(0, 2, 301), [[50.0]], axis=1)
    z = norm.ppf((rankdata(x) - 3 / 8) / (302 + 1 / 4)).reshape(2, 151)
    between, within = 151 * np.var(z.mean(axis=1), ddof=1), np.mean(np.var(z, axis=1, ddof=1))
    assert rhat(x) == pytest.approx(np.sqrt((150 / 151 * within + between / 151) / within))
    # Halves of the same place and different width differ when folded.
    wide = autoregression(1, 400, 0.0) * np.repeat([1.0, 3.0], 200)
    assert rhat(wide) > 1.1
    # What both halves do is no disagreement: quarters of them are not compared.
    alike = autoregression(1, 400, 0.0) + np.tile(np.repeat([0.0, 3.0], 100), 2)
    assert rhat(alike) < 1.02


def test_rhat_of_one_chain_by_chance():
    # 33 effective draws: above 1.05 in 19 % of chains, and of four quarters compared in 36 %. The
    # share of 400 chains has a standard deviation of 2 %.
    found = [rhat(autoregression(1, 100, 0.5, seed)) > 1.05 for seed in range(400)]
    assert 0.11 < np.mean(found) < 0.27


def words(found):
    """Problems or advice as `fit` says them."""
    return list(map(str, found))


def test_constant_trace_has_converged():
    x = np.full((3, 50), 7.0)
    assert (rhat(x), ess(x), ess(x, method="tail"), mcse(x)) == (1.0, 150.0, 150.0, 0.0)
    assert convergence_problems({"n_clusters": x}) == []
    assert (rhat(x[:1]), ess(x[:1])) == (1.0, 50.0)


def test_chains_stuck_at_different_values():
    x = np.repeat([[1.0], [2.0], [3.0]], 50, axis=1)
    assert rhat(x) == np.inf
    problems = convergence_problems({"n_clusters": x})
    assert words(problems) == ["n_clusters is constant within every chain and differs between them"]


@pytest.mark.parametrize("values", [[0.1, 0.3], [1, 1, 2, 2], [1e-300, 7e-300], [-0.7, 3e9]])
@pytest.mark.parametrize("n_draws", [4, 7, 50])
def test_rhat_of_chains_that_never_move_is_infinite(values, n_draws):
    # Rounding errors in ranks alone made it 6e15 or so.
    assert rhat(np.repeat(np.transpose([values]), n_draws, axis=1)) == np.inf


def test_halves_of_chains_that_never_move():
    x = np.repeat([[1.0, 2.0], [2.0, 1.0]], 25, axis=1)
    assert rhat(x) == rhat(x[:1]) == np.inf
    assert words(convergence_problems({"n": x})) == [
        "n is constant within every half of a chain and differs between them"
    ]


@pytest.mark.parametrize("unit", [1e-300, 1e155, 1e300])
def test_figures_do_not_depend_on_the_unit(unit):
    x = autoregression(4, 100, 0.5)
    assert rhat(unit * x) == pytest.approx(rhat(x))
    assert ess(unit * x) == pytest.approx(ess(x))
    assert mcse(unit * x) / unit == pytest.approx(mcse(x))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("everywhere", [True, False])
def test_values_that_are_not_finite(bad, everywhere):
    x = np.full((2, 50), bad) if everywhere else autoregression(2, 50, 0.0)
    x[1, 3] = bad
    assert np.isnan([rhat(x), ess(x), mcse(x)]).all()
    assert words(convergence_problems({"x": x})) == [
        "the trace of x holds values that are not finite"
    ]


@pytest.mark.parametrize("n_draws", [1, 2, 3])
def test_too_few_draws(n_draws):
    for x in (autoregression(2, n_draws, 0.0), np.ones((2, n_draws)), np.ones((1, n_draws))):
        assert np.isnan([rhat(x), ess(x), ess(x, method="tail"), mcse(x)]).all()
        (problem,) = convergence_problems({"x": x, "y": x})
        assert f"for {n_draws} draws per chain: at least 4" in str(problem)
        assert problem.trace is None


def test_single_chain_too_short_for_rhat():
    problem = convergence_problems({"x": autoregression(1, 6, 0.0)})[0]
    assert (str(problem), problem.trace) == ("R-hat of x cannot be computed", "x")


def test_limits_and_names():
    good, short = autoregression(4, 500, 0.0), autoregression(4, 20, 0.0)
    assert convergence_problems({"good": good}) == []
    for n_chains, least in ((4, 100), (2, 50), (1, 25)):
        problem = convergence_problems({"short": short[:n_chains]})[-1]
        assert str(problem).endswith(f"(below {least})")
    assert [least_ess(n) for n in (1, 2, 3, 4, 5, 100)] == [25, 50, 75, 100, 100, 100]
    assert convergence_problems({"good": good, "short": short}, names=["good"]) == []
    assert convergence_problems({"short": short}, max_rhat=2.0, min_ess=5) == []
    assert convergence_problems({}) == []


def test_drift():
    x = autoregression(4, 2000, 0.5) + 10.0 * np.arange(4)[:, np.newaxis]
    difference, error = drift(x)
    # Each half holds 4,000 draws, of which a third is effective.
    assert error == pytest.approx(np.sqrt(2 / (4000 / 3)), rel=0.15)
    assert abs(difference) < 4 * error
    moved = x + np.repeat([0.0, 1.0], 1000)
    assert drift(moved)[0] == pytest.approx(difference + 1.0)
    assert drift(moved)[1] == pytest.approx(error)
    assert drift(np.ones((2, 10))) == (0.0, 0.0)
    assert np.isnan(drift(x[:, :7])).all()
    x[1, 3] = np.inf
    assert np.isnan(drift(x)).all()


def test_remedies_name_the_illness():
    flat = autoregression(4, 400, 0.0)
    flat -= np.repeat(flat.reshape(4, 2, 200).mean(axis=(0, 2)), 200)
    apart = flat + 3.0 * np.arange(4)[:, np.newaxis]
    stuck = np.repeat([[1.0], [2.0], [3.0], [4.0]], 400, axis=1)
    rising = flat + np.linspace(0.0, 9.0, 400)
    few = autoregression(4, 200, 0.95)
    few -= few.reshape(4, 2, 100).mean(axis=2).repeat(100, axis=1)

    def of(log_density, n, gain=0.0):
        traces = {"log_density": log_density, "n": n}
        advice = remedies(traces, ("log_density", "n"), gain, 0.1, "x")
        illnesses.update(one.illness for one in advice)
        return words(advice)

    illnesses = set()
    different = (
        "the chains found different x; averaged they describe a row better by 0.37 nats than one "
        "alone: more chains (n_chains) help more than longer ones"
    )
    same = "the chains agree on log_density: they describe rows alike"
    look = "; if it is n that you look at, raise n_warmup"
    for disagreeing, alike in (
        (apart, same),
        (np.rint(apart), f"{same}, if by different x"),
        (stuck, f"{same}, if by different x"),
    ):
        assert of(flat, disagreeing, 0.368) == [different]
        # They differ in nothing that a row notices.
        assert of(flat, disagreeing, 0.01) == [alike + look]
    # Halves that differ by what is hardly more than their error tell nothing of a settled trace.
    slow = flat + np.where(np.arange(400) < 200, 0.0, 0.12)
    difference, error = drift(slow)
    assert difference > 2 * error and rhat(slow) < 1.02
    assert of(slow, stuck) == [alike + look]
    # They do where it has few effective draws, and what helps is said once.
    slow = autoregression(4, 200, 0.9)
    slow -= slow.reshape(4, 2, 100).mean(axis=2).repeat(100, axis=1)
    assert of(slow, stuck[:, :200]) == [
        alike + look, "log_density has few effective draws: raise n_draws or thin"
    ]  # fmt: skip
    slow[:, 100:] += 2.3 * drift(slow)[1]
    assert rhat(slow) < 1.05 and ess(slow) < 100
    rises = "log_density is still improving: raise n_warmup"
    assert of(slow, stuck[:, :200]) == [rises, alike]
    assert of(rising, flat) == ["log_density is still improving: raise n_warmup"]
    assert of(-rising, flat) == ["log_density is still falling: raise n_warmup"]
    assert of(rising, apart, 0.368) == [different, "log_density is still improving: raise n_warmup"]
    (low,) = of(apart, flat, 0.01)
    assert "differs between the chains by up to 9.1 nats" in low and "still improving" in low
    assert of(apart, flat, 0.368) == [different]
    # What helps is said once.
    falling, low = of(apart - rising, flat, 0.01)
    assert falling == "log_density is still falling: raise n_warmup"
    assert "differs between the chains" in low and low.endswith(
        "so those that are low may be still improving"
    )
    assert of(few, few[::-1]) == [
        "the chains agree and there are few effective draws: raise n_draws or thin"
    ]
    first, *others = of(flat[:, :12], apart[:, :12], 0.368)
    assert first.startswith("48 draws of all chains cannot be 100 effective ones")
    assert first.endswith("raise n_draws first") and others == [different]
    without = remedies({"log_joint": rising}, ("log_joint",), 0.0, 0.1, "x")
    assert words(without) == ["log_joint is still improving: raise n_warmup"]
    assert illnesses == {
        Illness.FEW_KEPT, Illness.DISAGREEMENT, Illness.DRIFT, Illness.LEVELS, Illness.COUNTS,
        Illness.FEW_DRAWS,
    }  # fmt: skip


def test_chains_that_differ_by_little():
    """Different partitions are spoken of where there are some."""
    flat = autoregression(4, 400, 0.0)
    apart = flat + 3.0 * np.arange(4)[:, np.newaxis]
    same, other = np.full((4, 400), 10.0), np.repeat([[9.0], [10.0], [10.0], [10.0]], 400, axis=1)

    def of(n):
        traces = {"log_density": apart, "n": n, "concentration": flat}
        return remedies(traces, tuple(traces), 0.0, 100.0, "partitions", "wait")

    little = "nats a row, which is little: they describe rows alike"
    (alike,) = of(same)
    assert alike.illness is Illness.LITTLE
    assert str(alike).endswith(f"{little}; if even that matters, wait")
    for n in (other, np.where(flat > 0.0, 9.0, 10.0)):
        (different,) = of(n)
        assert different.illness is Illness.LITTLE
        assert str(different).endswith(
            f"{little}, if by different partitions; if it is these that you look at, wait"
        )


def test_more_sweeps_per_draw_than_one_are_named():
    few = autoregression(4, 200, 0.95)
    few -= few.reshape(4, 2, 100).mean(axis=2).repeat(100, axis=1)
    advice = remedies({"log_density": few}, ("log_density",), 0.0, 0.1, "x", thin=31)
    assert words(advice) == [
        "the chains agree and there are few effective draws: raise n_draws or thin, which was 31"
    ]


def test_figures_are_shown_on_their_side_of_the_limit():
    assert apart_from(1.05, 1.0500004, 3) == "1.0500004"
    assert apart_from(1.05, 1.0512, 3) == "1.051" and apart_from(1.05, 1.05, 2) == "1.05"
    assert apart_from(100, 99.97, 1) == "99.97"
    trace = autoregression(4, 200, 0.9)
    value, size = rhat(trace), ess(trace)
    just = {"max_rhat": value - 1e-7, "min_ess": size + 1e-6}
    high, low = words(convergence_problems({"x": trace}, **just))
    assert float(high.split()[4]) > just["max_rhat"]
    assert float(low.split()[7]) < just["min_ess"]


def test_what_an_ensemble_lacks():
    apart = 3.0 * np.arange(4)[:, np.newaxis] + autoregression(4, 400, 0.0)
    rising = apart + np.linspace(0.0, 9.0, 400)
    more = (
        "the chains found different x, and all of them describe a row better by 0.37 nats than "
        "half of them do: raise n_chains"
    )
    longer = "log_density is still improving: raise n_warmup"

    def of(log_density, gain, least):
        return words(shortcomings_of_ensemble(log_density, gain, least, "x"))

    assert of(apart, 0.2, 0.3) == []
    assert of(apart, 0.368, 0.3) == [more]
    assert of(rising, 0.368, 0.3) == [more, longer]
    # A drift that is there, and too small to matter.
    assert of(rising, 0.368, 5.0) == []
    assert of(-rising, np.nan, 0.3) == [longer.replace("improving", "falling")]


def test_constant_because_nothing_moved():
    def posterior(accepted, values=(2.0, 2.0)):
        ends = [ChainEnd(20, {"split": (0, 9), "walk": (accepted, 5)}) for _ in range(2)]
        n = np.repeat(np.transpose([values]), 20, axis=1)
        return Posterior([[{}] * 20] * 2, {"log_joint": n, "n": n}, ends=ends)

    moves = {"n": ("split", "walk", "unknown")}
    (problem,) = never_moved(posterior(0), moves)
    assert problem.trace == "n"
    assert str(problem) == (
        "n never changed, and none of 28 proposals that could change it was accepted"
    )
    assert never_moved(posterior(1), moves) == []
    assert never_moved(posterior(0, (2.0, 3.0)), moves) == []  # which R-hat says
    assert never_moved(posterior(0), {"n": ("unknown",)}) == []
    assert never_moved(posterior(0), {}) == []


def test_a_warning_knows_its_problems():
    """A message may hold what looks like the end of a list; the problems do not."""
    traces = {name: autoregression(4, 20, 0.0) for name in ("a; b", "c", "d")}
    problems = convergence_problems(traces)
    assert len(problems) == 3
    full = ChainsWarning(f"Bad: {'; '.join(words(problems))}. To do: wait; see. To do: x", problems)
    for warning in (full, pickle.loads(pickle.dumps(full))):
        said = f"Bad: {problems[0]}; {problems[1]}; 1 more. To do: wait; see. To do: x"
        assert warning.short(2) == said and "of a; b is" in said
        assert warning.short(3) == str(warning) == str(full)


def test_loo_of_rows_that_the_draws_say_nothing_of():
    """A row without entries has density one at every draw, and others are as without it."""
    log_density = -1.0 + 0.1 * np.random.default_rng(0).standard_normal((2, 50, 4))
    with_empty = np.insert(log_density, 1, 0.0, axis=2)
    expected, got = loo(log_density), loo(with_empty)
    np.testing.assert_allclose(np.delete(got.elpd_i, 1), expected.elpd_i)
    assert got.elpd_i[1] == 0.0
    assert got.pareto_k[1] == -np.inf
    assert loo(np.zeros((2, 50, 3))).elpd == 0.0


def test_loo_of_rows_whose_largest_importance_ratios_tie():
    """Nothing to smooth: plain importance sampling, and a warning only where one draw rules."""
    rng = np.random.default_rng(0)
    log_density = -1.0 + 0.1 * rng.standard_normal((2, 50, 5))
    log_density[:, :, 1] = 1e-16 * rng.standard_normal((2, 50))  # a row without entries, rounded
    log_density[:, :, 2] = np.where(rng.random((2, 50)) < 0.5, -2.0, -1.0)
    log_density[:, :, 3] = np.where(np.arange(100).reshape(2, 50) == 7, -9.0, -1.0)
    log_density[:, :, 4] = np.where(np.arange(100).reshape(2, 50) == 7, -1e4, log_density[:, :, 0])
    with pytest.warns(UserWarning, match="for 2 of 5 rows, at most inf"):
        got = loo(log_density)
    plain = np.log(100) - logsumexp(-log_density[:, :, 1:], axis=(0, 1))
    np.testing.assert_allclose(got.elpd_i[1:], plain, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(got.pareto_k[1:], [-np.inf, -np.inf, np.inf, np.inf])
    np.testing.assert_allclose(got.elpd_i[0], loo(log_density[:, :, :1]).elpd, atol=1e-3)
