"""What follows from the declaration of a state and of moves, on a small model in plain Python."""

import math

import numpy as np
import pytest

from skbnp.mcmc.chain import Chain, Move, State, Status
from skbnp.mcmc.fields import Field


class Walk(State):
    """Positions of n walkers, standard normal, and how many of them are on the right."""

    FIELDS = (
        Field("step", float, above=0.0),
        Field("n_right", int, at_least=0, below=5),
        Field("x", float, ("n_walkers",)),
        Field("side", np.uint8, ("n_walkers",), below=2),
        Field("visited", int, (None,), at_least=0, below="n_walkers"),
    )

    def __init__(self):
        self.n_walkers = 4
        self.step, self.n_right = 1.0, 0
        self.x, self.side = np.zeros(4), np.zeros(4, dtype=np.uint8)
        self.visited = np.zeros(0, dtype=np.intp)

    def check(self, state, values):
        if values["n_right"] != values["side"].sum():
            raise ValueError("n_right of the state must count side")

    def log_joint(self):
        return -0.5 * float(self.x @ self.x)


class Step(Move):
    """One walker by Metropolis."""

    NAME = "step"
    COUNTS = ("step",)
    FIELDS = (Field("turn", int, at_least=0),)

    def __init__(self, state, bit_generator):
        super().__init__(bit_generator)
        self.state, self.turn = state, 0
        self.random = np.random.Generator(bit_generator)

    def run(self):
        state, i = self.state, self.turn % self.state.n_walkers
        self.turn += 1
        normal, uniform = self.draw()
        at = state.x[i] + state.step * normal
        accepted = math.log(uniform) < 0.5 * (state.x[i] ** 2 - at**2)
        np.asarray(self.proposed)[0] += 1
        np.asarray(self.accepted)[0] += accepted
        if accepted:
            state.x[i] = at
            state.side[i] = at > 0
            state.n_right = int(state.side.sum())
            state.visited = np.append(state.visited, i)[-3:]
        return Status.DONE

    def draw(self):
        """A normal number and a uniform one; the sweep holds the lock that a generator takes."""
        lock = self.random.bit_generator.lock
        lock.release()  # before NumPy 2.4 it cannot be taken twice
        try:
            return self.random.normal(), self.random.random()
        finally:
            lock.acquire()


class Flip(Move):
    """All walkers to the other side; counts nothing."""

    NAME = "flip"
    STEPS = ("flip_first",)

    def __init__(self, state, bit_generator, broken_at=None):
        super().__init__(bit_generator)
        self.state, self.broken_at, self.n_made = state, broken_at, 0

    def run(self):
        self.n_made += 1
        self.state.x *= -1
        self.state.side[:] = self.state.x > 0
        self.state.n_right = int(self.state.side.sum())
        return Status.BROKEN if self.n_made == self.broken_at else Status.DONE

    def step(self, name):
        self.state.x[0] *= -1


def chain(seed=0, broken_at=None, moves=None):
    state, bits = Walk(), np.random.PCG64(seed)
    made = [Step(state, bits), Flip(state, bits, broken_at)]
    return Chain(state, made if moves is None else made[:moves], bits)


def swept(n, **options):
    one = chain(**options)
    for _ in range(n):
        one.sweep()
    return one


def same(one, other):
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return np.array_equal(one, other)


def test_resumes_to_the_last_bit():
    whole, first = swept(30), swept(11)
    other = chain(seed=5)
    other.set_state(first.get_state())
    for _ in range(19):
        other.sweep()
    assert same(other.get_state(), whole.get_state())
    assert other.n_sweeps == 30
    assert other.acceptance() == whole.acceptance()


def test_a_state_is_a_copy():
    one = swept(5)
    before = one.get_state()
    kept = before["x"].copy()
    for _ in range(5):
        one.sweep()
    assert np.array_equal(before["x"], kept)
    assert not np.array_equal(before["x"], one.state.x)


def test_arrays_are_written_in_place():
    one = swept(5)
    x = one.state.x
    one.set_state(swept(9).get_state())
    assert one.state.x is x


DAMAGES = {
    "no field": lambda state: state.pop("x"),
    "shape": lambda state: state.update(x=np.zeros(3)),
    "not finite": lambda state: state.update(x=np.full(4, np.nan)),
    "kind of array": lambda state: state.update(x=np.zeros(4, dtype=int)),
    "kind of number": lambda state: state.update(n_right=0.0),
    "not a number": lambda state: state.update(step="1"),
    "true": lambda state: state.update(n_right=True),
    "too large": lambda state: state.update(n_right=5),
    "huge": lambda state: state.update(n_right=2**70),
    "zero": lambda state: state.update(step=0.0),
    "beyond an attribute": lambda state: state.update(visited=np.array([4])),
    "meaning": lambda state: state.update(side=np.array([1, 1, 1, 1], dtype=np.uint8)),
    "no moves": lambda state: state.pop("moves"),
    "no move with fields": lambda state: state["moves"].pop("step"),
    "unknown move": lambda state: state["moves"].update(jump={}),
    "field of a move": lambda state: state["moves"]["step"].update(turn=-1),
    "more accepted than proposed": lambda state: state["moves"]["step"].update(
        accepted=np.array([99])
    ),
    "bit generator": lambda state: state.update(bit_generator={"bit_generator": "MT19937"}),
    "number of sweeps": lambda state: state.update(n_sweeps=-1),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_state_changes_nothing(damage):
    one, state = swept(7), swept(20, seed=3).get_state()
    before = one.get_state()
    damage(state)
    with pytest.raises(ValueError):
        one.set_state(state)
    assert same(one.get_state(), before)


def test_a_move_that_the_state_does_not_know_starts_at_zero():
    one = chain()
    one.set_state(swept(6, moves=1).get_state())
    assert one.acceptance()["step"][1] == 6


def test_one_move_alone():
    one = chain()
    one.state.x[:] = [1.0, 2.0, 3.0, 4.0]
    one.sweep_only("flip")
    assert np.array_equal(one.state.x, [-1.0, -2.0, -3.0, -4.0])
    one.sweep_only("flip_first")
    assert np.array_equal(one.state.x, [1.0, -2.0, -3.0, -4.0])
    assert one.acceptance() == {"step": (0, 0)}
    with pytest.raises(ValueError, match="'step', 'flip', 'flip_first'.*got 'jump'"):
        one.sweep_only("jump")


def test_the_first_broken_move_is_remembered():
    one = swept(2, broken_at=2)
    assert one.broken_move == "flip"
    assert math.isnan(one.log_joint())
    assert math.isfinite(swept(2).log_joint())


def test_time_by_move():
    spent = swept(50).seconds()
    assert list(spent) == ["step", "flip"]
    assert all(seconds > 0 for seconds in spent.values())
