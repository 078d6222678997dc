"""Constructor parameters of the clusterer."""

from numbers import Real

from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval, StrOptions

from skbnp.estimators.parameters import parameter
from skbnp.estimators.rounds import WarmupInRounds, in_rounds
from skbnp.estimators.settings import moved_to_sampler, of_sampler
from skbnp.estimators.sparse_factors import SparseFactorEstimator
from skbnp.infinite_factor_clusterer._old_files import MOVED
from skbnp.infinite_factor_clusterer._sampler_settings import FactorClustererSampler
from skbnp.laws import Gamma, InverseGamma

# As many empty clusters, and more, are looked at in every sweep.
MOST_CONCENTRATION = 100

_A_LAW = "{} takes the law itself: {}, from skbnp.laws"


class ClustererParameters(WarmupInRounds, SparseFactorEstimator):
    """Parameters of the clusterer and of its chains."""

    concentration: float | Gamma = parameter(
        default=Gamma(1.0, 1.0),
        kind="float or Gamma",
        rules=[Interval(Real, 1e-6, MOST_CONCENTRATION, closed="both"), Gamma],
        text="""
        Concentration of the Dirichlet process: more gives more clusters. It is at most 100, and so
        is the mean of its law, because every sweep looks at that many empty clusters and more.
        """,
    )
    score_variance: InverseGamma = parameter(
        default=InverseGamma(2.0, 1.0),
        kind="InverseGamma",
        rules=[InverseGamma],
        text="""
        Law of the variances v that the scores have in a cluster.
        """,
    )
    mean_precision_prior: float = parameter(
        default=0.2,
        kind="float",
        rules=[Interval(Real, 1e-6, 1e6, closed="both")],
        text="""
        How strongly means m of clusters are tied to 0: they have the prior variance
        v / `mean_precision_prior`.
        """,
    )
    noise: str = parameter(
        default="cluster",
        kind='{"cluster", "shared"}',
        rules=[StrOptions({"cluster", "shared"})],
        text="""
        Whether each cluster has noise variances of its own, or all share them. With "shared"
        clusters differ by factors alone.
        """,
    )
    noise_variance: InverseGamma = parameter(
        default=InverseGamma(2.0, Gamma(1.0, 5.0)),
        kind="InverseGamma",
        rules=[InverseGamma],
        text="""
        Law of the noise variances s. Its scale has a law of its own and is sampled for each column.
        """,
    )
    means: str = parameter(
        default="factor",
        kind='{"factor", "both", "feature"}',
        rules=[StrOptions({"factor", "both", "feature"})],
        text="""
        Whether clusters have means of the factors m, of the columns o, or both. "feature" is a
        mixture of factor analysers with shared loadings.
        """,
    )
    tails: str = parameter(
        default="gaussian",
        kind='{"gaussian", "t"}',
        rules=[StrOptions({"gaussian", "t"})],
        text=r"""
        "t": rows have precisions :math:`\lambda_t`, so that clusters are multivariate t laws. All
        have the same degrees of freedom, sampled from 2 to infinity.
        """,
    )
    merge_overlap: float | None = parameter(
        default=0.15,
        of_chains=False,
        kind="float in (0, 1] or None",
        rules=[Interval(Real, 0, 1, closed="right"), None],
        text="""
        Two components of a draw are joined while a row of one is put in the other with at least
        this probability. Smaller values join more. None leaves components as they are.
        """,
    )
    detection_limit: ArrayLike | None = parameter(
        default=None,
        kind="float or array-like of shape (n_features,)",
        rules=[Interval(Real, None, None, closed="neither"), "array-like", None],
        text="""
        Cells at or below the limit, -inf among them, are known to be below it and no more.
        """,
    )
    sampler: FactorClustererSampler | None = parameter(
        default=None, **of_sampler(FactorClustererSampler)
    )
    n_chains: int | str = parameter(
        default="auto",
        text="""
        Independent chains; "auto" is 4. They start from different numbers of clusters, in turn.
        With tens of columns they stay near their starts: averages over more of them predict
        better, if each is as long.
        """,
    )
    n_warmup: int | str = parameter(
        default="auto",
        text=in_rounds("300 sweeps, 600, 1,200", "A number is quicker, as in a grid search."),
    )
    n_draws: int | str = parameter(
        default="auto",
        text="""
        Draws kept per chain; "auto" is 300.
        """,
    )
    thin: int | str = parameter(default=1)

    _settings_type = FactorClustererSampler
    _renamed = {
        **dict.fromkeys(MOVED, "it is a parameter of DeepScaleModel now"),
        **{
            name: f"write DeepScaleModel(sampler=DeepScaleSampler({name}=...)), from skbnp.samplers"
            for name in ("schedule", "n_init_factors")
        },
        "top": 'the clusterer is what top="dp" was, DeepScaleModel is what top="gaussian" was',
        "mass_prior": _A_LAW.format("mass", "mass=Gamma(shape, rate)"),
        "concentration_prior": _A_LAW.format("concentration", "concentration=Gamma(shape, rate)"),
        **dict.fromkeys(
            ["slab_shape", "slab_scale"],
            "write loading_variance=InverseGamma(shape, scale), from skbnp.laws",
        ),
        **dict.fromkeys(
            ["score_shape", "score_scale"],
            "write score_variance=InverseGamma(shape, scale), from skbnp.laws",
        ),
        "score_precision": "it is called mean_precision_prior now",
        **dict.fromkeys(
            ["noise_shape", "noise_rate_prior"],
            "write noise_variance=InverseGamma(shape, Gamma(shape, rate)), from skbnp.laws",
        ),
        "standardize": 'write scaling="each" for True, scaling="none" for False',
        **moved_to_sampler(
            FactorClustererSampler,
            *("n_init_clusters", "n_births"),
            n_split_merges="n_split_merge",
        ),
    }
