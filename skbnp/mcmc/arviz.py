"""Conversion of a posterior to ArviZ: its groups as plain data, then as what ArviZ takes.

What is known of traces and rows comes from the posterior. All else, names and coordinates, what
draws hold, predictive tables and draws from the prior, comes from an exporter that an estimator
has attached to it.
"""

from dataclasses import dataclass, field
from numbers import Integral

import numpy as np

from skbnp._version import __version__

# Draws that True stands for, of all chains together, and bytes that drawn tables may take.
_SOME_DRAWS, _MOST_BYTES = 100, 2 * 10**9
# Groups that hold no draws of chains, and have no dimension of them.
_OF_DATA = ("observed_data", "constant_data")


@dataclass
class Group:
    """Named arrays of one group.

    Attributes
    ----------
    variables : dict of str to (tuple of str, ndarray)
        Dimensions and values.
    coords : dict of str to (str or tuple of str, ndarray)
        Likewise; what has the name of its dimension is the index of that.
    """

    variables: dict = field(default_factory=dict)
    coords: dict = field(default_factory=dict)

    def of_draws(self, n_chains, draws):
        """The group with the coordinates of chains, and of draws with these numbers."""
        self.coords["chain"] = "chain", np.arange(n_chains)
        self.coords["draw"] = "draw", np.asarray(draws)
        return self

    def add(self, other):
        """Take what another group has."""
        self.variables.update(other.variables)
        self.coords.update(other.coords)


@dataclass(frozen=True)
class Request:
    """What `Posterior.to_arviz` is asked for; numbers are draws at most, 0 where not wanted."""

    log_likelihood: int | None = 0
    posterior_predictive: int = 0
    prior: int = 0
    imputed: bool = False
    warmup: bool = False
    scalars_only: bool = False
    random_state: object = None

    @classmethod
    def checked(cls, *, log_likelihood, posterior_predictive, prior, **others):
        """The request, or an error that names the parameter, its rule and the value."""
        for name in ("imputed", "warmup", "scalars_only"):
            if not isinstance(others[name], (bool, np.bool_)):
                raise TypeError(f"{name} must be True or False, got {others[name]!r}")
        return cls(
            log_likelihood=_number("log_likelihood", log_likelihood, None),
            posterior_predictive=_number("posterior_predictive", posterior_predictive),
            prior=_number("prior", prior),
            **others,
        )


def _number(name, value, of_true=_SOME_DRAWS):
    """Draws that a keyword asks for."""
    if isinstance(value, (bool, np.bool_)):
        return of_true if value else 0
    if not isinstance(value, Integral):
        raise TypeError(f"{name} must be a bool or a number of draws, got {value!r}")
    if value < 1:
        raise ValueError(f"{name} must be a bool or a number of draws >= 1, got {value}")
    return int(value)


def check_size(name, n_draws, shape):
    """Raise a ValueError where tables that are to be drawn would take more than memory should.

    Parameters
    ----------
    name : str
        Of the parameter that says the number of draws.
    n_draws : int
    shape : tuple of int
        Of the table of one draw.
    """
    n_bytes = 8 * int(np.prod(shape, dtype=object))
    if n_draws * n_bytes > _MOST_BYTES:
        raise ValueError(
            f"{name} must be at most {_MOST_BYTES // n_bytes} for tables of shape {shape}, which "
            f"are to take at most {_MOST_BYTES / 1e9:g} GB together, got {n_draws}"
        )


class RowsAlone:
    """The exporter of a posterior that no estimator has told anything: rows without names."""

    def check(self, posterior, request):
        """Refuse what only an estimator can say."""
        for name in ("posterior_predictive", "prior", "imputed"):
            if getattr(request, name):
                raise ValueError(
                    f"{name} must be False where the posterior does not know its model: take "
                    "posterior_ of an estimator, fitted or loaded; a file of the posterior alone "
                    "holds no model"
                )

    def posterior(self, posterior, request):
        """What the draws hold beside the traces: unknown."""
        return None

    def data(self, posterior):
        """The rows."""
        if not posterior.knows_rows:
            return {}
        X = posterior.observed_data()
        return {"observed_data": Group({"X": (("row", "feature"), X)})}

    def log_likelihood(self, values):
        """Densities of the rows, (n_chains, n_draws, n_rows)."""
        return Group({"X": (("chain", "draw", "row"), values)})

    def drawn(self, posterior, request):
        """Nothing can be drawn."""
        return {}


