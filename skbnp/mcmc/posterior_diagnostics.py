"""What the draws of a run are worth: convergence, and how well they describe the rows."""

import numpy as np

from skbnp.markup import STYLE, counted, html_table, number
from skbnp.mcmc import diagnostics


class PosteriorDiagnostics:
    """Methods of a `Posterior` that judge its traces and draws."""

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

    def pool(self):
        """How much better all chains together describe training rows than one chain does.

        Returns
        -------
        figures : dict of str to float
            Of the fixed training rows that the trace ``log_density`` speaks of, in nats per row,
            over all draws that were kept: "single", the log of a chain's mean density, averaged
            over rows and chains; "pooled", the log of the mean density of all chains, averaged
            over rows; "pool_gain", the difference. Large where chains have found different
            answers, each of which misses something. Empty where there is no such trace, or no
            draw. See `known_gain` too.
        """
        if self._pool is not None:
            return self._pool
        log_means = self._log_mean_densities()
        if log_means is None:
            return {}
        single, pooled = float(log_means.mean()), _pooled(log_means)
        return {"single": single, "pooled": pooled, "pool_gain": pooled - single}

    def known_gain(self):
        """``pool_gain`` of `pool`, where the draws are enough to know it.

        Returns
        -------
        gain : float or None
            None where there is no such figure, or where a chain's mean density is, in logarithms
            and on average over rows, above the mean of its log densities by a nat and by more than
            the gain: a few draws then have nearly all of that mean, in each chain others.
        """
        figures = self.pool()
        if not figures:
            return None
        of_few = figures["single"] - float(np.mean(self.traces["log_density"]))
        return None if of_few > max(1.0, figures["pool_gain"]) else figures["pool_gain"]

    def doubling_gain(self):
        """How much better all chains together describe training rows than half of them do.

        Returns
        -------
        gain : float
            In nats per row, of the same rows as in `pool`: what as many chains again would gain at
            most, as each doubling gains less than the one before. 0 for a single chain; NaN where
            `pool` is empty.
        """
        log_means = self._log_mean_densities()
        if log_means is None:
            return np.nan
        halves = [half for half in np.array_split(log_means, 2) if len(half)]
        return _pooled(log_means) - float(np.mean([_pooled(half) for half in halves]))

    def _log_mean_densities(self):
        """Log of the mean density of each watched row in each chain, None where there are none."""
        sums = [end.log_sums for end in self._ends]
        if not sums or any(x is None for x in sums):
            return None
        n_kept = [len(x) for x in self._traces["log_joint"]]
        return np.array(sums) - np.log(n_kept)[:, np.newaxis]

    def summary(self):
        """Mean, spread, error and convergence of every trace.

        Returns
        -------
        summary : pandas.DataFrame, or dict of dict where pandas is not installed
            One row per trace with the columns mean, sd, 5%, 95%, mcse, ess_bulk, ess_tail and
            rhat. Then what the estimator adds: figures of some of the stored draws, each seen
            from several sides, of which the one with the largest R-hat is shown; and the figures
            of `pool`, which have a mean alone. Traces are complete; how many full draws are
            stored stands beside the numbers of chains and draws in the frame's ``attrs``, as
            ``n_stored``.
        """
        rows = self._summary_rows()
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

    def _summary_rows(self):
        """The rows of `summary` by their names, each a dict of float."""
        rows = {name: diagnostics.summary_of(trace) for name, trace in self.traces.items()}
        for name, views in ({} if self._further is None else self._further(self)).items():
            rows[name] = max(map(diagnostics.summary_of, views), key=lambda row: row["rhat"])
        for name, value in self.pool().items():
            rows[name] = {column: np.nan for column in rows["log_joint"]} | {"mean": value}
        return rows

    def _repr_html_(self):
        """Chains, draws and `summary`, for notebooks."""
        head = (
            f"{counted(self.n_chains, 'chain')} of {counted(self.n_draws, 'draw')} after "
            f"{counted(self.n_warmup, 'sweep')} of warm-up; {number(self.n_stored)} full draws "
            f"stored, {number(self.nbytes / 1e6)} MB"
        )
        # Before the first draw there is nothing to sum up.
        rows = self._summary_rows() if self.n_draws else {}
        table = html_table([{"trace": name} | row for name, row in rows.items()]) if rows else ""
        return (
            f'<style>{STYLE}</style>\n<div class="skbnp">\n<p><b>Posterior</b>: {head}</p>\n'
            f"{table}\n</div>"
        )

    def loo(self, max_draws=None):
        """Leave-one-out cross-validation without refitting: PSIS-LOO.

        Parameters
        ----------
        max_draws : int, default=None
            Evenly spaced stored draws to use, at most. Default: all that are stored.

        Returns
        -------
        loo : skbnp.mcmc.diagnostics.LeaveOneOut
            ``elpd``, the expected log predictive density of the rows, each given all others; its
            standard error ``se``; per row ``elpd_i`` and ``pareto_k``.

        Raises
        ------
        ValueError
            If the posterior knows no rows, because it was made by hand or read by `load` instead
            of with its estimator, or holds fewer than 25 draws.

        Warns
        -----
        UserWarning
            If Pareto's k is too high for some rows: their figures cannot be relied upon.
        """
        return diagnostics.loo(self.log_likelihood(max_draws))

    def log_likelihood(self, max_draws=None):
        """Log density of each training row at stored draws.

        Parameters
        ----------
        max_draws : int, default=None
            Of all chains together, evenly spaced, at most. Default: all that are stored.

        Returns
        -------
        log_likelihood : ndarray of shape (n_chains, n_draws_used, n_samples)
            In the units of X. What the estimator's class says it is: where parameters have been
            integrated out, the density of the row given all other rows and the draw without it.
        """
        self._check_knows_rows()
        chosen = self.evenly_in_chains(max_draws)
        return np.array([[self._pointwise(chain[t]) for t in chosen] for chain in self._draws])

    def evenly_in_chains(self, max_draws=None):
        """Places of evenly spaced stored draws, the same in each chain.

        Parameters
        ----------
        max_draws : int, default=None
            Of all chains together, at most, but one of each. Default: all that are stored.

        Returns
        -------
        places : list of int
            ``posterior[chain, t]`` for each of them.
        """
        per_chain = self._n_stored_per_chain
        n_taken = per_chain if max_draws is None else max(1, max_draws // self.n_chains)
        return evenly(per_chain, n_taken)

    @property
    def knows_rows(self):
        """Whether `log_likelihood`, `loo` and `observed_data` have rows to speak of."""
        return self._pointwise is not None

    def observed_data(self):
        """The training rows.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            In their own units up to rounding, levels as codes, NaN where missing.
        """
        self._check_knows_rows()
        return self._pointwise.observed_data()

    def attach_rows(self, pointwise):
        """Let the posterior know the training rows.

        Parameters
        ----------
        pointwise : object
            ``pointwise(draw)`` returns the log densities (n_samples,) of the rows,
            ``pointwise.observed_data()`` the rows themselves.
        """
        self._pointwise = pointwise

    def attach_figures(self, further):
        """Let `summary` show figures that are worked out from stored draws when it is called.

        Parameters
        ----------
        further : callable
            ``further(posterior)`` gives a dict of name to array (n_views, n_chains, n_draws).
        """
        self._further = further

    def _check_knows_rows(self):
        if not self.knows_rows:
            raise ValueError(
                "the posterior must know the training rows for this: take posterior_ of an "
                "estimator, fitted or loaded; a file of the posterior alone does not hold them, "
                "nor does a network with row_clusters have densities of single rows"
            )


def _pooled(log_means):
    """The log of the mean density of some chains, averaged over rows."""
    return float(np.mean(np.logaddexp.reduce(log_means, axis=0) - np.log(len(log_means))))


def evenly(n, n_taken):
    """At most n_taken of n places, the middle of each of as many equal stretches."""
    n_taken = min(n, n_taken)
    # In integers: no rounding, no repeats.
    return [(2 * i + 1) * n // (2 * n_taken) for i in range(n_taken)]
