"""Tables for the sections of reports, and what a section says."""

import numpy as np

from skbnp.reports import table


def training(X, **changes):
    X = np.asarray(X, dtype=float)
    n, d = X.shape
    fields = dict(
        X=X,
        holes=np.isnan(X),
        names=[f"column {j}" for j in range(d)],
        rows=[f"row {i}" for i in range(n)],
        families=["gaussian"] * d,
        levels=[None] * d,
        constant=[],
        advice=[],
    )
    return table.TrainingTable(**fields | changes)


def said(section):
    return " ".join(section.sentences)
