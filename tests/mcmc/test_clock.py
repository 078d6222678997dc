"""The time left, from scripted times of blocks."""

import math

import numpy as np
import pytest

from skbnp.mcmc import runner
from skbnp.mcmc.clock import _MOST_POINTS, Clock, duration

N_SWEEPS = 4000
SECONDS = 0.02


class FakeTime:
    """Seconds that pass when they are told to."""

    def __init__(self):
        self.seconds = 1000.0

    def __call__(self):
        return self.seconds


def scripted(cost, start_up=0.0, figures=None, n_sweeps=N_SWEEPS):
    """What a clock says at the end of each block: (share done, said, true seconds left).

    ``cost(t)`` are the seconds of the sweep at the share t of all. Blocks are as long as the runner
    makes them. ``figures=(first, ratio)``: from that sweep on figures are taken after each, which
    cost so many sweeps.
    """
    at = np.arange(n_sweeps) / n_sweeps
    of_sweeps = np.array([cost(t) for t in at])
    first, ratio = figures or (n_sweeps, 0.0)
    of_figures = np.where(np.arange(n_sweeps) >= first, ratio * of_sweeps, 0.0)
    time = FakeTime()
    clock = Clock(now=time)
    time.seconds += start_up
    done, length, told = 0, 1, []
    total = (of_sweeps + of_figures).sum()
    while done < n_sweeps:
        goal = min(done + length, n_sweeps)
        if done < first:
            goal = min(goal, first)
        n_figures = max(0, goal - max(done, first))
        swept, taken = of_sweeps[done:goal].sum(), of_figures[done:goal].sum()
        time.seconds += swept + taken
        if figures and not done:
            # The look that is taken at those who watch.
            clock.costs((0.0, 0), (ratio * of_sweeps[0], 1))
        clock.costs((swept, goal - done), (taken, n_figures))
        seconds = clock.block_done(goal - done, n_figures)
        length = runner._block_length(goal - done, seconds, False)
        done = goal
        left = (of_sweeps + of_figures)[done:].sum()
        n_figures_left = n_sweeps - max(done, min(first, n_sweeps))
        told.append((done / n_sweeps, clock.seconds_of(n_sweeps - done, n_figures_left), left))
    assert left == 0.0
    return [(min(share, 1 - left / total), said, left) for share, said, left in told]


def noisy(t):
    return SECONDS * np.random.default_rng(round(t * N_SWEEPS)).lognormal(0.0, 0.5)


SHAPES = {
    "flat": lambda t: SECONDS,
    "noise": noisy,
    "up to five times": lambda t: SECONDS * (1 + 4 * t),
    "up to nine times": lambda t: SECONDS * (1 + 8 * t),
    "growth that ends": lambda t: SECONDS * (1 + 4 * (1 - math.exp(-10 * t))),
    "logarithmic growth": lambda t: SECONDS * (1 + math.log1p(50 * t)),
    "down to a fifth": lambda t: SECONDS * (5 - 4 * t),
    "fall that ends": lambda t: SECONDS * (1 + 4 * math.exp(-20 * t)),
    "a step up": lambda t: SECONDS * (1 + 0.8 * (t > 0.5)),
    "short sweeps": lambda t: SECONDS / 30 * (1 + 4 * t),
    "long sweeps": lambda t: 30.0 * (1 + 4 * t),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("start_up", [0.0, 8.0])
def test_time_left_is_right_within_a_factor_of_two(shape, start_up):
    told = scripted(SHAPES[shape], start_up)
    judged = [(said, left) for share, said, left in told if share >= 0.1 and left > 0.0]
    assert len(judged) >= 1
    for said, left in judged:
        assert left / 2 <= said <= 2 * left
    assert told[-1][1] == 0.0


@pytest.mark.parametrize("ratio", [0.5, 2.0, 5.0])
def test_figures_of_draws_are_counted(ratio):
    """Half of the run is warm-up, which takes none: a sweep of it costs a part of a later one."""
    told = scripted(SHAPES["up to five times"], figures=(N_SWEEPS // 2, ratio))
    judged = [(said, left) for share, said, left in told if share >= 0.1 and left > 0.0]
    assert len(judged) > 10
    for said, left in judged:
        assert left / 2 <= said <= 2 * left
    blind = scripted(lambda t: SECONDS * (1 + 5.0 * (t >= 0.5)))
    assert any(said < left / 2 for share, said, left in blind if share >= 0.1 and left > 0.0)


def test_the_first_block_says_nothing():
    """It holds what the start has taken."""
    time = FakeTime()
    clock = Clock(now=time)
    assert math.isnan(clock.seconds_of(5))
    time.seconds += 60.0
    assert clock.block_done(1) == 60.0
    assert math.isnan(clock.seconds_of(5))
    assert clock.seconds_of(0) == 0.0
    time.seconds += 2.0
    assert clock.block_done(4) == 2.0
    assert clock.seconds_of(10) == 5.0
    assert clock.elapsed == 62.0


def test_long_runs_keep_few_points():
    time = FakeTime()
    clock = Clock(now=time)
    for block in range(10_000):
        time.seconds += 1.0 + block / 10_000
        clock.block_done(1)
        assert len(clock._points) <= _MOST_POINTS
    assert clock._points[:2] == [(0, 0, 0.0), (1, 0, 1.0)]
    assert clock._points[-1][0] == 10_000
    gaps = np.diff([point[0] for point in clock._points[1:]])
    assert gaps[1:-1].max() <= 2 * gaps[1:-1].min()
    said = clock.seconds_of(1000)
    assert 1800 < said < 2300


@pytest.mark.parametrize(
    "seconds, words",
    [(0.04, "0.0 s"), (9.96, "10 s"), (59.6, "1 min 0 s"), (125, "2 min 5 s"), (7300, "2 h 1 min")],
)
def test_duration(seconds, words):
    assert duration(seconds) == words
