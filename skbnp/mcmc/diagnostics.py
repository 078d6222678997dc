"""Have the chains converged? R-hat and effective sample sizes of traces, through arviz-stats.

A trace is an array (chain, draw). One that is constant and equal in all chains has converged;
fewer than four draws give no figure.
"""

import math
from dataclasses import dataclass, field

import numpy as np

from skbnp.mcmc.caller import warn

MIN_DRAWS = 4
# A tail of five draws, the fifth part of all, is the shortest that can be smoothed.
_MIN_DRAWS_OF_LOO = 25
# Chains with a higher R-hat do not agree.
MOST_RHAT = 1.05
# Effective draws that raise no warning: so many for each chain, up to so many of all. One chain
# alone needs no more than each of four.
_ESS_PER_CHAIN, _MOST_ESS = 25, 100
# Importance weights none of which is above so many times their mean have no tail to speak of.
_EVEN_WEIGHTS = 5.0
# Up to so many effective draws the tail is the fifth part of all.
_SHORT_TAILS = 225
# Relative error of a log density.
_ROUNDING = 1e-12
_AXES = {"chain_axis": 0, "draw_axis": 1}


def rhat(trace):
    """Rank-normalised split R-hat of one trace.

    Parameters
    ----------
    trace : array-like of shape (n_chains, n_draws)
        Each chain is cut into two halves, a single one too.

    Returns
    -------
    rhat : float
        1 for a constant trace, infinite for one that is constant within every chain, or half of
        one, and differs between them, NaN where there are too few draws (for a single chain fewer
        than eight) or values that are not finite.
    """
    trace = np.asarray(trace, dtype=np.float64)
    if is_constant(trace):
        return 1.0
    if _is_stuck(trace):
        # A variance within of zero: rounding errors alone would make it finite.
        return np.inf
    if len(trace) == 1:
        return _rhat_of_halves(trace[0])
    return _figure("rhat", trace, method="rank")


def _rhat_of_halves(chain):
    """R-hat of ranks, folded or not, whichever is larger: arviz has it for two chains and more."""
    half = len(chain) // 2
    if half < MIN_DRAWS or not np.isfinite(chain).all():
        return np.nan
    halves = np.stack([chain[:half], chain[-half:]])
    folded = np.abs(halves - np.median(halves))
    return max(_figure("rhat", _normal_scores(x), method="identity") for x in (halves, folded))


def _normal_scores(x):
    """Normal quantiles of ranks: Vehtari et al. (2021), equation (14)."""
    # Workers that make passes over rows load this module and need neither.
    from scipy.special import ndtri
    from scipy.stats import rankdata

    ranks = rankdata(x).reshape(x.shape)
    return ndtri((ranks - 0.375) / (x.size + 0.25))


def ess(trace, method="bulk"):
    """Effective sample size of one trace.

    Parameters
    ----------
    trace : array-like of shape (n_chains, n_draws)
    method : {"bulk", "tail", "mean"}, default="bulk"
        For the centre, the 5 % and 95 % quantiles, or the plain mean.

    Returns
    -------
    ess : float
        The number of draws for a constant trace, NaN where there are too few draws or values
        that are not finite.
    """
    trace = np.asarray(trace, dtype=np.float64)
    if is_constant(trace):
        return float(trace.size)
    options = {"prob": (0.05, 0.95)} if method == "tail" else {}
    return _figure("ess", trace, method=method, **options)


def mcse(trace):
    """Monte Carlo standard error of the mean of one trace.

    Parameters
    ----------
    trace : array-like of shape (n_chains, n_draws)

    Returns
    -------
    mcse : float
        Zero for a constant trace, NaN where there are too few draws or values that are not
        finite.
    """
    trace = np.asarray(trace, dtype=np.float64)
    if is_constant(trace):
        return 0.0
    return _figure("mcse", trace, method="mean") * _unit(trace)


def drift(trace):
    """How much higher the second half of a trace is than the first, chain by chain.

    Parameters
    ----------
    trace : array-like of shape (n_chains, n_draws)

    Returns
    -------
    difference : float
        Between the means of the two halves.
    error : float
        Its Monte Carlo standard error. Chains at different heights do not count: each half of
        each chain is taken about its own mean. Both are NaN where a half has fewer than four
        draws or values that are not finite.
    """
    trace = np.asarray(trace, dtype=np.float64)
    half = trace.shape[1] // 2
    halves = trace[:, :half], trace[:, trace.shape[1] - half :]
    if half < MIN_DRAWS or not np.isfinite(trace).all():
        return np.nan, np.nan
    first, second = (x - x.mean(axis=1, keepdims=True) for x in halves)
    return float(halves[1].mean() - halves[0].mean()), math.hypot(mcse(first), mcse(second))


