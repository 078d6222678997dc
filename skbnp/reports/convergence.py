"""How sure the draws are: whether the chains agree, and what helps where they do not."""

from dataclasses import replace

import numpy as np

from skbnp.markup import counted, listed, number
from skbnp.mcmc import diagnostics
from skbnp.mcmc.diagnostics import MOST_RHAT
from skbnp.mcmc.remedies import Illness, in_a_row
from skbnp.reports import pictures
from skbnp.reports.page import Section, Verdict

DENSITY = "how well rows are described"
# What traces are about, in words; others go by their names.
_WORDS = {
    "log_density": DENSITY,
    "log_joint": "the model as a whole",
    "n_clusters": "how many pieces draws have",
    "largest_cluster": "the size of the largest piece",
    "concentration": "how readily pieces open",
    "n_branches": "how many branches draws have",
    "n_factors": "the number of factors",
    "n_shared_factors": "the number of shared factors",
    "n_hidden": "the number of hidden nodes",
    "n_edges": "the number of edges",
    "width1": "the number of lowest hidden units",
}


def section(posterior, names, diagnosis, is_ensemble=False):
    """The chains, by the quantities that `fit` checks.

    Parameters
    ----------
    posterior : skbnp.mcmc.posterior.Posterior
    names : sequence of str
        The traces that `fit` checks.
    diagnosis : skbnp.mcmc.remedies.Diagnosis
        What `fit` warned of.
    is_ensemble : bool
        Whether chains are meant to differ.
    """
    records, verdicts = [], []
    least_ess = diagnostics.least_ess(posterior.n_chains)
    illnesses = [one.illness for one in diagnosis.advice]
    differ_little = Illness.LITTLE in illnesses
    for name in names:
        figures = diagnostics.summary_of(posterior.traces[name])
        verdict = None if is_ensemble else _verdict(name, figures, least_ess)
        if name == "log_density":
            differ_little = differ_little and np.isfinite(figures["rhat"])
        if differ_little and name == "log_density":
            why = f"{verdict.why}, but the chains differ by little"
            verdict = replace(verdict, trust="with care", why=why)
        verdicts += [] if verdict is None else [verdict]
        records.append(
            {
                "quantity": _WORDS.get(name, name),
                "mean": figures["mean"],
                "5 %": figures["5%"],
                "95 %": figures["95%"],
                "R-hat": figures["rhat"],
                "effective draws": _whole(figures["ess_bulk"]),
                "trace": name,
            }
        )
    sentences = [_run_in_words(posterior)]
    # In nothing else, and nothing else is to be done.
    differ_in = {one.trace for one in diagnosis.problems}
    are_fine = differ_little and len(illnesses) == 1 and differ_in == {"log_density"}
    if is_ensemble:
        sentences += _ensemble(diagnosis)
        verdicts.append(
            Verdict(
                "predictions, which are averages over all chains",
                "with care" if diagnosis else "yes",
                str(diagnosis.advice[0]) if diagnosis else "more chains would change little",
            )
        )
    else:
        sentences += _agreement(diagnosis.problems, names, are_fine, least_ess)
    gain = posterior.known_gain()
    if gain is not None and posterior.n_chains > 1:
        sentences.append(
            f"Averaged over the chains the log density of a row is {number(gain, 2)} higher than "
            "with one chain alone: hundredths mean that the chains describe rows alike, whatever "
            "else they differ in. Predictions use the average."
        )
    shown = {name: posterior.traces[name] for name in names}
    rhat = {record["trace"]: record["R-hat"] for record in records}
    return Section(
        "chains",
        "How sure: do the chains agree?",
        tuple(sentences),
        records,
        pictures=(pictures.traces(shown, rhat),),
        verdicts=tuple(verdicts),
        steps=(_step(diagnosis, posterior, are_fine),) if diagnosis else (),
        is_urgent=not are_fine,
    )


def _step(diagnosis, posterior, are_fine):
    first, *others = [one.illness for one in diagnosis.advice]
    begin = "Fit again, so that the chains can be trusted"
    if are_fine:
        begin = "The chains may stay as they are"
    elif first is Illness.COUNTS and Illness.FEW_DRAWS not in others:
        begin = "Where only densities and predictions count, the chains may stay as they are"
    return (
        f"{begin}: {diagnosis.to_do()} (this fit had n_chains={posterior.n_chains}, "
        f"n_warmup={posterior.n_warmup}, n_draws={posterior.n_draws}, "
        f"thin={posterior.sweeps_per_draw})."
    )


def _whole(value):
    # Never so many as are enough where there are fewer.
    return int(value) if np.isfinite(value) else np.nan


def _run_in_words(posterior):
    run = (
        f"The answer comes from {counted(posterior.n_chains, 'chain')} of random steps, each with "
        f"{number(posterior.n_draws)} draws kept after {number(posterior.n_warmup)} steps to "
        "settle."
    )
    if posterior.n_chains == 1:
        return (
            f"{run} Whether another chain, from another start, would find the same is not known: "
            "only its two halves can be compared."
        )
    return f"{run} Chains start from different places; only what they agree on can be trusted."


def _agreement(problems, names, are_fine, least_ess):
    how = (
        f"R-hat compares the chains with one another: 1 is agreement, up to {MOST_RHAT:g} is fine. "
        "Effective draws say how many independent draws the chains are worth: "
        f"{least_ess} or more are enough."
    )
    if not problems:
        return [how, "By both figures the chains agree on all that is listed."]
    if are_fine:
        return [how, f"They differ in {DENSITY} alone, and by little."]
    differ_in = {one.trace for one in problems}
    poor = [_WORDS.get(name, name) for name in names if name in differ_in]
    of = f" for {listed(poor)}: see the table" if poor else f": {in_a_row(problems)}"
    return [how, f"They do not agree yet, or are too short{of}."]


def _ensemble(diagnosis):
    sentences = [
        "In a table this wide chains stay where they began. They are many and short, they differ "
        "on purpose, and it is their average that counts."
    ]
    if diagnosis:
        return [*sentences, f"It could be better: {diagnosis.to_do()}."]
    return [*sentences, "More of them would describe the rows hardly better."]


def _verdict(name, figures, least_ess):
    """How far one quantity can be trusted by its figures alone."""
    part = _WORDS.get(name, name)
    rhat, ess = figures["rhat"], figures["ess_bulk"]
    if not (np.isfinite(rhat) and np.isfinite(ess)):
        short = np.isnan(rhat) or np.isnan(ess)
        why = "the chains are too short to say" if short else "each chain stays where it is"
        return Verdict(part, "no", why)
    shown = diagnostics.apart_from(MOST_RHAT, rhat, 2)
    why = f"R-hat {shown}, {counted(_whole(ess), 'effective draw')}"
    if rhat <= MOST_RHAT:
        return Verdict(part, "yes" if ess >= least_ess else "with care", why)
    return Verdict(part, "with care" if rhat <= 1.2 else "no", why)
