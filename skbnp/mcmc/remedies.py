"""What ails chains that have not converged, and what helps, in words."""

import numpy as np

from skbnp.mcmc.diagnostics import MOST_RHAT, drift, ess, gap, is_constant, least_ess, rhat

# What is said of chains whose log_density differs by less than is worth having.
LITTLE = "which is little: they describe rows alike"
# What is said of chains that differ in other quantities alone.
SAME_DENSITY = "the chains agree on log_density: they describe rows alike"


def remedies(
    traces,
    names,
    pool_gain,
    least_gain,
    findings,
    longer="raise n_warmup",
    more="n_chains",
    thin=1,
    max_rhat=MOST_RHAT,
    min_ess=None,
):
    """What ails chains that have not converged, and what helps.

    *Disagreement*: they differ, and averaged they are better than one alone; or they agree on
    ``log_density`` and differ in what is counted, which matters to those who look at it and not to
    predictions. *Drift*: the two halves of ``log_density`` (``log_joint`` where there is none)
    differ, where its other figures do not call it settled, or the chains have different levels of
    ``log_density`` and do not complement one another. *Few draws*: they agree, but there are too
    few effective draws; or there are fewer draws than are to be effective, which comes first, for
    nothing else can be told by so few.

    Parameters
    ----------
    traces : dict of str to array of shape (n_chains, n_draws)
    names : iterable of str
        The traces that must agree.
    pool_gain : float
        Nats per row that the average of all chains gains over one.
    least_gain : float
        Above it this is a disagreement.
    findings : str
        What such chains have found, in the plural.
    longer, more : str
        What makes a warm-up longer, and what makes more chains, each as long.
    thin : int
        Sweeps per draw.
    max_rhat, min_ess : float
        As for `convergence_problems`.

    Returns
    -------
    advice : list of str
        Never empty.
    """
    figures = {name: (rhat(traces[name]), ess(traces[name])) for name in names}
    agree = all(value <= max_rhat for value, _ in figures.values())
    n_draws = min(np.size(traces[name]) for name in names)
    min_ess = least_ess(len(traces[names[0]])) if min_ess is None else min_ess
    advice = []
    if n_draws < min_ess:
        advice.append(
            f"{n_draws} draws of all chains cannot be {min_ess} effective ones, nor tell much of "
            "the chains: raise n_draws first"
        )
    if not agree and pool_gain > least_gain:
        advice.append(
            f"the chains found different {findings}; averaged they describe a row better by "
            f"{pool_gain:.2g} nats than one alone, so more chains ({more}) help more than "
            "longer ones"
        )
    followed = "log_density" if "log_density" in traces else "log_joint"
    value, n_effective = figures.get(followed, (np.inf, 0.0))
    same_density = followed == "log_density" and value <= max_rhat
    difference, error = drift(traces[followed])
    # One settled trace of twenty has halves that differ by as much.
    drifts = np.abs(difference) > 2 * error and not (same_density and n_effective >= min_ess)
    if drifts:
        change = "improving" if difference > 0 else "falling"
        advice.append(f"{followed} is still {change}: {longer}")
    apart = gap(traces[followed], max_rhat) if followed == "log_density" else 0.0
    if apart and pool_gain <= least_gain and not difference > 2 * error:
        # Slower than the halves of a trace can tell, but not all chains are there yet.
        differs = f"log_density differs between the chains by up to {apart:.2g} nats a row"
        if apart > least_gain:
            differs += ", and averaged they describe rows hardly better than one alone"
            then = f": those that are low may be still improving, {longer}"
        elif _found_the_same(traces, names):
            differs += f", {LITTLE}"
            then = f"; if even that matters, {longer}"
        else:
            differs += f", {LITTLE}, if by different {findings}"
            then = f"; if it is these that you look at, {longer}"
        advice.append(differs + ("" if drifts else then))
    if same_density and not agree and pool_gain <= least_gain:
        differs = "" if _found_the_same(traces, names) else f", if by different {findings}"
        others = " or ".join(name for name, (value, _) in figures.items() if not value <= max_rhat)
        then = "" if drifts else f"; if it is {others} that you look at, {longer}"
        advice.append(SAME_DENSITY + differs + then)
    if agree:
        few = "the chains agree and there are" * any(x < min_ess for _, x in figures.values())
    else:
        few = "log_density has" * (same_density and not drifts and n_effective < min_ess)
    if few and n_draws >= min_ess:
        was = f", which was {thin}" if thin > 1 else ""
        advice.append(f"{few} few effective draws: raise n_draws or thin{was}")
    return advice or [f"{longer} and n_draws"]


def _found_the_same(traces, names):
    """Whether all that is counted, as clusters are, is the same in all draws of all chains."""
    counts = [x for x in (np.asarray(traces[name]) for name in names) if (x == np.rint(x)).all()]
    return all(map(is_constant, counts))


def shortcomings_of_ensemble(log_density, doubling_gain, least_gain, findings):
    """What an ensemble of short chains lacks.

    Its chains differ by design, and none of them has come to rest: what counts is whether more of
    them, or longer ones, would describe rows noticeably better.

    Parameters
    ----------
    log_density : array of shape (n_chains, n_draws)
        The trace.
    doubling_gain : float
        Nats per row that all chains gain over half of them.
    least_gain : float
        Above it a gain, or the drift from one half of the trace to the other, is worth having.
    findings : str
        What such chains have found, in the plural.

    Returns
    -------
    advice : list of str
        Empty if there is nothing to say.
    """
    advice = []
    if doubling_gain > least_gain:
        advice.append(
            f"the chains found different {findings}, and all of them describe a row better by "
            f"{doubling_gain:.2g} nats than half of them do: raise n_chains"
        )
    difference, error = drift(log_density)
    if np.abs(difference) > max(2 * error, least_gain):
        change = "improving" if difference > 0 else "falling"
        advice.append(f"log_density is still {change}: raise n_warmup")
    return advice
