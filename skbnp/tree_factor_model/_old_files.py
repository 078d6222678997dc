"""What version 0.1 called the parameters of the tree factor model, as files have it."""

from skbnp.laws import Gamma

# Names that changed while their values did not.
_NAMES = {
    "tail": "tails",
    "score_precision_prior": "score_precision_shape",
    "noise_scale_prior": "noise_scale_shape",
}


def renamed(older):
    """Hyperparameters in the names of now.

    Parameters
    ----------
    older : dict
        Names and values of now, or of version 0.1.

    Returns
    -------
    newer : dict
    """
    if "noise_prior" not in older:
        return older
    newer = {_NAMES.get(name, name): value for name, value in older.items()}
    law = newer.pop("concentration_prior")
    if newer["concentration"] is None or isinstance(newer["concentration"], str):
        newer["concentration"] = Gamma(*law)
    shape, rate = newer.pop("noise_prior")
    law_of_rate = newer.pop("noise_rate_prior")
    newer["noise_precision"] = Gamma(shape, rate if law_of_rate is None else Gamma(*law_of_rate))
    newer["mean_precision"] = Gamma(*newer.pop("mean_precision_prior"))
    return newer
