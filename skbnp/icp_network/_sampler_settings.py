"""How networks under the Indian chefs process are sampled."""

from numbers import Integral

from sklearn.utils._param_validation import Interval, StrOptions

from skbnp.estimators.parameters import parameter
from skbnp.estimators.settings import SamplerSettings


class ICPSampler(SamplerSettings):
    """How the ICP networks are sampled: the value of `sampler`.

    The settings change how fast chains mix and where they start, never what they converge to.

    See Also
    --------
    skbnp.ICPNetwork : Takes it as `sampler`, as do its regressor and classifier.

    Examples
    --------
    >>> from skbnp import ICPNetwork
    >>> from skbnp.samplers import ICPSampler
    >>> net = ICPNetwork(sampler=ICPSampler(n_births=20))
    >>> net.set_params(sampler__n_hmc=5).sampler
    ICPSampler(n_births=20, n_hmc=5)
    """

    init: str = parameter(
        default="auto",
        kind='{"auto", "gaussianised", "two-level", "network", "empty", "prior"}',
        rules=[
            StrOptions({"auto", "gaussianised", "two-level", "network", "empty", "prior"}),
        ],
        text="""
        Where chains start. "empty": no hidden nodes. "prior": a draw from the prior. All others
        start with a layer of hidden nodes. For :class:`~skbnp.ICPNetwork`, "gaussianised", and so
        "auto", fits the layer by least squares, from Gaussian scores of the rows to the columns;
        "two-level" puts the layer below two more nodes, all with random weights, from where chains
        take longer and some are stuck. For the regressor and the classifier, "network", and so
        "auto", fits the layer by least squares, from inputs to targets.
        """,
    )
    n_init_units: int | str = parameter(
        default="auto",
        kind='int or "auto"',
        rules=[Interval(Integral, 1, 1_000_000, closed="both"), StrOptions({"auto"})],
        text="""
        Number of hidden nodes in that layer, at most. "auto" is 20 for ICPNetwork. For the
        regressor and the classifier it is half the number of features or half the number of rows,
        whichever is less, but at least 10.
        """,
    )
    moves: str = parameter(
        default="default",
        kind='{"default", "paper"}',
        rules=[StrOptions({"default", "paper"})],
        text="""
        How the graph is updated. "paper" makes only the moves of the paper, corrected. They mix far
        more slowly.
        """,
    )
    activation_update: str = parameter(
        default="grid",
        kind='{"grid", "slice", "mtm"}',
        rules=[StrOptions({"grid", "slice", "mtm"})],
        text="""
        How the activations of one hidden node are updated: from a grid in the quantiles of the
        prior, by univariate slice sampling, or by multiple-try Metropolis.
        """,
    )
    n_noise_slices: int = parameter(
        default=1,
        kind="int",
        rules=[Interval(Integral, 0, 10_000, closed="both")],
        text="""
        Elliptical slice updates of all noises of a row, per sweep.
        """,
    )
    n_hmc: int = parameter(
        default=3,
        kind="int",
        rules=[Interval(Integral, 0, 10_000, closed="both")],
        text="""
        Hamiltonian trajectories over noises and parameters, per sweep.
        """,
    )
    n_leapfrog: int = parameter(
        default=20,
        kind="int",
        rules=[Interval(Integral, 1, 10_000, closed="both")],
        text="""
        Leapfrog steps of each trajectory.
        """,
    )
    n_births: int = parameter(
        default=10,
        kind="int",
        rules=[Interval(Integral, 0, 1_000_000, closed="both")],
        text="""
        Births or deaths of hidden nodes that are proposed, per sweep.
        """,
    )
    n_affine: int = parameter(
        default=0,
        kind="int",
        rules=[Interval(Integral, 0, 10_000, closed="both")],
        text="""
        Moves that scale and shift the activations of a hidden node, per sweep.
        """,
    )
    n_rotations: int = parameter(
        default=0,
        kind="int",
        rules=[Interval(Integral, 0, 10_000, closed="both")],
        text="""
        Moves that rotate the noises of two hidden nodes without parents, per sweep.
        """,
    )
