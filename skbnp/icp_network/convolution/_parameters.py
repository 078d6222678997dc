"""Parameters of convolutional networks."""

from numbers import Integral, Real
from typing import Any

from sklearn.utils._param_validation import Interval, StrOptions

from skbnp.estimators.chains import BaseMCMCEstimator
from skbnp.estimators.parameters import parameter
from skbnp.estimators.settings import of_sampler
from skbnp.icp_network.convolution._evidence import RULES
from skbnp.icp_network.convolution._sampler_settings import ICPConvSampler


class ConvNetworkParameters(BaseMCMCEstimator):
    """The prior of graph, maps and weights, and how it is sampled."""

    image_shape: Any = parameter(
        default=None,
        kind="tuple of int or None",
        rules=["array-like", None],
        text="""
        (height, width), or (height, width, channels), of the images that rows of X are, channels
        last. None: X (n_samples, height, width) or (n_samples, height, width, channels) says it
        itself; rows are squares of one channel.
        """,
    )
    n_bins: int | str = parameter(
        default="auto",
        kind='int or "auto"',
        rules=[Interval(Integral, 1, 20, closed="both"), StrOptions({"auto"})],
        text="""
        Number of sizes that maps have, the first being that of the image. "auto" is the logarithm
        of the larger side to the base 2, rounded down, but from 1 to 4.
        """,
    )
    n_channels: int = parameter(
        default=4,
        kind="int",
        rules=[Interval(Integral, 1, 10_000, closed="both")],
        text="""
        Channels of maps of the first bin; each next bin has twice as many.
        """,
    )
    readout: int | str = parameter(
        default="auto",
        kind='int or "auto"',
        rules=[Interval(Integral, 1, 10_000, closed="both"), StrOptions({"auto"})],
        text="""
        Largest side of the maps that the output reads; larger ones are pooled to it. "auto" is 14.
        """,
    )
    mass: float = parameter(
        default=2.0,
        kind="float",
        rules=[Interval(Real, 1e-6, 1e4, closed="both")],
        text="""
        Sets how many hidden nodes there are a priori: the output has Poisson(mass) hidden parents.
        """,
    )
    concentration: float = parameter(
        default=1.0,
        kind="float",
        rules=[Interval(Real, 1e-6, 1e4, closed="both")],
        text="""
        The larger it is, the fewer parents nodes share, and the more hidden nodes there are.
        """,
    )
    observed_popularity: float = parameter(
        default=2.0,
        kind="float",
        rules=[Interval(Real, 1e-6, 1e4, closed="both")],
        text="""
        Called phi: the image is a parent of phi / (phi + concentration) of the nodes, as expected.
        """,
    )
    weight_variance: float = parameter(
        default=16.0,
        kind="float",
        rules=[Interval(Real, 1e-6, 1e6, closed="both")],
        text="""
        Variance of what a pixel gets from a parent of ones.
        """,
    )
    readout_variance: float = parameter(
        default=50.0,
        kind="float",
        rules=[Interval(Real, 1e-6, 1e6, closed="both")],
        text="""
        Variance of what a class gets from a map of ones.
        """,
    )
    max_units: int = parameter(
        default=40,
        kind="int",
        rules=[Interval(Integral, 0, 10_000, closed="both")],
        text="""
        Largest number of hidden nodes. It is a part of the model.
        """,
    )
    inference: str = parameter(
        default="evidence",
        kind='{"evidence", "paper"}',
        rules=[StrOptions(set(RULES))],
        text="""
        How the search judges an architecture. "evidence": by the labels of a quarter of the images,
        which are kept apart. "paper": by the labels that it has just been trained on, all of them,
        from the prior on, as the paper [1]_ does. That is no evidence, rewards every tensor that is
        added and takes longer; it is there for comparisons with the paper alone. Without a
        `sampler` each network is then trained for 540 steps.
        """,
    )
    n_architectures: int = parameter(
        default=8,
        of_chains=False,
        kind="int",
        rules=[Interval(Integral, 1, 100_000, closed="both")],
        text="""
        Architectures whose weights are drawn for predictions: evenly spaced draws of the chains, of
        each as many.
        """,
    )
    temperature: float = parameter(
        default=0.3,
        of_chains=False,
        kind="float",
        rules=[Interval(Real, 0, 100, closed="both")],
        text="""
        Of the noise with which weights are drawn. 1 is the posterior, 0 none. Predictions of cold
        draws are surer.
        """,
    )
    probability_calibration: str | None = parameter(
        default="folds",
        of_chains=False,
        kind='"folds" or None',
        rules=[StrOptions({"folds"}), None],
        text="""
        What `predict_proba` makes of the means over draws. None: nothing. "folds": they are raised
        to one power, at least 1, and made to sum to one again. Draws of a network are each sure of
        a class and disagree, and their mean is too even. The power, `power_`, is chosen in `fit` by
        the log loss of training images that weights have not seen: those of each architecture are
        drawn a second time, without one of four folds. That takes as long as to draw them at all.
        """,
    )
    allow_slow: bool = parameter(
        default=False,
        of_chains=False,
        kind="bool",
        rules=["boolean"],
        text="""
        Whether images may be so large that a step of training takes more than 1e9 multiplications.
        """,
    )
    sampler: ICPConvSampler | None = parameter(
        default=None, **of_sampler(ICPConvSampler, ", but for the steps of `inference`")
    )
    n_chains: int | str = parameter(
        default="auto",
        text="""
        Independent chains over architectures; "auto" is 2.
        """,
    )
    n_warmup: int | str = parameter(
        default="auto",
        text="""
        Proposals per chain before the first draw; "auto" is 300.
        """,
    )
    n_draws: int | str = parameter(
        default="auto",
        text="""
        Draws kept per chain; "auto" is 300.
        """,
    )
    thin: int = parameter(
        default=1,
        text="""
        Proposals per kept draw.
        """,
    )
    predict_draws: int = parameter(
        default=240,
        text="""
        Evenly spaced draws of weights that predictions average over, at most.
        """,
    )
