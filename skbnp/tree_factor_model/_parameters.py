"""Constructor parameters of the tree factor model."""

from numbers import Integral, Real

from sklearn.utils._param_validation import Interval, StrOptions

from skbnp.estimators.chains import BaseMCMCEstimator
from skbnp.estimators.parameters import parameter
from skbnp.tree_factor_model._model import LEAST_SHRINKAGE


class TreeParameters(BaseMCMCEstimator):
    """Parameters of the model and of its chains."""

    structure: str = parameter(
        default="tree",
        kind='{"tree", "single", "mixture"}',
        rules=[StrOptions({"tree", "single", "mixture"})],
        text="""
        "single": one path, the infinite factor model of the multiplicative gamma process.
        "mixture": a Dirichlet process mixture of factor analysers that share nothing.
        """,
    )
    max_depth: int | str = parameter(
        default="auto",
        kind='int or "auto"',
        rules=[Interval(Integral, 1, 1_000, closed="both"), StrOptions({"auto"})],
        text="""
        Loadings on a path, up to 1,000. Deeper does not overfit, shrinkage sees to that; "auto" is
        the number of features, at most 64, or 40 where it lets the tree branch early.
        """,
    )
    branch_levels: int | str | list = parameter(
        default="auto",
        kind='sequence of int or "auto"',
        rules=[list, tuple, StrOptions({"auto"})],
        text="""
        Levels l, 0 to `max_depth`, below which a tree may branch: 0 is above the first loading,
        `max_depth` lets leaves differ by their means and scales alone. "auto" is half the depth and
        the depth, so that branches share loadings, for ten rows or more for each feature; with
        fewer it is (1, 2), so that they own nearly all of them.
        """,
    )
    branch_depth: int | None = parameter(
        default=None,
        kind="int or None",
        rules=[Interval(Integral, 2, None, closed="left"), None],
        text="""
        Short for ``branch_levels=(1, ..., branch_depth - 1)``: one shared loading, then branching.
        """,
    )
    branch_scale: str = parameter(
        default="loadings",
        kind='{"loadings", "whole", "noise", "none"}',
        rules=[StrOptions({"loadings", "whole", "noise", "none"})],
        text="""
        Precisions that belong to a branch: those of its scores and its noise, one for its whole
        covariance, that of its noise, or none (the published model).
        """,
    )
    noise: str = parameter(
        default="diagonal",
        kind='{"diagonal", "isotropic"}',
        rules=[StrOptions({"diagonal", "isotropic"})],
        text="""
        A noise precision for each feature, or one.
        """,
    )
    tail: str = parameter(
        default="gaussian",
        kind='{"gaussian", "t"}',
        rules=[StrOptions({"gaussian", "t"})],
        text=r"""
        "t" divides the covariance of every row by a factor :math:`u_i \sim \mathrm{Gamma}
        (\mathrm{df}_b / 2, \mathrm{df}_b / 2)` of its own: for rows whose overall contrast
        varies, as that of image patches does, and against outliers.
        """,
    )
    tail_df: str = parameter(
        default="branch",
        kind='{"branch", "shared"}',
        rules=[StrOptions({"branch", "shared"})],
        text="""
        Degrees of freedom of the tails for each branch, or one for all. They are drawn from a grid
        from 0.5 to 1000 with prior masses proportional to 1 / df.
        """,
    )
    path_update: str = parameter(
        default="slice",
        kind='{"slice", "collapsed"}',
        rules=[StrOptions({"slice", "collapsed"})],
        text="""
        Paths of all rows at once given weights of the branches, or row by row given all others.
        """,
    )
    birth: str = parameter(
        default="integrated",
        kind='{"integrated", "prior"}',
        rules=[StrOptions({"integrated", "prior"})],
        text="""
        What a new path is judged by when paths are drawn row by row: its loadings and mean
        integrated out, and drawn for the row that opens it; or a draw of them from the prior,
        which no row of more than a few features will take.
        """,
    )
    concentration: float | str | list = parameter(
        default="sample",
        kind='float, sequence of float or "sample"',
        rules=[
            Interval(Real, 0, None, closed="neither"),
            list,
            tuple,
            StrOptions({"sample"}),
        ],
        text="""
        Strength of branching, > 0, at all branching levels or at each. More gives more branches.
        """,
    )
    concentration_prior: tuple = parameter(
        default=(2.0, 2.0),
        kind="tuple of (shape, rate)",
        rules=[tuple, list],
        text="""
        Gamma prior of a sampled concentration at the first branching level.
        """,
    )
    concentration_decay: float = parameter(
        default=0.5,
        kind="float",
        rules=[Interval(Real, 1e-6, 1, closed="both")],
        text="""
        Factor, from 1e-6 to 1, by which its prior mean falls from each branching level to the
        next.
        """,
    )
    shrinkage_root: float = parameter(
        default=2.0,
        kind="float",
        rules=[Interval(Real, 0.5, 1e6, closed="both")],
        text="""
        c1, at least 0.5, should be above 1: larger makes all loadings smaller.
        """,
    )
    shrinkage: float = parameter(
        default=3.0,
        kind="float",
        rules=[Interval(Real, LEAST_SHRINKAGE, 1e6, closed="right")],
        text="""
        c2, must be above 1.4616, or loadings would grow down the path, and should be above 2:
        larger makes them fall faster.
        """,
    )
    local_shrinkage_df: float = parameter(
        default=3.0,
        kind="float",
        rules=[Interval(Real, 0.5, 1e10, closed="both")],
        text="""
        Degrees of freedom nu of the loadings, at least 0.5: fewer, heavier tails.
        """,
    )
    noise_prior: tuple = parameter(
        default=(1.0, 0.3),
        kind="tuple of (shape, rate)",
        rules=[tuple, list],
        text="""
        Gamma prior of the noise precision.
        """,
    )
    noise_rate_prior: tuple | None = parameter(
        default=None,
        kind="tuple of (shape, rate) or None",
        rules=[tuple, list, None],
        text="""
        Gamma prior of the rate of `noise_prior`; None fixes it.
        """,
    )
    mean_precision_prior: tuple = parameter(
        default=(1.0, 1.0),
        kind="tuple of (shape, rate)",
        rules=[tuple, list],
        text="""
        Gamma prior of the precision of the leaf means.
        """,
    )
    score_precision_prior: float = parameter(
        default=1.0,
        kind="float",
        rules=[Interval(Real, 0.1, 1e10, closed="both")],
        text="""
        Shape and rate of the prior of the branches' score precisions, at least 0.1: larger draws
        them to 1.
        """,
    )
    noise_scale_prior: float = parameter(
        default=1.0,
        kind="float",
        rules=[Interval(Real, 0.1, 1e10, closed="both")],
        text="""
        The same for the factor of their noise precision.
        """,
    )
    scale: str = parameter(
        default="global",
        kind='{"global", "column"}',
        rules=[StrOptions({"global", "column"})],
        text="""
        Divide centred X by one standard deviation, or each column by its own.
        """,
    )
    init: str = parameter(
        default="auto",
        kind='{"auto", "klines", "em", "kmeans", "single"}',
        rules=[StrOptions({"auto", "klines", "em", "kmeans", "single"})],
        text="""
        Chains start from rows grouped by the lines they scatter along; from the components of a
        Gaussian mixture, grouped by the shapes of their covariances, for at most a few hundred
        features and some ten rows for each; from the clusters of k-means, grouped by their
        centres, where clusters differ in their means; or from one branch. "auto" is "kmeans" for
        fewer than ten rows for each feature, else "em" up to 256 features and "klines" beyond.
        """,
    )
    init_children: int | str | list = parameter(
        default="auto",
        kind='int, sequence of int or "auto"',
        rules=[
            Interval(Integral, 1, None, closed="left"),
            list,
            tuple,
            StrOptions({"auto"}),
        ],
        text="""
        Groups below every branching level, or each, at the start, at most. Start with too many
        rather than too few: branches merge easily and split hardly. "auto" makes about 16
        branches, with "kmeans" one for each 75 rows, if that is less.
        """,
    )
    new_branch: str = parameter(
        default="drop",
        kind='{"drop", "prior"}',
        rules=[StrOptions({"drop", "prior"})],
        text="""
        What becomes of the probability that a new row opens a branch of its own: prediction leaves
        it out, or puts four branches in for it, drawn from the prior with loadings and mean
        integrated out, below each node that may branch. The latter is slower, and matters for rows
        unlike all others.
        """,
    )
    n_chains: int = parameter(
        default=4,
        text="""
        Independent chains. They find different trees; averages over several predict better.
        """,
    )
    n_warmup: int | str = parameter(
        default="auto",
        text="""
        Sweeps per chain before the first draw; "auto" is 500.
        """,
    )
    n_draws: int | str = parameter(
        default="auto",
        text="""
        Draws kept per chain; "auto" is 200.
        """,
    )
    n_jobs: int | None = parameter(
        default=None,
        text="""
        Chains at a time in `fit`, threads over rows within a chain where jobs outnumber chains,
        and when predicting; see `joblib.Parallel`. The results do not depend on it.
        """,
    )
