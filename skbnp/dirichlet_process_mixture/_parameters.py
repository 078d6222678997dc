"""Constructor parameters of the mixture."""

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval, StrOptions

from skbnp.dirichlet_process_mixture._model import LAWS, SCALE_GRID
from skbnp.dirichlet_process_mixture._sampler_settings import MixtureSampler
from skbnp.dirichlet_process_mixture.families import FAMILIES, KINDS
from skbnp.estimators.parameters import parameter
from skbnp.estimators.rounds import WarmupInRounds, in_rounds
from skbnp.estimators.settings import moved_to_sampler, of_sampler
from skbnp.laws import Beta, Gamma, Grid, ShiftedBetaNegativeBinomial

# Numbers of a prior, at least and at most.
SMALLEST, LARGEST = 1e-100, 1e100

# What families declare: constructor parameters, and what their columns hold.
PARAMETERS: dict[str, Any] = {
    name: parameter(**x) for family in FAMILIES for name, x in family.PARAMETERS.items()
}
WORDS = ",\n        ".join(f'"{kind.name}" ({kind.text})' for kind in KINDS.values())


class MixtureParameters(WarmupInRounds):
    """Parameters of the mixture and of its chains."""

    _settings_type = MixtureSampler
    _renamed = {
        "concentration_prior": "concentration takes the law itself, Gamma(shape, rate)",
        "discount_prior": "discount takes the law itself, Beta(a, b)",
        "n_components_prior": "n_components takes the law itself, "
        "ShiftedBetaNegativeBinomial(a, b, c)",
        **moved_to_sampler(MixtureSampler, "algorithm", "n_split_merge", "split_merge"),
    }

    family: str | Sequence[str] | dict = parameter(
        default="auto",
        kind="str, sequence of str or dict",
        rules=[StrOptions({*KINDS, "auto"}), list, tuple, dict],
        text=f"""
        What the columns hold:
        {WORDS};
        one for all columns, a sequence with one per column, or a dict by column name, where columns
        it leaves out are "auto". "auto" takes an array of numbers as real. It goes by the columns
        of a frame, of an array of bool, and of one of objects with names or bool among them:
        categories, strings and other objects are categorical, but strings of numbers that are not
        all whole are real; bool, and numbers that are 0 and 1, are Bernoulli; numbers of at most
        twelve values, each in ten rows or more in the mean, are categorical, as answers, codes and
        doses are, but for those that are plainly counts: whole ones that begin at 0, half of them
        below 10 and none above 100, with a variance of .7 of their mean or more, but for chance,
        and the largest in a twentieth of the rows or less; these, and other integers that begin at
        0 or 1, half of them below 10 and none above 100, are counts; up to thirty values, each in
        ten rows in the mean, are categorical where one is in a quarter of the rows, as years of
        schooling are; all other numbers are real. Floats are integers where pandas made them
        floats, for a missing cell. Other numbers that a later table has in a column of numbers
        which "auto" took for categorical are missing, with a warning. `families_` says what each
        column was taken for.
        """,
    )
    n_components: int | ShiftedBetaNegativeBinomial | None = parameter(
        default=None,
        kind="int, ShiftedBetaNegativeBinomial or None",
        rules=[Interval(Integral, 1, 10**15, closed="both"), ShiftedBetaNegativeBinomial, None],
        text="""
        None for infinitely many components (the data use finitely many of them), a number for a
        finite mixture with that many, a law for a finite mixture whose number of components M is
        inferred: ``ShiftedBetaNegativeBinomial(1, 4, 3)``, of mean 2 and a heavy tail, is a good
        one. The latter opens fewer tiny clusters than a Dirichlet process, and its number of
        clusters settles at M where the components are right. It takes no `discount`, and
        `component_concentration` in place of `concentration`.
        """,
    )
    component_concentration: float = parameter(
        default=1.0,
        kind="float",
        rules=[Interval(Real, 1e-10, 1e10, closed="both")],
        text="""
        Dirichlet parameter gamma of the weight of each component where `n_components` is a law,
        1e-10 to 1e10; larger makes cluster sizes more even. With a number of components M it is
        `concentration` / M.
        """,
    )
    covariance_type: str = parameter(
        default="full",
        kind='{"full", "diag", "spherical"}',
        rules=[StrOptions({"full", "diag", "spherical"})],
        text="""
        Shape of the components in the real columns. "full" has d (d + 1) / 2 numbers per
        component: above about 20 features, or with fewer than 10 rows per feature, compare it
        with "diag" by the `score` of rows left out ("diag" is far worse where columns have much to
        do with one another), or reduce X first. Components are diagonal or spherical along the
        columns of X, each divided by its standard deviation ("spherical" with a
        `covariance_prior`: by one common scale).
        """,
    )
    concentration: float | Gamma = parameter(
        default=Gamma(1.0, 1.0),
        kind=f"float or {LAWS['concentration'].__name__}",
        rules=[Interval(Real, -1, None, closed="neither"), LAWS["concentration"]],
        text="""
        Strength alpha; more gives more clusters. A number, > -discount (> 0 for a finite mixture),
        fixes it; a law samples it.
        """,
    )
    discount: float | Beta = parameter(
        default=0.0,
        kind=f"float in [0, 1) or {LAWS['discount'].__name__}",
        rules=[Interval(Real, 0, 1, closed="left"), LAWS["discount"]],
        text="""
        Discount of the Pitman-Yor process; more gives more small clusters. ``Beta(1, 9)`` samples
        it, small values being likely.
        """,
    )
    mean_prior: ArrayLike | None = parameter(
        default=None,
        kind="array-like of shape (n_features,)",
        rules=["array-like", None],
        text="""
        Prior mean m0 of the component means, in the units of X. Default: the column means. Here
        and in what follows a table with other columns has as many features as real columns.
        """,
    )
    mean_precision_prior: float | None = parameter(
        default=None,
        kind="float or None",
        rules=[Interval(Real, SMALLEST, LARGEST, closed="both"), None],
        text="""
        kappa0: the prior is worth that many rows, 1e-100 to 1e100. Larger draws the means to
        `mean_prior`. Default: sampled with the covariances, 0.01 where these are not learned.
        """,
    )
    degrees_of_freedom_prior: float | None = parameter(
        default=None,
        kind="float",
        rules=[Interval(Real, 1e-6, 1e8, closed="both"), None],
        text="""
        nu0, > n_features - 1 for "full", >= 1e-6 otherwise, at most 1e8. Default: learned, and
        n_features + 2, or 4, where `covariance_prior` is given.
        """,
    )
    covariance_prior: ArrayLike | None = parameter(
        default=None,
        kind="array-like or float",
        rules=["array-like", Interval(Real, 0, None, closed="neither"), None],
        text="""
        In the squared units of X, as in `sklearn.mixture.BayesianGaussianMixture`: the matrix
        (n_features, n_features) for "full", the vector (n_features,) for "diag", a float for
        "spherical"; `prior_scale` multiplies it. Default: learned. Where
        `degrees_of_freedom_prior` is given: such that the prior mean of a component's covariance
        is `prior_scale` times the shrunk covariance of X (the diagonal of it for "diag" and
        "spherical"); with fewer degrees of freedom than n_features + 2, or 4, the matrix that
        those would have.
        """,
    )
    prior_scale: float | Grid = parameter(
        default=SCALE_GRID,
        kind=f"float or {LAWS['prior_scale'].__name__}",
        rules=[Interval(Real, SMALLEST, LARGEST, closed="both"), LAWS["prior_scale"]],
        text="""
        Multiplier s of `covariance_prior`; only where that or `degrees_of_freedom_prior` is
        given. A grid of positive values, each alike, samples it; the default is 1, 1/2, ...,
        2^-12, small when clusters are tight compared with the spread of X. With your own
        `covariance_prior`, 1.0 takes it as it is.
        """,
    )
    # Those of the families, each beside what it is for; type checkers know those with a line here.
    locals().update(PARAMETERS)
    bernoulli_prior: Beta = PARAMETERS["bernoulli_prior"]
    categorical_prior: float = PARAMETERS["categorical_prior"]
    poisson_prior: Gamma | None = PARAMETERS["poisson_prior"]
    point_estimate: str = parameter(
        default="vi",
        of_chains=False,
        kind='{"vi", "binder", "map"}',
        rules=[StrOptions({"vi", "binder", "map"})],
        text="""
        The components that `labels_` are made of minimise the posterior expected variation of
        information or Binder loss, or are those of the draw with the highest log joint density.
        """,
    )
    merge_overlap: float | None = parameter(
        default=0.3,
        of_chains=False,
        kind="float in (0, 1] or None",
        rules=[Interval(Real, 0, 1, closed="right"), None],
        text="""
        Components are joined to clusters while the chance that, of two, a row of one is put in the
        other is as large, averaged over draws and divided by the share of the rows that the two
        hold to the power of 3/16. Of joined ones it is at most that of one of them, but for pieces
        of less than a twentieth of the rows. Smaller joins more. None leaves components as they
        are. It takes 40 draws.
        """,
    )
    sampler: MixtureSampler | None = parameter(default=None, **of_sampler(MixtureSampler))
    n_chains: int | str = parameter(
        default="auto",
        text="""
        Independent chains; "auto" is 4. They start from one cluster and from k-means with 5 to 20
        centres, in turn, so that they can be seen to agree from either side. With 5,000 rows or
        more each searches for clusters from there: in the first 60 sweeps of a warm-up of at
        least 100, above 20,000 rows before the first sweep.
        """,
    )
    n_warmup: int | str = parameter(
        default="auto",
        text=in_rounds(
            "200 sweeps (100 above 100,000 rows), 400, 800",
            "A number is quicker, as in a grid search, where 200 is a good start.",
        ),
    )
    n_draws: int | str = parameter(
        default="auto",
        text="""
        Draws kept per chain; "auto" is 300 (150 from 5,000 rows on, 100 above 100,000).
        """,
    )
    max_work: float = parameter(default=15.0)

    @classmethod
    def _parameters_of_file(cls, parameters):
        """Those of version 0.1 as they are now: a law was "sample" and a tuple."""
        if "n_components_prior" not in parameters:
            return parameters
        new = dict(parameters)
        new["sampler"] = MixtureSampler(
            **{name: new.pop(name) for name in MixtureSampler._declared}
        )
        law = ShiftedBetaNegativeBinomial(*new.pop("n_components_prior"))
        if new["n_components"] == "sample":
            new["n_components"] = law
        for name in ("concentration", "discount"):
            law = LAWS[name](*new.pop(f"{name}_prior"))
            if new[name] == "sample":
                new[name] = law
        if new["prior_scale"] == "sample":
            new["prior_scale"] = SCALE_GRID
        new["bernoulli_prior"] = Beta(*new["bernoulli_prior"])
        if new["poisson_prior"] is not None:
            new["poisson_prior"] = Gamma(*new["poisson_prior"])
        return new
