"""Geweke's joint-distribution tests for any sampler.

A correct sweep leaves p(state, X) = p(state) p(X | state) as it is, whatever the data look like.
Both tests here compare draws from that joint law with draws that went through the sweep; a wrong
conditional, a forgotten Jacobian or a count that reads the state it changes shows as a drift.

``make_joint_draw(rng)`` returns a sampler (with ``sweep`` and, for the second test,
``simulate_data``) in a state drawn from the prior, holding data drawn given that state;
``statistics(sampler)`` returns a dict of floats. Squares and products are statistics like others:
return them too, for a sampler can have the right means and the wrong spreads.

References
----------
.. [1] Geweke, J. (2004). Getting it right: joint distribution tests of posterior simulators.
   Journal of the American Statistical Association 99, 799-804.
"""

import numpy as np

from checks.monte_carlo import z_score_two_sample
from checks.proofs import record


def paired_one_step(make_joint_draw, statistics, n, seed=0):
    """Exact joint draw, one sweep, difference of each statistic; n independent times.

    The pair cancels the spread of the joint law itself, so that this sees biases that
    `successive_conditional` would need many times the sweeps for. It says nothing of mixing.

    Parameters
    ----------
    make_joint_draw : callable, rng -> sampler
    statistics : callable, sampler -> dict of str to float
    n : int
        Number of independent pairs.
    seed : int, default=0

    Returns
    -------
    dict of str to float
        z-score of the mean difference, N(0, 1) for large n when the sweep is right.

    Raises
    ------
    ValueError
        If a statistic never changes: the sweep does not touch it and the test could not fail.
    """
    before, after = [], []
    for child in np.random.SeedSequence(seed).spawn(n):
        sampler = make_joint_draw(np.random.default_rng(child))
        before.append(statistics(sampler))
        sampler.sweep()
        after.append(statistics(sampler))

    z = {}
    for name in before[0]:
        difference = np.array(
            [new[name] - old[name] for old, new in zip(before, after, strict=True)]
        )
        if not difference.any():
            raise ValueError(f"{name!r} did not change in {n} sweeps: it tests nothing")
        z[name] = record(float(np.sqrt(n) * difference.mean() / difference.std(ddof=1)))
    return z


def successive_conditional(make_joint_draw, statistics, n, n_forward=None, thin=1, seed=0):
    """Alternate ``sweep()`` and ``simulate_data()``, compare with independent forward draws.

    The chain starts from an exact joint draw, so it needs no warm-up. Errors of repeated sweeps
    add up here, and data and state see each other; standard errors allow for autocorrelation.

    Parameters
    ----------
    make_joint_draw : callable, rng -> sampler
    statistics : callable, sampler -> dict of str to float
    n : int
        Number of kept draws of the chain.
    n_forward : int, default=n
        Number of forward draws.
    thin : int, default=1
        Sweep-and-simulate rounds per kept draw.
    seed : int, default=0

    Returns
    -------
    dict of str to float
        z-score of the difference of the two means.
    """
    chain_seed, *forward_seeds = np.random.SeedSequence(seed).spawn(1 + (n_forward or n))
    forward = [statistics(make_joint_draw(np.random.default_rng(s))) for s in forward_seeds]

    sampler = make_joint_draw(np.random.default_rng(chain_seed))
    chain = []
    for _ in range(n):
        for _ in range(thin):
            sampler.sweep()
            sampler.simulate_data()
        chain.append(statistics(sampler))

    return {
        name: float(
            z_score_two_sample(
                np.array([draw[name] for draw in chain]),
                np.array([draw[name] for draw in forward]),
            )
        )
        for name in forward[0]
    }


def assert_z_scores_small(z, limit=4.0):
    """Fail with the names and values of all z-scores at or beyond the limit (or NaN)."""
    large = {name: round(value, 2) for name, value in z.items() if not abs(value) < limit}
    assert not large, f"|z| >= {limit}: {large}"


class Moves:
    """A sampler whose sweep makes some moves alone."""

    def __init__(self, sampler, moves):
        self._sampler, self._moves = sampler, moves

    def __getattr__(self, name):
        return getattr(self._sampler, name)

    def sweep(self):
        for move in self._moves:
            self._sampler.sweep_only(move)


def only(function, wanted):
    """Those of a function's statistics whose names are wanted."""
    return lambda sampler: {k: v for k, v in function(sampler).items() if wanted(k)}