def to_arviz(posterior, request):
    """Convert a posterior.

    Parameters
    ----------
    posterior : Posterior
    request : Request

    Returns
    -------
    data : arviz.InferenceData (ArviZ 0.x) or xarray.DataTree (ArviZ 1.x)
        The groups that `Posterior.to_arviz` describes.
    """
    try:
        import arviz
    except ImportError as error:
        raise ImportError("to_arviz needs ArviZ: pip install 'skbnp[arviz]'") from error
    return _as_arviz(groups_of(posterior, request), arviz, posterior.n_warmup)


def groups_of(posterior, request):
    """All groups that are asked for, as plain data.

    Parameters
    ----------
    posterior : Posterior
    request : Request

    Returns
    -------
    groups : dict of str to Group
    """
    exporter = posterior.exporter or RowsAlone()
    if request.warmup and not posterior.warmup_traces:
        raise ValueError(
            "warmup must be False where the posterior holds no traces of a warm-up: there was "
            "none, or it is a thinned one, or comes from a file without them"
        )
    exporter.check(posterior, request)
    draws = np.arange(posterior.n_draws)
    held = None if request.scalars_only else exporter.posterior(posterior, request)
    if held is not None:
        # Of draws that are not stored nothing is known but the traces.
        draws = posterior.stored
    groups = _of_traces(posterior.traces, posterior.n_chains, draws)
    if held is not None:
        groups["posterior"].add(held)
    for move, counts in posterior.acceptance.items():
        rate = np.repeat(counts["rate"][:, np.newaxis], len(draws), axis=1)
        groups["sample_stats"].variables[f"acceptance_rate_{move}"] = ("chain", "draw"), rate
    if request.log_likelihood != 0:
        values = posterior.log_likelihood(request.log_likelihood)
        places = posterior.evenly_in_chains(request.log_likelihood)
        found = exporter.log_likelihood(values)
        groups["log_likelihood"] = found.of_draws(posterior.n_chains, posterior.stored[places])
    groups |= exporter.data(posterior) | exporter.drawn(posterior, request)
    if request.warmup:
        traces = posterior.warmup_traces
        found = _of_traces(traces, posterior.n_chains, np.arange(posterior.n_warmup))
        groups |= {f"warmup_{name}": group for name, group in found.items()}
    return groups


def _of_traces(traces, n_chains, draws):
    """Groups of what was traced: the scalars, and the log joint apart from them."""
    chosen = {name: (("chain", "draw"), trace[:, draws]) for name, trace in traces.items()}
    log_joint = chosen.pop("log_joint")
    groups = {"posterior": Group(chosen), "sample_stats": Group({"lp": log_joint})}
    return {name: group.of_draws(n_chains, draws) for name, group in groups.items()}


def _as_arviz(groups, arviz, n_warmup):
    """The groups as the installed ArviZ has them."""
    import xarray

    attributes = {
        "creation_library": "skbnp",
        "creation_library_version": __version__,
        "creation_library_language": "Python",
        "inference_library": "skbnp",
        "inference_library_version": __version__,
    }
    datasets = {}
    for name, group in groups.items():
        own = {} if name in _OF_DATA else {"tuning_steps": n_warmup}
        coords = {coord: (dims, _portable(x)) for coord, (dims, x) in group.coords.items()}
        sizes = {
            dim: n
            for dims, x in group.variables.values()
            for dim, n in zip(dims, np.shape(x), strict=True)
        }
        for dim, n in sizes.items():
            coords.setdefault(dim, (dim, np.arange(n)))
        dataset = xarray.Dataset(group.variables, coords, attributes | own)
        # The estimator's own arrays are not for others to write to.
        datasets[name] = dataset.copy(deep=True) if name in _OF_DATA else dataset
    if int(arviz.__version__.split(".")[0]) == 0:
        return arviz.InferenceData(**datasets, save_warmup=True)
    return xarray.DataTree.from_dict(datasets)


def _portable(labels):
    """Labels as netCDF and zarr hold them: numbers, times or strings."""
    labels = np.asarray(labels)
    if labels.dtype.kind in "iufM":
        return labels
    return np.array([str(label) for label in labels.tolist()], dtype=object)
