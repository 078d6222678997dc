"""Going over the draws of a posterior: which of them, block by block, the same for any threads."""

from functools import partial
from weakref import WeakKeyDictionary

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from skbnp.estimators.arguments import check_count
from skbnp.mcmc.rows import BLOCK_SIZE, available_threads, for_row_blocks
from skbnp.numerics.moments import merged
from skbnp.summaries.training_cells import over_chains

# Numbers that the moments of one block of rows may take, and groups of draws that are summed.
_BLOCK_NUMBERS, _DRAW_GROUPS = 2_000_000, 8
# Draws that summaries of all draws look at, at most.
MOST_SUMMARY_DRAWS = 300
# What draws say, by the posterior that they are of: for as long as that lives, and in no file. By
# name what it depends on, and what was worked out.
_KEPT = WeakKeyDictionary()


class DrawsMixin:
    """What an estimator asks of its draws, and over how many threads.

    ``_law_of(draw, t)`` is what a subclass works out of the t-th draw of a prediction, once for
    all rows; the draw itself where there is nothing to work out. Where that takes longer than the
    answer for one row, ``_parameters_of_laws`` names the parameters that it reads: the laws are
    then kept for later predictions, so they must not be large.
    """

    _parameters_of_laws = None

    def _law_of(self, draw, t):
        return draw

    def _given_draw(self, draw):
        """The draw that the user names: the reference draw for None."""
        if draw is None:
            return self._reference
        rule = "draw must be None or a draw of posterior_, such as posterior_[0, 0]"
        if not isinstance(draw, dict):
            raise TypeError(f"{rule}, got a {type(draw).__name__}")
        try:
            self._check_draw(draw)
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            raise ValueError(f"{rule} of this estimator: {error}") from error
        return draw

    def _draws_to_predict_from(self):
        """The `Posterior` whose draws say what is predicted."""
        return self.posterior_

    def _prediction_draws(self):
        return self._draws_to_predict_from().evenly_spaced(self.predict_draws)

    def _summary_draws(self):
        return self.posterior_.evenly_spaced(MOST_SUMMARY_DRAWS)

    def _prediction_laws(self):
        """What the draws of a prediction say, each worked out once."""
        return self._kept("laws", self._new_laws)

    def _kept(self, name, make, *objects):
        """What ``make()`` gives, kept for later predictions.

        It depends on the draws, the parameters of the laws and some objects that are never written
        to. Nothing is kept where these parameters are unknown.
        """
        if self._parameters_of_laws is None:
            return make()
        names = ("seed_", "predict_draws", *self._parameters_of_laws)
        values = tuple(getattr(self, parameter) for parameter in names)
        of_posterior = _KEPT.setdefault(self.posterior_, {})
        before, others, found = of_posterior.get(name, (None, (), None))
        if before != values or any(a is not b for a, b in zip(objects, others, strict=True)):
            found = make()
            # In one step: another thread finds these or those of before.
            of_posterior[name] = values, objects, found
        return found

    def _new_laws(self):
        return [self._law_of(draw, t) for t, draw in enumerate(self._prediction_draws())]

    def _row_threads(self):
        """``for_rows`` of each chain's sampler: together they use as many threads as `n_jobs`."""
        n_threads = available_threads(self.n_jobs)
        return partial(
            for_row_blocks, n_threads=max(1, n_threads // min(self.n_chains_, n_threads))
        )

    def _by_row_blocks(self, function, n_rows):
        """Results of ``function(start, stop)`` over fixed row blocks, stacked."""
        return np.concatenate(self._by_blocks(function, n_rows))

    def _by_blocks(self, function, n, size=BLOCK_SIZE):
        """Results of ``function(start, stop)`` over fixed blocks of so many rows, or draws."""
        return for_row_blocks(function, n, size, n_threads=available_threads(self.n_jobs))

    def _over_draws(self, A, of_draw, combine=None, prepare=None, laws=None, groups=None):
        """Results of ``of_draw(law, t, rows of A)`` for blocks of rows: yields (rows, parts).

        A part is what ``combine`` makes of the results of one group of draws, by default a stack
        of them; groups, (first, last) each, and blocks do not depend on the number of threads. What
        ``prepare(rows of A)`` makes of a block goes to all draws in its place.
        """
        combine = combine or _stacked
        laws = self._prediction_laws() if laws is None else laws
        groups = _in_groups(0, len(laws), _DRAW_GROUPS) if groups is None else groups
        size = max(1, min(BLOCK_SIZE, _BLOCK_NUMBERS // max(1, A.shape[1])))
        for start in range(0, len(A), size):
            rows = slice(start, min(start + size, len(A)))
            block = A[rows] if prepare is None else prepare(A[rows])

            def part(group, _, block=block):
                return combine(of_draw(laws[t], t, block) for t in range(*groups[group]))

            yield rows, self._by_blocks(part, len(groups), 1)

    def _moments(self, A, of_draw, prepare=None):
        """Mean and variance of what the draws say of the rows of A, all draws alike.

        Yields (rows, mean, variance) block by block. ``of_draw(law, t, rows of A)`` gives those
        of one draw; by the law of total variance, inf where a draw's is.

        All draws weigh the same, although Bayes' rule lets each count by its density of what is
        observed of the row. Of a row that the draws were fitted to they know that already, and in
        many columns such weights leave one draw of a hundred in effect: intervals too short, and
        larger errors for new rows as well.
        """
        for rows, chains in self._moments_of_chains(A, of_draw, prepare):
            yield rows, *over_chains(chains)

    def _moments_of_chains(self, A, of_draw, prepare=None):
        """The same chain by chain: yields (rows, chains), each chain as `over_chains` wants it."""

        def combine(results):
            return merged((1.0, mean, variance) for mean, variance in results)

        of_chain = self._draws_to_predict_from().chains_of_evenly_spaced(self.predict_draws)
        first = np.flatnonzero(np.diff(of_chain, prepend=-1))
        each = -(-_DRAW_GROUPS // len(first))
        groups = [
            _in_groups(*bounds, each)
            for bounds in zip(first, [*first[1:], len(of_chain)], strict=True)
        ]
        places = np.cumsum([len(some) for some in groups])[:-1]
        for rows, parts in self._over_draws(A, of_draw, combine, prepare, groups=sum(groups, [])):
            yield rows, [merged(some) for some in _split(parts, places)]

    def _generator(self, n_samples, random_state):
        """A generator for so many samples of the fitted model."""
        check_is_fitted(self, "posterior_")
        self._validate_params()
        check_count("n_samples", n_samples)
        seed = check_random_state(random_state).randint(2**32, dtype=np.uint64)
        return np.random.default_rng(seed)

    def _chosen_draws(self, n_samples, rng):
        """A stored draw for each sample, at random: yields (which samples, draw)."""
        chosen = rng.integers(self.posterior_.n_stored, size=n_samples)
        for t in np.unique(chosen):
            yield np.flatnonzero(chosen == t), self.posterior_.in_order(int(t))


def _in_groups(start, stop, n_groups):
    """At most so many groups of draws in their order, (first, last) each."""
    size = -(-(stop - start) // n_groups)
    return [(first, min(first + size, stop)) for first in range(start, stop, size)]


def _split(parts, places):
    """Lists of the parts up to each place, and from the last one on."""
    bounds = zip([0, *places], [*places, len(parts)], strict=True)
    return [parts[first:last] for first, last in bounds]


def _stacked(results):
    return np.stack(list(results))
