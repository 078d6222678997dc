"""The draws of all chains of one run, with their traces."""

import math
from numbers import Integral

import numpy as np

from skbnp.mcmc import io
from skbnp.mcmc.arviz import Request, to_arviz
from skbnp.mcmc.chain_end import ChainEnd
from skbnp.mcmc.posterior_diagnostics import PosteriorDiagnostics, evenly
from skbnp.mcmc.warmup import Warmup


class Posterior(PosteriorDiagnostics):
    """Draws from a posterior distribution, chain by chain.

    ``posterior[chain, draw]`` is one stored draw: a dict of read-only arrays and numbers, whose
    shapes may differ from draw to draw. ``len(posterior)`` counts the stored draws of all chains;
    iteration goes through them chain by chain. Traces are complete; of the draws themselves only
    every `store_every`-th may have been stored, see `stored`.

    Parameters
    ----------
    draws : sequence of sequences of dict
        ``draws[chain][t]``: the stored draws of each chain.
    traces : dict of str to sequence of sequences of float
        ``traces[name][chain][draw]``: what was recorded at each kept sweep; holds
        ``"log_joint"``. Chains may differ in length, as after an early stop; the posterior ends
        with the shortest.
    store_every : int, default=1
        ``draws[chain][t]`` is the draw number ``(t + 1) * store_every - 1`` of its chain.
    n_draws : int, default=None
        How many draws per chain at most belong to the posterior. Default: all.
    acceptance : dict of str to array-like of shape (n_chains, 2), default=None
        Per move and chain how many proposals were accepted and how many made.
    n_warmup : int, default=0
        Sweeps per chain before the first that could be kept.
    sweeps_per_draw : int, default=1
        One draw was kept after so many sweeps.
    seed : int, default=None
        The entropy all chains started from.
    ends : list of ChainEnd, default=None
        Per chain where it stood after its last sweep: what a run needs to go on from there.
    n_sweeps_run : int, default=0
        Sweeps of all chains together that were made for this posterior; those of an earlier run
        it went on from do not count.
    warmup : Warmup, default=None
        Where a warm-up in rounds stands, None for one whose length was given.

    Attributes
    ----------
    traces : dict of str to ndarray of shape (n_chains, n_draws)
        Read-only.
    acceptance : dict of str to dict
        Per move the arrays ``"accepted"``, ``"proposed"`` and ``"rate"``, each of shape
        (n_chains,), counted after warm-up. The rate is NaN where nothing was proposed.
    stored : ndarray of int
        Which of the ``n_draws`` draws of each chain are stored: ``posterior[c, t]`` belongs to
        ``traces[name][c, stored[t]]``.
    n_chains, n_draws, n_warmup, sweeps_per_draw, store_every, n_stored, nbytes : int
    n_sweeps_run : int
    seed : int or None
    interrupted : bool
        Whether Ctrl-C was pressed during the run; not kept in files.
    warmup_traces : dict of str to ndarray of shape (n_chains, n_warmup)
        The log joint and the scalars after each sweep of the warm-up. Empty where there was none,
        where it has not ended, in what `thin` returns, and in files without it.
    exporter : object or None
        What tells `to_arviz` of the model: see `attach_exporter`.
    final_states : list
        The samplers' states after their last sweeps; after an early stop some chains may have
        gone a few sweeps beyond their last draw here.
    """

    def __init__(
        self,
        draws,
        traces,
        *,
        store_every=1,
        n_draws=None,
        acceptance=None,
        n_warmup=0,
        sweeps_per_draw=1,
        seed=None,
        ends=None,
        n_sweeps_run=0,
        warmup=None,
    ):
        self._draws = [list(chain) for chain in draws]
        self._traces = {
            name: [np.array(x, dtype=np.float64) for x in chains] for name, chains in traces.items()
        }
        self.store_every = store_every
        self.acceptance = {move: _with_rate(counts) for move, counts in (acceptance or {}).items()}
        self.n_warmup = n_warmup
        self.sweeps_per_draw = sweeps_per_draw
        self.seed = seed
        self.n_sweeps_run = n_sweeps_run
        self.warmup = warmup
        self._ends = [] if ends is None else list(ends)
        self._check_shapes()
        common = min((len(x) for x in self._traces.get("log_joint", [()])), default=0)
        self.n_draws = common if n_draws is None else min(common, n_draws)
        self.traces = {
            name: np.array([x[: self.n_draws] for x in chains])
            for name, chains in self._traces.items()
        }
        self.interrupted = False
        self._pointwise = self._pool = self._further = self.exporter = None
        self._make_read_only()

    # -- draws

    @property
    def n_chains(self):
        """Number of chains."""
        return len(self._draws)

    @property
    def stored(self):
        """Which of the draws of each chain are stored, shape (n_stored / n_chains,)."""
        return np.arange(self.store_every - 1, self.n_draws, self.store_every)

    @property
    def n_stored(self):
        """Number of stored draws, over all chains."""
        return self.n_chains * self._n_stored_per_chain

    @property
    def _n_stored_per_chain(self):
        return self.n_draws // self.store_every

    @property
    def final_states(self):
        """State of each chain's sampler after its last sweep."""
        return [end.state for end in self._ends]

    @property
    def warmup_traces(self):
        """What was traced in the warm-up, by name (n_chains, n_warmup); empty if it is unknown."""
        of_chains = [end.warmup_traces for end in self._ends]
        names = of_chains[0] if of_chains and self.n_warmup else ()
        traces = {name: [of_chain.get(name, ()) for of_chain in of_chains] for name in names}
        lengths = {np.shape(x) for chains in traces.values() for x in chains}
        if lengths != {(self.n_warmup,)}:
            return {}
        return {name: np.array(chains) for name, chains in traces.items()}

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
        n = self._n_stored_per_chain
        if not -self.n_chains <= chain < self.n_chains:
            raise IndexError(f"chain {chain} is out of range for {self.n_chains} chains")
        if not -n <= draw < n:
            raise IndexError(f"draw {draw} is out of range for {n} stored draws per chain")
        return self._draws[chain][draw % n]

    def __iter__(self):
        for chain in self._draws:
            yield from chain[: self._n_stored_per_chain]

    def all_draws(self):
        """All stored draws, those of a chain beyond its shortest fellow included.

        Returns
        -------
        draws : list of list of dict
            ``draws[chain][t]``.
        """
        return [list(chain) for chain in self._draws]

    def replace_draws(self, draws):
        """Put other objects in the place of the stored draws, which say the same or more.

        Parameters
        ----------
        draws : list of list of dict
            As `all_draws` returns them.
        """
        self._draws = draws

    def in_order(self, place):
        """The stored draw at a place of the iteration.

        Parameters
        ----------
        place : int
            From 0 to ``len(posterior) - 1``.

        Returns
        -------
        draw : dict
        """
        return self[divmod(int(place), self._n_stored_per_chain)]

    def highest(self, name="log_joint"):
        """The stored draw at which a trace is highest.

        Parameters
        ----------
        name : str, default="log_joint"

        Returns
        -------
        draw : dict
        """
        return self.in_order(np.argmax(self.traces[name][:, self.stored]))

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
        return [self.in_order(place) for place in evenly(self.n_stored, max_draws)]

    def chains_of_evenly_spaced(self, max_draws):
        """Of which chain each of these draws is.

        Parameters
        ----------
        max_draws : int

        Returns
        -------
        chains : ndarray of int
        """
        return np.array(evenly(self.n_stored, max_draws)) // self._n_stored_per_chain

    def thin(self, k):
        """Every k-th draw of each chain, traces included.

        Parameters
        ----------
        k : int

        Returns
        -------
        posterior : Posterior
            Shares the arrays of the draws with this one. No run can go on from it.
        """
        if not isinstance(k, Integral) or isinstance(k, bool) or not 1 <= k <= self.n_draws:
            raise ValueError(f"k must be an integer from 1 to n_draws = {self.n_draws}, got {k!r}")
        apart = math.lcm(k, self.store_every)  # between two draws that are kept and stored
        step = apart // self.store_every
        thinned = Posterior(
            [chain[: self._n_stored_per_chain][step - 1 :: step] for chain in self._draws],
            {name: trace[:, k - 1 :: k] for name, trace in self.traces.items()},
            store_every=apart // k,
            acceptance=self._counts(),
            n_warmup=self.n_warmup,
            sweeps_per_draw=self.sweeps_per_draw * k,
            seed=self.seed,
        )
        thinned._pointwise, thinned._further = self._pointwise, self._further
        thinned.exporter = self.exporter
        thinned._pool = self.pool()
        return thinned

    # -- files

    def to_arviz(
        self,
        log_likelihood=False,
        *,
        posterior_predictive=False,
        prior=False,
        imputed=False,
        warmup=False,
        scalars_only=False,
        random_state=None,
    ):
        """Convert to ArviZ: draws, rows and names, and on request what is computed or drawn.

        Groups that cost nothing are always there. Dimensions have coordinates: rows by the index
        of the training frame, columns by their names, else numbers from 0 and x0, x1, ...

        Parameters
        ----------
        log_likelihood : bool or int, default=False
            Add the group ``log_likelihood``, as the method of this name computes it; a number is
            its `max_draws`.
        posterior_predictive : bool or int, default=False
            Add the group ``posterior_predictive``: for so many stored draws of all chains
            together, evenly spaced, a table of as many new rows as there are training rows, or
            new targets of these. True is 100.
        prior : bool or int, default=False
            Add the groups ``prior``, so many draws of the parameters from the prior that `fit`
            used, and ``prior_predictive``, a table of each. True is 100.
        imputed : bool, default=False
            Draw the missing cells of the training table at every stored draw, for estimators that
            have `sample_missing`. Where draws hold them they are exported in any case.
        warmup : bool, default=False
            Add the groups ``warmup_posterior`` and ``warmup_sample_stats``.
        scalars_only : bool, default=False
            Leave out of ``posterior`` what draws hold beside the scalars. It then has all draws,
            else those that are stored.
        random_state : int, RandomState instance or None, default=None
            For what is drawn.

        Returns
        -------
        data : arviz.InferenceData (ArviZ 0.x) or xarray.DataTree (ArviZ 1.x)
            Groups ``posterior`` (the scalars; labels of rows and what else has the same shape in
            all draws; means of the clusters of `labels_`; cells), ``sample_stats`` (``lp``, the
            log joint, and per move ``acceptance_rate_<move>`` of the whole chain after warm-up),
            ``observed_data``, ``constant_data`` and those asked for. The user guide lists what is
            in them.

        Raises
        ------
        ImportError
            If ArviZ is not installed.
        TypeError, ValueError
            If a parameter breaks a rule or asks for what this posterior or its model does not
            have, or if tables would take more than 2 GB; before anything is drawn.
        """
        request = Request.checked(
            log_likelihood=log_likelihood,
            posterior_predictive=posterior_predictive,
            prior=prior,
            imputed=imputed,
            warmup=warmup,
            scalars_only=scalars_only,
            random_state=random_state,
        )
        return to_arviz(self, request)

    def attach_exporter(self, exporter):
        """Let `to_arviz` know the model and its names.

        Parameters
        ----------
        exporter : object
            With the methods of `skbnp.mcmc.arviz.RowsAlone`.
        """
        self.exporter = exporter

    def save(self, path):
        """Save the posterior as data: an npz archive with a JSON document, no pickle.

        Parameters
        ----------
        path : str or Path
            An older file of this name is replaced once the new one is complete.

        Raises
        ------
        OSError
            If the file cannot be written.
        """
        io.write(path, "posterior", self.to_data())

    @classmethod
    def load(cls, path):
        """Load a posterior that `save` has written.

        Parameters
        ----------
        path : str or Path

        Returns
        -------
        posterior : Posterior

        Raises
        ------
        skbnp.mcmc.io.FileFormatError
            If the file is damaged, holds something else or comes from a newer version.
        """
        data = io.read(path, "posterior")
        try:
            return cls.from_data(data)
        except Exception as error:  # the file is at fault, whatever it is
            raise io.FileFormatError(f"{path} is damaged: {error}") from error

    @property
    def ends(self):
        """Per chain where it stands after its last sweep: a `ChainEnd`."""
        return self._ends

    @property
    def n_swept(self):
        """Sweeps that every chain has made, warm-up included; 0 where no run can go on."""
        return min((end.n_swept for end in self._ends), default=0)

    def has(self, n_draws):
        """Whether every chain has made all sweeps for so many draws.

        Parameters
        ----------
        n_draws : int

        Returns
        -------
        has : bool
        """
        is_in_warmup = self.warmup is not None and not self.warmup.ended
        wanted = self.n_warmup + n_draws * self.sweeps_per_draw
        return not is_in_warmup and self.n_swept >= wanted

    @property
    def all_traces(self):
        """Traces of each chain, in full: name to a list of arrays (n_draws_of_chain,)."""
        return self._traces

    def to_data(self):
        """Plain data from which `from_data` makes the posterior again, the rows excepted.

        Returns
        -------
        data : dict
        """
        return {
            "draws": [io.pack(chain) for chain in self._draws],
            "traces": self._traces,
            "store_every": self.store_every,
            "n_draws": self.n_draws,
            "acceptance": self._counts(),
            "n_warmup": self.n_warmup,
            "sweeps_per_draw": self.sweeps_per_draw,
            "seed": self.seed,
            "ends": [end.to_data() for end in self._ends],
            "n_sweeps_run": self.n_sweeps_run,
            "warmup": None if self.warmup is None else self.warmup.to_data(),
        }

    @classmethod
    def from_data(cls, data):
        """Make the posterior of `to_data` again.

        Parameters
        ----------
        data : dict

        Returns
        -------
        posterior : Posterior
        """
        data = dict(data)
        draws = [io.unpack(chain) for chain in data.pop("draws")]
        for name in ("store_every", "n_draws", "n_warmup", "sweeps_per_draw", "n_sweeps_run"):
            if type(data[name]) is not int or data[name] < (name == "store_every"):
                raise ValueError(f"{name} is {data[name]!r}")
        for move, counts in data["acceptance"].items():
            if not ((counts >= 0) & (counts[:, :1] <= counts[:, 1:])).all():
                raise ValueError(f"the acceptance of {move} is {counts.tolist()}")
        # Files of earlier versions know of no rounds.
        warmup = data.pop("warmup", None)
        warmup = None if warmup is None else Warmup.from_data(warmup)
        ends = [ChainEnd.from_data(end) for end in data.pop("ends") or ()]
        return cls(draws, data.pop("traces"), ends=ends, warmup=warmup, **data)

    def __repr__(self):
        thinned = "" if self.store_every == 1 else f" (1 in {self.store_every} stored)"
        return (
            f"Posterior({self.n_chains} chains of {self.n_draws} draws{thinned} after "
            f"{self.n_warmup} sweeps of warm-up, {self.nbytes / 1e6:.3g} MB, "
            f"traces: {', '.join(self.traces)})"
        )

    # -- integrity

    def __setstate__(self, state):
        self.__dict__.update(state)
        self._make_read_only()  # pickles do not keep this

    def _counts(self):
        return {
            move: np.stack([counts["accepted"], counts["proposed"]], axis=1)
            for move, counts in self.acceptance.items()
        }

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
        # Before the first draw nobody knows what will be traced.
        if "log_joint" not in self._traces and (self._traces or any(self._draws)):
            raise ValueError("traces must hold 'log_joint'")
        if self._ends and len(self._ends) != self.n_chains:
            raise ValueError(f"ends must have one entry per chain, got {len(self._ends)}")
        n_kept = min((len(x) for x in self._traces.get("log_joint", ())), default=0)
        shapes = {np.shape(end.log_sums) for end in self._ends}
        if n_kept and len(shapes) > 1:
            raise ValueError(f"log_sums of all ends must have one shape, got {shapes}")
        for name, chains in self._traces.items():
            shapes = [x.shape for x in chains]
            wanted = [x.shape for x in self._traces["log_joint"]]
            if shapes != wanted or len(shapes) != self.n_chains or any(len(s) != 1 for s in shapes):
                raise ValueError(
                    f"trace {name!r} must have one row per chain, as long as that of log_joint, "
                    f"got the shapes {shapes}"
                )
        for chain, x in zip(self._draws, self._traces.get("log_joint", ()), strict=False):
            if len(chain) != len(x) // self.store_every:
                raise ValueError(
                    f"a chain of {len(x)} draws must have {len(x) // self.store_every} stored "
                    f"with store_every={self.store_every}, got {len(chain)}"
                )


def _with_rate(counts):
    """Counts (chain, 2) of one move as named arrays."""
    accepted, proposed = np.asarray(counts, dtype=np.int64).T
    rate = np.full(len(proposed), np.nan)
    np.divide(accepted, proposed, out=rate, where=proposed > 0)
    return {"accepted": accepted, "proposed": proposed, "rate": rate}
