"""Constructor parameters of the mixture."""

from numbers import Integral, Real

from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval, StrOptions

from skbnp.dirichlet_process_mixture._table import FAMILIES
from skbnp.estimators.chains import BaseMCMCEstimator
from skbnp.estimators.parameters import parameter

_SMALLEST, _LARGEST = 1e-100, 1e100


class MixtureParameters(BaseMCMCEstimator):
    """Parameters of the mixture and of its chains."""

    family: str | list | dict = parameter(
        "gaussian",
        "str, sequence of str or dict",
        [StrOptions({*FAMILIES, "auto"}), list, tuple, dict],
        """
        What the columns hold: "gaussian" (real numbers), "bernoulli" (0, 1 or bool),
        "categorical" (names, or integers that name levels) or "poisson" (counts, 0 to 2^22); one
        for all columns, a sequence with one per column, or a dict by column name, where columns
        it leaves out are "auto". "auto" goes by the dtype: categories, strings and objects are
        categorical, bool is Bernoulli, non-negative integers up to 2^22 are counts, all else is
        real. `families_` says what each column was taken for.
        """,
    )
    n_components: int | str | None = parameter(
        None,
        'int, "sample" or None',
        [
            Interval(Integral, 1, 10**15, closed="both"),
            StrOptions({"sample"}),
            None,
        ],
        """
        None for infinitely many components (the data use finitely many of them), a number for a
        finite mixture with that many, "sample" for a finite mixture whose number of components M
        is inferred. The latter opens fewer tiny clusters than a Dirichlet process, and its number
        of clusters settles at M where the components are right. It takes no `discount`, and
        `component_concentration` in place of `concentration`.
        """,
    )
    n_components_prior: tuple = parameter(
        (1, 4, 3),
        "tuple of (a, b, c)",
        [tuple, list],
        """
        Law of M for ``n_components="sample"``: M - 1 ~ BetaNegativeBinomial(a, b, c), with mean
        a c / (b - 1) and a tail like M^(-1 - b); each number from 0.1 to 1e4.
        """,
    )
    component_concentration: float = parameter(
        1.0,
        "float",
        [Interval(Real, 1e-10, 1e10, closed="both")],
        """
        Dirichlet parameter gamma of the weight of each component for ``n_components="sample"``,
        1e-10 to 1e10; larger makes cluster sizes more even. With a number of components M it is
        `concentration` / M.
        """,
    )
    covariance_type: str = parameter(
        "full",
        '{"full", "diag", "spherical"}',
        [StrOptions({"full", "diag", "spherical"})],
        """
        Shape of the components in the real columns. "full" has d (d + 1) / 2 numbers per
        component: above about 20 features, or with fewer than 10 rows per feature, prefer "diag"
        or reduce X first. Components are diagonal or spherical along the columns of X, each
        divided by its standard deviation ("spherical" with a `covariance_prior`: by one common
        scale).
        """,
    )
    concentration: float | str = parameter(
        "sample",
        'float or "sample"',
        [Interval(Real, -1, None, closed="neither"), StrOptions({"sample"})],
        """
        Strength alpha; more gives more clusters. A number, > -discount (> 0 for a finite mixture),
        fixes it.
        """,
    )
    concentration_prior: tuple = parameter(
        (1.0, 1.0),
        "tuple of (shape, rate)",
        [tuple, list],
        """
        Gamma prior of a sampled concentration.
        """,
    )
    discount: float | str = parameter(
        0.0,
        'float in [0, 1) or "sample"',
        [Interval(Real, 0, 1, closed="left"), StrOptions({"sample"})],
        """
        Discount of the Pitman-Yor process; more gives more small clusters.
        """,
    )
    discount_prior: tuple = parameter(
        (1.0, 9.0),
        "tuple of (a, b)",
        [tuple, list],
        """
        Beta prior of a sampled discount.
        """,
    )
    mean_prior: ArrayLike | None = parameter(
        None,
        "array-like of shape (n_features,)",
        ["array-like", None],
        """
        Prior mean m0 of the component means, in the units of X. Default: the column means. Here
        and in what follows a table with other columns has as many features as real columns.
        """,
    )
    mean_precision_prior: float | None = parameter(
        None,
        "float or None",
        [Interval(Real, _SMALLEST, _LARGEST, closed="both"), None],
        """
        kappa0: the prior is worth that many rows, 1e-100 to 1e100. Larger draws the means to
        `mean_prior`. Default: sampled with the covariances, 0.01 where these are not learned.
        """,
    )
    degrees_of_freedom_prior: float | None = parameter(
        None,
        "float",
        [Interval(Real, 1e-6, 1e8, closed="both"), None],
        """
        nu0, > n_features - 1 for "full", >= 1e-6 otherwise, at most 1e8. Default: learned, and
        n_features + 2, or 4, where `covariance_prior` is given.
        """,
    )
    covariance_prior: ArrayLike | None = parameter(
        None,
        "array-like or float",
        ["array-like", Interval(Real, 0, None, closed="neither"), None],
        """
        In the squared units of X, as in `sklearn.mixture.BayesianGaussianMixture`: the matrix
        (n_features, n_features) for "full", the vector (n_features,) for "diag", a float for
        "spherical"; `prior_scale` multiplies it. Default: learned. Where
        `degrees_of_freedom_prior` is given: such that the prior mean of a component's covariance
        is `prior_scale` times the shrunk covariance of X (the diagonal of it for "diag" and
        "spherical"); with fewer degrees of freedom than n_features + 2, or 4, the matrix that
        those would have.
        """,
    )
    prior_scale: float | str = parameter(
        "sample",
        'float or "sample"',
        [
            Interval(Real, _SMALLEST, _LARGEST, closed="both"),
            StrOptions({"sample"}),
        ],
        """
        Multiplier s of `covariance_prior`; only where that or `degrees_of_freedom_prior` is
        given. "sample" draws it, uniform on 1, 1/2, ..., 2^-12: small when clusters are tight
        compared with the spread of X. With your own `covariance_prior`, 1.0 takes it as it is.
        """,
    )
    bernoulli_prior: tuple = parameter(
        (0.5, 0.5),
        "tuple of (a, b)",
        [tuple, list],
        """
        Beta prior of the probability of a 1 in every Bernoulli column.
        """,
    )
    categorical_prior: float = parameter(
        1.0,
        "float",
        [Interval(Real, 1e-10, 1e10, closed="both")],
        """
        Total of the pseudo counts of every categorical column, shared evenly by its levels.
        """,
    )
    poisson_prior: tuple | None = parameter(
        None,
        "tuple of (shape, rate) or None",
        [tuple, list, None],
        """
        Gamma prior of the rate of every Poisson column. Default: shape 1 and the column's own
        mean, at least 1 / n_samples.
        """,
    )
    algorithm: str = parameter(
        "auto",
        '{"auto", "collapsed", "parallel", "gibbs"}',
        [StrOptions({"auto", "collapsed", "parallel", "gibbs"})],
        """
        How a sweep draws the labels. "collapsed": row after row, everything else integrated out;
        mixes best per sweep. "parallel": all rows at once given weights and parameters of the
        clusters, and some 2,000 rows as in "collapsed"; for many rows, on all cores. "gibbs": all
        rows at once given weights and parameters of all components; only with `n_components`, at
        most 10,000. "auto" is "collapsed" up to 20,000 rows, "parallel" above.
        """,
    )
    n_split_merge: int | str = parameter(
        "auto",
        'int or "auto"',
        [Interval(Integral, 0, None, closed="left"), StrOptions({"auto"})],
        """
        Split-merge proposals per sweep; 0 for none. "auto" is the larger of 4 and half the
        number of clusters, followed during warm-up and then frozen.
        """,
    )
    split_merge: str = parameter(
        "sequential",
        '{"sequential", "restricted_gibbs"}',
        [StrOptions({"sequential", "restricted_gibbs"})],
        """
        How a split is proposed: rows allocated one after the other [2]_, or by restricted Gibbs
        sampling from a random start [4]_.
        """,
    )
    point_estimate: str = parameter(
        "vi",
        '{"vi", "binder", "map"}',
        [StrOptions({"vi", "binder", "map"})],
        """
        The components that `labels_` are made of minimise the posterior expected variation of
        information or Binder loss, or are those of the draw with the highest log joint density.
        """,
    )
    merge_overlap: float | None = parameter(
        0.3,
        "float in (0, 1] or None",
        [Interval(Real, 0, 1, closed="right"), None],
        """
        Components are joined to clusters while the chance that, of two, a row of one is put in the
        other is as large, averaged over draws and divided by the fourth root of the share of the
        rows that the two hold. Smaller joins more. None leaves components as they are. It takes 40
        draws.
        """,
    )
    n_chains: int = parameter(
        4,
        None,
        None,
        """
        Independent chains. They start from one cluster and from k-means with 5 to 20 centres, in
        turn, so that they can be seen to agree from either side.
        """,
    )
    n_warmup: int | str = parameter(
        "auto",
        None,
        None,
        """
        Sweeps per chain before the first draw. "auto" runs rounds of 200 sweeps (100 above
        100,000 rows), 400, 800, ... until the traces that `fit` checks agree between the chains
        (R-hat up to 1.05, 100 effective draws in the last half of the round, no drift) or
        `max_work` is spent; draws are kept after that, and none of them takes part in the
        decision. A number is quicker, as in a grid search, where 200 is a good start.
        """,
    )
    n_draws: int | str = parameter(
        "auto",
        None,
        None,
        """
        Draws kept per chain; "auto" is 300 (100 above 100,000 rows).
        """,
    )
    thin: int | str = parameter(
        "auto",
        'int or "auto"',
        [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        """
        Sweeps per kept draw. "auto" is 1 where `n_warmup` is a number, and otherwise follows from
        the effective sample size at the end of the warm-up, so that 300 draws are as many sweeps
        as 200 effective draws need; ``posterior_.sweeps_per_draw`` says what it came to.
        """,
    )
    max_work: float = parameter(
        15.0,
        "float",
        [Interval(Real, 0, None, closed="neither")],
        """
        Bound on the work of all chains together where `n_warmup` is "auto", in about seconds of
        one core. It is counted from sweeps, rows, clusters and columns and never timed, so that
        a fit makes the same draws on every machine. The first round of warm-up and the draws
        after it are made in any case.
        """,
    )
