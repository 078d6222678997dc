"""Names of version 0.1, as its files have them: pairs of numbers for laws, two models in one."""

from skbnp.laws import Gamma, InverseGamma

# Parameters of the model that is `DeepScaleModel` now.
MOVED = (
    *("top", "drift", "center", "birth_move", "schedule", "signed", "transform_output"),
    "n_init_factors",
)
# Knobs of the sampler, in the order of now.
_KNOBS = {
    "n_init_clusters": "n_init_clusters", "n_births": "n_births",
    "n_split_merges": "n_split_merge",
}  # fmt: skip


class ScalePrior:
    """The prior of a clusterer that was what `DeepScaleModel` is now: nothing reads it."""

    @classmethod
    def from_data(cls, data):
        """Stand for it until the parameters are looked at, which are refused."""
        return cls()


def with_laws(given):
    """Parameters, or fields of a prior, with the laws that older ones had in parts.

    Parameters
    ----------
    given : dict
        Of files of any version; those of now are returned as they are.
    """
    if "slab_shape" not in given:
        return given
    old = dict(given)
    pairs = {name: old.pop(f"{name}_prior") for name in ("mass", "concentration")}
    for name, pair in pairs.items():
        # "sample" was a parameter, None is of the prior.
        if old[name] is None or isinstance(old[name], str):
            old[name] = Gamma(*pair)
    old["loading_variance"] = InverseGamma(old.pop("slab_shape"), old.pop("slab_scale"))
    old["score_variance"] = InverseGamma(old.pop("score_shape"), old.pop("score_scale"))
    old["mean_precision_prior"] = old.pop("score_precision")
    old["noise_variance"] = InverseGamma(
        old.pop("noise_shape"), Gamma(*old.pop("noise_rate_prior"))
    )
    if "offset_precision_prior" in old:
        old["offset_precision"] = Gamma(*old.pop("offset_precision_prior"))
    old["tails"] = {"normal": "gaussian", "student": "t"}[old["tails"]]
    return old


def parameters_of_now(given, settings):
    """Constructor parameters of a file of version 0.1 in the names of now.

    Parameters
    ----------
    given : dict
        Of files of any version; those of now are returned as they are.
    settings : type
        The class of the sampler's knobs.
    """
    if "slab_shape" not in given:
        return given
    old = {name: value for name, value in given.items() if name not in MOVED}
    # "auto" was a choice by model.
    for name, value in (("noise", "cluster"), ("n_births", 1)):
        if isinstance(old.get(name), str) and old[name] == "auto":
            old[name] = value
    old["scaling"] = "each" if old.pop("standardize") else "none"
    knobs = {now: old.pop(name) for name, now in _KNOBS.items()}
    return with_laws(old) | {"sampler": settings(**knobs)}


def is_scale_model(given):
    """Whether the parameters of a file are those of what `DeepScaleModel` is now."""
    return given.get("top", "dp") == "gaussian"
