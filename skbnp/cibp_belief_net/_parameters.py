"""Constructor parameters of the belief network."""

from collections.abc import Sequence
from numbers import Integral, Real
from typing import ClassVar

from sklearn.utils._param_validation import Interval, StrOptions

from skbnp.cibp_belief_net._model import laws_of_file
from skbnp.cibp_belief_net._sampler_settings import BeliefNetSampler
from skbnp.estimators.interval_calibration import interval_calibration
from skbnp.estimators.network_parameters import VisibleColumns
from skbnp.estimators.parameters import parameter
from skbnp.estimators.settings import moved_to_sampler, of_sampler
from skbnp.laws import Gamma, NormalGamma, Uniform


class BeliefNetParameters(VisibleColumns):
    """Parameters of the model and of its chains."""

    _settings_type = BeliefNetSampler
    _renamed: ClassVar[dict] = {
        "max_depth": "it is max_layers now",
        "mass_bounds": "write mass=(Uniform(0, 20), Uniform(0, 2)), from skbnp.laws",
        "concentration_bounds": (
            "write concentration=(Uniform(0, 20), Uniform(0, 2)), from skbnp.laws"
        ),
        "noise_prior": (
            "write noise_precision=Gamma(shape, Gamma(rate_shape, rate_rate)), from skbnp.laws"
        ),
        **moved_to_sampler(BeliefNetSampler, *BeliefNetSampler._declared),
    }

    visible: str = parameter(
        default="auto",
        text="""
        How columns enter the network. "gaussian": the standardised column is the pre-activation a
        of its unit. "sigmoid", for images and other bounded data: the column is scaled to
        (-`feature_range`, `feature_range`) and is the activation u of its unit. Rows that are then
        beyond (-1, 1) have density 0; other methods clip them. "auto": "sigmoid" if
        `feature_bounds` is given, or if of 40 columns or more at least half have both the least and
        the greatest value of the table, which then are the bounds; constant columns do not count.
        Else "gaussian".
        """,
    )
    max_layers: int | str | None = parameter(
        default="auto",
        kind='int, "auto" or None',
        rules=[Interval(Integral, 1, 100_000, closed="both"), StrOptions({"auto"}), None],
        text="""
        Largest number of hidden layers. "auto" is 3, or 1 where rows have clusters. None sets no
        bound; then keep `mass` at 1.5 or less above the columns, or networks of hundreds of layers
        are likely a priori.
        """,
    )
    max_units: int = parameter(
        default=2000,
        kind="int",
        rules=[Interval(Integral, 0, 100_000, closed="both")],
        text="""
        Largest number of hidden units; a part of the model. Proposals beyond it are refused and
        counted in `n_guard_rejections_`.
        """,
    )
    mass: float | Uniform | Sequence[float | Uniform] = parameter(
        default=(Uniform(0, 20), Uniform(0, 2)),
        kind="float, Uniform, or sequence of these",
        rules=[Interval(Real, 1e-6, 1e4, closed="both"), Uniform, list, tuple],
        text="""
        Expected number of parents of a unit. A sequence has one item for the columns, one for the
        units of the first hidden layer, and so on; its last item serves all layers above.
        """,
    )
    concentration: float | Uniform | Sequence[float | Uniform] = parameter(
        default=(Uniform(0, 20), Uniform(0, 2)),
        kind="float, Uniform, or sequence of these",
        rules=[Interval(Real, 1e-6, 1e4, closed="both"), Uniform, list, tuple],
        text="""
        The larger it is, the fewer parents units share. Its items are those of layers, as in
        `mass`.
        """,
    )
    weight_prior: NormalGamma = parameter(
        default=NormalGamma(0, 1, 2, 2),
        kind="NormalGamma",
        rules=[NormalGamma],
        text="""
        Weights are normal. This is the law of their mean and precision in each layer.
        """,
    )
    bias_prior: NormalGamma = parameter(
        default=NormalGamma(0, 1, 2, 2),
        kind="NormalGamma",
        rules=[NormalGamma],
        text="""
        The same law for the biases.
        """,
    )
    noise_precision: Gamma = parameter(
        default=Gamma(1, Gamma(1, 1)),
        kind="Gamma",
        rules=[Gamma],
        text="""
        Law of the precision of a unit. Its rate is a number, or a law from which each layer draws
        its own rate.
        """,
    )
    noise_floor: float = parameter(
        default=0.01,
        kind="float",
        rules=[Interval(Real, 1e-6, 1e3, closed="both")],
        text="""
        Smallest standard deviation of the noise of a unit, on the scale of pre-activations.
        """,
    )
    dequantise: bool | str = parameter(
        default="auto",
        kind='bool or "auto"',
        rules=["boolean", StrOptions({"auto"})],
        text="""
        Whether to spread the values of some columns evenly over their step: those with fewer than
        100 distinct values, one of which is in more than a third of the rows. Such a column would
        pull its unit to the noise floor. "auto" is True.
        """,
    )
    skip_connections: bool = parameter(
        default=False,
        kind="bool",
        rules=["boolean"],
        text="""
        Whether units may have children in any layer below theirs, as in the extended process
        [2]_; its law is ours.
        """,
    )
    row_clusters: bool | str = parameter(
        default="auto",
        kind='bool or "auto"',
        rules=["boolean", StrOptions({"auto"})],
        text="""
        Whether the activations of rows in layer `max_layers` come from a Dirichlet process mixture
        [3]_ instead of independent units; not in [1]_. It helps where rows come in kinds, as
        images do. With one layer, rows are filled and scored without inner chains. "auto" is True
        from 40 columns on, unless `max_layers` or `skip_connections` ask for more layers. With
        False, the data choose the depth there too.
        """,
    )
    row_concentration: float = parameter(
        default=5.0,
        kind="float",
        rules=[Interval(Real, 1e-6, 1e6, closed="both")],
        text="""
        Concentration of that process. The larger it is, the more clusters of rows there are.
        """,
    )
    interval_calibration: str | None = interval_calibration()
    density: str = parameter(
        default="auto",
        of_chains=False,
        kind='{"auto", "importance", "ais"}',
        rules=[StrOptions({"auto", "importance", "ais"})],
        text="""
        How `score_samples` integrates the hidden units out. "importance": by importance sampling
        around the modes of each row; with row clusters for one hidden layer only. "ais": by
        annealed importance sampling, for any network; slower. "auto": in up to eight columns by
        2,000 samples of the prior of the hidden units, and by 64 points around modes for rows and
        draws for which fewer than 5 in a half of these have the weight; in more columns
        "importance" for draws of one hidden layer. For deeper ones it is nine tenths of the density
        by "ais" and a tenth of that by "importance"; with row clusters, or more than 128 hidden
        units, "ais" alone. All are unbiased for the density, so that its logarithm is too low on
        average.
        """,
    )
    sampler: BeliefNetSampler | None = parameter(default=None, **of_sampler(BeliefNetSampler))
    n_chains: int | str = parameter(
        default="auto",
        text="""
        Number of independent chains. "auto" is 4. From 40 columns on it is as many as `max_work`
        allows, from 4 to 16, if `n_warmup` is "auto" too: chains then hardly leave the networks
        that they start near, and the average over many short ones fills and predicts better.
        """,
    )
    n_warmup: int | str = parameter(
        default="auto",
        text="""
        Sweeps per chain before the first draw. "auto" runs rounds of 150, 300, 600, ... sweeps
        until the traces that `fit` checks agree between the chains or `max_work` is spent, half of
        which is for the last round and the draws after it; no draw that is kept takes part in the
        decision. A table on which that would allow fewer than 1,050 sweeps gets 500, or 200 from
        20,000 rows on. One of 40 columns or more gets from 70 to 300, as many as `max_work` allows,
        if `n_chains` is "auto" too. A number is quicker, as in a grid search, where 250 is a good
        start, and 70 in many columns.
        """,
    )
    n_draws: int | str = parameter(
        default="auto",
        text="""
        Draws kept per chain. "auto" is 200, but 50 from 20,000 rows on, and 4 of each of the many
        short chains in 40 columns or more.
        """,
    )

    @classmethod
    def _parameters_of_file(cls, parameters):
        new = laws_of_file(parameters)
        sampler = {name: new.pop(name) for name in BeliefNetSampler._declared if name in new}
        return new | {"sampler": BeliefNetSampler(**sampler)} if sampler else new