def is_constant(trace):
    """Whether a trace long enough to judge is constant and equal in all chains.

    Parameters
    ----------
    trace : ndarray of shape (n_chains, n_draws)

    Returns
    -------
    is_constant : bool
    """
    return (
        trace.shape[1] >= MIN_DRAWS
        and np.isfinite(trace[0, 0])
        and bool((trace == trace[0, 0]).all())
    )


def least_ess(n_chains):
    """Effective draws of all chains together that raise no warning.

    Parameters
    ----------
    n_chains : int

    Returns
    -------
    least : int
        25 for each chain, at most 100.
    """
    return min(_MOST_ESS, _ESS_PER_CHAIN * n_chains)


@dataclass(frozen=True)
class Problem:
    """Something that speaks against convergence.

    Parameters
    ----------
    message : str
    trace : str or None
        Whose it is; None is all of them.
    """

    message: str
    trace: str | None = None

    def __str__(self):
        return self.message


def convergence_problems(traces, names=None, max_rhat=MOST_RHAT, min_ess=None):
    """What speaks against convergence.

    Parameters
    ----------
    traces : dict of str to array of shape (n_chains, n_draws)
    names : iterable of str, default=None
        The traces to look at; all of them by default.
    max_rhat : float, default=1.05
    min_ess : float, default=None
        Least bulk effective sample size, over all chains; None is `least_ess` of them.

    Returns
    -------
    problems : list of Problem
        Empty if there is nothing to say.
    """
    names = list(traces if names is None else names)
    n_draws = min((np.shape(traces[name])[1] for name in names), default=MIN_DRAWS)
    if n_draws < MIN_DRAWS:
        return [
            Problem(
                f"no R-hat and no effective sample size can be given for {n_draws} draws per "
                f"chain: at least {MIN_DRAWS} are needed"
            )
        ]
    return [
        Problem(message, name)
        for name in names
        for message in _problems_of(name, traces[name], max_rhat, min_ess)
    ]


def gap(trace, max_rhat=MOST_RHAT):
    """How far the means of chains are apart, where that alone would make R-hat too high.

    Parameters
    ----------
    trace : array-like of shape (n_chains, n_draws)
    max_rhat : float, default=1.05

    Returns
    -------
    gap : float
        Between the highest and the lowest; 0 where R-hat is not too high by their means.
    """
    different = _have_different_levels(trace, max_rhat)
    return float(np.ptp(np.mean(trace, axis=1))) if different else 0.0


def _have_different_levels(trace, max_rhat):
    """Whether R-hat would be too high by the means of the chains alone, whatever their trends."""
    trace = np.asarray(trace, dtype=np.float64)
    if trace.shape[1] < MIN_DRAWS or len(trace) < 2 or not np.isfinite(trace).all():
        return False
    between = trace.mean(axis=1).var(ddof=1)
    return bool(between > (max_rhat**2 - 1) * trace.var(axis=1, ddof=1).mean())


def never_moved(posterior, moves):
    """Traces that are constant in all chains because nothing that could change them ever did.

    Parameters
    ----------
    posterior : Posterior
    moves : dict of str to tuple of str
        Names of traces, each with the moves that may change it.

    Returns
    -------
    problems : list of Problem
        One for each trace that is constant and equal in all chains although moves were proposed,
        if not one was accepted since the chains began, warm-up included.
    """
    problems = []
    for name, of_trace in moves.items():
        counts = [end.counts.get(move, (0, 0)) for end in posterior.ends for move in of_trace]
        accepted, proposed = np.sum(counts, axis=0) if counts else (0, 0)
        if is_constant(posterior.traces[name]) and proposed and not accepted:
            problems.append(
                Problem(
                    f"{name} never changed, and none of {proposed} proposals that could change it "
                    "was accepted",
                    name,
                )
            )
    return problems


@dataclass(frozen=True)
class LeaveOneOut:
    """What PSIS-LOO says; all densities in nats.

    Attributes
    ----------
    elpd : float
        Expected log predictive density: the sum over rows of the log density of each row given
        all others.
    se : float
        Standard error of `elpd` over rows.
    n_draws : int
        Draws used, over all chains.
    good_k : float
        Largest Pareto k with which that many draws are enough.
    elpd_i : ndarray of shape (n_samples,)
    pareto_k : ndarray of shape (n_samples,)
        How heavy the tail of a row's importance ratios is. Where the largest ratios tie there is
        no tail to fit: inf if one is above five times their mean, and otherwise -inf, as of a row
        without entries, whose density is the same at every draw.
    """

    elpd: float
    se: float
    n_draws: int
    good_k: float
    elpd_i: np.ndarray = field(repr=False)
    pareto_k: np.ndarray = field(repr=False)


