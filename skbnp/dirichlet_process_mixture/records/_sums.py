"""What the cells of a table return, added up."""

import numpy as np


def add_passes(left, right):
    """What two neighbouring runs of cells return of a pass, as of one."""
    return {
        **_added(left, right),
        **{
            name: np.concatenate([left[name], right[name]])
            for name in ("number", "label", "X", "missing")
        },
    }


def add_divisions(left, right):
    """The same of proposals."""
    return [
        {"log_q": one["log_q"] + other["log_q"], **_added(one, other)}
        for one, other in zip(left, right, strict=True)
    ]


def _added(left, right):
    """Sums, and the first rows in the order of a key."""
    before = (left["place"] < right["place"]) | (
        (left["place"] == right["place"]) & (left["row"] < right["row"])
    )
    return {
        "n": left["n"] + right["n"],
        "sums": left["sums"] + right["sums"],
        "place": np.where(before, left["place"], right["place"]),
        "row": np.where(before, left["row"], right["row"]),
    }


# By the method of `RowSlice`.
COMBINE = {"pass_rows": add_passes, "divide": add_divisions}
