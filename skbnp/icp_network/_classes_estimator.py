"""What follows from probabilities of classes."""

import numpy as np
from sklearn.base import ClassifierMixin

from skbnp.estimators.arguments import refuses_by_name


class ClassProbabilitiesMixin(ClassifierMixin):
    """The likeliest class and log probabilities, where there are ``predict_proba`` and classes."""

    @refuses_by_name
    def predict(self, X):
        """The most probable class of each row or image.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New rows, or new images in any form that `fit` takes; NaN is refused.

        Returns
        -------
        y : ndarray of shape (n_samples,)
        """
        probability = self.predict_proba(X)
        return self.classes_[np.argmax(probability, axis=1)]

    @refuses_by_name
    def predict_log_proba(self, X):
        """Logarithms of the probabilities of the classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New rows, or new images in any form that `fit` takes; NaN is refused.

        Returns
        -------
        log_probability : ndarray of shape (n_samples, n_classes)
            In the order of `classes_`; -inf where a probability is 0.
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))