def loo(log_likelihood):
    """Leave-one-out cross-validation by Pareto-smoothed importance sampling, PSIS-LOO [1]_.

    Parameters
    ----------
    log_likelihood : array-like of shape (n_chains, n_draws, n_samples)
        Log density of each row at each draw, such that its inverse is the importance ratio of
        the posterior without the row.

    Returns
    -------
    loo : LeaveOneOut

    Raises
    ------
    ValueError
        If there are fewer than 25 draws or four per chain, or a density is NaN.

    Warns
    -----
    UserWarning
        If Pareto's k of some row is above `good_k` and one of its importance ratios above five
        times their mean; k of ratios that are nearly equal says nothing.

    References
    ----------
    .. [1] A. Vehtari, A. Gelman and J. Gabry (2017). Practical Bayesian model evaluation using
       leave-one-out cross-validation and WAIC. Statistics and Computing 27, 1413-1432.
    """
    log_likelihood = np.asarray(log_likelihood, dtype=np.float64)
    n_chains, n_draws, n = log_likelihood.shape
    total = n_chains * n_draws
    check_draws_of_loo(n_chains, n_draws)
    if np.isnan(log_likelihood).any():
        raise ValueError("loo needs log densities that are not NaN")
    elpd_i, pareto_k = loo_of_rows(log_likelihood, efficiency(log_likelihood.sum(axis=2)))
    good_k = min(0.7, 1 - 1 / math.log10(total))
    bad = (pareto_k > good_k) & (_mean_ratio(log_likelihood) < 1 / _EVEN_WEIGHTS)
    if bad.any():
        warn(
            f"Pareto's k is above {good_k:.2f} for {bad.sum()} of {n} rows, at most "
            f"{np.max(pareto_k[bad]):.2f}: their leave-one-out densities are too optimistic; take "
            "more draws or cross-validate",
        )
    return LeaveOneOut(
        elpd=float(elpd_i.sum()),
        se=float(math.sqrt(n * np.var(elpd_i))),
        n_draws=total,
        good_k=good_k,
        elpd_i=elpd_i,
        pareto_k=pareto_k,
    )


def check_draws_of_loo(n_chains, n_draws):
    """Raise a ValueError if so many chains of so many draws are too few for leave-one-out."""
    if n_draws < MIN_DRAWS or n_chains * n_draws < _MIN_DRAWS_OF_LOO:
        raise ValueError(
            f"loo needs at least {_MIN_DRAWS_OF_LOO} stored draws and {MIN_DRAWS} per chain, got "
            f"{n_chains} chains of {n_draws}"
        )


def efficiency(trace):
    """Effective draws of a trace (chain, draw) for each of its draws, at most one."""
    return min(1.0, ess(trace, method="mean") / trace.size)


def loo_of_rows(log_likelihood, efficiency):
    """Smoothed leave-one-out densities of some rows.

    Parameters
    ----------
    log_likelihood : ndarray of shape (n_chains, n_draws, n_samples)
        As for `loo`.
    efficiency : float
        Effective draws for each draw, which the length of a tail depends on.

    Returns
    -------
    elpd_i, pareto_k : ndarray of shape (n_samples,)
        As in `LeaveOneOut`. Where a density is NaN, both are.
    """
    n_chains, n_draws, n = log_likelihood.shape
    mean_ratio = _mean_ratio(log_likelihood)
    elpd_i = log_likelihood.min(axis=(0, 1)) - np.log(mean_ratio)
    pareto_k = np.where(mean_ratio < 1 / _EVEN_WEIGHTS, np.inf, -np.inf)
    pareto_k[np.isnan(elpd_i)] = np.nan
    tailed = _has_tail(log_likelihood.reshape(n_chains * n_draws, n), efficiency)
    if tailed.any():
        elpd_i[tailed], pareto_k[tailed] = _array_stats().loo(
            np.moveaxis(log_likelihood[:, :, tailed], 2, 0),
            chain_axis=1,
            draw_axis=2,
            r_eff=efficiency,
        )[:2]
    return elpd_i, pareto_k


def _mean_ratio(log_likelihood):
    """Mean of the importance ratios of each row, of which the largest is one."""
    lowest = log_likelihood.min(axis=(0, 1))
    return np.exp(lowest - log_likelihood).mean(axis=(0, 1))


