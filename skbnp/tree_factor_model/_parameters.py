"""Constructor parameters of the tree factor model."""

from collections.abc import Sequence
from numbers import Integral, Real

from sklearn.utils._param_validation import Interval, StrOptions

from skbnp.estimators.chains import BaseMCMCEstimator
from skbnp.estimators.interval_calibration import interval_calibration
from skbnp.estimators.parameters import parameter
from skbnp.estimators.settings import moved_to_sampler, of_sampler
from skbnp.laws import Gamma
from skbnp.tree_factor_model._model import LEAST_SHRINKAGE
from skbnp.tree_factor_model._sampler_settings import TreeSampler


class TreeParameters(BaseMCMCEstimator):
    """Parameters of the model and of its chains."""

    _settings_type = TreeSampler
    _renamed = {
        "branch_depth": "for branch_depth=4 write branch_levels=(1, 2, 3)",
        "tail": "tail is called tails now",
        **moved_to_sampler(TreeSampler, "path_update", "birth", "init", "init_children"),
        "concentration_prior": "concentration takes the law itself: "
        "concentration=Gamma(shape, rate), from skbnp.laws",
        "noise_prior": "write noise_precision=Gamma(shape, rate), from skbnp.laws",
        "noise_rate_prior": "the rate of noise_precision takes the law itself: "
        "noise_precision=Gamma(shape, Gamma(shape, rate)), from skbnp.laws",
        "mean_precision_prior": "write mean_precision=Gamma(shape, rate), from skbnp.laws",
        "score_precision_prior": "score_precision_prior is called score_precision_shape now",
        "noise_scale_prior": "noise_scale_prior is called noise_scale_shape now",
        "scale": 'write scaling="common" for scale="global", scaling="each" for scale="column"',
    }

    structure: str = parameter(
        default="tree",
        kind='{"tree", "single", "mixture"}',
        rules=[StrOptions({"tree", "single", "mixture"})],
        text="""
        "tree": branches share loadings. "single": one path, which is the infinite factor model of
        the multiplicative gamma process. "mixture": a Dirichlet process mixture of factor
        analysers that share nothing.
        """,
    )
    max_depth: int | str = parameter(
        default="auto",
        kind='int or "auto"',
        rules=[Interval(Integral, 1, 1_000, closed="both"), StrOptions({"auto"})],
        text="""
        Loadings on a path, up to 1,000. Thanks to shrinkage a greater depth does not overfit many
        rows; where they are few, missing cells are filled with larger errors. "auto" is the number
        of features, but at most ten or one level for every six rows, and at most 64, or 40 where
        "auto" also lets the tree branch early.
        """,
    )
    branch_levels: str | Sequence[int] = parameter(
        default="auto",
        kind='sequence of int or "auto"',
        rules=[list, tuple, StrOptions({"auto"})],
        text="""
        Levels, from 0 to `max_depth`, below which a tree may branch. 0 is above the first loading;
        at `max_depth` leaves of one path differ by their means and scales alone. "auto" is half
        the depth and the depth for ten or more rows per feature, so that branches share loadings.
        With fewer rows it is (1, 2), so that they own nearly all of them.
        """,
    )
    branch_scale: str = parameter(
        default="loadings",
        kind='{"loadings", "whole", "noise", "none"}',
        rules=[StrOptions({"loadings", "whole", "noise", "none"})],
        text="""
        Which precisions each branch has for itself. "loadings": those of its scores and its noise.
        "whole": one for its whole covariance. "noise": that of its noise. "none": none, as in the
        published model [1]_.
        """,
    )
    noise: str = parameter(
        default="diagonal",
        kind='{"diagonal", "isotropic"}',
        rules=[StrOptions({"diagonal", "isotropic"})],
        text="""
        One noise precision for each feature, or one for all.
        """,
    )
    tails: str = parameter(
        default="gaussian",
        kind='{"gaussian", "t"}',
        rules=[StrOptions({"gaussian", "t"})],
        text=r"""
        "t" divides the covariance of every row by a factor of its own, :math:`u_i \sim
        \mathrm{Gamma}(\mathrm{df}_b / 2, \mathrm{df}_b / 2)`. It is for rows whose overall
        contrast varies, such as image patches, and for outliers.
        """,
    )
    tail_df: str = parameter(
        default="branch",
        kind='{"branch", "shared"}',
        rules=[StrOptions({"branch", "shared"})],
        text="""
        Whether each branch has its own degrees of freedom, or all share them. They are sampled on a
        grid from 0.5 to 1000, with prior masses proportional to 1 / df.
        """,
    )
    concentration: float | Gamma | Sequence[float] = parameter(
        default=Gamma(2.0, 2.0),
        kind="float, Gamma or sequence of float",
        rules=[Interval(Real, 0, None, closed="neither"), Gamma, list, tuple],
        text="""
        How readily paths branch: a number > 0 for all branching levels, a sequence with one for
        each, or the law of a sampled concentration at the first of them. A larger concentration
        gives more branches.
        """,
    )
    concentration_decay: float = parameter(
        default=0.5,
        kind="float",
        rules=[Interval(Real, 1e-6, 1, closed="both")],
        text="""
        Factor, from 1e-6 to 1, by which the prior mean of a sampled concentration falls from each
        branching level to the next.
        """,
    )
    shrinkage_root: float = parameter(
        default=2.0,
        kind="float",
        rules=[Interval(Real, 0.5, 1e6, closed="both")],
        text="""
        c1, at least 0.5. It should be above 1; a larger one makes all loadings smaller.
        """,
    )
    shrinkage: float = parameter(
        default=3.0,
        kind="float",
        rules=[Interval(Real, LEAST_SHRINKAGE, 1e6, closed="right")],
        text="""
        c2, above 1.4616, as loadings would otherwise grow down the path. It should be above 2; a
        larger one makes loadings shrink faster.
        """,
    )
    local_shrinkage_df: float = parameter(
        default=3.0,
        kind="float",
        rules=[Interval(Real, 0.5, 1e10, closed="both")],
        text="""
        Degrees of freedom nu of the loadings, at least 0.5. Fewer mean heavier tails.
        """,
    )
    noise_precision: Gamma = parameter(
        default=Gamma(1.0, Gamma(1.0, 1.0)),
        kind="Gamma",
        rules=[Gamma],
        text=r"""
        Law of the noise precisions :math:`\lambda`, for X divided as `scaling` says. Its rate is a
        number, 0.3 in [1]_, or sampled, at least 0.001: columns that follow from others have
        little noise then, and the rest has as much as before.
        """,
    )
    mean_precision: Gamma = parameter(
        default=Gamma(1.0, 1.0),
        kind="Gamma",
        rules=[Gamma],
        text=r"""
        Law of the precisions :math:`\xi` of the leaf means, in the same units.
        """,
    )
    score_precision_shape: float = parameter(
        default=1.0,
        kind="float",
        rules=[Interval(Real, 0.1, 1e10, closed="both")],
        text="""
        Shape, at least 0.1, of the law Gamma(shape, shape) of the branches' score precisions. A
        larger one draws them towards 1.
        """,
    )
    noise_scale_shape: float = parameter(
        default=1.0,
        kind="float",
        rules=[Interval(Real, 0.1, 1e10, closed="both")],
        text="""
        The same for the factor of the branches' noise precisions.
        """,
    )
    scaling: str = parameter(
        default="auto",
        kind='{"auto", "common", "each"}',
        rules=[StrOptions({"auto", "common", "each"})],
        text="""
        X is centred and divided by one standard deviation common to all columns, or each column by
        its own, for the law of the noise is that of columns of about one size. "auto" is "common"
        where no standard deviation is more than ten times another; where half of the columns that
        vary have the least and the greatest value of all, as pixels do; and where they are 40 or
        more, half of which have a quarter of the range of all. Otherwise it is "each".
        """,
    )
    interval_calibration: str | None = interval_calibration()
    merge_overlap: float | None = parameter(
        default=0.1,
        of_chains=False,
        kind="float in (0, 1] or None",
        rules=[Interval(Real, 0, 1, closed="right"), None],
        text="""
        Two branches of a draw are one cluster while a row of one is put in the other with at least
        this probability. Smaller values join more. None leaves branches as they are.
        """,
    )
    new_branch: str = parameter(
        default="drop",
        of_chains=False,
        kind='{"drop", "prior"}',
        rules=[StrOptions({"drop", "prior"})],
        text="""
        What prediction does with the probability that a new row opens a branch of its own. "drop"
        leaves it out. "prior" replaces it by four branches below each node that may branch, drawn
        from the prior with loadings and mean integrated out. This is slower, and matters for rows
        that are unlike all others.
        """,
    )
    sampler: TreeSampler | None = parameter(default=None, **of_sampler(TreeSampler))
    n_chains: int | str = parameter(
        default="auto",
        text="""
        Independent chains. They find different trees, and averages over several predict better.
        "auto" is 4; where `n_warmup` is "auto" too and there is more than one path, 16 from 40
        columns on and 32 above 100, where many short chains predict better than a few long ones.
        """,
    )
    n_warmup: int | str = parameter(
        default="auto",
        text="""
        Sweeps per chain before the first draw; "auto" is 500 for 4 chains or a number that you
        choose, 110 for 16 and 50 for 32 that "auto" chooses.
        """,
    )
    n_draws: int | str = parameter(
        default="auto",
        text="""
        Draws kept per chain; "auto" is likewise 200, 25 and 15.
        """,
    )
    predict_draws: int = parameter(
        default=100,
        text="""
        Evenly spaced draws that predict-type methods use, at most. Densities under eight chains or
        more are means over five times as many.
        """,
    )
    n_jobs: int | None = parameter(
        default=None,
        text="""
        Chains at a time in `fit`, threads over rows within a chain where jobs outnumber chains,
        and when predicting; see `joblib.Parallel`. The results do not depend on it.
        """,
    )
