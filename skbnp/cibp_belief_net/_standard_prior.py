"""Parameters checked, and the prior that they make."""

from skbnp.cibp_belief_net._model import Prior
from skbnp.cibp_belief_net._prior_checks import LAWS, OF_LAYERS, check_law, laws_of_layers
from skbnp.laws import Uniform
from skbnp.mcmc.caller import warn

# Mass in higher layers beyond which networks without `max_layers` have hundreds of layers.
_DEEP_MASS = 1.5


class PriorMixin:
    """Makes of constructor parameters what chains take."""

    def _make_prior(self, n_features, max_layers, row_clusters):
        """The hyperparameters, checked."""
        of_layers = {name: laws_of_layers(name, getattr(self, name)) for name in OF_LAYERS}
        for name, kind in LAWS.items():
            check_law(name, getattr(self, name), kind)
        highest = max(map(_highest, of_layers["mass"][1:] or of_layers["mass"]))
        if max_layers is None and highest > _DEEP_MASS:
            warn(
                f"max_layers=None should have a mass of at most {_DEEP_MASS} above the first "
                f"layer, got up to {highest:g}: with mass 2 and concentration 1 the prior expects "
                "32 hidden layers, with mass 3 it expects 912",
            )
        return Prior(
            n_features=n_features,
            max_layers=max_layers,
            max_units=int(self.max_units),
            highest_precision=float(self.noise_floor) ** -2,
            skip_connections=bool(self.skip_connections),
            row_clusters=row_clusters,
            row_concentration=float(self.row_concentration),
            **of_layers,
            **{name: getattr(self, name) for name in LAWS},
        )


def _highest(law):
    return law.high if isinstance(law, Uniform) else law
