"""Parameters checked, and the prior that they make."""

from numbers import Real

from skbnp.cibp_belief_net._model import Prior
from skbnp.mcmc.caller import warn
from skbnp.units import checked_bounds

# Mass in higher layers beyond which networks without `max_depth` have hundreds of layers.
_DEEP_MASS = 1.5


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
        depth, bounds = self.max_depth, {}
        for name in ("mass", "concentration"):
            bounds[f"{name}_bounds"] = _bounds(f"{name}_bounds", getattr(self, f"{name}_bounds"))
        mass = _values("mass", self.mass)
        highest = bounds["mass_bounds"][1][1] if mass is None else max(mass[1:], default=mass[0])
        if depth is None and highest > _DEEP_MASS:
            warn(
                f"max_depth=None should have a mass of at most {_DEEP_MASS} above the first "
                f"layer, got up to {highest:g}: with mass 2 and concentration 1 the prior expects "
                "32 hidden layers, with mass 3 it expects 912",
            )
        return Prior(
            n_features=n_features,
            max_depth=None if depth is None else int(depth),
            max_units=int(self.max_units),
            mass=mass,
            concentration=_values("concentration", self.concentration),
            weight_prior=_numbers("weight_prior", self.weight_prior, 4, free=1),
            bias_prior=_numbers("bias_prior", self.bias_prior, 4, free=1),
            noise_prior=_numbers("noise_prior", self.noise_prior, 3),
            highest_precision=float(self.noise_floor) ** -2,
            skip_connections=bool(self.skip_connections),
            row_clusters=bool(self.row_clusters),
            row_concentration=float(self.row_concentration),
            **bounds,
        )


def _numbers(name, value, n, free=0):
    """So many numbers, all but the first ``free`` positive."""
    value = tuple(value)
    real = [isinstance(x, Real) and not isinstance(x, bool) for x in value]
    if len(value) != n or not all(real) or not all(1e-6 <= x <= 1e6 for x in value[free:]):
        raise ValueError(f"{name} must be {n} numbers, positive from 1e-6 to 1e6, got {value!r}")
    if not all(abs(x) <= 1e6 for x in value[:free]):
        raise ValueError(f"{name} must begin with a mean from -1e6 to 1e6, got {value!r}")
    return tuple(float(x) for x in value)


def _values(name, value):
    """Given masses or concentrations, None for "sample"."""
    if isinstance(value, str):
        return None
    values = (value,) if isinstance(value, Real) else tuple(value)
    real = [isinstance(x, Real) and not isinstance(x, bool) for x in values]
    if not values or not all(real) or not all(1e-6 <= x <= 1e4 for x in values):
        raise ValueError(f"{name} must be from 1e-6 to 1e4, got {value!r}")
    return tuple(float(x) for x in values)


def _bounds(name, value):
    """((low, high), (low, high)) of the columns and of hidden units."""
    shape_fits = len(value) == 2 and all(
        isinstance(pair, (list, tuple)) and len(pair) == 2 for pair in value
    )
    if not shape_fits or not all(
        isinstance(x, Real) and not isinstance(x, bool) for pair in value for x in pair
    ):
        raise ValueError(f"{name} must be two pairs of numbers, got {value!r}")
    if not all(0 <= low < high <= 1e4 for low, high in value):
        raise ValueError(f"{name} must be pairs with 0 <= low < high <= 1e4, got {value!r}")
    return tuple((float(low), float(high)) for low, high in value)
