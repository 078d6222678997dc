"""Laws of hyperparameters: a number fixes a hyperparameter, a law samples it.

``concentration=2.0`` fixes the concentration, ``concentration=Gamma(shape=1, rate=1)`` gives it
that prior. The names of a law's fields say how it is parametrised. A field may itself be a law
where an estimator says so: ``Gamma(shape=1, rate=Gamma(shape=1, rate=1))``.
"""

import dataclasses
from dataclasses import dataclass
from functools import lru_cache
from numbers import Real
from threading import get_ident

import numpy as np
from scipy import stats
from sklearn.utils import check_random_state

__all__ = [
    "Beta",
    "Gamma",
    "Grid",
    "InverseGamma",
    "Law",
    "Normal",
    "NormalGamma",
    "ShiftedBetaNegativeBinomial",
    "Uniform",
]

# Numbers beyond these leave start values and log densities outside the range of floats.
_SMALLEST, _LARGEST = 1e-10, 1e10


@lru_cache(maxsize=256)
def _frozen(law, thread):
    """A law as SciPy has it, which takes a millisecond to make.

    Each thread has its own, for it holds the generator while it draws.
    """
    return law._scipy()


class Law:
    """Base of all laws: a frozen value, compared and hashed by its numbers.

    A law is a function, its density: as a callable it may be the default of a parameter, which
    scikit-learn refuses of other objects.
    """

    def __call__(self, x):
        """Density, or probability where the law is discrete."""
        return np.exp(self.log_density(x))

    def log_density(self, x):
        """Log density, or log probability where the law is discrete.

        Parameters
        ----------
        x : array-like
            Of any shape.

        Returns
        -------
        log_density : float or ndarray of the shape of x
            -inf outside the support.

        Raises
        ------
        TypeError
            If a field is itself a law: given its value only there is a density.
        """
        self._refuse_laws()
        return _frozen(self, get_ident()).logpdf(x)

    def sample(self, size=None, random_state=None):
        """Independent draws.

        Parameters
        ----------
        size : int, tuple of int or None
            Shape of what is returned; None for one number.
        random_state : int, RandomState instance, Generator or None

        Returns
        -------
        draws : float or ndarray of shape `size`

        Raises
        ------
        TypeError
            If a field is itself a law: draw that first.
        """
        self._refuse_laws()
        frozen = _frozen(self, get_ident())
        found = frozen.rvs(size=1 if size is None else size, random_state=_rng(random_state))
        return float(found[0]) if size is None else found

    def mean(self):
        """Expected value.

        Returns
        -------
        mean : float
            inf or NaN where there is none.
        """
        self._refuse_laws()
        return float(_frozen(self, get_ident()).mean())

    def _scipy(self):
        """The law as SciPy has it."""
        raise NotImplementedError

    def _refuse_laws(self):
        for field in dataclasses.fields(self):
            if isinstance(getattr(self, field.name), Law):
                raise TypeError(
                    f"{type(self).__name__} has no density or draws of its own while its "
                    f"{field.name} is a law, got {self!r}"
                )

    def _check(self, positive=(), real=(), may_be_laws=()):
        """Store fields as floats, or raise a ValueError that names field, rule and value."""
        for name in (*positive, *real):
            value = getattr(self, name)
            if isinstance(value, Law) and name in may_be_laws:
                continue
            if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
                wanted = "a number or a law" if name in may_be_laws else "a number"
                raise TypeError(f"{name} of {type(self).__name__} must be {wanted}, got {value!r}")
            if name in positive and not _SMALLEST <= value <= _LARGEST:
                raise ValueError(
                    f"{name} of {type(self).__name__} must be from {_SMALLEST:g} to "
                    f"{_LARGEST:g}, got {value!r}"
                )
            if not abs(value) <= _LARGEST:
                raise ValueError(
                    f"{name} of {type(self).__name__} must be from {-_LARGEST:g} to "
                    f"{_LARGEST:g}, got {value!r}"
                )
            object.__setattr__(self, name, float(value))


