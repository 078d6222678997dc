"""How the clusterer is sampled."""

from collections.abc import Sequence
from numbers import Integral

from sklearn.utils._param_validation import Interval

from skbnp.estimators.parameters import parameter
from skbnp.estimators.settings import SamplerSettings


class FactorClustererSampler(SamplerSettings):
    """How `InfiniteFactorClusterer` is sampled: where chains start, and how often moves are tried.

    See Also
    --------
    skbnp.InfiniteFactorClusterer : Takes it as its parameter `sampler`.
    """

    n_init_clusters: int | Sequence[int] = parameter(
        default=(2, 4, 8, 16),
        kind="int or sequence of int",
        rules=[Interval(Integral, 1, None, closed="left"), tuple, list],
        text="""
        Numbers of k-means clusters that chains start from, in turn. With tens of columns a chain
        may stay near its start. Chains of different starts are therefore pooled, and `fit` warns
        where they disagree.
        """,
    )
    n_births: int = parameter(
        default=1,
        kind="int",
        rules=[Interval(Integral, 0, 10_000, closed="both")],
        text="""
        Attempts per column and sweep to add, or to remove, a factor that is linked to this column
        alone.
        """,
    )
    n_split_merge: int = parameter(
        default=10,
        kind="int",
        rules=[Interval(Integral, 0, 10_000, closed="both")],
        text="""
        Attempts per sweep to split or to merge clusters. Half of them draw new scores for the rows
        of these clusters.
        """,
    )

    def _validate_params(self):
        super()._validate_params()
        numbers = self.n_init_clusters
        if isinstance(numbers, Integral):
            return
        whole = [isinstance(n, Integral) and not isinstance(n, bool) for n in numbers]
        if not numbers or not all(whole) or min(numbers) < 1:
            raise ValueError(
                f"n_init_clusters must be an integer >= 1 or a sequence of them, got {numbers!r}"
            )
