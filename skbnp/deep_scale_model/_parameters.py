"""Constructor parameters of the deep scale model."""

from numbers import Real

from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval, Options, StrOptions

from skbnp.deep_scale_model._model import BIRTH_MOVES, NOISE_LAW
from skbnp.deep_scale_model._sampler_settings import DeepScaleSampler
from skbnp.estimators.parameters import parameter
from skbnp.estimators.settings import moved_to_sampler, of_sampler
from skbnp.estimators.sparse_factors import SparseFactorEstimator
from skbnp.laws import InverseGamma, Normal


class ScaleParameters(SparseFactorEstimator):
    """Parameters of the deep scale model and of its chains."""

    noise_variance: float | ArrayLike | InverseGamma = parameter(
        default=InverseGamma(2.0, 0.1),
        kind="float, array-like of shape (n_features,) or InverseGamma",
        rules=[NOISE_LAW, Interval(Real, 0, None, closed="left"), tuple, list, "array-like"],
        text="""
        Noise variances :math:`s^2`. A law is for columns in the units of `scaling`. Given
        variances, one or one for each column, are > 0 and in the squared units of X.
        """,
    )
    drift: float | Normal = parameter(
        default=0.0,
        kind="float or Normal",
        rules=[Interval(Real, -1e3, 1e3, closed="both"), Normal],
        text="""
        The drift c. A number gives it, ``Normal(0, 1)`` samples it.
        """,
    )
    center: bool | str = parameter(
        default="mean",
        kind='{"mean", "median", "sample", False}',
        rules=[StrOptions({"mean", "median", "sample"}), Options(bool, {False})],
        text="""
        The location of columns: their mean or median in X, sampled with the rest, or 0.
        """,
    )
    birth_move: str = parameter(
        default="singleton",
        kind='{"singleton", "finite", "pan-han"}',
        rules=[StrOptions(set(BIRTH_MOVES))],
        text="""
        How factors come and go. "singleton" adds and removes factors of one column, under the
        Indian buffet process. "finite" has a finite model of links instead, in which factors
        without a link are counted. "pan-han" are the paper's own moves, for comparison alone: they
        leave no posterior invariant, the number of factors stays near that of the start, and a
        chain without factors can never have one again.
        """,
    )
    signed: bool = parameter(
        default=False,
        of_chains=False,
        kind="bool",
        rules=["boolean"],
        text="""
        With a drift: factor k gives two clusters, 2 k where its score is positive and 2 k + 1 where
        it is negative.
        """,
    )
    transform_output: str = parameter(
        default="auto",
        of_chains=False,
        kind='{"auto", "mean", "magnitude", "log_energy"}',
        rules=[StrOptions({"auto", "mean", "magnitude", "log_energy"})],
        text="""
        What `transform` returns of scores y: E y, E abs(y) or log E y^2. "auto" is "mean" with a
        drift and "magnitude" without one, as E y is 0 then.
        """,
    )
    sampler: DeepScaleSampler | None = parameter(default=None, **of_sampler(DeepScaleSampler))
    n_warmup: int | str = parameter(
        default="auto",
        text="""
        Sweeps per chain before the first draw; "auto" is 500.
        """,
    )
    n_draws: int | str = parameter(
        default="auto",
        text="""
        Draws kept per chain; "auto" is 500.
        """,
    )

    _length = 500
    _settings_type = DeepScaleSampler
    _renamed = {
        "mass_prior": "mass takes the law itself: mass=Gamma(shape, rate), from skbnp.laws",
        **dict.fromkeys(
            ["slab_shape", "slab_scale"],
            "write loading_variance=InverseGamma(shape, scale), from skbnp.laws",
        ),
        "noise": "write noise_variance=s**2 for the standard deviations s",
        "noise_shape": "write noise_variance=InverseGamma(shape, 0.1), from skbnp.laws",
        "standardize": 'write scaling="each" for True, scaling="none" for False',
        **moved_to_sampler(
            DeepScaleSampler,
            *("schedule", "n_births", "n_init_factors"),
            n_split_merges="n_split_merge",
        ),
    }
