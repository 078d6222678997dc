"""Columns of few values that another such column nearly determines: looked up there.

To a mixture the columns of names are independent within a component. Where components are spent on
the tails of measurements, it sees little of two columns that say the same, a code and its words.
What one of them says of the other is then better known from how often the two go together.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from scipy.special import gammaln, softmax
from sklearn.utils import check_random_state

# Rows that the prior of the laws of levels may count for.
PRIOR_ROWS = np.array([0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0])
# Rows with both cells that there must be, and the part of the errors of the most frequent value
# that may be left, to ask whether one column alone is more often right than the model; by how many
# errors fewer than that value it is.
_FEWEST_PAIRS, _MOST_WRONG, _FEWER_WRONG = 20, 0.5, 5
# Rows that model and lookup are compared on: in a column, of all columns, and at least in each.
_MOST_COMPARED, _MOST_IN_ALL, _FEWEST_COMPARED = 500, 5_000, 50
# Columns above which none is looked up, and pairs of levels above which two are not compared.
_MOST_COLUMNS, _MOST_PAIRS = 100, 1_000_000


@dataclass(frozen=True)
class Lookup:
    """What the levels of a column are where another one has a certain level.

    They have a Dirichlet law for each of those levels, whose mean are the shares of the levels in
    the whole column. It counts for as much as a number of rows that is learned: of two columns that
    never differ less than one.

    Parameters
    ----------
    by : int
        The other column.
    counts : ndarray of shape (n_levels_of_the_other, n_levels)
        Rows of the training table that have both.
    """

    by: int
    counts: np.ndarray

    @cached_property
    def shares(self):
        """Those of the levels, whatever the other column has, each above 0."""
        n_levels = self.counts.shape[1]
        return (self.counts.sum(axis=0) + 1.0 / n_levels) / (self.counts.sum() + 1.0)

    @cached_property
    def n_rows(self):
        """Rows with each level of the other column."""
        return self.counts.sum(axis=1)

    @cached_property
    def posterior(self):
        """Probabilities of `PRIOR_ROWS` by the marginal likelihood of the counts."""
        rows, levels = np.nonzero(self.counts)
        found = self.counts[rows, levels]
        log_p = np.empty(len(PRIOR_ROWS))
        for place, size in enumerate(PRIOR_ROWS):
            prior = size * self.shares[levels]
            of_levels = np.sum(gammaln(found + prior) - gammaln(prior))
            log_p[place] = of_levels - np.sum(gammaln(self.n_rows + size) - gammaln(size))
        return softmax(log_p)

    def is_known(self, codes):
        """Where the other column has a level that rows of the training table go with."""
        return (codes >= 0) & (self.n_rows > 0)[codes]

    def probabilities(self, codes):
        """Of the levels, where the other column has these: (n_cells, n_levels)."""
        return self._mean_law(self.counts[codes])

    def probabilities_of_others(self, codes, own):
        """The same by all other rows, for rows that are among those counted."""
        counts = self.counts[codes]
        counts[np.arange(len(own)), own] -= 1
        return self._mean_law(counts)

    def _mean_law(self, counts):
        """Mean probabilities after such counts, over the prior's rows."""
        share = self.posterior / (counts.sum(axis=1, keepdims=True) + PRIOR_ROWS)
        of_counts, of_prior = share.sum(axis=1), share @ PRIOR_ROWS
        return counts * of_counts[:, np.newaxis] + np.outer(of_prior, self.shares)

    def draw(self, codes, rng):
        """Levels of cells where the other column has these; laws are drawn once for all."""
        size = rng.choice(PRIOR_ROWS, p=self.posterior)
        due, place = np.unique(codes, return_inverse=True)
        laws = [rng.dirichlet(self.counts[code] + size * self.shares) for code in due]
        below = np.cumsum(laws, axis=1)[place, :-1]
        return (rng.uniform(size=(len(codes), 1)) > below).sum(axis=1)

    @property
    def n_wrong(self):
        """Rows whose level is not the most frequent one of the others: a tie is half an error."""
        if self.counts.shape[1] < 2:
            return 0.0
        second, first = np.sort(self.counts, axis=1)[:, -2:].T
        right = np.where(first - 1 > second, first, np.where(first - 1 == second, first / 2, 0.0))
        return float(self.counts.sum() - right[first > 1].sum())

    @property
    def is_worth_a_try(self):
        """Whether few of the errors of the most frequent level are left."""
        n = self.counts.sum()
        n_usual = n - self.counts.sum(axis=0).max()
        few = self.n_wrong <= _MOST_WRONG * n_usual
        return bool(n >= _FEWEST_PAIRS and few and n_usual - self.n_wrong >= _FEWER_WRONG)


