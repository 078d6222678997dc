"""Where a chain stands after its last sweep."""

from dataclasses import dataclass, field, fields

import numpy as np


@dataclass
class ChainEnd:
    """Where a chain stands: all that it needs to go on, and to say what it has done.

    Parameters
    ----------
    n_swept : int
        Sweeps that it has made, warm-up included.
    counts, counts_after_warmup : dict of str to pair of int
        How many proposals of each move were accepted and made, in all and when the warm-up ended.
    state : dict or None
        Of its sampler; None before its first sweep.
    record : dict of str to ndarray of shape (n_recorded,)
        Its figures in the present round of warm-up.
    warmup_traces : dict of str to ndarray of shape (n_warmup,)
        Its figures after each sweep of the warm-up.
    log_sums : ndarray of shape (n_rows,) or None
        Of the rows whose log density is traced: log of the sum of their densities over its draws.

    Raises
    ------
    ValueError
        If a part is not what it must be, as in a file that was tampered with.
    """

    n_swept: int = 0
    counts: dict = field(default_factory=dict)
    counts_after_warmup: dict = field(default_factory=dict)
    state: dict | None = None
    record: dict = field(default_factory=dict)
    warmup_traces: dict = field(default_factory=dict)
    log_sums: np.ndarray | None = None

    def __post_init__(self):
        if type(self.n_swept) is not int:
            raise ValueError(f"a chain must have made a number of sweeps, got {self.n_swept!r}")
        counts = [*self.counts.values(), *self.counts_after_warmup.values()]
        if any(np.shape(pair) != (2,) for pair in counts):
            raise ValueError(f"counts of a chain must be pairs, got {counts}")
        for name in ("record", "warmup_traces"):
            for trace, x in getattr(self, name).items():
                if not isinstance(x, np.ndarray) or x.ndim != 1:
                    raise ValueError(f"trace {trace!r} of {name} must be an array (n_sweeps,)")

    def to_data(self):
        """Plain data from which `from_data` makes it again.

        Returns
        -------
        data : dict
        """
        return {one.name: getattr(self, one.name) for one in fields(self)}

    @classmethod
    def from_data(cls, data):
        """Make that of `to_data` again.

        Parameters
        ----------
        data : dict
            Files of earlier versions lack ``record``, ``warmup_traces`` and ``log_sums``.

        Returns
        -------
        end : ChainEnd
        """
        data = dict(data)
        known = {name: data.pop(name) for name in ("n_swept", "counts", "counts_after_warmup")}
        return cls(**known, state=data.pop("state"), **data)