def _has_tail(log_likelihood, efficiency):
    """Whether the tail of a row's importance ratios can be smoothed, for (draws, rows).

    That divides by the first quartile of the tail less the largest ratio below it. Both are the
    same where draws tie, as those of a partition without other unknowns do, and differ by
    rounding alone where the draws say nothing of the row; both underflow where a single draw
    has all the weight. A tail of equal ratios, as of draws that stay where they are, has no shape.
    """
    total = len(log_likelihood)
    length = total // 5  # as in arviz_stats
    if total * efficiency > _SHORT_TAILS:
        length = math.floor(3 * math.sqrt(total / efficiency))
    quartile = length - int(length / 4 + 0.5)
    places = [0, quartile, length - 1, length]
    lowest, inside, last, below = np.partition(log_likelihood, places, axis=0)[places]
    rounding = _ROUNDING * np.maximum(1.0, np.abs(log_likelihood).max(axis=0))
    underflows = np.exp(lowest - inside) < np.finfo(np.float64).tiny
    return (below - inside > rounding) & (last - lowest > rounding) & ~underflows


def _problems_of(name, trace, max_rhat, min_ess):
    if not np.isfinite(trace).all():
        return [f"the trace of {name} holds values that are not finite"]
    problems = []
    value = rhat(trace)
    if np.isnan(value):
        problems.append(f"R-hat of {name} cannot be computed")
    elif value == np.inf:
        parts = "half of a chain" if np.ptp(trace, axis=1).any() else "chain"
        # An effective sample size would say nothing more.
        return [f"{name} is constant within every {parts} and differs between them"]
    elif value > max_rhat:
        shown = apart_from(max_rhat, value, 3) if value < 100 else "over 100"
        problems.append(f"R-hat of {name} is {shown} (above {max_rhat:g})")
    value = ess(trace)
    min_ess = least_ess(len(trace)) if min_ess is None else min_ess
    if np.isnan(value):
        problems.append(f"the effective sample size of {name} cannot be computed")
    elif value < min_ess:
        shown = apart_from(min_ess, value, 1)
        problems.append(f"the effective sample size of {name} is {shown} (below {min_ess:g})")
    return problems


def apart_from(limit, value, n_digits):
    """A number that is not the limit, in as many digits as show on which side of it it is.

    Parameters
    ----------
    limit, value : float
    n_digits : int
        Behind the point, at least.

    Returns
    -------
    shown : str
    """
    shown = f"{value:.{n_digits}f}"
    if n_digits < 17 and (float(shown) - limit) * (value - limit) <= 0.0 and value != limit:
        return apart_from(limit, value, n_digits + 1)
    return shown


def _is_stuck(trace):
    """Whether a trace is constant within every half of a chain and differs between them."""
    if trace.shape[1] < MIN_DRAWS or not np.isfinite(trace).all():
        return False
    half = trace.shape[1] // 2
    halves = np.concatenate([trace[:, :half], trace[:, -half:]])
    return bool((halves == halves[:, :1]).all() and (halves != halves[0, 0]).any())


def _unit(trace):
    """What a trace is divided by before squares are taken: 1 if floats can hold them."""
    largest = np.max(np.abs(trace), initial=0.0)
    return largest if 0.0 < largest < 1e-100 or 1e100 < largest < np.inf else 1.0


def _array_stats():
    """The functions of arviz-stats, which takes .2 s of xarray and scipy.signal with it.

    Imported when first asked for, so that importing an estimator does not wait for it.
    """
    from arviz_stats.base import array_stats

    return array_stats


def _figure(name, trace, **options):
    """Call an arviz-stats function on a trace in its `_unit` where it is defined; NaN elsewhere."""
    if trace.shape[1] < MIN_DRAWS or not np.isfinite(trace).all():
        return np.nan
    with np.errstate(all="ignore"):
        function = getattr(_array_stats(), name)
        return float(function(trace / _unit(trace), **_AXES, **options))


def summary_of(trace):
    """Moments, quantiles and diagnostics of a trace (chain, draw), by name."""
    with np.errstate(invalid="ignore"):  # infinite values have a mean and no spread
        mean = float(trace.mean())
        sd = float(trace.std(ddof=1)) if trace.size > 1 else np.nan
        low, high = np.quantile(trace, [0.05, 0.95])
    return {
        "mean": mean,
        "sd": sd,
        "5%": float(low),
        "95%": float(high),
        "mcse": mcse(trace),
        "ess_bulk": ess(trace),
        "ess_tail": ess(trace, method="tail"),
        "rhat": rhat(trace),
    }
