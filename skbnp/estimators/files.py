"""Files of fitted estimators: data, no pickle, checked by meaning when they are read."""

from numbers import Integral

from sklearn import config_context
from sklearn.utils.validation import check_is_fitted

from skbnp.estimators.arguments import refuses_by_name
from skbnp.laws import Law
from skbnp.mcmc import io
from skbnp.mcmc.posterior import Posterior
from skbnp.summaries.training_cells import TrainingCells
from skbnp.tables.forms import TableForm
from skbnp.tables.marks import as_plain


class OldFileError(ValueError):
    """What is whole, but of a kind that this version reads no more; the message says what it is."""


class FilesMixin:
    """``save`` and ``load`` of what ``fit`` sets, as a subclass declares it.

    ``_fitted_attributes`` are the attributes that ``fit`` sets, with their types,
    ``_not_always_fitted`` those among them that depend on parameters or data; ``_saved_types``
    the classes of the subclass that they are made of, and ``_may_hold`` which of their numbers
    need not be finite. ``_check_draw(draw)`` and ``_check_loaded()`` find what would make kernels
    read beyond an array or answers no numbers.
    """

    # Attributes of this process alone.
    _never_in_files = ()

    @refuses_by_name
    def save(self, path):
        """Save the fitted estimator as data: an npz archive with a JSON document, no pickle.

        Parameters
        ----------
        path : str or Path
            An older file of this name is replaced once the new one is complete.

        Returns
        -------
        self : object

        Raises
        ------
        TypeError
            If a parameter is no data, such as a callable, or an attribute is none of `fit`.
        OSError
            If the file cannot be written.
        """
        check_is_fitted(self, "posterior_")
        parameters = self.get_params(deep=False)
        parameters["missing_values"] = as_plain(self.missing_values)
        fitted = {
            name: value
            for name, value in vars(self).items()
            # Callbacks are code, and what belongs to them.
            if name not in parameters
            and "callback" not in name
            and name not in ("_metadata_request", *self._never_in_files)
        }
        for name in fitted:
            if name not in self._fitted_attributes:
                raise TypeError(
                    f"{name} cannot be saved: it is neither a parameter of "
                    f"{type(self).__name__} nor an attribute that fit sets"
                )
        content = {"parameters": parameters, "fitted": fitted}
        if hasattr(self, "_metadata_request"):
            content["requests"] = self.get_metadata_routing()._serialize()
        io.write(path, f"fitted {type(self).__name__}", content, self._types_in_files())
        return self

    @classmethod
    @refuses_by_name
    def load(cls, path):
        """Load a fitted estimator that `save` has written.

        Nothing in the file is ever executed, and only the classes of this estimator are made.

        Parameters
        ----------
        path : str or Path

        Returns
        -------
        estimator : object
            Answers as the saved one did, bit for bit, and asks for the same metadata; callbacks
            are not kept.

        Raises
        ------
        skbnp.mcmc.io.FileFormatError
            If the file is damaged, holds another estimator, comes from a newer version, or holds
            a model of an older one that is no more.
        """
        content = io.read(path, f"fitted {cls.__name__}", cls._types_in_files(), cls._may_hold)
        try:
            estimator = cls(**cls._parameters_of_file(content["parameters"]))
            estimator._validate_params()
            estimator._set_requests(content.get("requests", {}))
            fitted = cls._fitted_of_file(content["fitted"])
            cls._check_attributes(fitted)
            vars(estimator).update(fitted)
            estimator._form.check(estimator.n_features_in_)
            estimator._check_loaded()
            for chain in estimator.posterior_.all_draws():
                for draw in chain:
                    estimator._check_draw(draw)
            estimator._attach_rows()
            estimator._attach_exporter()
        except (io.FileFormatError, ImportError):
            raise
        except OldFileError as error:
            raise io.FileFormatError(f"{path} cannot be read any more: {error}") from error
        except Exception as error:  # the file is at fault, whatever it is
            raise io.FileFormatError(f"{path} is damaged: {error}") from error
        return estimator

    def _set_requests(self, requests):
        """What methods ask for under metadata routing, by their `set_*_request`."""
        # They refuse to be called where routing is off, though requests may be there already.
        with config_context(enable_metadata_routing=True):
            for method, asked in requests.items():
                getattr(self, f"set_{method}_request")(**asked)

    @classmethod
    def _parameters_of_file(cls, parameters):
        """Constructor parameters of a file, in the names of now where it is an older one.

        An `OldFileError` where there are no such names.
        """
        return parameters

    @classmethod
    def _fitted_of_file(cls, fitted):
        """The attributes of a file that `fit` sets, likewise."""
        posterior = fitted.get("posterior_")
        if "n_chains_" in fitted or not isinstance(posterior, Posterior):
            return fitted
        # A file of 0.1 does not say the number of chains.
        return fitted | {"n_chains_": posterior.n_chains}

    @classmethod
    def _types_in_files(cls):
        settings = () if cls._settings_type is None else (cls._settings_type,)
        return (
            Posterior,
            TableForm,
            TrainingCells,
            *Law.__subclasses__(),
            *settings,
            *cls._saved_types,
        )

    @classmethod
    def _check_attributes(cls, fitted):
        """Raise a ValueError unless fitted attributes are those of this class, of their types."""
        for name, value in fitted.items():
            kind = cls._fitted_attributes.get(name)
            if kind is None:
                raise ValueError(f"it sets {name!r}")
            # True is an integer to Python.
            if not isinstance(value, kind) or isinstance(value, bool) is not (kind is bool):
                raise ValueError(f"its {name} is a {type(value).__name__}")
            if kind is Integral and value < 0:
                raise ValueError(f"its {name} is {value}")
        for name in cls._fitted_attributes:
            if name not in fitted and name not in cls._not_always_fitted:
                raise ValueError(f"it has no {name}")
        posterior, names = fitted["posterior_"], fitted.get("feature_names_in_")
        found = (posterior.seed, posterior.n_chains, posterior.n_warmup, posterior.n_draws)
        if found != tuple(fitted[name] for name in ("seed_", "n_chains_", "n_warmup_", "n_draws_")):
            raise ValueError("its posterior_ is not that of seed_, n_chains_, n_warmup_, n_draws_")
        if names is not None and names.shape != (fitted["n_features_in_"],):
            raise ValueError("its feature_names_in_ are not those of n_features_in_ features")
