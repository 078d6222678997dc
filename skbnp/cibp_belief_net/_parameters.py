"""Constructor parameters of the belief network."""

from numbers import Integral, Real

from sklearn.utils._param_validation import Interval, StrOptions

from skbnp.estimators.chains import BaseMCMCEstimator
from skbnp.estimators.parameters import parameter


class BeliefNetParameters(BaseMCMCEstimator):
    """Parameters of the model and of its chains."""

    max_depth: int | None = parameter(
        default=3,
        kind="int or None",
        rules=[Interval(Integral, 1, 100_000, closed="both"), None],
        text="""
        Hidden layers at most. None: unbounded, which takes a `mass_bounds` of 1.5 at most above
        the first layer, or networks of hundreds of layers are likely a priori.
        """,
    )
    max_units: int = parameter(
        default=2000,
        kind="int",
        rules=[Interval(Integral, 0, 100_000, closed="both")],
        text="""
        Hidden units at most; a part of the model. Proposals beyond it are refused and counted in
        `n_guard_rejections_`.
        """,
    )
    mass: float | str | list = parameter(
        default="sample",
        kind='float, sequence of float or "sample"',
        rules=[Real, list, tuple, StrOptions({"sample"})],
        text="""
        Expected number of parents of a unit, > 0: for all layers, or for each, the last value
        serving all layers above.
        """,
    )
    mass_bounds: tuple = parameter(
        default=((0, 20), (0, 2)),
        kind="pair of (low, high)",
        rules=[list, tuple],
        text="""
        Bounds of a sampled mass, for the columns and for hidden units.
        """,
    )
    concentration: float | str | list = parameter(
        default="sample",
        kind='float, sequence of float or "sample"',
        rules=[Real, list, tuple, StrOptions({"sample"})],
        text="""
        Larger makes units share parents less.
        """,
    )
    concentration_bounds: tuple = parameter(
        default=((0, 20), (0, 2)),
        kind="pair of (low, high)",
        rules=[list, tuple],
        text="""
        The same for the concentration.
        """,
    )
    weight_prior: tuple = parameter(
        default=(0, 1, 2, 2),
        kind="tuple of (mean, kappa, shape, rate)",
        rules=[list, tuple],
        text="""
        A layer's weights have precision Gamma(shape, rate), and their mean has kappa times that.
        """,
    )
    bias_prior: tuple = parameter(
        default=(0, 1, 2, 2),
        kind="tuple of (mean, kappa, shape, rate)",
        rules=[list, tuple],
        text="""
        The same for the biases.
        """,
    )
    noise_prior: tuple = parameter(
        default=(1, 1, 1),
        kind="tuple of (shape, rate_shape, rate_rate)",
        rules=[list, tuple],
        text="""
        Units have precision Gamma(shape, b) and a layer has b ~ Gamma(rate_shape, rate_rate).
        """,
    )
    noise_floor: float = parameter(
        default=0.01,
        kind="float",
        rules=[Interval(Real, 1e-6, 1e3, closed="both")],
        text="""
        Least standard deviation of a unit's own noise, in the scale of pre-activations.
        """,
    )
    visible: str = parameter(
        default="auto",
        kind='{"auto", "gaussian", "sigmoid"}',
        rules=[StrOptions({"auto", "gaussian", "sigmoid"})],
        text="""
        "gaussian": the standardised column is its unit's pre-activation. "sigmoid": the column,
        scaled to (-`feature_range`, `feature_range`), is its unit's activation u; for images and
        other bounded data. Rows beyond (-1, 1) then have density 0 and are clipped elsewhere.
        "auto" is "sigmoid" where `feature_bounds` is given.
        """,
    )
    feature_bounds: float | None = parameter(
        default=None,
        kind="pair of float or of arrays of shape (n_features,)",
        rules=[list, tuple, None],
        text="""
        Ends of the range of the columns, such as (0, 255), that "sigmoid" scales from. None: those
        of the training data.
        """,
    )
    feature_range: float = parameter(
        default=0.9,
        kind="float",
        rules=[Interval(Real, 1e-6, 1, closed="left")],
        text="""
        Where "sigmoid" puts them, in [1e-6, 1): near 1 the ends are far out.
        """,
    )
    dequantise: bool | str = parameter(
        default="auto",
        kind='bool or "auto"',
        rules=["boolean", StrOptions({"auto"})],
        text="""
        Spread values evenly over their step in columns with fewer than 100 distinct values, one
        of which more than a third of the rows have. "auto" is True; such a column would pull its
        unit to the noise floor.
        """,
    )
    skip_connections: bool = parameter(
        default=False,
        kind="bool",
        rules=["boolean"],
        text="""
        Let units join any layer below theirs (the extended process; its law is ours).
        """,
    )
    row_clusters: bool = parameter(
        default=False,
        kind="bool",
        rules=["boolean"],
        text="""
        Let the rows' activations in layer `max_depth` come from a Dirichlet process mixture
        instead of independent units (not in the paper). For data with classes; mostly with
        `max_depth` 1, over which rows are filled and weighed without inner chains.
        """,
    )
    row_concentration: float = parameter(
        default=5.0,
        kind="float",
        rules=[Interval(Real, 1e-6, 1e6, closed="both")],
        text="""
        Strength of that process: larger makes more clusters of rows.
        """,
    )
    activation_update: str = parameter(
        default="auto",
        kind='{"auto", "slice", "hmc", "mtm", "ess"}',
        rules=[StrOptions({"auto", "slice", "hmc", "mtm", "ess"})],
        text="""
        How activations are drawn: univariate slices, Hamiltonian Monte Carlo on a row's layer,
        the paper's multiple tries, elliptical slices. "auto": the second, and the first once.
        """,
    )
    n_activation_passes: int = parameter(
        default=2,
        kind="int",
        rules=[Interval(Integral, 1, 10_000, closed="both")],
        text="""
        Passes per sweep.
        """,
    )
    n_tries: int = parameter(
        default=5,
        kind="int",
        rules=[Interval(Integral, 1, 1_000_000, closed="both")],
        text="""
        Tries of "mtm".
        """,
    )
    birth: str = parameter(
        default="auto",
        kind='{"auto", "prior", "block"}',
        rules=[StrOptions({"auto", "prior", "block"})],
        text="""
        New units for one child at a time, drawn from the prior, for several children at once,
        drawn towards what one of them leaves unexplained, or both.
        """,
    )
    init: str = parameter(
        default="pca",
        kind='{"pca", "empty", "prior"}',
        rules=[StrOptions({"pca", "empty", "prior"})],
        text="""
        Where chains start: from principal components as units of the first layer (with
        `row_clusters` of all layers, each half as wide as that below), without hidden units, or
        from a draw of the prior.
        """,
    )
    n_init_units: int = parameter(
        default=20,
        kind="int",
        rules=[Interval(Integral, 1, 1_000_000, closed="both")],
        text="""
        Components under "pca", at most.
        """,
    )
    density: str = parameter(
        default="auto",
        kind='{"auto", "importance", "ais"}',
        rules=[StrOptions({"auto", "importance", "ais"})],
        text="""
        How `score_samples` integrates the hidden units out: by importance sampling around the
        modes of each row, for one hidden layer; or by annealed importance sampling, for any
        network. Either density integrates to one, up to the error of the sampling, and its
        logarithm is low on average. "auto": the first for draws of one hidden layer, the second,
        which is far slower, for deeper ones.
        """,
    )
    n_temperatures: int = parameter(
        default=100,
        kind="int",
        rules=[Interval(Integral, 1, 1_000_000, closed="both")],
        text="""
        Steps of the annealing: more is less low.
        """,
    )
    n_particles: int = parameter(
        default=8,
        kind="int",
        rules=[Interval(Integral, 1, 1_000_000, closed="both")],
        text="""
        Annealed particles per row and draw.
        """,
    )
    n_chains: int = parameter(
        default=4,
        text="""
        Independent chains. They find different networks; averages over several predict better.
        """,
    )
    n_warmup: int | str = parameter(
        default="auto",
        text="""
        Sweeps per chain before the first draw; "auto" is 500, or 200 from 20,000 rows on.
        """,
    )
    n_draws: int | str = parameter(
        default="auto",
        text="""
        Draws kept per chain; "auto" is 200, or 50 from 20,000 rows on.
        """,
    )
    n_jobs: int | None = parameter(
        default=None,
        text="""
        Chains at a time in `fit`, draws at a time when predicting; see `joblib.Parallel`. The
        results do not depend on it.
        """,
    )
    predict_draws: int = parameter(
        default=100,
        text="""
        Evenly spaced draws that predict-type methods use, at most. Their time is in proportion.
        """,
    )
