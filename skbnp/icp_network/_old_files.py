"""Files of version 0.1, in the names and values of now."""

from skbnp.laws import Gamma, InverseGamma

# Hyperparameter, the pair of numbers that its law had, its law now.
_LAWS = (
    ("mass", "mass_prior", Gamma),
    ("concentration", "inverse_concentration_prior", InverseGamma),
    ("observed_popularity", "popularity_prior", Gamma),
)
# What None stood for in parameters, by `hyperprior`.
_HYPERPRIORS = {
    "default": {
        "mass_prior": (1.0, 1.0),
        "inverse_concentration_prior": (2.0, 2.0),
        "popularity_prior": (1.0, 1.0),
        "weight_variance": 4.0,
        "bias_variance": 4.0,
        "noise_prior": (1.0, 0.1),
    },
    "paper": {
        "mass_prior": (0.5, 0.5),
        "inverse_concentration_prior": (0.5, 0.5),
        "popularity_prior": (0.5, 0.5),
        "weight_variance": 1.0,
        "bias_variance": 1.0,
        "noise_prior": (0.5, 0.5),
    },
}


def prior_of_file(fields):
    """Fields of the prior in a file, of any version, as they are called now."""
    return _with_laws(fields) if "max_hidden" in fields else fields


def parameters_of_file(parameters):
    """Constructor parameters of a file of version 0.1, but for those of the sampler."""
    old = dict(parameters)
    hyperprior = old.pop("hyperprior")
    old |= {x: value for x, value in _HYPERPRIORS[hyperprior].items() if old[x] is None}
    if "feature_scaling" in old:
        old["scaling"] = old.pop("feature_scaling")
        if old["input_weight_variance"] is None and hyperprior == "paper":
            old["input_weight_variance"] = old["weight_variance"]
    return _with_laws(old)


def _with_laws(old):
    """Pairs of numbers as laws, "sample" and None replaced by them."""
    new = dict(old)
    for name, pair, law in _LAWS:
        numbers = new.pop(pair)
        if new[name] in ("sample", None):
            new[name] = law(*numbers)
    new["noise_precision"] = Gamma(*new.pop("noise_prior"))
    new["max_units"] = new.pop("max_hidden")
    return new
