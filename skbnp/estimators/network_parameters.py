"""Parameters of networks of hidden units, and the units of the columns that follow from them."""

from collections.abc import Sequence
from numbers import Integral, Real

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from skbnp.estimators.chains import BaseMCMCEstimator
from skbnp.estimators.parameters import parameter
from skbnp.estimators.rounds import WarmupInRounds, bound_on_work
from skbnp.units import checked_bounds, range_units, standard_units


class NetworkChains(BaseMCMCEstimator):
    """Chains each of which finds a network of its own."""

    n_chains: int | str = parameter(
        default="auto",
        text="""
        Number of independent chains; "auto" is 4. They find different networks, and averages over
        several of them predict better.
        """,
    )
    n_jobs: int | None = parameter(
        default=None,
        text="""
        Number of chains that run at a time in `fit`, and of draws that are worked on at a time in
        predictions; see `joblib.Parallel`. The results do not depend on it.
        """,
    )
    predict_draws: int = parameter(
        default=100,
        text="""
        Largest number of draws, evenly spaced, that predictions use. Their time is proportional to
        it.
        """,
    )

    def _standard_units(self, X, what="X", step=None):
        """Units of mean 0 and variance 1; constant columns are set aside, with a warning."""

        def named(columns):
            return self._named(columns) if what == "X" else f"column(s) {columns.tolist()}"

        # Sums over a column that lies in one piece are pairwise.
        units = standard_units(np.asfortranarray(X), step=step, what=what, named=named)
        self._warn_of_constant(units, what, named)
        return units


class VisibleColumns(WarmupInRounds, NetworkChains):
    """Columns that are visible units of a network, and densities that integrate the hidden out.

    A subclass has a parameter ``density``: how it does that.
    """

    # Rows between which `max_work` grows.
    _fewest_rows_of_work, _most_rows_of_work = 100, 1000

    visible: str = parameter(
        default="auto",
        kind='{"auto", "gaussian", "sigmoid"}',
        rules=[StrOptions({"auto", "gaussian", "sigmoid"})],
        text="""
        How columns enter the network. "gaussian": the standardised column is the pre-activation a
        of its unit. "sigmoid", for images and other bounded data: the column is scaled to
        (-`feature_range`, `feature_range`) and is the activation u of its unit. Rows that are then
        beyond (-1, 1) have density 0; other methods clip them. "auto": "sigmoid" if
        `feature_bounds` is given, else "gaussian".
        """,
    )
    feature_bounds: Sequence | None = parameter(
        default=None,
        kind="pair of float or of arrays of shape (n_features,), or None",
        rules=[list, tuple, None],
        text="""
        Lower and upper ends of the columns, such as (0, 255), from which "sigmoid" scales. None
        takes the range of the training data.
        """,
    )
    feature_range: float = parameter(
        default=0.9,
        kind="float",
        rules=[Interval(Real, 1e-6, 0.999, closed="both")],
        text="""
        Where "sigmoid" puts these ends, from 1e-6 to 0.999. Near 1 they are far out.
        """,
    )
    n_temperatures: int = parameter(
        default=150,
        of_chains=False,
        kind="int",
        rules=[Interval(Integral, 1, 1_000_000, closed="both")],
        text="""
        Steps of the annealing. With more steps the log density is less low.
        """,
    )
    n_particles: int = parameter(
        default=4,
        of_chains=False,
        kind="int",
        rules=[Interval(Integral, 1, 1_000_000, closed="both")],
        text="""
        Particles of the annealing, per row and draw.
        """,
    )

    max_work: float | str = parameter(
        default="auto",
        of_chains=False,
        kind='float or "auto"',
        rules=[Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        text=bound_on_work(
            """
            "auto" is in proportion to the rows, from 6.7 up to 100 rows to 67 from 1,000 on; half
            as much again, and at least 15, where there are many short chains.
            """
        ),
    )

    def _work_allowed(self, X):
        if self.max_work != "auto":
            return float(self.max_work)
        return self._auto_work(len(X))

    def _auto_work(self, n_rows):
        return min(max(n_rows, self._fewest_rows_of_work), self._most_rows_of_work) / 15.0

    def _fitted_units(self, X, step=None):
        """The units of the columns of the training data, as the parameters say.

        ``step`` (n_features,) is the width of the jitter that will be added to each column.
        """
        visible, bounds = self.visible, self._bounds(X)
        if visible == "auto":
            visible = "gaussian" if bounds is None else "sigmoid"
        if visible == "gaussian":
            if bounds is not None:
                raise ValueError(
                    f"feature_bounds must be None where visible='gaussian', got {bounds!r}"
                )
            return self._standard_units(X, step=step)
        bounds = None if bounds is None else checked_bounds(bounds, X)
        units = range_units(X, bounds, float(self.feature_range), step, self._named)
        self._warn_of_constant(units)
        return units

    def _bounds(self, X):
        """Ends of the columns, None where nothing says that they have any."""
        return self.feature_bounds

    def _density_options(self):
        return {
            "method": self.density,
            "n_temperatures": self.n_temperatures,
            "n_particles": self.n_particles,
        }