@dataclass(frozen=True)
class Lookups:
    """The columns of a table that are looked up, and where.

    Parameters
    ----------
    levels : list of (ndarray or None)
        The values of each column, None of those that are measurements or counts.
    are_numbers : list of bool
        Whether the mean of a column is asked for, rather than its most probable value.
    tables : dict of int to list of Lookup
        By the column whose cells are looked up: others, the best one first.
    """

    levels: list
    are_numbers: list
    tables: dict = field(default_factory=dict)

    def worth_a_try(self, columns):
        """With all other columns that leave few errors.

        Parameters
        ----------
        columns : list of skbnp.tables.columns.Column
            Of the training table.
        """
        codes = {
            j: codes_of(column, known)
            for j, (column, known) in enumerate(zip(columns, self.levels, strict=True))
            if known is not None
        }
        if len(codes) > _MOST_COLUMNS:
            return self
        tables = {}
        for j, own in codes.items():
            n_levels = len(self.levels[j])
            found = [
                Lookup(k, _pairs(other, own, len(self.levels[k]), n_levels))
                for k, other in codes.items()
                if k != j and len(self.levels[k]) * n_levels <= _MOST_PAIRS
            ]
            found = [one for one in found if one.is_worth_a_try]
            if found:
                tables[j] = sorted(found, key=lambda one: one.n_wrong / one.counts.sum())
        return replace(self, tables=tables)

    def as_good_as(self, model_fills, columns):
        """Those that are as close to what is observed as the model, which has seen it.

        Parameters
        ----------
        model_fills : callable
            Of a column and rows: what the model fills these cells with, were they missing.
        columns : list of skbnp.tables.columns.Column
            Of the training table.
        """
        tables, n_tried = {}, max(len(self.tables), 1)
        n_rows = np.clip(_MOST_IN_ALL // n_tried, _FEWEST_COMPARED, _MOST_COMPARED)
        for j, tried in self.tables.items():
            own = codes_of(columns[j], self.levels[j])
            others = [codes_of(columns[one.by], self.levels[one.by]) for one in tried]
            rows = np.flatnonzero((own >= 0) & np.any([codes >= 0 for codes in others], axis=0))
            rows = rows[np.linspace(0, len(rows) - 1, min(len(rows), n_rows)).astype(int)]
            own, filled = own[rows], model_fills(j, rows)
            wrong = self._wrong(j, filled, own)
            found = []
            for one, codes in zip(tried, others, strict=True):
                seen = codes[rows] >= 0
                p = one.probabilities_of_others(codes[rows][seen], own[seen])
                looked_up, _ = self._fill(j, p)
                if seen.any() and self._wrong(j, looked_up, own[seen]).sum() <= wrong[seen].sum():
                    found.append(one)
            if found:
                tables[j] = found
        return replace(self, tables=tables)

    def fill(self, columns, holes):
        """What fills missing cells that are known elsewhere.

        Parameters
        ----------
        columns : list of skbnp.tables.columns.Column
        holes : ndarray of bool of shape (n_samples, n_columns)

        Yields
        ------
        j : int
        rows : ndarray of int
        values, std : ndarray of shape (n_cells,)
            The most probable level, and the root of p (1 - p); or mean and standard deviation.
        """
        for j, tables in self.tables.items():
            todo = holes[:, j].copy()
            for one in tables:
                codes = codes_of(columns[one.by], self.levels[one.by])
                rows = np.flatnonzero(todo & one.is_known(codes))
                todo[rows] = False
                if rows.size:
                    yield j, rows, *self._fill(j, one.probabilities(codes[rows]))

    def draw(self, columns, tables, holes, random_state):
        """Set such cells in completed tables, each from what the other column has there.

        That is observed, or drawn before, in whatever order columns follow from one another. The
        laws of levels are drawn too, once for a table.

        Parameters
        ----------
        columns : list of skbnp.tables.columns.Column
        tables : list of lists of ndarray of shape (n_samples,)
            The columns of each completed table, which change.
        holes : ndarray of bool of shape (n_samples, n_columns)
        random_state : int, RandomState instance or None
        """
        if self.tables:
            # Not the numbers that the model draws by.
            seed = check_random_state(random_state).randint(2**32, size=4, dtype=np.uint32)
            rng = np.random.RandomState(seed)
            for drawn in tables:
                self._draw(columns, drawn, holes, rng)

    def _draw(self, columns, drawn, holes, rng):
        others = {one.by for tables in self.tables.values() for one in tables}
        codes = {k: codes_of(columns[k], self.levels[k]) for k in others | set(self.tables)}
        is_final = {k: ~holes[:, k] for k in codes}
        self._draw_what_follows(codes, is_final, drawn, rng)
        # After what is observed, what the model has drawn: of columns that are looked up nowhere;
        # then, as where nothing is known of both cells of a pair, of one after the other.
        for by_model in (others - set(self.tables), *([j] for j in sorted(self.tables))):
            left = [k for k in by_model if not is_final[k].all()]
            for k in left:
                codes[k] = np.where(is_final[k], codes[k], _codes(drawn[k], self.levels[k]))
                is_final[k][:] = True
            if left:
                self._draw_what_follows(codes, is_final, drawn, rng)

    def _draw_what_follows(self, codes, is_final, drawn, rng):
        """Set cells whose other column is known, until none is left of these."""
        is_done = False
        while not is_done:
            is_done = True
            for j, tables in self.tables.items():
                for one in tables:
                    is_due = ~is_final[j] & is_final[one.by] & one.is_known(codes[one.by])
                    rows = np.flatnonzero(is_due)
                    if rows.size:
                        codes[j][rows] = one.draw(codes[one.by][rows], rng)
                        drawn[j] = with_cells(drawn[j], rows, self.levels[j][codes[j][rows]])
                        is_final[j][rows] = True
                        is_done = False

    def as_codes(self, j, values):
        """A filled column as places of levels, that of a number maybe between two of them."""
        levels = self.levels[j]
        if self.are_numbers[j]:
            x = values.astype(np.float64)
            return np.interp(x, levels.astype(np.float64), np.arange(len(levels)))
        return _codes(values, levels).astype(np.float64)

    def _fill(self, j, p):
        levels = self.levels[j]
        if self.are_numbers[j]:
            x = levels.astype(np.float64)
            mean = p @ x
            return mean, np.sqrt(np.sum(p * (x - mean[:, np.newaxis]) ** 2, axis=1))
        most = p.max(axis=1)
        return levels[p.argmax(axis=1)], np.sqrt(most * (1.0 - most))

    def _wrong(self, j, filled, own):
        """How far off what fills cells is: squared errors of numbers, 0 or 1 of names."""
        true = self.levels[j][own]
        if self.are_numbers[j]:
            return (filled.astype(np.float64) - true.astype(np.float64)) ** 2
        return (filled.astype(object) != true.astype(object)).astype(np.float64)


def codes_of(column, levels):
    """The place of each cell of a column among its levels, -1 where it is missing or none of them.

    Parameters
    ----------
    column : skbnp.tables.columns.Column
    levels : ndarray
    """
    codes = np.full(len(column.missing), -1)
    codes[~column.missing] = _codes(column.values, levels)
    return codes


def with_cells(values, rows, new):
    """A column with other values in some rows, of a dtype that holds them."""
    kinds = {values.dtype.kind, new.dtype.kind}
    can_hold = kinds <= set("iuf") or kinds <= set("U") or values.dtype == new.dtype
    out = values.astype(np.result_type(values, new) if can_hold else object)
    out[rows] = new
    return out


def _codes(values, levels):
    places = {level: code for code, level in enumerate(levels.tolist())}
    return np.array([places.get(value, -1) for value in values.tolist()], dtype=np.intp)


def _pairs(others, own, n_others, n_own):
    """How many rows have each pair of levels: (n_others, n_own)."""
    both = (others >= 0) & (own >= 0)
    n_rows = np.bincount(others[both] * n_own + own[both], minlength=n_others * n_own)
    return n_rows.reshape(n_others, n_own)
