"""Warm-ups in rounds, which end when the chains agree or the work that is allowed is spent."""

from numbers import Integral, Real

from sklearn.utils._param_validation import Interval, StrOptions

from skbnp.estimators.chains import BaseMCMCEstimator
from skbnp.estimators.parameters import in_lines, parameter
from skbnp.mcmc.remedies import Advice, Illness
from skbnp.mcmc.warmup import WarmupRounds

_BOUND_ON_WORK = """
Bound on the work of all chains together where `n_warmup` is "auto", in about seconds of one core.
It is counted from sweeps, rows and the size of the model and never timed, so that a fit makes the
same draws on every machine. The first round of warm-up and the draws after it are made in any case.
"""


def bound_on_work(more=""):
    """The text of `max_work`, with a sentence more."""
    return in_lines(_BOUND_ON_WORK, more)


def in_rounds(sizes, more):
    """The text of `n_warmup`, whose rounds have such sizes, with a sentence more."""
    text = f"""
    Sweeps per chain before the first draw. "auto" runs rounds of {sizes}, ... until the traces that
    `fit` checks agree between the chains (R-hat up to 1.05, 25 effective draws for each chain, up
    to 100, in the last half of the round, no drift; of one chain alone, that no trace drifts) or
    `max_work` is spent; draws are kept after that, and none of them takes part in the decision.
    """
    return in_lines(text, more)


class WarmupInRounds(BaseMCMCEstimator):
    """Chains whose warm-up, where `n_warmup` is "auto", ends when it is done.

    A subclass says in ``_work(X)`` what a sweep costs, and in ``_auto_lengths(X)`` how many the
    first round has.
    """

    thin: int | str = parameter(
        default="auto",
        kind='int or "auto"',
        rules=[Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        text="""
        Sweeps per kept draw. "auto" is 1 where `n_warmup` is a number, and otherwise follows from
        the effective sample size at the end of the warm-up, so that the draws are as many sweeps
        as 200 effective ones need, and from the work that is left;
        ``posterior_.sweeps_per_draw`` says what it came to.
        """,
    )
    max_work: float = parameter(
        default=10.0,
        of_chains=False,
        kind="float",
        rules=[Interval(Real, 0, None, closed="neither")],
        text=bound_on_work(),
    )
    # Attributes of this process alone.
    _never_in_files = ("_max_work",)

    def _lengths(self, X):
        first, n_draws, thin = super()._lengths(X)
        work = self._work(X)
        if self.n_warmup != "auto" or work is None:
            return first, n_draws, thin
        least, per_sweep = work
        # Not n_draws of this fit: one that goes on to more draws must have the same thin.
        planned = self._auto_lengths(X)[1]
        thin = None if self.thin == "auto" else self.thin
        self._max_work = max_work = self._work_allowed(X)
        # Chains that are an ensemble need not agree.
        names = () if self._is_ensemble(X.shape[1]) else self._reported_traces
        rounds = WarmupRounds(first, names, per_sweep, least, max_work, planned, thin)
        return rounds, n_draws, thin

    def _work(self, X):
        """What a sweep of one chain costs, in nominal seconds of one core; None: lengths are fixed.

        Returns the least that it may be, and a function of the traces of the first round of
        warm-up, as `WarmupRounds` wants them. Both are counted: they must be the same on every
        machine.
        """
        return None

    def _work_allowed(self, X):
        """Nominal seconds that all chains may take."""
        return float(self.max_work)

    def _remedies(self, helps):
        warmup = self.posterior_.warmup
        if warmup is None:
            return super()._remedies(helps)
        if warmup.ended != "spent":
            # With a number in place of "auto" nobody chooses thin.
            thin = self.posterior_.sweeps_per_draw
            too = f"; set thin={thin} too" if thin > 1 else ""
            ended = f"it ended by itself after {self.n_warmup_} sweeps{too}"
            return helps(longer=f"raise n_warmup ({ended})")
        # Of a fit that was loaded "auto" is all that is known.
        was = getattr(self, "_max_work", self.max_work)
        was = was if was == "auto" else f"{was:.3g}"
        spent = f"the warm-up ended when max_work={was} was spent"
        longer = f"raise max_work ({spent})"
        # More chains share the same work: each alone would be shorter, and predict worse.
        advice = helps(longer=longer, more="n_chains, and max_work in proportion")
        is_said = any(one.to_do.startswith(longer) for one in advice)
        return advice if is_said else [*advice, Advice(Illness.UNKNOWN, spent)]
