"""How a model is sampled: the knobs of a sampler in one value, apart from those of the model."""

from sklearn.base import BaseEstimator

from skbnp.estimators.parameters import Declared, in_lines


def of_sampler(settings, but=""):
    """What `parameter` is told of ``sampler``, which is of the type ``settings``.

    ``but`` says where None is not the same as ``settings()``.
    """
    name = settings.__name__
    text = f"""
    How the model is sampled and where chains start: a :class:`~skbnp.samplers.{name}`. None is one
    with its defaults{but}.
    """
    return {"kind": f"{name} or None", "rules": [settings, None], "text": in_lines(text)}


def moved_to_sampler(settings, *names, **renamed):
    """Sentences for ``_renamed`` on what are parameters of the type ``settings`` now.

    Those of ``renamed`` have another name there, its value.
    """
    return {
        name: f"write sampler={settings.__name__}({now}=...), from skbnp.samplers"
        for name, now in (dict(zip(names, names, strict=True)) | renamed).items()
    }


class SamplerSettings(Declared, BaseEstimator):
    """Base of the values that an estimator's `sampler` takes: how a model is sampled.

    They change how fast chains mix and where they start, never what they converge to.
    """

    def to_data(self):
        """What files and fingerprints hold.

        Returns
        -------
        data : dict
        """
        return self.get_params(deep=False)
