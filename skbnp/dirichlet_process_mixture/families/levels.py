"""Columns of levels: names, or 0 and 1."""

import itertools
from dataclasses import dataclass
from numbers import Real

import numpy as np
from scipy.special import gammaln
from sklearn.utils._param_validation import Interval

from skbnp.dirichlet_process_mixture.families._columns import (
    ColumnsPrior,
    Kind,
    check_all_positive,
    check_array,
)
from skbnp.dirichlet_process_mixture.families._tables import add_from_table
from skbnp.laws import Beta
from skbnp.likelihoods.conjugate.dirichlet_categorical import DirichletCategorical
from skbnp.numerics.rng import sample_log_dirichlet


@dataclass(frozen=True)
class CategoricalPrior(ColumnsPrior):
    """Columns of level codes 0, 1, ...: p_j ~ Dirichlet(pseudo_counts[j]).

    A Bernoulli column with p ~ Beta(a, b) is one of two levels with pseudo counts (b, a).
    """

    columns: np.ndarray
    pseudo_counts: tuple[np.ndarray, ...]

    KINDS = (
        Kind(
            "bernoulli",
            "0, 1 or bool",
            "0, 1, False or True",
            holds=lambda x: (x == 0) | (x == 1),
            is_for=lambda dtype, values: dtype == "bool",
            is_whole=True,
        ),
        Kind(
            "categorical",
            "names, or integers that name levels",
            is_for=lambda dtype, values: dtype in ("category", "text"),
            has_levels=True,
        ),
    )
    PARAMETERS = {
        "bernoulli_prior": dict(
            default=Beta(0.5, 0.5),
            kind="Beta",
            rules=[Beta],
            text="""
            Prior of the probability of a 1 in every Bernoulli column.
            """,
        ),
        "categorical_prior": dict(
            default=1.0,
            kind="float",
            rules=[Interval(Real, 1e-10, 1e10, closed="both")],
            text="""
            Total of the pseudo counts of every categorical column, shared evenly by its levels.
            """,
        ),
    }
    AT_LEAST_0 = ("level_count",)
    has_levels = True

    @classmethod
    def of(cls, mixture, columns, X):
        """A Bernoulli column has the levels 0 and 1."""
        a, b = mixture.bernoulli_prior.a, mixture.bernoulli_prior.b
        counts = []
        for j in columns:
            if mixture.families_[j] == "bernoulli":
                counts.append(np.array([b, a], dtype=np.float64))
            else:
                n_levels = len(mixture.levels_[j])
                counts.append(np.full(n_levels, mixture.categorical_prior / n_levels))
        return cls(columns, tuple(counts))

    def kernel(self, X, start):
        """Blocks of level codes."""
        return DirichletCategorical(X, self.pseudo_counts)

    @property
    def level_start(self):
        """Where the levels of each column begin when all are put in a row, and their number."""
        return np.concatenate([[0], np.cumsum([len(g) for g in self.pseudo_counts])])

    def log_marginal(self, X, state):
        """log m(X) of one block, missing cells integrated out."""
        total = 0.0
        for x, g in zip(X.T, self.pseudo_counts, strict=True):
            n = np.bincount(x[~np.isnan(x)].astype(int), minlength=len(g))
            total += gammaln(g.sum()) - gammaln(g.sum() + n.sum())
            total += np.sum(gammaln(g + n) - gammaln(g))
        return total

    def draw_block(self, n, state, rng):
        """n rows of one block whose parameters come from the prior."""
        levels = [
            rng.choice(len(g), size=n, p=np.exp(sample_log_dirichlet(rng.bit_generator, g)))
            for g in self.pseudo_counts
        ]
        return np.array(levels, dtype=float).T

    # -- new rows under a draw

    def probabilities(self, counts):
        """Predictive probability of each level given how often it was met, (n_blocks, n_levels)."""
        total = counts + np.concatenate(self.pseudo_counts)
        by_column = np.add.reduceat(total, self.level_start[: len(self.columns)], axis=1)
        return total / np.repeat(by_column, np.diff(self.level_start), axis=1)

    def prepare(self, x):
        """Codes as places in the list of all levels."""
        missing = np.isnan(x)
        place = np.where(missing, 0, x).astype(np.intp) + self.level_start[: x.shape[1]]
        return np.where(missing, -1, place)

    def add_log_densities(self, rows, draw, out):
        """Of the levels that were observed."""
        p = self.probabilities(draw["level_count"])
        add_from_table(rows, np.ascontiguousarray(np.log(p).T), out)

    def add_moments(self, rows, draw, w, mean, variance):
        """Of each level as 0 and 1: these come after the columns."""
        p = w @ self.probabilities(draw["level_count"])
        holes = np.repeat(rows < 0, np.diff(self.level_start), axis=1)
        n_levels = p.shape[1]
        mean[:, -n_levels:] = np.where(holes, p, 0.0)
        variance[:, -n_levels:] = np.where(holes, p * (1.0 - p), 0.0)

    def sample(self, draw, k, rng):
        """Levels by their probabilities."""
        p = self.probabilities(draw["level_count"][k : k + 1])[0]
        return [
            rng.choice(stop - begin, p=p[begin:stop])
            for begin, stop in itertools.pairwise(self.level_start)
        ]

    def draw_cells(self, draw, cells, X, rng):
        """Probabilities of levels in logs: tiny pseudo counts make exact zeros otherwise."""
        counts = draw["level_count"] + np.concatenate(self.pseudo_counts)
        values = np.empty(len(cells.row))
        for j in np.unique(cells.column):
            here = np.flatnonzero(cells.column == j)
            sets, which = np.unique(cells.which[here], return_inverse=True)
            level = slice(self.level_start[j], self.level_start[j + 1])
            g = counts[cells.block[cells.first[sets]], level]
            log_p = np.log(rng.standard_gamma(g + 1)) + np.log1p(-rng.random_sample(g.shape)) / g
            noise = rng.gumbel(size=(len(here), g.shape[1]))
            values[here] = np.argmax(log_p[which.reshape(-1)] + noise, axis=1)
        return values

    # -- starts and files

    def as_features(self, x):
        """An indicator of each level."""
        levels = [np.arange(len(g)) for g in self.pseudo_counts]
        x = np.hstack(
            [
                np.where(np.isnan(column)[:, None], np.nan, column[:, None] == level)
                for column, level in zip(x.T, levels, strict=True)
            ]
        )
        return super().as_features(x)

    def check(self):
        """One array of pseudo counts for each column."""
        if len(self.pseudo_counts) != len(self.columns):
            raise ValueError("pseudo_counts must have one entry per column")
        for counts in self.pseudo_counts:
            check_array("pseudo_counts", counts, (len(counts),))
            check_all_positive("pseudo_counts", counts)

    def check_column(self, place, kind, levels):
        """And one pseudo count for each level."""
        super().check_column(place, kind, levels)
        n_levels = 2 if kind == "bernoulli" else len(levels)
        if len(self.pseudo_counts[place]) != n_levels:
            column = self.columns[place]
            raise ValueError(f"column {column} must have one pseudo count for each level")

    def shapes(self):
        """How often each level was met."""
        return {"level_count": (int(self.level_start[-1]),)}
