"""How the deep scale model is sampled."""

from numbers import Integral

from sklearn.utils._param_validation import Interval, StrOptions

from skbnp.estimators.parameters import parameter
from skbnp.estimators.settings import SamplerSettings


class DeepScaleSampler(SamplerSettings):
    """How `DeepScaleModel` is sampled: where chains start, and how often moves are tried.

    See Also
    --------
    skbnp.DeepScaleModel : Takes it as its parameter `sampler`.
    """

    schedule: str = parameter(
        default="joint",
        kind='{"joint", "greedy"}',
        rules=[StrOptions({"joint", "greedy"})],
        text="""
        "joint" updates all layers in every sweep. "greedy" is the paper's recursion: the warm-up
        goes through the layers one by one, from the first upwards.
        """,
    )
    n_births: int = parameter(
        default=2,
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
        Attempts per sweep to split or to merge factors.
        """,
    )
    n_init_factors: int = parameter(
        default=2,
        kind="int",
        rules=[Interval(Integral, 0, 1000, closed="both")],
        text="""
        Number of random factors that chains start with. Superfluous ones are slow to go away.
        """,
    )