@dataclass(frozen=True)
class Gamma(Law):
    """Gamma law on (0, inf), with mean shape / rate.

    Parameters
    ----------
    shape, rate : float
        1e-10 to 1e10. Where an estimator says so `rate` is itself a Gamma law.
    """

    shape: float
    rate: float | Law

    def __post_init__(self):
        self._check(positive=("shape", "rate"), may_be_laws=("rate",))

    def _scipy(self):
        return stats.gamma(self.shape, scale=1 / self.rate)


@dataclass(frozen=True)
class InverseGamma(Law):
    """Law of 1 / g for g ~ Gamma(shape, scale), with mean scale / (shape - 1) for shape > 1.

    Parameters
    ----------
    shape, scale : float
        1e-10 to 1e10. Where an estimator says so `scale` is itself a Gamma law.
    """

    shape: float
    scale: float | Law

    def __post_init__(self):
        self._check(positive=("shape", "scale"), may_be_laws=("scale",))

    def _scipy(self):
        return stats.invgamma(self.shape, scale=self.scale)


@dataclass(frozen=True)
class Beta(Law):
    """Beta law on (0, 1), with mean a / (a + b).

    Parameters
    ----------
    a, b : float
        1e-10 to 1e10.
    """

    a: float
    b: float

    def __post_init__(self):
        self._check(positive=("a", "b"))

    def _scipy(self):
        return stats.beta(self.a, self.b)


@dataclass(frozen=True)
class Normal(Law):
    """Normal law.

    Parameters
    ----------
    location : float
        -1e10 to 1e10.
    variance : float
        1e-10 to 1e10.
    """

    location: float
    variance: float

    def __post_init__(self):
        self._check(positive=("variance",), real=("location",))

    def _scipy(self):
        return stats.norm(self.location, np.sqrt(self.variance))


@dataclass(frozen=True)
class NormalGamma(Law):
    """Law of a mean and a precision: p ~ Gamma(shape, rate), mean ~ N(location, 1 / (kappa p)).

    Parameters
    ----------
    location : float
        -1e10 to 1e10.
    kappa, shape, rate : float
        1e-10 to 1e10.
    """

    location: float
    kappa: float
    shape: float
    rate: float

    def __post_init__(self):
        self._check(positive=("kappa", "shape", "rate"), real=("location",))

    def log_density(self, x):
        """Log density.

        Parameters
        ----------
        x : array-like of shape (..., 2)
            Mean and precision.

        Returns
        -------
        log_density : float or ndarray of shape (...)
        """
        x = np.asarray(x, dtype=np.float64)
        mean, precision = x[..., 0], x[..., 1]
        inside = precision > 0
        p = np.where(inside, precision, 1.0)
        found = stats.gamma.logpdf(p, self.shape, scale=1 / self.rate) + stats.norm.logpdf(
            mean, self.location, 1 / np.sqrt(self.kappa * p)
        )
        return np.where(np.isnan(precision), np.nan, np.where(inside, found, -np.inf))[()]

    def sample(self, size=None, random_state=None):
        """Independent draws.

        Parameters
        ----------
        size : int, tuple of int or None
        random_state : int, RandomState instance, Generator or None

        Returns
        -------
        draws : ndarray of shape `size` + (2,)
            Mean and precision.
        """
        rng = _rng(random_state)
        precision = rng.gamma(self.shape, 1 / self.rate, size)
        mean = rng.normal(self.location, 1 / np.sqrt(self.kappa * precision))
        return np.stack([mean, precision], axis=-1)

    def mean(self):
        """Expected mean and precision.

        Returns
        -------
        mean : ndarray of shape (2,)
        """
        return np.array([self.location, self.shape / self.rate])


@dataclass(frozen=True)
class Uniform(Law):
    """Uniform law on an interval.

    Parameters
    ----------
    low, high : float
        -1e10 to 1e10, low < high.
    """

    low: float
    high: float

    def __post_init__(self):
        self._check(real=("low", "high"))
        if not self.low < self.high:
            raise ValueError(f"low of Uniform must be < high = {self.high}, got {self.low}")

    def _scipy(self):
        return stats.uniform(self.low, self.high - self.low)


