"""The moves of a sweep over a table that is visited cell by cell."""

import numpy as np

from skbnp.dirichlet_process_mixture.moves.gibbs import Gibbs
from skbnp.dirichlet_process_mixture.moves.hyperparameters import (
    Concentration,
    Discount,
    LearnCovariance,
    PriorScale,
)
from skbnp.dirichlet_process_mixture.records._slice import draw_key
from skbnp.mcmc.chain import Move


class MoveAtHand(Move):
    """A move of the mixture on the rows at hand and on all blocks; these are others every sweep."""

    KIND = None

    def __init__(self, whole, bit_generator):
        super().__init__(bit_generator)
        self._whole, self._owner = whole, bit_generator

    @classmethod
    def of(cls, whole, bit_generator):
        """As the move itself: None where it has no part in a sweep of such a state."""
        return (
            None
            if cls.KIND.of(whole.at_hand, None, bit_generator) is None
            else cls(whole, bit_generator)
        )

    def made(self):
        """The move on what is at hand now."""
        return self.KIND.of(self._whole.at_hand, None, self._owner)

    def run(self):
        """Make it."""
        move = self.made()
        status = move.run()
        np.asarray(self.accepted)[:] += np.asarray(move.accepted)
        np.asarray(self.proposed)[:] += np.asarray(move.proposed)
        return status

    def step(self, name):
        """A part of it."""
        self.made().step(name)


class SubsetGibbs(MoveAtHand):
    """Rows at hand one by one, each given all others: they open and close blocks."""

    KIND, NAME, COUNTS = Gibbs, Gibbs.NAME, Gibbs.COUNTS

    @classmethod
    def of(cls, whole, bit_generator):
        """In every sweep."""
        return cls(whole, bit_generator)

    def made(self):
        """Of all rows at hand; the pass over all rows is what remembers imputations."""
        state = self._whole.at_hand
        return Gibbs(state, state.n_samples, False, self._owner)


class TableConcentration(MoveAtHand):
    """concentration | block sizes."""

    KIND, NAME, COUNTS = Concentration, Concentration.NAME, Concentration.COUNTS


class TableDiscount(MoveAtHand):
    """discount | block sizes."""

    KIND, NAME, COUNTS = Discount, Discount.NAME, Discount.COUNTS


class TablePriorScale(MoveAtHand):
    """scale | partition, X."""

    KIND, NAME, COUNTS = PriorScale, PriorScale.NAME, PriorScale.COUNTS


class TableCovariance(MoveAtHand):
    """Lam, delta and kappa0 | partition, X."""

    KIND, NAME, COUNTS = LearnCovariance, LearnCovariance.NAME, LearnCovariance.COUNTS
    STEPS = LearnCovariance.STEPS


class PassOverRows(Move):
    """Weights and parameters given the partition, then the labels of all rows given these.

    Rows join only blocks whose anchor comes before them: equations (M4.4) and (M4.8).
    """

    NAME = "all_rows"

    def __init__(self, whole, bit_generator):
        super().__init__(bit_generator)
        self._whole, self._owner = whole, bit_generator

    def run(self):
        """One pass; the next key and the next subset are drawn before it."""
        record = self._whole.next_record()
        self._whole.draw_next(draw_key(self._owner))
        self._whole.visit(record, remembers=True)
        return 0


HYPERPARAMETERS = (TableConcentration, TableDiscount, TablePriorScale, TableCovariance)
