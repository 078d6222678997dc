"""How the belief network is sampled."""

from numbers import Integral

from sklearn.utils._param_validation import Interval, StrOptions

from skbnp.estimators.parameters import parameter
from skbnp.estimators.settings import SamplerSettings


class BeliefNetSampler(SamplerSettings):
    """How :class:`~skbnp.CIBPBeliefNet` is sampled: the value of its `sampler`.

    See Also
    --------
    skbnp.CIBPBeliefNet : The model.

    Examples
    --------
    >>> from skbnp import CIBPBeliefNet
    >>> from skbnp.samplers import BeliefNetSampler
    >>> net = CIBPBeliefNet(sampler=BeliefNetSampler(n_init_units=40))
    """

    activation_update: str = parameter(
        default="auto",
        kind='{"auto", "slice", "hmc", "mtm", "ess"}',
        rules=[StrOptions({"auto", "slice", "hmc", "mtm", "ess"})],
        text="""
        How activations are drawn: "slice", by univariate slices; "hmc", by Hamiltonian Monte Carlo
        on all units of a row's layer; "mtm", by the paper's multiple tries; "ess", by elliptical
        slices. "auto" takes "hmc" and, for the last pass of a sweep and for layers of fewer than
        8 units, "slice".
        """,
    )
    n_activation_passes: int = parameter(
        default=2,
        kind="int",
        rules=[Interval(Integral, 1, 10_000, closed="both")],
        text="""
        Passes over the activations per sweep.
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
        kind='{"auto", "prior", "block", "matched", "all"}',
        rules=[StrOptions({"auto", "prior", "block", "matched", "all"})],
        text="""
        How units are born. "prior": for one child at a time, drawn from the prior. "block": for
        several children at once, drawn towards what one of them leaves unexplained. "matched": for
        one child, whose mean and variance stay as they are. "all": in all these ways. "auto": by
        "prior" and "block".
        """,
    )
    init: str = parameter(
        default="pca",
        kind='{"pca", "empty", "prior"}',
        rules=[StrOptions({"pca", "empty", "prior"})],
        text="""
        Where chains start. "pca": principal components are the units of the first layer; with
        `row_clusters` all layers start with units, each with half as many as the one below.
        "empty": no hidden units. "prior": a draw from the prior.
        """,
    )
    n_init_units: int | str = parameter(
        default="auto",
        kind='int or "auto"',
        rules=[Interval(Integral, 1, 1_000_000, closed="both"), StrOptions({"auto"})],
        text="""
        Principal components under "pca", at most. "auto" is 20, or 40 with `row_clusters`, but one
        for every six rows of small tables: more units follow single rows, and what they fill is too
        sure of itself.
        """,
    )
