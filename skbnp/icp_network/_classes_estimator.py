"""What classifiers share: their labels, and what follows from probabilities of classes."""

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from skbnp.estimators.arguments import refuses_by_name
from skbnp.estimators.tables import TargetMixin
from skbnp.mcmc.arviz import Group


class ClassProbabilitiesMixin(TargetMixin, ClassifierMixin):
    """Sets ``classes_``; a subclass has ``predict_proba``, ``power_`` and labels of its rows."""

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

    # -- before sampling

    def _target(self, y):
        """The labels as codes; sets ``classes_``."""
        y = column_or_1d(y, warn=True)
        # First: what looks at the kind of target casts NaN to integers.
        assert_all_finite(y, input_name="y")
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y must have at least 2 classes, got {len(self.classes_)} class(es)")
        return codes.astype(np.float64)

    # -- for ArviZ

    def _observed_group(self):
        rows = self._rows_axis()
        return Group({"y": ((rows.dim,), self._training_rows.labels)}, rows.coords())

    def _constant_group(self):
        group = self._table_group("X", self._training_rows.table[:, : self.n_features_in_])
        names = np.array([str(label) for label in self.classes_.tolist()], dtype=object)
        group.variables["classes"] = ("code",), names
        return group

    # -- files

    def _check_loaded_classes(self):
        if self.power_ < 1.0:
            raise ValueError(f"power_ must be >= 1, got {self.power_}")
        labels, n_classes = self._training_rows.labels, len(self.classes_)
        if labels.shape != (len(self._training_rows.table),) or labels.dtype.kind not in "iu":
            raise ValueError("the training rows must have a label each")
        if n_classes < 2 or not np.isin(labels, np.arange(n_classes)).all():
            raise ValueError("labels of the training rows must be of classes that there are")
        if self.classes_.ndim != 1 or not np.array_equal(np.unique(self.classes_), self.classes_):
            raise ValueError("classes_ must be sorted, each once")
