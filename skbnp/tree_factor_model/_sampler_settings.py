"""How the tree factor model is sampled."""

from collections.abc import Sequence
from numbers import Integral

from sklearn.utils._param_validation import Interval, StrOptions

from skbnp.estimators.parameters import parameter
from skbnp.estimators.settings import SamplerSettings


class TreeSampler(SamplerSettings):
    """How chains of `TreeFactorModel` draw paths, and where they start.

    See Also
    --------
    skbnp.TreeFactorModel : Takes it as its parameter ``sampler``.

    Examples
    --------
    >>> from skbnp import TreeFactorModel
    >>> from skbnp.samplers import TreeSampler
    >>> model = TreeFactorModel(sampler=TreeSampler(init="kmeans", init_children=6))
    >>> model.set_params(sampler__init_children=8).sampler
    TreeSampler(init='kmeans', init_children=8)
    """

    path_update: str = parameter(
        default="slice",
        kind='{"slice", "collapsed"}',
        rules=[StrOptions({"slice", "collapsed"})],
        text="""
        "slice" draws the paths of all rows at once, given weights of the branches. "collapsed"
        draws each given all others: slower, but it finds branches that the start has missed.
        """,
    )
    birth: str = parameter(
        default="integrated",
        kind='{"integrated", "prior"}',
        rules=[StrOptions({"integrated", "prior"})],
        text="""
        How "collapsed" proposes a new branch. "integrated": its loadings and mean are integrated
        out, and drawn for the row that opens it. "prior": they are drawn from the prior, which
        hardly ever fits a row of more than a few features.
        """,
    )
    init: str = parameter(
        default="auto",
        kind='{"auto", "klines", "em", "kmeans", "single"}',
        rules=[StrOptions({"auto", "klines", "em", "kmeans", "single"})],
        text="""
        Where chains start. "klines": rows are grouped by the lines they scatter along. "em": the
        components of a Gaussian mixture are grouped by the shapes of their covariances; for at
        most a few hundred features, and ten or more rows per feature. "kmeans": clusters of
        k-means are grouped by their centres; where clusters differ in their means. "single": one
        branch. "auto" is "kmeans" with fewer than ten rows per feature, otherwise "em" up to 256
        features and "klines" beyond; for one path it is "single".
        """,
    )
    init_children: int | str | Sequence[int] = parameter(
        default="auto",
        kind='int, sequence of int or "auto"',
        rules=[
            Interval(Integral, 1, None, closed="left"),
            list,
            tuple,
            StrOptions({"auto"}),
        ],
        text="""
        Groups at the start, at most, below every branching level or for each of them. Start with
        too many rather than too few, as branches merge easily and hardly ever split. "auto" makes
        about 16 branches; with "kmeans", one for each 75 rows if these are fewer.
        """,
    )
