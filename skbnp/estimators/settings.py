"""How a model is sampled: the knobs of a sampler in one value, apart from those of the model."""

from sklearn.base import BaseEstimator

from skbnp.estimators.parameters import Declared


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