@dataclass(frozen=True)
class Grid(Law):
    """Finitely many values, equally likely.

    Parameters
    ----------
    values : sequence of float
        At least one; no two equal.
    """

    values: tuple

    def __post_init__(self):
        values = self.values
        if isinstance(values, (str, bytes)) or not np.iterable(values) or np.ndim(values) != 1:
            raise TypeError(f"values of Grid must be a sequence of numbers, got {values!r}")
        values = tuple(values)
        if not values or not all(
            isinstance(x, Real) and not isinstance(x, (bool, np.bool_)) and abs(x) <= _LARGEST
            for x in values
        ):
            raise ValueError(f"values of Grid must be numbers, at least one, got {values!r}")
        if len(set(values)) < len(values):
            raise ValueError(f"values of Grid must differ, got {values!r}")
        object.__setattr__(self, "values", tuple(float(x) for x in values))

    def log_density(self, x):
        """Log probability.

        Parameters
        ----------
        x : array-like
            Of any shape.

        Returns
        -------
        log_density : float or ndarray of the shape of x
            -inf where it is no value of the grid, NaN of NaN.
        """
        x = np.asarray(x, dtype=np.float64)
        found = np.where(np.isin(x, self.values), -np.log(len(self.values)), -np.inf)
        return np.where(np.isnan(x), np.nan, found)[()]

    def sample(self, size=None, random_state=None):
        """Independent draws.

        Parameters
        ----------
        size : int, tuple of int or None
        random_state : int, RandomState instance, Generator or None

        Returns
        -------
        draws : float or ndarray of shape `size`
        """
        found = np.asarray(self.values)[_rng(random_state).choice(len(self.values), size)]
        return float(found) if size is None else found

    def mean(self):
        """Expected value.

        Returns
        -------
        mean : float
        """
        return float(np.mean(self.values))


@dataclass(frozen=True)
class ShiftedBetaNegativeBinomial(Law):
    """Law of 1 + B for B ~ BetaNegativeBinomial(a, b, c) on 1, 2, ..., for a number of components.

    1 + B has mean 1 + a c / (b - 1) for b > 1 and a tail like m^(-1 - b) [1]_.

    Parameters
    ----------
    a, b, c : float
        0.1 to 1e4.

    References
    ----------
    .. [1] S. Fruehwirth-Schnatter, G. Malsiner-Walli and B. Gruen (2021). Generalized mixtures of
           finite mixtures and telescoping sampling. Bayesian Analysis 16, 1279-1307.
    """

    a: float
    b: float
    c: float

    def __post_init__(self):
        self._check(positive=("a", "b", "c"))
        for name in ("a", "b", "c"):
            if not 0.1 <= getattr(self, name) <= 1e4:
                raise ValueError(
                    f"{name} of ShiftedBetaNegativeBinomial must be from 0.1 to 1e4, got "
                    f"{getattr(self, name)!r}"
                )

    def log_density(self, x):
        """Log probability.

        Parameters
        ----------
        x : array-like
            Of any shape.

        Returns
        -------
        log_density : float or ndarray of the shape of x
            -inf unless it is 1, 2, ...; NaN of NaN.
        """
        x = np.asarray(x, dtype=np.float64)
        inside = (x >= 1) & (x == np.floor(x))
        found = stats.betanbinom.logpmf(np.where(inside, x, 1) - 1, self.a, self.b, self.c)
        return np.where(np.isnan(x), np.nan, np.where(inside, found, -np.inf))[()]

    def sample(self, size=None, random_state=None):
        """Independent draws.

        Parameters
        ----------
        size : int, tuple of int or None
        random_state : int, RandomState instance, Generator or None

        Returns
        -------
        draws : float or ndarray of shape `size`
            Of type float so that none is too large.
        """
        rng = _rng(random_state)
        p = rng.beta(self.b, self.c, size)
        # Negative binomial as a Poisson mixture.
        rate = rng.gamma(self.a, 1.0, size) * (1 - p) / p
        return 1.0 + rng.poisson(np.minimum(rate, 1e18))

    def mean(self):
        """Expected value.

        Returns
        -------
        mean : float
            inf where there is none.
        """
        return 1 + self.a * self.c / (self.b - 1) if self.b > 1 else np.inf


def _rng(random_state):
    if isinstance(random_state, np.random.Generator):
        return random_state
    return check_random_state(random_state)
