"""Fits of every estimator, killed and interrupted again and again: the same draws in the end."""

import signal
import time

import numpy as np
import pytest

from checks.answers import assert_same_answers, cheap_options
from checks.processes import Child
from checks.watched import fit, fit_until_interrupt, table_with_holes
from contract.registry import DEFAULTS

N_CHAINS, N_WARMUP, N_DRAWS, BLOCK = 2, 10, 90, 2
RUN = {"n_chains": N_CHAINS, "n_warmup": N_WARMUP, "n_draws": N_DRAWS, "block": BLOCK}
RUN |= {"predict_draws": 2}
ONCE = [pytest.param(1, marks=pytest.mark.slow)]


@pytest.fixture(params=DEFAULTS, ids=str)
def fitted_on(request):
    """An estimator: its name, what it is fitted on, and how."""
    setting, X = request.param, table_with_holes(30)
    X = X if setting.takes_holes else np.nan_to_num(X)
    return (setting.kind.__name__, X, setting.target(X)), RUN | cheap_options(setting.kind)


class Interrupted:
    """A checkpointed run that is begun again and again, each time for some sweeps more."""

    def __init__(self, fitted_on, directory, seed):
        self.data, self.whole = fitted_on
        self.log = directory / "log"
        self.log.touch()
        self.run = self.whole | {"checkpoint": directory / "checkpoints", "checkpoint_every": 0.0}
        self.random = np.random.default_rng(seed)

    def begin(self, function, **changes):
        """Begin it in another process, and wait until a random moment."""
        n_before = self.log.stat().st_size
        watch = {"log": self.log, "seconds": 0.002}
        child = Child(function, *self.data, watch=watch, **(self.run | changes))
        n_more = self.random.integers(0, 2 * N_CHAINS * BLOCK)
        deadline = time.monotonic() + 60
        while self.log.stat().st_size < n_before + n_more and child.is_alive():
            assert time.monotonic() < deadline
            time.sleep(0.001)
        time.sleep(self.random.uniform(0, 0.004))
        return child

    def finish(self):
        return Child(fit, *self.data, **self.run).result()


@pytest.mark.parametrize("n_kills", ONCE + [pytest.param(20, marks=pytest.mark.fuzz)])
def test_killed(fitted_on, tmp_path, n_kills):
    interrupted = Interrupted(fitted_on, tmp_path, seed=1)
    for _ in range(n_kills):
        child = interrupted.begin(fit)
        child.kill()
        child.wait()
    found, n_run = interrupted.finish()
    # All of them came before the end, and most of them after a checkpoint.
    assert 0 < n_run < N_CHAINS * (N_WARMUP + N_DRAWS) or n_kills < 5
    assert_same_answers(found, fit(*interrupted.data, **interrupted.whole)[0])
    assert len(list(interrupted.run["checkpoint"].iterdir())) == 1


@pytest.mark.parametrize("n_interrupts", ONCE + [pytest.param(12, marks=pytest.mark.fuzz)])
def test_interrupted(fitted_on, tmp_path, n_interrupts):
    interrupted = Interrupted(fitted_on, tmp_path, seed=2)
    raised = []
    for _ in range(n_interrupts):
        n_before = interrupted.log.stat().st_size
        child = interrupted.begin(fit_until_interrupt)
        # Not before the fit itself has begun.
        while interrupted.log.stat().st_size == n_before:
            assert child.is_alive()
            time.sleep(0.001)
        child.kill(signal.SIGINT)
        found = child.result()
        assert found["handler_restored"]
        raised.append(found["raised"])
        if found["raised"] is None:
            # What is kept is a shorter run, whole in itself.
            n_draws = found["answers"]["n_draws_"]
            shorter = fit(*interrupted.data, **(interrupted.whole | {"n_draws": n_draws}))[0]
            assert_same_answers(found["answers"], shorter)
    found, n_run = interrupted.finish()
    assert 0 < n_run < N_CHAINS * (N_WARMUP + N_DRAWS)
    assert set(raised) <= {None, "KeyboardInterrupt"}
    assert_same_answers(found, fit(*interrupted.data, **interrupted.whole)[0])
