"""Draws that do not fit into the room for them."""

import numpy as np
import pytest

from checks.answers import answers, assert_same_answers
from checks.processes import Child
from checks.slow import slow_where
from checks.watched import ToyModel, peak_of_fit, table_with_holes
from skbnp.mcmc import runner

X = table_with_holes()


# The long warm-up leads to long blocks, in which no draw has shown its size yet.
@pytest.mark.parametrize("n_warmup", [3, pytest.param(20_000, marks=pytest.mark.slow)])
def test_ten_gigabytes_of_draws(n_warmup):
    peak, _, found = Child(peak_of_fit, "threading", 10**7, n_warmup, 500, store=200).result(200)
    assert_bounded(peak, found, 500)


@pytest.mark.slow
def test_ten_gigabytes_of_draws_from_workers():
    peak, _, found = Child(peak_of_fit, "loky", 10**7, 3, 500, store=200).result(300)
    assert_bounded(peak, found, 500)


def test_checkpoints_of_large_draws(tmp_path):
    run = {"n_bytes": 10**7, "n_warmup": 3, "n_draws": 100, "store": 200, "checkpoint": tmp_path}
    peak, _, found = Child(peak_of_fit, "threading", **run).result(200)
    # A file takes its draws packed: once more what is stored.
    assert peak < 3 * 200
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 201e6
    assert found["nbytes"] <= 201e6


def assert_bounded(peak, found, n_draws):
    # What is stored, and at most the blocks on their way.
    assert peak < 2 * 200
    assert 100e6 < found["nbytes"] <= 201e6
    assert found["n_draws"] == n_draws
    step = found["stored"][0] + 1
    assert step & (step - 1) == 0
    np.testing.assert_array_equal(found["stored"], np.arange(step - 1, n_draws, step))
    np.testing.assert_array_equal(found["values"], found["x"])


@pytest.mark.parametrize("store", slow_where([0.004, 0.02, 0.05], lambda store: store > 0.01))
def test_what_is_stored_does_not_depend_on_blocks(tmp_path, monkeypatch, store):
    options = {"n_chains": 2, "n_warmup": 4, "n_draws": 100, "thin": 2, "random_state": 5}
    options |= {"store": store}
    expected = answers(ToyModel(**options).fit(X), X)
    assert 1 <= len(expected["stored"]) < 100
    for block in (1, 3, 17, 1000):
        monkeypatch.setattr(runner, "_block_length", lambda *_, block=block: block)
        assert_same_answers(answers(ToyModel(**options).fit(X), X), expected)
        for n_draws in (7, 50, 99):  # and then the rest
            directory = tmp_path / f"{block} {n_draws}"
            begun = ToyModel(**options | {"n_draws": n_draws, "checkpoint": directory}).fit(X)
            rest = ToyModel(**options, checkpoint=directory).fit(X)
            assert rest.posterior_.n_sweeps_run == 2 * 2 * (100 - n_draws)
            assert_same_answers(answers(rest, X), expected)
            begun.set_params(checkpoint=None, warm_start=True, n_draws=100).fit(X)
            assert_same_answers(answers(begun, X), expected)
    # More room afterwards brings no draw back, and less lets go of more.
    begun = ToyModel(**options, warm_start=True).fit(X)
    n_stored = begun.posterior_.n_stored
    with pytest.warns(UserWarning, match="What it let go does not come back"):
        assert begun.set_params(store="all").fit(X).posterior_.n_stored == n_stored
    assert begun.set_params(store=0.001).fit(X).posterior_.n_stored == 2


def test_one_draw_at_least():
    model = ToyModel(n_chains=2, n_draws=9, store=1e-6, random_state=5)
    with pytest.warns(UserWarning, match="store=1e-06 has room for 2 of the 18 draws, fewer than"):
        posterior = model.fit(X).posterior_
    assert posterior.stored.tolist() == [7]
    assert posterior.traces["x"].shape == (2, 9)
