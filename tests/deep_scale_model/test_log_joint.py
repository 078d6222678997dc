"""The scale kernel's bookkeeping against the plain NumPy joint density, its states, its edges."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from checks.deep_scale_model import MOVES, make_sampler, prior
from skbnp.deep_scale_model import _model as model
from skbnp.deep_scale_model._model import Prior
from skbnp.laws import Gamma, InverseGamma, Normal

SAMPLED = dict(mass=Gamma(1.0, 1.0), drift=Normal(0.0, 1.0), location_variance=2.0)
# Prior and options of the sampler; a share of cells is missing in all but the first.
CASES = {
    "default": (prior(), {}, 0.0),
    "holes": (prior(mass=2.0), {}, 0.3),
    "all sampled": (prior(**SAMPLED), {}, 0.3),
    "fixed noise": (prior(noise_variance=np.full(5, 0.3)), {}, 0.3),
    "two layers": (prior(mass=2.0, max_layers=2, mass_upper=1.5), {}, 0.3),
    "eight layers": (prior(**SAMPLED, max_layers=8, mass_upper=2.0), {}, 0.3),
    "finite": (prior(birth_move="finite", **SAMPLED), {}, 0.3),
    "finite, two layers": (prior(birth_move="finite", max_layers=2, mass_upper=1.5), {}, 0.3),
    "pan-han": (prior(birth_move="pan-han"), {}, 0.3),
    "annealed": (prior(max_layers=2), {"n_anneal": 8}, 0.3),
    "annealed to fixed noise": (prior(noise_variance=np.full(5, 0.3)), {"n_anneal": 8}, 0.3),
    "greedy": (prior(mass=2.0, max_layers=3), {"schedule": "greedy", "n_greedy": 4}, 0.3),
}
every_case = pytest.mark.parametrize("case", CASES)


def drawn(case, n_samples=20, seed=0):
    """The prior, a state, data with holes, options."""
    law, options, share = CASES[case]
    rng = np.random.default_rng(seed)
    start = replace(law, max_layers=1) if "schedule" in options else law
    state, X = model.draw_joint(start, n_samples, 5, rng)
    X[rng.random(X.shape) < share] = np.nan
    if "n_anneal" in options:
        state["noise_variance"] = np.full(5, 4.0)
    return law, state, X, options


def assert_same_states(one, other):
    assert one.keys() == other.keys()
    for name in one:
        if name == "bit_generator":
            assert one[name] == other[name]
        elif name == "moves":
            for move in one[name]:
                assert_same_states(one[name][move], other[name][move])
        else:
            assert_array_equal(one[name], other[name], err_msg=name)


@every_case
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("n_samples", [1, 20])
def test_after_random_sweeps(case, n_samples, seed):
    law, state, X, options = drawn(case, n_samples, seed)
    sampler = make_sampler(law, state, X, seed, **options)
    for step in range(15):
        state = sampler.get_state()
        model.checked_state(state, law, *X.shape)
        expected = model.log_joint(state, X, law)
        assert_allclose(sampler.log_joint(), expected, rtol=1e-8, atol=1e-8)
        assert_array_equal(sampler.data(), X)
        sampler.sweep()
        sampler.adapt(step)


def test_where_updates_add_up():
    """800 samples, 12 features, two layers, two dozen sweeps from two factors."""
    rng = np.random.default_rng(3)
    law = prior(
        mass=2.0,
        max_layers=2,
        drift=Normal(0.0, 1.0),
        location_variance=2.0,
        noise_variance=InverseGamma(3.0, 4.0),
    )
    state, X = model.draw_joint(replace(law, mass=3.0), 800, 12, rng)
    X[rng.random(X.shape) < 0.1] = np.nan
    start = {
        "loadings1": rng.normal(size=(12, 2)),
        "scores1": rng.normal(size=(800, 2)),
        "noise_variance": np.nanvar(X, axis=0),
        "location": np.zeros(12),
        "hyper": np.array([2.0, 0.0]),
    }
    sampler = make_sampler(law, start, X, n_anneal=10)
    for step in range(24):
        sampler.sweep()
        sampler.adapt(step)
    state = sampler.get_state()
    assert state["loadings1"].shape[1] > 2
    assert_allclose(sampler.log_joint(), model.log_joint(state, X, law), rtol=1e-8)


@every_case
def test_state_restores_bit_for_bit(case):
    law, state, X, options = drawn(case)
    one = make_sampler(law, state, X, 1, **options)
    # Before the end of annealing and of the greedy schedule, and after.
    for n_sweeps in (3, 12):
        for step in range(n_sweeps):
            one.sweep()
            one.adapt(step)
        saved = one.get_state()
        other = make_sampler(law, state, X, 2, **options)
        other.sweep()
        other.set_state(saved)
        assert_same_states(other.get_state(), saved)
        assert other.log_joint() == one.log_joint()
        for step in range(6):
            for sampler in (one, other):
                sampler.sweep()
                sampler.adapt(step)
        assert_same_states(one.get_state(), other.get_state())
        assert one.scalars() == other.scalars()
        assert one.acceptance() == other.acceptance()


def test_a_state_that_does_not_fit_leaves_the_chain_alone():
    law, state, X, _ = drawn("holes")
    sampler = make_sampler(law, state, X)
    sampler.sweep()
    saved = sampler.get_state()
    for name, value in {
        "moves": {"noise": {"accepted": [1], "proposed": [0]}},
        "n_sweeps": -1,
        "n_annealed": 1,
        "greedy_layer": 0,
        "loadings1": np.zeros((4, 1)),
        "first_noise": np.zeros(5),
        "bit_generator": {"bit_generator": "MT19937"},
    }.items():
        with pytest.raises(ValueError, match="state"):
            sampler.set_state({**saved, name: value})
        assert_same_states(sampler.get_state(), saved)
    with pytest.raises(ValueError, match="n_annealed"):
        sampler.set_state({k: v for k, v in saved.items() if k != "n_annealed"})


def test_moves_that_are_not_there():
    law, state, X, _ = drawn("default")
    with pytest.raises(ValueError, match=f"move must be one of .*{MOVES[0]}"):
        make_sampler(law, state, X).sweep_only("rotations")


# -- warm-up ------------------------------------------------------------------------------------


def test_annealing_is_linear_in_logs_then_over():
    law, state, X, options = drawn("annealed to fixed noise")
    sampler = make_sampler(law, state, X, **options)
    noise = []
    for step in range(12):
        noise.append(sampler.get_state()["noise_variance"][0])
        sampler.sweep()
        sampler.adapt(step)
    steps = np.diff(np.log(noise))
    assert_allclose(steps[:8], np.log(0.3 / 4.0) / 8, rtol=1e-10)
    assert_array_equal(noise[8:], 0.3)


def test_fixed_noise_is_the_priors():
    law, state, X, _ = drawn("fixed noise")
    sampler = make_sampler(law, {**state, "noise_variance": np.ones(5)}, X)
    assert_array_equal(sampler.get_state()["noise_variance"], 0.3)


def test_sampled_noise_is_released_after_annealing():
    law, state, X, options = drawn("annealed")
    sampler = make_sampler(law, state, X, **options)
    for step in range(8):
        sampler.sweep()
        sampler.adapt(step)
    expected = law.noise_variance.scale / law.noise_variance.shape
    assert_allclose(sampler.get_state()["noise_variance"], expected, rtol=1e-12)
    sampler.sweep()
    assert (sampler.get_state()["noise_variance"] != expected).all()


def test_greedy_schedule_goes_up_and_ends():
    law, state, X, options = drawn("greedy", seed=4)
    assert state["loadings1"].shape[1] > 0
    sampler = make_sampler(law, state, X, **options)
    at_work, layers = [], []
    for step in range(30):
        at_work.append(sampler.state.greedy_layer)
        before = sampler.get_state()["loadings1"]
        sampler.sweep()
        if 0 < sampler.state.greedy_layer < 3:
            assert_array_equal(sampler.get_state()["loadings1"], before)
        layers.append(sampler.scalars()["n_layers"])
        assert layers[-1] <= at_work[-1] + 1
        sampler.adapt(step)
    assert at_work == sorted(at_work)
    assert at_work[0] == 0 and at_work[-1] == 3
    with pytest.raises(ValueError, match="one layer"):
        deep = {**state, "loadings2": np.ones((state["loadings1"].shape[1], 1))}
        make_sampler(law, {**deep, "scores2": np.ones((20, 1))}, X, **options)


# -- layers -------------------------------------------------------------------------------------


def test_a_second_layer_of_no_mass_stays_empty():
    """Item 10: its law is that of one layer."""
    law = prior(mass=2.0)
    two = replace(law, max_layers=2, mass_upper=1e-9)
    state, X = model.draw_joint(law, 30, 6, np.random.default_rng(1))
    assert_allclose(model.log_joint(state, X, two), model.log_joint(state, X, law), atol=1e-7)
    sampler = make_sampler(two, state, X)
    for _ in range(200):
        sampler.sweep()
        assert "loadings2" not in sampler.get_state()
        assert sampler.scalars()["n_layers"] <= 1


def test_labels_of_levels():
    """Which factor has the most energy; the floor where none has."""
    law = Prior(noise_variance=np.full(4, 0.01), mass=1.0, max_layers=2)
    state = {
        "loadings1": np.array([[1.0, 0], [1, 0], [0, 1], [0, 1]]),
        "scores1": np.array([[3.0, 0.1], [0.1, -3.0], [0.001, 0.001]]),
        "loadings2": np.array([[2.0], [2.0]]),
        "scores2": np.array([[2.0], [0.0], [1.0]]),
        "noise_variance": np.full(4, 0.01),
        "location": np.zeros(4),
        "hyper": np.array([1.0, 0.0]),
    }
    X = state["scores1"] @ state["loadings1"].T
    draw = make_sampler(law, state, X).draw()
    assert_array_equal(draw["level_labels"], [[0, 1, -1], [0, -1, 0]])
    assert draw["level_labels"].dtype == np.int16
    assert draw["scores1"].dtype == draw["scores2"].dtype == np.float32
    empty = {**state, "loadings1": np.zeros((4, 0)), "scores1": np.zeros((3, 0))}
    draw = make_sampler(law, {k: v for k, v in empty.items() if k[-1] != "2"}, X).draw()
    assert_array_equal(draw["level_labels"], [[-1, -1, -1]])


# -- the edge of numbers ------------------------------------------------------------------------


def wide(rng):
    return rng.standard_t(2, size=(40, 5))


TORTURE = {
    "no samples": lambda rng: np.zeros((0, 3)),
    "one cell": lambda rng: rng.normal(size=(1, 1)),
    "all missing": lambda rng: np.full((5, 3), np.nan),
    "a missing row and column": lambda rng: np.where(
        np.add.outer(np.arange(6) == 2, np.arange(4) == 1), np.nan, rng.normal(size=(6, 4))
    ),
    "constant column": lambda rng: wide(rng) * (np.arange(5) != 2),
    "duplicated columns": lambda rng: np.repeat(wide(rng)[:, :1], 4, axis=1),
    "identical rows": lambda rng: np.full((2000, 2), 0.5),
    "tiny": lambda rng: 1e-8 * wide(rng),
    "huge": lambda rng: 1e8 * wide(rng),
    "more features than samples": lambda rng: rng.normal(size=(4, 25)),
}


@pytest.mark.parametrize("options", [{}, {"drift": Normal(0.0, 1.0), "location_variance": 100.0}])
@pytest.mark.parametrize("name", TORTURE)
def test_numbers_stay_finite(name, options):
    rng = np.random.default_rng(0)
    X = TORTURE[name](rng)
    law = Prior(max_layers=2, **options)
    state, _ = model.draw_joint(law, *X.shape, rng)
    sampler = make_sampler(law, state, X)
    for _ in range(20):
        sampler.sweep()
        assert np.isfinite(sampler.log_joint())
    for value in sampler.draw().values():
        assert np.isfinite(value).all()
    expected = model.log_joint(sampler.get_state(), X, law)
    assert_allclose(sampler.log_joint(), expected, rtol=1e-8, atol=1e-8)
