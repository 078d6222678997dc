"""The training rows, for what looks at each of them given all others."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import softmax

from skbnp.dirichlet_process_mixture._missing_cells import draw_training_cells
from skbnp.dirichlet_process_mixture._model import Prior
from skbnp.dirichlet_process_mixture._predictive import Rows, log_densities, log_weights
from skbnp.dirichlet_process_mixture._sampler import Sampler
from skbnp.numerics.columns_at_random import draw_columns
from skbnp.numerics.log_sums import log_totals
from skbnp.units import Units

# Observed cells of a block from which draws agree about the law of a column.
_FEWEST_OBSERVED = 8


@dataclass(frozen=True)
class TrainingRows:
    """Standardised rows (n_samples, n_features) with their prior and units."""

    X: np.ndarray
    prior: Prior
    units: Units

    @classmethod
    def from_data(cls, fields):
        """The rows that a file holds; in version 0.1 with a center and a scale for units."""
        if "units" not in fields:
            fields = dict(fields)
            center, scale = fields.pop("center"), fields.pop("scale")
            units = Units.unscaled(len(center))
            fields["units"] = replace(units, center=center, scale=scale)
        return cls(**fields)

    def __call__(self, draw):
        """Log density of each row given all others and the draw without it, in the units of X."""
        density = self._sampler(draw).leave_one_out(draw.get("imputed"))
        return density + self.units.log_jacobian_of_visible(self.X)

    def shares(self, draw):
        """Probability that each row is of each block of the draw, given all other rows and labels.

        Among the blocks there are, so that rows sum to one: (n_samples, n_blocks).
        """
        return self._sampler(draw).leave_one_out_shares(draw.get("imputed"))

    def completed(self, draws, rng, rows=None):
        """The rows that lack cells, of ``rows`` or of all, with these as some draw has them.

        Cells of a column that hardly a row of the block has observed stay missing: each draw has a
        law of its own there.

        Parameters
        ----------
        draws : list of dict
            Each row takes its missing cells from one of them, at random among those whose block
            of the row has observed its columns.
        rng : RandomState
        rows : ndarray of int, default=None

        Returns
        -------
        CompletedRows
        """
        holes = np.isnan(self.X).any(axis=1)
        rows = np.flatnonzero(holes) if rows is None else rows[holes[rows]]
        X = self.X[rows]
        # Of a draw that knows all of them, if there is one.
        known = np.array([self._can_fill(draw, rows).all(axis=1) for draw in draws])
        source = np.argmax(known + rng.random_sample(known.shape), axis=0)
        for s in np.unique(source):
            here = np.flatnonzero(source == s)
            cells = draw_training_cells(self.X, draws[s], self.prior, rng)[rows[here]]
            X[here] = np.where(self._can_fill(draws[s], rows[here]), cells, np.nan)
        return CompletedRows(rows, X, self.prior)

    def _can_fill(self, draw, rows):
        """Which cells of rows are observed, or missing with enough observed ones in their block."""
        label, is_seen = draw["label"], ~np.isnan(self.X)
        n_seen = np.zeros((int(label.max()) + 1, self.X.shape[1]), dtype=np.intp)
        np.add.at(n_seen, label, is_seen)
        return is_seen[rows] | (n_seen[label[rows]] >= _FEWEST_OBSERVED)

    def _sampler(self, draw):
        """A sampler that never sweeps: nothing is drawn from its bit generator.

        Its algorithm is the one that begins with sums of all rows at once, and not row by row.
        """
        names = ("concentration", "discount", *self.prior.start())
        start = {name: draw[name] for name in names}
        never = np.random.PCG64(0)
        return Sampler(self.X, self.prior, draw["label"], never, algorithm="parallel", start=start)

    def observed_data(self):
        """The rows in their own units, levels as codes."""
        return self.units.from_visible(self.X)


class CompletedRows:
    """Training rows as if their missing cells had been observed.

    A row that lacks cells may be of several clusters though these are far apart. What block it
    would be of if it were complete says how far they overlap; its own label does not.
    """

    def __init__(self, rows, X, prior):
        self.rows = rows
        self._prior = prior
        self._prepared = Rows(X, prior) if len(rows) else None

    def shares(self, draw):
        """Probability that each row is of each block of the draw, (n_rows, n_blocks)."""
        return softmax(self._log_densities(draw), axis=1)

    def labels(self, draw, rng):
        """Labels of these rows under a draw, drawn anew now that they are complete, (n_rows,)."""
        log_p = self._log_densities(draw)
        return draw_columns(log_p, rng)

    def _log_densities(self, draw):
        """Of the blocks that there are, without a new one."""
        weights = log_weights(draw, self._prior)
        log_p = log_densities(self._prepared, draw, self._prior, weights)
        return self._prepared.unsort(log_p[:, :-1])


class WatchedRows:
    """Log density of some training rows in the present state of a sampler, for ``log_density``.

    Given the partition the parameters of its blocks are integrated out, and so are missing cells;
    the density is in the units of X. It is that of `score_samples` with this draw alone.
    """

    def __init__(self, X, rows, prior, units):
        self._prior = prior
        self._log_jacobian = units.log_jacobian_of_visible(X[rows])
        full = prior.gaussian is not None and prior.gaussian.covariance_type == "full"
        columns = prior.gaussian.columns if full else []
        holes = np.isnan(X[np.ix_(rows, columns)]).any(axis=1)
        # Rows that lack the same cells share their factors, which only a draw keeps apart.
        self._with_holes = np.flatnonzero(holes)
        self._X_with_holes = X[rows[holes]]
        self._others = np.flatnonzero(~holes)
        self._row_of_others = rows[~holes]
        self._rows = None

    @property
    def n_rows(self):
        """How many they are."""
        return len(self._log_jacobian)

    def __call__(self, sampler):
        """Their log densities, shape (n_rows,)."""
        out = np.empty(self.n_rows)
        out[self._others] = sampler.log_densities(self._row_of_others)
        if self._with_holes.size:
            out[self._with_holes] = self._of_rows_with_holes(sampler.draw())
        return out + self._log_jacobian

    def _of_rows_with_holes(self, draw):
        if self._rows is None:
            self._rows = Rows(self._X_with_holes, self._prior)
        log_p = log_densities(self._rows, draw, self._prior, log_weights(draw, self._prior))
        return self._rows.unsort(log_totals(log_p))

    def __getstate__(self):
        return {**self.__dict__, "_rows": None}  # compiled, made where it is needed
