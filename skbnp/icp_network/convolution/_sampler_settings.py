"""How convolutional networks are searched for, and how their weights are drawn."""

from numbers import Integral, Real

from sklearn.utils._param_validation import Interval, StrOptions

from skbnp.estimators.parameters import parameter
from skbnp.estimators.settings import SamplerSettings


class ICPConvSampler(SamplerSettings):
    """How `ICPConvClassifier` searches for architectures and draws weights: its `sampler`.

    The search is an approximation, and how long networks are trained is a part of it. The
    `step_length` is that of up to 500 images; of n more the steps are shorter by the factor
    sqrt(500 / n), as the posterior narrows.

    See Also
    --------
    skbnp.ICPConvClassifier : Takes it as `sampler`.

    Examples
    --------
    >>> from skbnp import ICPConvClassifier
    >>> from skbnp.samplers import ICPConvSampler
    >>> clf = ICPConvClassifier(sampler=ICPConvSampler(n_steps=40))
    >>> clf.set_params(sampler__n_start_steps=400).sampler
    ICPConvSampler(n_start_steps=400, n_steps=40)
    """

    init: str = parameter(
        default="auto",
        kind='{"auto", "chain", "empty", "prior"}',
        rules=[StrOptions({"auto", "chain", "empty", "prior"})],
        text="""
        Where chains start. "chain": a node of the first bin above one of the second, or of the
        first where there is only one; both see the image and are seen by the output. "empty": no
        hidden node, the output sees the image. "prior": a draw from the prior. "auto" takes "chain"
        and "prior" in turn, chain by chain.
        """,
    )
    n_start_steps: int = parameter(
        default=800,
        kind="int",
        rules=[Interval(Integral, 0, 1_000_000, closed="both")],
        text="""
        Steps of Adam with which the first network of a chain is trained.
        """,
    )
    n_steps: int = parameter(
        default=80,
        kind="int",
        rules=[Interval(Integral, 0, 1_000_000, closed="both")],
        text="""
        Steps of Adam after each proposal that changes a live edge. Tensors that stay go on from
        where they are.
        """,
    )
    learning_rate: float = parameter(
        default=0.02,
        kind="float",
        rules=[Interval(Real, 0, 1, closed="right")],
        text="""
        First step of Adam, in prior standard deviations; it falls linearly to 0.
        """,
    )
    batch_size: int = parameter(
        default=100,
        kind="int",
        rules=[Interval(Integral, 1, 1_000_000, closed="both")],
        text="""
        Images that a step looks at.
        """,
    )
    n_weight_steps: int = parameter(
        default=4000,
        kind="int",
        rules=[Interval(Integral, 0, 1_000_000, closed="both")],
        text="""
        Steps of stochastic-gradient Hamiltonian Monte Carlo for each network that predictions
        average over. Every 40th state is kept, and the first fifth is dropped. 0 keeps the weights
        that Adam ends with.
        """,
    )
    step_length: float = parameter(
        default=0.02,
        kind="float",
        rules=[Interval(Real, 0, 1, closed="right")],
        text="""
        Length of these steps, in prior standard deviations. Longer ones forget sooner, and make the
        draws warmer than the temperature says.
        """,
    )
    friction: float = parameter(
        default=0.05,
        kind="float",
        rules=[Interval(Real, 0, 1, closed="right")],
        text="""
        Share of the momentum that is lost in a step.
        """,
    )
