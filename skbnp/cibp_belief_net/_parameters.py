"""Constructor parameters of the belief network."""

from numbers import Integral, Real

from sklearn.utils._param_validation import Interval, StrOptions

from skbnp.cibp_belief_net._model import laws_of_file
from skbnp.cibp_belief_net._sampler_settings import BeliefNetSampler
from skbnp.estimators.chains import BaseMCMCEstimator
from skbnp.estimators.parameters import parameter
from skbnp.laws import Gamma, NormalGamma, Uniform


class BeliefNetParameters(BaseMCMCEstimator):
    """Parameters of the model and of its chains."""

    _settings_type = BeliefNetSampler
    _renamed: dict = {
        "max_depth": "it is max_layers now",
        "mass_bounds": "write mass=(Uniform(0, 20), Uniform(0, 2)), from skbnp.laws",
        "concentration_bounds": (
            "write concentration=(Uniform(0, 20), Uniform(0, 2)), from skbnp.laws"
        ),
        "noise_prior": (
            "write noise_precision=Gamma(shape, Gamma(rate_shape, rate_rate)), from skbnp.laws"
        ),
        **{
            name: f"write sampler=BeliefNetSampler({name}=...), from skbnp.samplers"
            for name in BeliefNetSampler._declared
        },
    }

    max_layers: int | None = parameter(
        default=3,
        kind="int or None",
        rules=[Interval(Integral, 1, 100_000, closed="both"), None],
        text="""
        Hidden layers at most. None: unbounded; then keep `mass` to 1.5 at most above the first
        layer, or networks of hundreds of layers are likely a priori.
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
    mass: float | Uniform | tuple = parameter(
        default=(Uniform(0, 20), Uniform(0, 2)),
        kind="float, Uniform, or sequence of these",
        rules=[Real, Uniform, list, tuple],
        text="""
        Expected number of parents of a unit, > 0. A sequence has it for the columns, for the units
        of the first hidden layer, and so on; its last item serves all layers above.
        """,
    )
    concentration: float | Uniform | tuple = parameter(
        default=(Uniform(0, 20), Uniform(0, 2)),
        kind="float, Uniform, or sequence of these",
        rules=[Real, Uniform, list, tuple],
        text="""
        Larger makes units share parents less. By layer, as `mass`.
        """,
    )
    weight_prior: NormalGamma = parameter(
        default=NormalGamma(0, 1, 2, 2),
        kind="NormalGamma",
        rules=[NormalGamma],
        text="""
        The weights of a layer are normal: the law of their mean and precision.
        """,
    )
    bias_prior: NormalGamma = parameter(
        default=NormalGamma(0, 1, 2, 2),
        kind="NormalGamma",
        rules=[NormalGamma],
        text="""
        The same for the biases.
        """,
    )
    noise_precision: Gamma = parameter(
        default=Gamma(1, Gamma(1, 1)),
        kind="Gamma",
        rules=[Gamma],
        text="""
        Law of a unit's precision. Its rate is a number for all layers, or a law from which each
        layer has its own.
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
        Let the rows' activations in layer `max_layers` come from a Dirichlet process mixture
        instead of independent units (not in the paper). For data with classes; mostly with
        `max_layers` 1, over which rows are filled and weighed without inner chains.
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
    sampler: BeliefNetSampler | None = parameter(
        default=None,
        kind="BeliefNetSampler or None",
        rules=[BeliefNetSampler, None],
        text="""
        How the model is sampled and where chains start; None is ``BeliefNetSampler()``, from
        `skbnp.samplers`.
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

    @classmethod
    def _parameters_of_file(cls, parameters):
        new = laws_of_file(parameters)
        sampler = {name: new.pop(name) for name in BeliefNetSampler._declared if name in new}
        return new | {"sampler": BeliefNetSampler(**sampler)} if sampler else new
