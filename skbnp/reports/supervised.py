"""Networks that predict: which columns matter, and what is known of how well they predict."""

import numpy as np

from skbnp.markup import counted, listed, number, percent
from skbnp.reports import pictures
from skbnp.reports.page import Section, Verdict
from skbnp.reports.words import spread

_MOST_NAMED = 6
# A column moves predictions if shuffling it changes them by this part of their spread.
_MOVES = 0.05
HONEST = (
    "Hold rows out to see how well it predicts: cross_val_score(estimator, X, y) from "
    "sklearn.model_selection, or score(X_new, y_new) on rows that fit has not seen."
)


def section(traces, network, influence, names, ancestors, target, noise=None, power=None):
    """Which columns the predictions rest on.

    Parameters
    ----------
    traces : dict of str to ndarray of shape (n_chains, n_draws)
        What is counted, in words.
    network : dict
        That of the reference draw.
    influence : ndarray of shape (n_features,)
        How far predictions move when the column is shuffled, relative to their spread; NaN for
        columns that were not tried.
    names : list of str
        Of the features.
    ancestors : ndarray of shape (n_features,)
        Probability that the column is an ancestor of a target in the network.
    target : str
        What is predicted, in words.
    noise : ndarray of shape (n_used,) or None
        Share of the target's variance that the network leaves as noise, in draws; None for
        classes.
    power : float or None
        What probabilities of classes are raised to.
    """
    shown = [f"{spread(trace)} {what}" for what, trace in traces.items()]
    order = np.argsort(-np.nan_to_num(influence, nan=-1.0), kind="stable")
    moving = [j for j in order if influence[j] >= _MOVES]
    sentences = [
        f"The network predicts {target} from {counted(len(names), 'column')}. Networks of the "
        f"draws have {listed(shown)} (in 90% of the draws).",
    ]
    if moving:
        words = [f"{names[j]} ({influence[j]:.2f})" for j in moving[:_MOST_NAMED]]
        sentences.append(
            f"Predictions rest above all on {listed(words)}: the figure says how far they move, "
            "relative to their spread, when the values of the column are shuffled among the rows."
        )
    still = [names[j] for j in order if influence[j] < _MOVES]
    if still:
        sentences.append(f"Shuffling these moves predictions hardly at all: {listed(still)}.")
    sentences.append(
        "Columns that say the same share their part, so that none of them may seem to matter; and "
        "what predicts need not be a cause."
    )
    if noise is not None:
        low, high = np.quantile(noise, [0.05, 0.95])
        sentences.append(
            f"In its own eyes the network leaves {percent(float(np.mean(noise)))} of the variance "
            f"of the target as noise ({percent(float(low))} to {percent(float(high))}). That is "
            "no promise for new rows."
        )
    if power is not None:
        sentences.append(_power_in_words(power))
    records = [
        {
            "column": names[j],
            "influence": float(influence[j]),
            "probability of a path": float(ancestors[j]),
        }
        for j in order
    ]
    verdict = Verdict(
        "how well it predicts new rows", "no",
        "a score on the rows of fit would be too good; nothing else is known here", HONEST,
    )  # fmt: skip
    tried = [j for j in order if np.isfinite(influence[j])]
    bars = pictures.bars(
        influence[tried], [names[j] for j in tried], "Which columns predictions rest on",
        "how far predictions move",
    )  # fmt: skip
    return Section(
        "prediction", "What was found: what predictions rest on", tuple(sentences), records,
        n_shown=12, pictures=(bars, pictures.network(network)), verdicts=(verdict,),
        in_short=sentences[0],
    )  # fmt: skip


def _power_in_words(power):
    if power == 1.0:
        return "Probabilities of classes are those of the draws, not sharpened (power_ is 1)."
    return (
        f"Probabilities of classes are raised to the power {number(power, 2)} and made to sum to "
        "one again: leaving out training rows one by one showed those of the draws to be too even."
    )


def influence(predict, X, columns, seed):
    """How far predictions move when a column is shuffled, relative to their spread.

    Parameters
    ----------
    predict : callable
        ``predict(X)``: (n_rows,) or (n_rows, n_outputs).
    X : ndarray of shape (n_rows, n_features)
    columns : sequence of int
        The columns to try.
    seed : int

    Returns
    -------
    influence : ndarray of shape (n_features,)
        Root mean square of the moves, over all outputs, divided by the standard deviation of
        predictions; NaN for other columns.
    """
    rng = np.random.default_rng(seed)
    before = predict(X).reshape(len(X), -1)
    size = np.sqrt(np.mean((before - before.mean(axis=0)) ** 2))
    out = np.full(X.shape[1], np.nan)
    for j in columns:
        shuffled = X.copy()
        shuffled[:, j] = X[rng.permutation(len(X)), j]
        move = np.sqrt(np.mean((predict(shuffled).reshape(len(X), -1) - before) ** 2))
        out[j] = move / size if size > 0.0 else 0.0
    return out
