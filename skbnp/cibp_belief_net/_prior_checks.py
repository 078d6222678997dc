"""What kernels take as a prior, whether it comes from constructor parameters or from a file."""

from dataclasses import fields
from numbers import Real

from skbnp.cibp_belief_net._model import NOISE_RATE_LAW, Prior
from skbnp.laws import Law, Uniform
from skbnp.numerics.states import check_positive

# Hyperparameters that are numbers or laws of layers, and those that are laws: of which kind.
OF_LAYERS = ("mass", "concentration")
LAWS = {x.name: type(x.default) for x in fields(Prior) if isinstance(x.default, Law)}


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
    for name in OF_LAYERS:
        laws_of_layers(name, getattr(prior, name))
    for name, kind in LAWS.items():
        check_law(name, getattr(prior, name), kind)


def laws_of_layers(name, value):
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


def check_law(name, law, kind):
    """Raise a ValueError unless a law is of this kind, its numbers within what kernels take."""
    if type(law) is not kind:
        raise ValueError(f"{name} must be a law {kind.__name__}, got {law!r}")
    for field in fields(law):
        x = getattr(law, field.name)
        if name == "noise_precision" and field.name == "rate" and isinstance(x, Law):
            check_law(f"rate of {name}", x, NOISE_RATE_LAW)
        elif not isinstance(x, Real):
            raise ValueError(f"{name} must have a number as its {field.name}, got {law!r}")
        elif field.name == "location" and not abs(x) <= 1e6:
            raise ValueError(f"{name} must have a location from -1e6 to 1e6, got {law!r}")
        elif field.name != "location" and not 1e-6 <= x <= 1e6:
            raise ValueError(f"{name} must have a {field.name} from 1e-6 to 1e6, got {law!r}")
