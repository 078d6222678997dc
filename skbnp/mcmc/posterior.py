"""The draws of all chains of one run, with their traces and diagnostics."""

from numbers import Integral

import numpy as np

from skbnp.mcmc import diagnostics
from skbnp.mcmc.arviz import to_arviz


class Posterior:
    """Draws from a posterior distribution, chain by chain.

    ``posterior[chain, draw]`` is one draw: a dict of read-only arrays, whose shapes may differ
    from draw to draw. ``len(posterior)`` counts the stored draws of all chains; iteration goes
    through them chain by chain.

    Parameters
    ----------
    draws : sequence of sequences of dict
        ``draws[chain][draw]``, equally many in each chain.
    traces : dict of str to array of shape (n_chains, n_draws)
        What was recorded at each kept sweep; holds ``"log_joint"``.
    acceptance : dict of str to array-like of shape (n_chains, 2), default=None
        Per move and chain how many proposals were accepted and how many made.
    n_warmup : int, default=0
        Sweeps per chain before the first that could be kept.
    sweeps_per_draw : int, default=1
        One draw was kept after so many sweeps.
    seed : int, default=None
        The entropy all chains started from.
    final_states : list, default=None
        Per chain, the sampler's state after its last sweep. After an early stop some chains may
        have gone a few sweeps beyond their last draw here.

    Attributes
    ----------
    traces : dict of str to ndarray of shape (n_chains, n_draws)
        Read-only.
    acceptance : dict of str to dict
        Per move the arrays ``"accepted"``, ``"proposed"`` and ``"rate"``, each of shape
        (n_chains,), counted after warm-up. The rate is NaN where nothing was proposed.
    n_chains, n_draws, n_warmup, sweeps_per_draw, n_stored, nbytes : int
    seed : int or None
    final_states : list
    """

    def __init__(
        self,
        draws,
        traces,
        *,
        acceptance=None,
        n_warmup=0,
        sweeps_per_draw=1,
        seed=None,
        final_states=None,
    ):
        self._draws = [list(chain) for chain in draws]
        self.traces = {name: np.array(x, dtype=np.float64) for name, x in traces.items()}
        self.acceptance = {move: _with_rate(counts) for move, counts in (acceptance or {}).items()}
        self.n_warmup = n_warmup
        self.sweeps_per_draw = sweeps_per_draw
        self.seed = seed
        self.final_states = [] if final_states is None else list(final_states)
        self._check_shapes()
        self._make_read_only()

    # -- draws

    @property
    def n_chains(self):
        """Number of chains."""
        return len(self._draws)

    @property
    def n_draws(self):
        """Number of draws per chain."""
        return len(self._draws[0])

    @property
    def n_stored(self):
        """Number of stored draws, over all chains."""
        return self.n_chains * self.n_draws

    @property
    def nbytes(self):
        """Bytes taken by the arrays of the stored draws and by the traces."""
        return sum(array.nbytes for array in self._arrays())

    def __len__(self):
        return self.n_stored

    def __getitem__(self, index):
        if not (
            isinstance(index, tuple)
            and len(index) == 2
            and all(isinstance(i, Integral) for i in index)
        ):
            raise TypeError(f"a draw is posterior[chain, draw], two integers, got {index!r}")
        chain, draw = index
        if not -self.n_chains <= chain < self.n_chains:
            raise IndexError(f"chain {chain} is out of range for {self.n_chains} chains")
        if not -self.n_draws <= draw < self.n_draws:
            raise IndexError(f"draw {draw} is out of range for {self.n_draws} draws per chain")
        return self._draws[chain][draw]

    def __iter__(self):
        for chain in self._draws:
            yield from chain

    def evenly_spaced(self, max_draws):
        """Some of the draws, evenly spaced over all chains.

        Parameters
        ----------
        max_draws : int
            How many at most.

        Returns
        -------
        draws : list of dict
            All draws if there are no more than `max_draws`; always the same ones.
        """
        if max_draws < 1:
            raise ValueError(f"max_draws must be >= 1, got {max_draws}")
        n_taken = min(max_draws, self.n_stored)
        # The middle of each of n_taken equal stretches, in integers: no rounding, no repeats.
        places = [(2 * i + 1) * self.n_stored // (2 * n_taken) for i in range(n_taken)]
        return [self[divmod(place, self.n_draws)] for place in places]

    # -- diagnostics

    def rhat(self):
        """Rank-normalised split R-hat of every trace.

        Returns
        -------
        rhat : dict of str to float
        """
        return {name: diagnostics.rhat(trace) for name, trace in self.traces.items()}

    def ess(self):
        """Bulk effective sample size of every trace, over all chains.

        Returns
        -------
        ess : dict of str to float
        """
        return {name: diagnostics.ess(trace) for name, trace in self.traces.items()}

    def summary(self):
        """Mean, spread, error and convergence of every trace.

        Returns
        -------
        summary : pandas.DataFrame, or dict of dict where pandas is not installed
            One row per trace with the columns mean, sd, 5%, 95%, mcse, ess_bulk, ess_tail and
            rhat. Traces are complete; how many full draws are stored stands beside the numbers
            of chains and draws in the frame's ``attrs``, as ``n_stored``.
        """
        rows = {name: _summary_of(trace) for name, trace in self.traces.items()}
        try:
            import pandas as pd
        except ImportError:
            return rows
        table = pd.DataFrame.from_dict(rows, orient="index")
        table.attrs.update(
            n_chains=self.n_chains,
            n_draws=self.n_draws,
            n_warmup=self.n_warmup,
            n_stored=self.n_stored,
        )
        return table

    def to_arviz(self):
        """Convert the traces to ArviZ.

        Returns
        -------
        data : arviz.InferenceData (ArviZ 0.x) or xarray.DataTree (ArviZ 1.x)
            Groups ``posterior`` (the scalars) and ``sample_stats`` (``lp``, the log joint, and
            acceptance rates), with the dimensions chain and draw.
        """
        return to_arviz(self)

    def __repr__(self):
        return (
            f"Posterior({self.n_chains} chains of {self.n_draws} draws after {self.n_warmup} "
            f"sweeps of warm-up, {self.nbytes / 1e6:.3g} MB, traces: {', '.join(self.traces)})"
        )

    # -- integrity

    def __setstate__(self, state):
        self.__dict__.update(state)
        self._make_read_only()  # pickles do not keep this

    def _arrays(self):
        yield from self.traces.values()
        for draw in self:
            for value in draw.values():
                if isinstance(value, np.ndarray):
                    yield value

    def _make_read_only(self):
        for array in self._arrays():
            array.flags.writeable = False

    def _check_shapes(self):
        if not self._draws:
            raise ValueError("draws must hold at least one chain")
        n_draws = [len(chain) for chain in self._draws]
        if len(set(n_draws)) > 1:
            raise ValueError(f"chains must have equally many draws, got {n_draws}")
        if "log_joint" not in self.traces:
            raise ValueError("traces must hold 'log_joint'")
        for name, trace in self.traces.items():
            if trace.shape != (self.n_chains, self.n_draws):
                raise ValueError(
                    f"trace {name!r} must have shape {(self.n_chains, self.n_draws)}, "
                    f"got {trace.shape}"
                )


def _with_rate(counts):
    """Counts (chain, 2) of one move as named arrays."""
    accepted, proposed = np.asarray(counts, dtype=np.int64).T
    rate = np.full(len(proposed), np.nan)
    np.divide(accepted, proposed, out=rate, where=proposed > 0)
    return {"accepted": accepted, "proposed": proposed, "rate": rate}


def _summary_of(trace):
    with np.errstate(invalid="ignore"):  # infinite values have a mean and no spread
        mean = float(trace.mean())
        sd = float(trace.std(ddof=1)) if trace.size > 1 else np.nan
        low, high = np.quantile(trace, [0.05, 0.95])
    return {
        "mean": mean,
        "sd": sd,
        "5%": float(low),
        "95%": float(high),
        "mcse": diagnostics.mcse(trace),
        "ess_bulk": diagnostics.ess(trace),
        "ess_tail": diagnostics.ess(trace, method="tail"),
        "rhat": diagnostics.rhat(trace),
    }
