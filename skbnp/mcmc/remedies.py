"""What ails chains that have not converged, and what helps: values, and their words."""

from dataclasses import dataclass
from enum import Enum

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from skbnp.mcmc.diagnostics import MOST_RHAT, drift, ess, gap, is_constant, least_ess, rhat


class Illness(Enum):
    """What can ail chains."""

    FEW_KEPT = "fewer draws are kept than are to be effective"
    DISAGREEMENT = "the chains found different things, and averaged they are better than one"
    DRIFT = "the two halves of the traces differ"
    LEVELS = "the chains are at different levels, and averaged they are no better than one"
    LITTLE = "the same, and the levels differ by less than is worth having"
    COUNTS = "the chains agree on the density of rows, and differ in what is counted"
    FEW_DRAWS = "the chains agree, and there are few effective draws"
    UNBOUNDED = "densities of rows have no bound"
    UNKNOWN = "none of these"


@dataclass(frozen=True)
class Advice:
    """One thing that ails chains, and what helps.

    Parameters
    ----------
    illness : Illness
    finding : str
        What was found, in words.
    to_do : str
        What helps; empty where other advice says it.
    condition : str
        When that is worth doing; empty is always.
    """

    illness: Illness
    finding: str = ""
    to_do: str = ""
    condition: str = ""

    def __str__(self):
        if not self.condition:
            return ": ".join(filter(None, (self.finding, self.to_do)))
        return f"{self.finding}; if {self.condition}, {self.to_do}"


@dataclass(frozen=True)
class Diagnosis:
    """What speaks against chains, and what helps; false where nothing does.

    Parameters
    ----------
    problems : tuple of skbnp.mcmc.diagnostics.Problem
    advice : tuple of Advice
        Not empty where there are problems. Of an ensemble it stands alone.
    """

    problems: tuple = ()
    advice: tuple[Advice, ...] = ()

    def __bool__(self):
        return bool(self.problems or self.advice)

    def to_do(self):
        """All advice, in words."""
        return "; ".join(map(str, self.advice))


class ChainsWarning(ConvergenceWarning):
    """Chains may not have converged.

    Parameters
    ----------
    message : str
    problems : sequence of skbnp.mcmc.diagnostics.Problem
        What speaks against convergence, all of which the message lists.
    """

    def __init__(self, message, problems=()):
        super().__init__(message)
        self.problems = tuple(problems)

    def short(self, n_problems):
        """The message with so many of its problems, and how many more there are."""
        n_more = len(self.problems) - n_problems
        if n_more <= 0:
            return str(self)
        some = f"{in_a_row(self.problems[:n_problems])}; {n_more} more"
        return str(self).replace(in_a_row(self.problems), some)


def in_a_row(problems):
    """Problems as a message lists them."""
    return "; ".join(map(str, problems))


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

    Those that agree on ``log_density`` and differ in what is counted matter to those who look at
    it and not to predictions. A drift is one of ``log_density`` (``log_joint`` where there is
    none), where its other figures do not call it settled. Where fewer draws are kept than are to
    be effective this comes first, for nothing else can be told by so few.

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
    advice : list of Advice
        Never empty.
    """
    figures = {name: (rhat(traces[name]), ess(traces[name])) for name in names}
    agree = all(value <= max_rhat for value, _ in figures.values())
    n_draws = min(np.size(traces[name]) for name in names)
    min_ess = least_ess(len(traces[names[0]])) if min_ess is None else min_ess
    advice = []
    if n_draws < min_ess:
        few = (
            f"{n_draws} draws of all chains cannot be {min_ess} effective ones, nor tell much of "
            "the chains"
        )
        advice.append(Advice(Illness.FEW_KEPT, few, "raise n_draws first"))
    if not agree and pool_gain > least_gain:
        differ = (
            f"the chains found different {findings}; averaged they describe a row better by "
            f"{pool_gain:.2g} nats than one alone"
        )
        more_chains = f"more chains ({more}) help more than longer ones"
        advice.append(Advice(Illness.DISAGREEMENT, differ, more_chains))
    followed = "log_density" if "log_density" in traces else "log_joint"
    value, n_effective = figures.get(followed, (np.inf, 0.0))
    same_density = followed == "log_density" and value <= max_rhat
    difference, error = drift(traces[followed])
    # One settled trace of twenty has halves that differ by as much.
    drifts = np.abs(difference) > 2 * error and not (same_density and n_effective >= min_ess)
    if drifts:
        advice.append(_of_drift(followed, difference, longer))
    apart = gap(traces[followed], max_rhat) if followed == "log_density" else 0.0
    if apart and pool_gain <= least_gain and not difference > 2 * error:
        # Slower than the halves of a trace can tell, but not all chains are there yet.
        differs = f"log_density differs between the chains by up to {apart:.2g} nats a row"
        illness, condition = Illness.LITTLE, "even that matters"
        if apart > least_gain:
            illness, condition = Illness.LEVELS, ""
            differs += (
                ", and averaged they describe rows hardly better than one alone, so those that "
                "are low may be still improving"
            )
        else:
            differs += ", which is little: they describe rows alike"
            if not _found_the_same(traces, names):
                differs += f", if by different {findings}"
                condition = "it is these that you look at"
        advice.append(_unless(drifts, illness, differs, longer, condition))
    if same_density and not agree and pool_gain <= least_gain:
        alike = "the chains agree on log_density: they describe rows alike"
        if not _found_the_same(traces, names):
            alike += f", if by different {findings}"
        others = " or ".join(name for name, (value, _) in figures.items() if not value <= max_rhat)
        condition = f"it is {others} that you look at"
        advice.append(_unless(drifts, Illness.COUNTS, alike, longer, condition))
    if agree:
        few = "the chains agree and there are" * any(x < min_ess for _, x in figures.values())
    else:
        few = "log_density has" * (same_density and not drifts and n_effective < min_ess)
    if few and n_draws >= min_ess:
        was = f", which was {thin}" if thin > 1 else ""
        raise_it = f"raise n_draws or thin{was}"
        advice.append(Advice(Illness.FEW_DRAWS, f"{few} few effective draws", raise_it))
    return advice or [Advice(Illness.UNKNOWN, to_do=f"{longer} and n_draws")]


def _of_drift(name, difference, longer):
    change = "improving" if difference > 0 else "falling"
    return Advice(Illness.DRIFT, f"{name} is still {change}", longer)


def _unless(is_said, illness, finding, to_do, condition):
    """Advice without what to do where that is said."""
    return Advice(illness, finding) if is_said else Advice(illness, finding, to_do, condition)


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
    advice : list of Advice
        Empty if there is nothing to say.
    """
    advice = []
    if doubling_gain > least_gain:
        differ = (
            f"the chains found different {findings}, and all of them describe a row better by "
            f"{doubling_gain:.2g} nats than half of them do"
        )
        advice.append(Advice(Illness.DISAGREEMENT, differ, "raise n_chains"))
    difference, error = drift(log_density)
    if np.abs(difference) > max(2 * error, least_gain):
        advice.append(_of_drift("log_density", difference, "raise n_warmup"))
    return advice
