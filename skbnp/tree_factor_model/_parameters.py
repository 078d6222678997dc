"""Constructor parameters of the tree factor model."""

from numbers import Integral, Real

from sklearn.utils._param_validation import Interval, StrOptions

from skbnp.estimators.chains import BaseMCMCEstimator
from skbnp.estimators.parameters import parameter
from skbnp.tree_factor_model._model import LEAST_SHRINKAGE


class TreeParameters(BaseMCMCEstimator):
    """Parameters of the model and of its chains."""

    structure: str = parameter(
        "tree",
        '{"tree", "single", "mixture"}',
        [StrOptions({"tree", "single", "mixture"})],
        """
        "single": one path, the infinite factor model of the multiplicative gamma process.
        "mixture": a Dirichlet process mixture of factor analysers that share nothing.
        """,
    )
    max_depth: int | str = parameter(
        "auto",
        'int or "auto"',
        [Interval(Integral, 1, 1_000, closed="both"), StrOptions({"auto"})],
        """
        Loadings on a path, up to 1,000. Deeper does not overfit, shrinkage sees to that; "auto" is
        the number of features, at most 64, or 40 where it lets the tree branch early.
        """,
    )
    branch_levels: int | str | list = parameter(
        "auto",
        'sequence of int or "auto"',
        [list, tuple, StrOptions({"auto"})],
        """
        Levels l, 0 to `max_depth`, below which a tree may branch: 0 is above the first loading,
        `max_depth` lets leaves differ by their means and scales alone. "auto" is half the depth and
        the depth, so that branches share loadings, for ten rows or more for each feature; with
        fewer it is (1, 2), so that they own nearly all of them.
        """,
    )
    branch_depth: int | None = parameter(
        None,
        "int or None",
        [Interval(Integral, 2, None, closed="left"), None],
        """
        Short for ``branch_levels=(1, ..., branch_depth - 1)``: one shared loading, then branching.
        """,
    )
    branch_scale: str = parameter(
        "loadings",
        '{"loadings", "whole", "noise", "none"}',
        [StrOptions({"loadings", "whole", "noise", "none"})],
        """
        Precisions that belong to a branch: those of its scores and its noise, one for its whole
        covariance, that of its noise, or none (the published model).
        """,
    )
    noise: str = parameter(
        "diagonal",
        '{"diagonal", "isotropic"}',
        [StrOptions({"diagonal", "isotropic"})],
        """
        A noise precision for each feature, or one.
        """,
    )
    tail: str = parameter(
        "gaussian",
        '{"gaussian", "t"}',
        [StrOptions({"gaussian", "t"})],
        r"""
        "t" divides the covariance of every row by a factor :math:`u_i \sim \mathrm{Gamma}
        (\mathrm{df}_b / 2, \mathrm{df}_b / 2)` of its own: for rows whose overall contrast
        varies, as that of image patches does, and against outliers.
        """,
    )
    tail_df: str = parameter(
        "branch",
        '{"branch", "shared"}',
        [StrOptions({"branch", "shared"})],
        """
        Degrees of freedom of the tails for each branch, or one for all. They are drawn from a grid
        from 0.5 to 1000 with prior masses proportional to 1 / df.
        """,
    )
    path_update: str = parameter(
        "slice",
        '{"slice", "collapsed"}',
        [StrOptions({"slice", "collapsed"})],
        """
        Paths of all rows at once given weights of the branches, or row by row given all others.
        """,
    )
    birth: str = parameter(
        "integrated",
        '{"integrated", "prior"}',
        [StrOptions({"integrated", "prior"})],
        """
        What a new path is judged by when paths are drawn row by row: its loadings and mean
        integrated out, and drawn for the row that opens it; or a draw of them from the prior,
        which no row of more than a few features will take.
        """,
    )
    concentration: float | str | list = parameter(
        "sample",
        'float, sequence of float or "sample"',
        [
            Interval(Real, 0, None, closed="neither"),
            list,
            tuple,
            StrOptions({"sample"}),
        ],
        """
        Strength of branching, > 0, at all branching levels or at each. More gives more branches.
        """,
    )
    concentration_prior: tuple = parameter(
        (2.0, 2.0),
        "tuple of (shape, rate)",
        [tuple, list],
        """
        Gamma prior of a sampled concentration at the first branching level.
        """,
    )
    concentration_decay: float = parameter(
        0.5,
        "float",
        [Interval(Real, 1e-6, 1, closed="both")],
        """
        Factor, from 1e-6 to 1, by which its prior mean falls from each branching level to the
        next.
        """,
    )
    shrinkage_root: float = parameter(
        2.0,
        "float",
        [Interval(Real, 0.5, 1e6, closed="both")],
        """
        c1, at least 0.5, should be above 1: larger makes all loadings smaller.
        """,
    )
    shrinkage: float = parameter(
        3.0,
        "float",
        [Interval(Real, LEAST_SHRINKAGE, 1e6, closed="right")],
        """
        c2, must be above 1.4616, or loadings would grow down the path, and should be above 2:
        larger makes them fall faster.
        """,
    )
    local_shrinkage_df: float = parameter(
        3.0,
        "float",
        [Interval(Real, 0.5, 1e10, closed="both")],
        """
        Degrees of freedom nu of the loadings, at least 0.5: fewer, heavier tails.
        """,
    )
    noise_prior: tuple = parameter(
        (1.0, 0.3),
        "tuple of (shape, rate)",
        [tuple, list],
        """
        Gamma prior of the noise precision.
        """,
    )
    noise_rate_prior: tuple | None = parameter(
        None,
        "tuple of (shape, rate) or None",
        [tuple, list, None],
        """
        Gamma prior of the rate of `noise_prior`; None fixes it.
        """,
    )
    mean_precision_prior: tuple = parameter(
        (1.0, 1.0),
        "tuple of (shape, rate)",
        [tuple, list],
        """
        Gamma prior of the precision of the leaf means.
        """,
    )
    score_precision_prior: float = parameter(
        1.0,
        "float",
        [Interval(Real, 0.1, 1e10, closed="both")],
        """
        Shape and rate of the prior of the branches' score precisions, at least 0.1: larger draws
        them to 1.
        """,
    )
    noise_scale_prior: float = parameter(
        1.0,
        "float",
        [Interval(Real, 0.1, 1e10, closed="both")],
        """
        The same for the factor of their noise precision.
        """,
    )
    scale: str = parameter(
        "global",
        '{"global", "column"}',
        [StrOptions({"global", "column"})],
        """
        Divide centred X by one standard deviation, or each column by its own.
        """,
    )
    init: str = parameter(
        "auto",
        '{"auto", "klines", "em", "kmeans", "single"}',
        [StrOptions({"auto", "klines", "em", "kmeans", "single"})],
        """
        Chains start from rows grouped by the lines they scatter along; from the components of a
        Gaussian mixture, grouped by the shapes of their covariances, for at most a few hundred
        features and some ten rows for each; from the clusters of k-means, grouped by their
        centres, where clusters differ in their means; or from one branch. "auto" is "kmeans" for
        fewer than ten rows for each feature, else "em" up to 256 features and "klines" beyond.
        """,
    )
    init_children: int | str | list = parameter(
        "auto",
        'int, sequence of int or "auto"',
        [
            Interval(Integral, 1, None, closed="left"),
            list,
            tuple,
            StrOptions({"auto"}),
        ],
        """
        Groups below every branching level, or each, at the start, at most. Start with too many
        rather than too few: branches merge easily and split hardly. "auto" makes about 16
        branches, with "kmeans" one for each 75 rows, if that is less.
        """,
    )
    new_branch: str = parameter(
        "drop",
        '{"drop", "prior"}',
        [StrOptions({"drop", "prior"})],
        """
        What becomes of the probability that a new row opens a branch of its own: prediction leaves
        it out, or puts four branches in for it, drawn from the prior with loadings and mean
        integrated out, below each node that may branch. The latter is slower, and matters for rows
        unlike all others.
        """,
    )
    n_chains: int = parameter(
        4,
        None,
        None,
        """
        Independent chains. They find different trees; averages over several predict better.
        """,
    )
    n_warmup: int | str = parameter(
        "auto",
        None,
        None,
        """
        Sweeps per chain before the first draw; "auto" is 500.
        """,
    )
    n_draws: int | str = parameter(
        "auto",
        None,
        None,
        """
        Draws kept per chain; "auto" is 200.
        """,
    )
    n_jobs: int | None = parameter(
        None,
        None,
        None,
        """
        Chains at a time in `fit`, threads over rows within a chain where jobs outnumber chains,
        and when predicting; see `joblib.Parallel`. The results do not depend on it.
        """,
    )
