"""One chain of the mixture whose rows are visited cell by cell, wherever they are."""

import numpy as np

from skbnp.dirichlet_process_mixture._predictive import Rows, log_densities, log_weights
from skbnp.dirichlet_process_mixture._sweep import SUBSET
from skbnp.dirichlet_process_mixture.records._moves import (
    HYPERPARAMETERS,
    PassOverRows,
    SubsetGibbs,
)
from skbnp.dirichlet_process_mixture.records._slice import draw_key
from skbnp.dirichlet_process_mixture.records._split_merge import RecordSplitMerge
from skbnp.dirichlet_process_mixture.records._start import START_ROWS, found_start, given_start
from skbnp.dirichlet_process_mixture.records._whole import Whole
from skbnp.mcmc.chain import Chain


class RecordSampler(Chain):
    """One chain of the mixture over a table of any length.

    A sweep: collapsed Gibbs over ``n_subset`` rows at hand, which opens and closes blocks; now and
    then splits and merges; the hyperparameters; then the labels of all rows given weights,
    parameters and anchors, in one pass over the cells. What describes that pass is its record, and
    labels are a function of it: `RowSlice`.

    Cost of a sweep for N rows, K blocks and d features with full covariance: O(N K d^2) where the
    rows are, O(n_subset K d^2 + K d^3) here.

    Parameters
    ----------
    service : RowsInMemory or alike
        All rows of the table.
    prior : Prior
    labels : ndarray of int of shape (n_kept,)
        Where the chain starts, of the rows that are kept in memory.
    bit_generator : numpy.random.BitGenerator
    kept : RowsInMemory, default=None
        These rows; None: all rows of ``service``, which then are in memory.
    finds_start : bool, default=None
        Whether some sweeps over some of these rows come first, whose blocks all rows then join.
        Else the labels are where the chain starts: where all rows are kept, and by default where
        these are no more than 20,000.
    start : dict, default=None
        Hyperparameters, as for ``Sampler``.
    n_subset : int
    n_split_merge, split_merge
        As in `Sweep`: proposals a sweep, and how a pilot begins.
    log_jacobian : float
    """

    STATE, SPLIT_MERGE = Whole, RecordSplitMerge

    def __init__(
        self,
        service,
        prior,
        labels,
        bit_generator,
        *,
        kept=None,
        finds_start=None,
        start=None,
        n_subset=SUBSET,
        n_split_merge="auto",
        split_merge="sequential",
        log_jacobian=0.0,
    ):
        self._kept = service if kept is None else kept
        self._prior = prior
        start = prior.start() | (start or {})
        label = np.unique(labels, return_inverse=True)[1].astype(np.intp)
        key = draw_key(bit_generator)
        if finds_start is None:
            finds_start = service.n_samples > START_ROWS
        if finds_start:
            record = found_start(prior, label, start, key, self._kept, bit_generator)
        else:
            record = given_start(prior, label, start, key, self._kept)
        whole = self.STATE(service, prior, n_subset, log_jacobian)
        whole.draw_next(draw_key(bit_generator))
        whole.visit(record, remembers=False)
        moves = [
            SubsetGibbs.of(whole, bit_generator),
            self.SPLIT_MERGE(whole, n_split_merge, split_merge, bit_generator),
            *(kind.of(whole, bit_generator) for kind in HYPERPARAMETERS),
            PassOverRows(whole, bit_generator),
        ]
        super().__init__(whole, [move for move in moves if move is not None], bit_generator)

    def is_sound(self):
        """Whether the log joint is finite: O(K d)."""
        return bool(np.isfinite(self.state.log_joint()))

    @property
    def n_samples(self):
        """Number of rows of the table."""
        return self.state.service.n_samples

    @property
    def n_clusters(self):
        """Number of blocks."""
        return self.state.at_hand.n_clusters

    @property
    def labels(self):
        """Block of each kept row, a copy."""
        self._kept.see(self.state.record)
        return self.state.block_of[self._kept.labels()]

    def scalars(self):
        """Quantities traced beside the log joint."""
        state = self.state.at_hand
        return {
            "n_clusters": float(state.n_clusters),
            "concentration": state.concentration,
            "discount": state.discount,
            **state.base_scalars(),
            "largest_cluster": float(np.max(state.sizes())),
        }

    def draw(self):
        """Snapshot for prediction, as that of ``Sampler``; labels and cells of the kept rows."""
        label = self.labels
        imputed = self._kept.imputed()
        return {
            "label": label.astype(_label_type(self.n_clusters)),
            **self._blocks(),
            **({"imputed": imputed} if imputed.size else {}),
        }

    def _blocks(self):
        state = self.state.at_hand
        return {
            "concentration": state.concentration,
            "discount": state.discount,
            **state.base(),
            **state.family.blocks(state.n_clusters + 1),
        }

    def log_densities(self, rows):
        """Log densities of new rows that repeat kept rows, shape of rows."""
        draw = self._blocks()
        rows = Rows(self._kept.observed(rows), self._prior)
        log_p = log_densities(rows, draw, self._prior, log_weights(draw, self._prior))
        return rows.unsort(np.logaddexp.reduce(log_p, axis=1))

    def completed_data(self):
        """The kept rows with their missing cells as they are imputed."""
        self._kept.see(self.state.record)
        return self._kept.completed()


def _label_type(n_clusters):
    """The smallest type that holds so many labels."""
    return np.uint8 if n_clusters <= 255 else np.uint16 if n_clusters <= 65535 else np.int32
