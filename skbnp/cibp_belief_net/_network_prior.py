"""Parameters checked, and the prior that they make; priors that come from files."""

from dataclasses import fields
from numbers import Real

from skbnp.cibp_belief_net._model import Prior
from skbnp.laws import Gamma, NormalGamma, Uniform
from skbnp.units import checked_bounds
from skbnp.mcmc.caller import warn
from skbnp.numerics.states import check_positive

# Mass in higher layers beyond which networks without `max_layers` have hundreds of layers.
_DEEP_MASS = 1.5
# Parameters that are numbers or laws of layers, and those that are laws.
_OF_LAYERS = ("mass", "concentration")
_LAWS = {"weight_prior": NormalGamma, "bias_prior": NormalGamma, "noise_precision": Gamma}


class PriorMixin:
    """Makes of constructor parameters what chains take."""

    def _checked_feature_bounds(self, X):
        """`feature_bounds` as two arrays, or None."""
        if self.feature_bounds is None:
            return None
        if self.visible == "gaussian":
            raise ValueError(
                f"feature_bounds must be None where visible='gaussian', got {self.feature_bounds!r}"
            )
        return checked_bounds(self.feature_bounds, X)

    def _make_prior(self, n_features):
        """The hyperparameters, checked."""
        of_layers = {name: _of_layers(name, getattr(self, name)) for name in _OF_LAYERS}
        for name, kind in _LAWS.items():
            _check_law(name, getattr(self, name), kind)
        highest = max(map(_highest, of_layers["mass"][1:] or of_layers["mass"]))
        if self.max_layers is None and highest > _DEEP_MASS:
            warn(
                f"max_layers=None should have a mass of at most {_DEEP_MASS} above the first "
                f"layer, got up to {highest:g}: with mass 2 and concentration 1 the prior expects "
                "32 hidden layers, with mass 3 it expects 912",
            )
        return Prior(
            n_features=n_features,
            max_layers=None if self.max_layers is None else int(self.max_layers),
            max_units=int(self.max_units),
            highest_precision=float(self.noise_floor) ** -2,
            skip_connections=bool(self.skip_connections),
            row_clusters=bool(self.row_clusters),
            row_concentration=float(self.row_concentration),
            **of_layers,
            **{name: getattr(self, name) for name in _LAWS},
        )


def check_prior(prior, n_features):
    """Raise a ValueError unless a prior from outside fits the data and what kernels take."""
    n_layers = prior.max_layers
    if type(prior.n_features) is not int or prior.n_features != n_features:
        raise ValueError(f"the prior must be one of {n_features} features")
    if type(prior.max_units) is not int or not 0 <= prior.max_units <= 100_000:
        raise ValueError("max_units of the prior must be an integer from 0 to 100000")
    if n_layers is not None and (type(n_layers) is not int or not 1 <= n_layers <= 100_000):
        raise ValueError("max_layers of the prior must be None or an integer from 1 to 100000")
    if prior.row_clusters and n_layers is None:
        raise ValueError("max_layers of the prior must be a number where there are row clusters")
    check_positive(prior, "highest_precision", "row_concentration", "cluster_prior")
    for name in _OF_LAYERS:
        _of_layers(name, getattr(prior, name))
    for name, kind in _LAWS.items():
        _check_law(name, getattr(prior, name), kind)


def _of_layers(name, value):
    """A tuple of numbers and laws, of one layer each."""
    laws = (value,) if isinstance(value, (Real, Uniform)) else tuple(value)
    if not laws or not all(map(_is_of_layer, laws)):
        raise ValueError(
            f"{name} must be of numbers from 1e-6 to 1e4 or of laws Uniform(low, high) with 0 <= "
            f"low < high <= 1e4, got {value!r}"
        )
    return tuple(law if isinstance(law, Uniform) else float(law) for law in laws)


def _is_of_layer(law):
    if isinstance(law, Uniform):
        return 0 <= law.low and law.high <= 1e4
    return isinstance(law, Real) and not isinstance(law, bool) and 1e-6 <= law <= 1e4


def _highest(law):
    return law.high if isinstance(law, Uniform) else law


def _check_law(name, law, kind):
    """Raise a ValueError unless a law is of this kind, its numbers within what kernels take."""
    if type(law) is not kind:
        raise ValueError(f"{name} must be a law {kind.__name__}, got {law!r}")
    for field in fields(law):
        x = getattr(law, field.name)
        if field.name == "rate" and isinstance(x, Gamma) and not isinstance(x.rate, Gamma):
            _check_law(f"rate of {name}", x, Gamma)
        elif not isinstance(x, Real):
            raise ValueError(
                f"{name} must have a number as its {field.name}"
                + " or a Gamma law of numbers" * (kind is Gamma)
                + f", got {law!r}"
            )
        elif field.name == "location" and not abs(x) <= 1e6:
            raise ValueError(f"{name} must have a location from -1e6 to 1e6, got {law!r}")
        elif field.name != "location" and not 1e-6 <= x <= 1e6:
            raise ValueError(f"{name} must have a {field.name} from 1e-6 to 1e6, got {law!r}")
