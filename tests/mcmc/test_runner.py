import pickle
import sys
from functools import partial
from itertools import cycle, product

import joblib
import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from checks.slow import slow_where
from checks.toy_samplers import CarelessSampler, ToySampler
from skbnp.mcmc import NonFiniteLogJointError, advance, rows, run_chains, runner

SIZES = {"n_chains": 3, "n_warmup": 12, "n_draws": 9, "thin": 2, "seed": 7}


def assert_same_run(one, other):
    assert one.traces.keys() == other.traces.keys()
    for name in one.traces:
        np.testing.assert_array_equal(one.traces[name], other.traces[name])
    for draw, other_draw in zip(one, other, strict=True):
        for name in draw:
            np.testing.assert_array_equal(draw[name], other_draw[name])
    for move, counts in one.acceptance.items():
        np.testing.assert_array_equal(counts["accepted"], other.acceptance[move]["accepted"])
        np.testing.assert_array_equal(counts["proposed"], other.acceptance[move]["proposed"])
    for state, other_state in zip(one.final_states, other.final_states, strict=True):
        np.testing.assert_equal(state, other_state)


@pytest.fixture(scope="module")
def reference():
    """The run made by hand: one sampler after the other, no blocks."""
    traces, draws, states = [], [], []
    for chain, child in enumerate(np.random.SeedSequence(7).spawn(3)):
        sampler = ToySampler(np.random.PCG64(child), chain)
        traces.append([])
        draws.append([])
        for sweep in range(30):
            sampler.sweep()
            if sweep < 12:
                sampler.adapt(sweep)
            elif sweep % 2 == 1:
                traces[-1].append({"log_joint": sampler.log_joint(), **sampler.scalars()})
                draws[-1].append(sampler.draw())
        states.append(sampler.get_state())
    return traces, draws, states


def test_draws_are_those_of_the_samplers_alone(reference):
    traces, draws, states = reference
    posterior = run_chains(ToySampler, **SIZES)
    assert list(posterior.traces) == ["log_joint", "x", "y", "step"]
    for name, trace in posterior.traces.items():
        np.testing.assert_array_equal(trace, [[row[name] for row in chain] for chain in traces])
    for chain in range(3):
        for draw in range(9):
            for name, value in posterior[chain, draw].items():
                np.testing.assert_array_equal(value, draws[chain][draw][name])
        np.testing.assert_equal(posterior.final_states[chain], states[chain])


@pytest.mark.parametrize("n_jobs", [1, 2, -1])
@pytest.mark.parametrize("backend", ["threading", "loky", "multiprocessing", "sequential"])
def test_same_draws_whatever_the_backend(backend, n_jobs):
    expected = run_chains(ToySampler, **SIZES)
    with joblib.parallel_config(backend=backend):
        assert_same_run(expected, run_chains(ToySampler, **SIZES, n_jobs=n_jobs))


def test_number_of_jobs_comes_from_the_configuration():
    with joblib.parallel_config(backend="loky", n_jobs=2):
        found = run_chains(ToySampler, **SIZES)
    assert_same_run(run_chains(ToySampler, **SIZES), found)


@pytest.mark.parametrize("backend", ["threading", "loky"])
@pytest.mark.parametrize("lengths", [[1], [2, 5, 3], [100]])
def test_same_draws_whatever_the_blocks(monkeypatch, lengths, backend):
    expected = run_chains(ToySampler, **SIZES)
    endless = cycle(lengths)
    monkeypatch.setattr(runner, "_block_length", lambda *_: next(endless))
    with joblib.parallel_config(backend=backend):
        assert_same_run(expected, run_chains(ToySampler, **SIZES, n_jobs=2))


def test_chain_goes_on_after_pickling():
    plan = advance.Plan(ToySampler, 5, 20, 1)
    chains = [advance.ChainRun(0, np.random.SeedSequence(1)) for _ in range(2)]
    stays, rows = chains[0], []
    _, whole = advance.advance(stays, plan, 25, 1, None)
    travels = chains[1]
    for length in [1, 3, 4, 10, 7]:
        travels, record = advance.advance(
            pickle.loads(pickle.dumps(travels)), plan, length, 1, None
        )
        rows += record.rows
    assert rows == whole.rows
    np.testing.assert_equal(travels.get_state(), stays.get_state())


def test_samplers_stay_alive_in_shared_memory():
    built = []

    def make_sampler(bit_generator, chain):
        built.append(chain)
        return ToySampler(bit_generator, chain)

    run_chains(make_sampler, **SIZES, n_jobs=2)
    assert sorted(built) == [0, 1, 2]


def test_chains_have_seeds_of_their_own():
    posterior = run_chains(ToySampler, **SIZES)
    assert len(np.unique(posterior.traces["y"])) == 27
    other = run_chains(ToySampler, **{**SIZES, "seed": 8})
    assert not np.isin(other.traces["y"], posterior.traces["y"]).any()
    assert posterior.seed == 7


def test_adaptation_ends_with_the_warmup():
    posterior = run_chains(ToySampler, **SIZES)
    steps = posterior.traces["step"]
    assert (steps == steps[:, :1]).all()
    assert (steps != 5.0).all()
    unadapted = run_chains(ToySampler, **{**SIZES, "n_warmup": 0})
    assert (unadapted.traces["step"] == 5.0).all()
    assert unadapted.n_warmup == 0


def test_acceptance_is_counted_after_the_warmup():
    posterior = run_chains(ToySampler, **SIZES)
    np.testing.assert_array_equal(posterior.acceptance["walk"]["proposed"], [18, 18, 18])
    n_all = [state["counts"][1] for state in posterior.final_states]
    np.testing.assert_array_equal(n_all, [30, 30, 30])


def test_thinning_keeps_every_so_manieth_sweep():
    dense = run_chains(ToySampler, n_chains=2, n_warmup=3, n_draws=12, seed=0)
    thinned = run_chains(ToySampler, n_chains=2, n_warmup=3, n_draws=4, thin=3, seed=0)
    for name in dense.traces:
        np.testing.assert_array_equal(thinned.traces[name], dense.traces[name][:, 2::3])
    assert thinned.sweeps_per_draw == 3


def test_draws_do_not_follow_the_sampler():
    posterior = run_chains(CarelessSampler, **SIZES)
    values = np.array([draw["value"][0] for draw in posterior]).reshape(3, 9)
    np.testing.assert_array_equal(values, posterior.traces["x"])
    np.testing.assert_array_equal(posterior.acceptance["walk"]["proposed"], [18, 18, 18])


# An error ends the processes of loky, which are long to start again.
@pytest.mark.parametrize(
    "sweep, backend",
    slow_where(product([0, 5, 17], ["threading", "loky"]), lambda case: case[1] == "loky"),
)
def test_non_finite_log_joint_is_located(backend, sweep):
    make_sampler = partial(ToySampler, fail=(1, sweep))
    message = f"nan in chain 1 after sweep {sweep}, first after the move 'gibbs'"
    with joblib.parallel_config(backend=backend):
        with pytest.raises(NonFiniteLogJointError, match=message) as caught:
            run_chains(make_sampler, **SIZES, n_jobs=2)
    assert isinstance(caught.value, ArithmeticError)
    assert (caught.value.chain, caught.value.sweep, caught.value.move) == (1, sweep, "gibbs")


def test_error_without_a_known_move():
    error = NonFiniteLogJointError(2, 5, "", float("-inf"))
    assert str(error) == "log joint is -inf in chain 2 after sweep 5"


@pytest.mark.parametrize(
    "name, value, error, message",
    [
        ("n_chains", 0, ValueError, "n_chains must be >= 1, got 0"),
        ("n_warmup", -3, ValueError, "n_warmup must be >= 0, got -3"),
        ("n_draws", 0, ValueError, "n_draws must be >= 1, got 0"),
        ("thin", 0, ValueError, "thin must be >= 1, got 0"),
        ("seed", -1, ValueError, "seed must be >= 0, got -1"),
        ("n_draws", 2.0, TypeError, "n_draws must be an integer, got 2.0"),
        ("thin", True, TypeError, "thin must be an integer, got True"),
    ],
)
def test_bad_sizes(name, value, error, message):
    with pytest.raises(error, match=message):
        run_chains(ToySampler, **{**SIZES, name: value})


def _blas_threads():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


class BlasWatcher(ToySampler):
    """Traces the largest number of BLAS threads that it sees."""

    def scalars(self):
        return {"blas_threads": max(_blas_threads(), default=1)}


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_blas_has_one_thread_in_a_chain(n_jobs):
    before = _blas_threads()
    posterior = run_chains(BlasWatcher, n_chains=2, n_warmup=0, n_draws=3, seed=0, n_jobs=n_jobs)
    assert (posterior.traces["blas_threads"] == 1).all()
    assert _blas_threads() == before


def test_blas_limit_lasts_until_the_last_chain():
    before = _blas_threads()
    with rows.OneBlasThread():
        with rows.OneBlasThread():
            pass
        assert all(n == 1 for n in _blas_threads())
    assert _blas_threads() == before


@pytest.mark.parametrize("call", ["__enter__", "__exit__"])
def test_blas_limit_is_lifted_where_an_interrupt_meets_its_end(call):
    def pressed(frame, event, argument):
        if event == "call" and frame.f_code.co_qualname == f"OneBlasThread.{call}":
            sys.setprofile(None)
            raise KeyboardInterrupt

    with threadpool_limits(2, user_api="blas"):
        before = _blas_threads()
        sys.setprofile(pressed)
        try:
            with rows.OneBlasThread():
                pass
        except KeyboardInterrupt:
            pass
        else:
            pytest.fail("nothing was raised")
        finally:
            sys.setprofile(None)
        assert _blas_threads() == before
        with rows.OneBlasThread():
            assert all(n == 1 for n in _blas_threads())
        assert _blas_threads() == before


def test_verbose(capsys):
    run_chains(ToySampler, **SIZES)
    assert capsys.readouterr().out == ""
    run_chains(ToySampler, **SIZES, verbose=1)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("3 chains, ")
    assert lines[1].startswith("3 chains, all 30 sweeps; log_joint -")
    run_chains(ToySampler, **SIZES, verbose=2)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("3 chains, warm-up, sweep 1 of 30; log_joint -")
    assert len(lines) > 2
    assert lines[-1].startswith("3 chains, all 30 sweeps")


def test_block_length_follows_the_clock():
    assert runner._block_length(10, 1.0, False) == 5
    assert runner._block_length(10, 1.0, True) == 50
    assert runner._block_length(10, 1e-6, False) == 100
    assert runner._block_length(1, 60.0, True) == 1
    assert runner._block_length(1, 0.0, False) == 10
