"""What an estimator tells ArviZ: names and coordinates, arrays of draws, tables that are drawn."""

import json
from copy import copy
from dataclasses import dataclass

import numpy as np
from sklearn.utils import check_random_state

from skbnp.mcmc.arviz import Group, check_size
from skbnp.tables.columns import objects

_OF_DRAWS = ("chain", "draw")


@dataclass(frozen=True)
class Axis:
    """What the elements along an axis of an array are: a dimension and its labels."""

    dim: str
    labels: np.ndarray

    def coords(self):
        """The coordinates that it brings to a group."""
        return {self.dim: (self.dim, self.labels)}


class ExportMixin:
    """What `Posterior.to_arviz` asks an estimator for.

    One that keeps its rows as ``_training_rows``; of any other ArviZ gets the traces. A subclass
    declares in ``_draw_fields`` what its draws hold, as `skbnp.mcmc.fields.Field`, the shape in
    words; it says

    - ``_axes()``: word -> `Axis`, for those that mean the same in all draws. Arrays of other
      shapes stay out; of those whose shape is "columns_first" as many elements as there are
      columns are taken; ``_extra_of(draw)`` has arrays that are no entries of draws;
    - ``_block_means(draw)``: means of the blocks of its partition in the units of X,
      (n_blocks, n_features), NaN for columns without; or None;
    - ``_prior_chain(rng)``: the sampler of a chain that is at a draw from the prior, and rows of
      that draw in the units of the model;
    - ``_replicate(draw, rng)``: rows like the training rows under a draw, in these units;
    - ``_replicated(A)``: such rows in the units of X, by the name of what is observed;
    - ``_observed_group()``: the training rows; ``_constant_group()``: what else is known of them;
    - ``_holds_cells()``: whether draws hold the missing cells of the training rows.
    """

    _draw_fields = ()

    def _attach_exporter(self):
        if self._training_rows is not None:
            self.posterior_.attach_exporter(Exporter(self))

    # -- names

    def _columns_axis(self, columns=None, dim="modelled_feature"):
        """The axis of all columns, or ``dim``, that of some of them where these are not all."""
        names = np.array(self._column_labels(), dtype=object)
        if columns is None or len(columns) == len(names):
            return Axis("feature", names)
        return Axis(dim, names[columns])

    def _rows_axis(self):
        labels, n = self._form.row_labels(), len(self._training_rows.observed_data())
        # Labels of a part of the table are not kept.
        return Axis("row", np.arange(n) if labels is None or len(labels) != n else labels)

    def _axes(self):
        columns = self._columns_axis(self._units.columns)
        # Of the nodes, columns come first; the others have no fixed meaning.
        return {"n_samples": self._rows_axis(), "n_modelled": columns, "columns_first": columns}

    # -- data

    def _observed_group(self):
        return self._table_group("X", self._as_numbers(self._training_rows.observed_data()))

    def _table_group(self, name, X):
        """A group of one table, of all rows and columns."""
        rows, columns = self._rows_axis(), self._columns_axis()
        return Group({name: ((rows.dim, columns.dim), X)}, rows.coords() | columns.coords())

    def _replicated(self, A):
        return {"X": self._as_numbers(self._sampled_in_units(A))}

    def _replicate(self, draw, rng):
        return self._sample_of(draw, len(self._rows_axis().labels), rng)

    def _constant_group(self):
        """Point estimates, where columns are put inside, and moments of the missing cells."""
        rows, columns = self._rows_axis(), self._columns_axis(self._units.columns)
        group = Group(coords=rows.coords() | columns.coords())
        for name in ("labels_", "component_labels_"):
            if hasattr(self, name):
                found = self._training_labels if name == "labels_" else getattr(self, name)
                group.variables[name[:-1]] = (rows.dim,), found
        group.variables["center"] = (columns.dim,), self._units.center
        group.variables["scale"] = (columns.dim,), self._units.scale
        group.add(self._levels())
        if self._training_cells is not None:
            group.add(self._cells())
            mean, std = self._filled_training()
            holes = np.isnan(self._training_cells.X)
            group.variables["imputed_mean"] = ("cell",), self._as_numbers(mean)[holes]
            group.variables["imputed_std"] = ("cell",), std[holes]
        return group

    def _levels(self):
        """The levels of columns whose numbers are codes of them."""
        levels = getattr(self, "levels_", [])
        group = Group()
        guessed = set(self._guessed_columns())
        named = [(j, one) for j, one in enumerate(levels) if one is not None and j not in guessed]
        if named:
            texts = [json.dumps([str(level) for level in one]) for _, one in named]
            names = self._columns_axis().labels[[j for j, _ in named]]
            group.coords["levels_feature"] = "levels_feature", names
            group.variables["levels"] = ("levels_feature",), objects(texts)
        return group

    def _cells(self):
        """The coordinates of missing cells: the row and the column of each."""
        rows, columns = np.nonzero(np.isnan(self._observed_rows()))
        return Group(
            coords={
                "cell": ("cell", np.arange(len(rows))),
                "cell_row": ("cell", self._rows_axis().labels[rows]),
                "cell_feature": ("cell", self._columns_axis().labels[columns]),
            }
        )

    # -- draws

    def _block_means(self, draw):
        return None

    def _holds_cells(self):
        return False

    def _extra_of(self, draw):
        """What a draw says beside its fields: name -> (words, array)."""
        return {}

    def _fixed_axes(self, draw, known):
        """Name -> axes of the arrays of a draw that have the same ones in all draws."""
        axes = self._axes()
        words = {one.name: one.shape for one in self._draw_fields if one.name in draw}
        words |= {name: shape for name, (shape, _) in self._extra_of(draw).items()}
        return {
            name: _apart([axes[word] for word in shape])
            for name, shape in words.items()
            if name not in known and all(word in axes for word in shape)
        }

    def _fixed_arrays(self, draw, axes):
        """Name -> array of a draw, as long as its axes."""
        entries = draw | {name: array for name, (_, array) in self._extra_of(draw).items()}
        sizes = {name: [len(axis.labels) for axis in own] for name, own in axes.items()}
        return {
            name: np.asarray(entries[name])[tuple(map(slice, size))].reshape(size)
            for name, size in sizes.items()
        }

    def _cluster_means(self, draws):
        """Of each cluster of `labels_` the mean over its rows of what their blocks have.

        No draw is relabelled: it is the same however the blocks of a draw are numbered.
        """
        found = self._training_labels
        if found is None or self._block_means(draws[0][0]) is None:
            return Group()
        n_clusters = int(found.max()) + 1

        def of_draw(draw):
            means, labels = self._block_means(draw), self._labels_of(draw).astype(np.intp)
            shape = (n_clusters, len(means))
            count = np.bincount(found * shape[1] + labels, minlength=np.prod(shape))
            share = count.reshape(shape) / np.bincount(found)[:, np.newaxis]
            return {"cluster_mean": share @ means}

        values = stacked(draws, of_draw)["cluster_mean"]
        there = np.flatnonzero(~np.isnan(values).any(axis=(0, 1, 2)))
        if not there.size:
            return Group()
        axis = self._columns_axis(there, "numeric_feature")
        clusters = Axis("cluster", np.arange(n_clusters))
        return Group(
            {"cluster_mean": ((*_OF_DRAWS, "cluster", axis.dim), values[..., there])},
            clusters.coords() | axis.coords(),
        )

    def _drawn_cells(self, draws, rng):
        """The missing cells of the training rows at each draw, drawn if it does not hold them."""
        X = self._training_rows.observed_data()
        holes = np.isnan(X)
        complete = self._completer(True, X, holes)

        def of_draw(draw):
            drawn = self._drawn_in_units(complete(draw, rng), holes)
            return {"imputed": self._as_numbers(drawn)[holes]}

        group, values = self._cells(), stacked(draws, of_draw)
        group.variables["imputed"] = (*_OF_DRAWS, "cell"), values["imputed"]
        return group


def stacked(draws, of_draw):
    """What ``of_draw(draw)`` gives for draws (n_chains, n_draws), as one array of each name."""
    shape, found = (len(draws), len(draws[0])), {}
    for c, chain in enumerate(draws):
        for t, draw in enumerate(chain):
            for name, array in of_draw(draw).items():
                if name not in found:
                    found[name] = np.empty((*shape, *array.shape), array.dtype)
                # Labels of a draw with more blocks may need more bytes.
                wider = np.promote_types(found[name].dtype, array.dtype)
                found[name] = found[name].astype(wider, copy=False)
                found[name][c, t] = array
    return found


def _of_axes(arrays, axes):
    """A group of arrays of draws, with the coordinates of their axes."""
    group = Group()
    for name, own in axes.items():
        group.variables[name] = (*_OF_DRAWS, *(axis.dim for axis in own)), arrays[name]
        for axis in own:
            group.coords |= axis.coords()
    return group


def _apart(axes):
    """The axes with dimensions of their own."""
    found = []
    for axis in axes:
        taken = any(axis.dim == other.dim for other in found)
        found.append(Axis(f"other_{axis.dim}", axis.labels) if taken else axis)
    return found


class Exporter:
    """What an estimator tells ArviZ of a posterior, also where nobody holds the estimator."""

    def __init__(self, estimator):
        self._model = copy(estimator)
        for name in list(vars(self._model)):
            # Not the posterior that this is attached to, nor what belongs to callbacks.
            if name == "posterior_" or "callback" in name:
                delattr(self._model, name)

    def _model_of(self, posterior):
        """The estimator, its posterior this one."""
        model = copy(self._model)
        model.posterior_ = posterior
        return model

    def check(self, posterior, request):
        """Refuse what this model does not have, and tables that are too large."""
        model = self._model_of(posterior)
        check_random_state(request.random_state)
        (_, observed), *_ = model._observed_group().variables.values()
        shape = observed.shape
        if request.posterior_predictive:
            places = posterior.evenly_in_chains(request.posterior_predictive)
            n_draws = posterior.n_chains * len(places)
            check_size("posterior_predictive", n_draws, shape)
        name = type(model).__name__
        if request.prior and not hasattr(model, "_prior_chain"):
            raise ValueError(f"prior must be False for {name}, which does not draw from its prior")
        check_size("prior", request.prior, shape)
        if request.imputed:
            if request.scalars_only:
                raise ValueError("imputed must be False where scalars_only=True, got True")
            if not hasattr(model, "_completer"):
                raise ValueError(
                    f"imputed must be False for {name}, which does not draw missing cells: means "
                    "and deviations are in constant_data"
                )
            if not np.isnan(observed).any():
                raise ValueError("imputed must be False where X has no missing cells, got True")

    def posterior(self, posterior, request):
        """What the draws hold beside the traces."""
        model = self._model_of(posterior)
        draws = _chosen(posterior, range(len(posterior.stored)))
        axes = model._fixed_axes(draws[0][0], posterior.traces)
        group = _of_axes(stacked(draws, lambda draw: model._fixed_arrays(draw, axes)), axes)
        group.add(model._cluster_means(draws))
        if request.imputed or model._holds_cells():
            group.add(model._drawn_cells(draws, check_random_state(request.random_state)))
        return group

    def data(self, posterior):
        """The training rows, and what else is known of them."""
        model = self._model_of(posterior)
        return {"observed_data": model._observed_group(), "constant_data": model._constant_group()}

    def log_likelihood(self, values):
        """Densities of the rows, (n_chains, n_draws, n_rows)."""
        name, rows = next(iter(self._model._observed_group().variables)), self._model._rows_axis()
        return Group({name: ((*_OF_DRAWS, rows.dim), values)}, rows.coords())

    def drawn(self, posterior, request):
        """Tables that are drawn: under draws of the posterior, and with draws from the prior."""
        model, groups = self._model_of(posterior), {}
        seeds = check_random_state(request.random_state).randint(2**31, size=2)
        if request.posterior_predictive:
            rng = np.random.default_rng(seeds[0])
            places = posterior.evenly_in_chains(request.posterior_predictive)
            tables = stacked(
                _chosen(posterior, places),
                lambda draw: model._replicated(model._replicate(draw, rng)),
            )
            groups["posterior_predictive"] = self._like_observed(model, tables).of_draws(
                posterior.n_chains, posterior.stored[places]
            )
        if request.prior:
            groups |= self._from_prior(model, request.prior, np.random.default_rng(seeds[1]))
        return groups

    def _from_prior(self, model, n_draws, rng):
        """Parameters from the prior, as those of the posterior, and a table of each."""
        axes, scalars = {}, []

        def of_draw(_):
            sampler, A = model._prior_chain(rng)
            draw = sampler.draw()
            scalars.append(sampler.scalars())
            if not axes:
                axes.update(model._fixed_axes(draw, scalars[0]))
            tables = model._replicated(A)
            return model._fixed_arrays(draw, axes) | tables

        found = stacked([range(n_draws)], of_draw)
        prior = _of_axes(found, axes)
        for name in scalars[0]:
            values = np.array([[one[name] for one in scalars]])
            prior.variables[name] = _OF_DRAWS, values
        groups = {"prior": prior, "prior_predictive": self._like_observed(model, found)}
        return {name: group.of_draws(1, np.arange(n_draws)) for name, group in groups.items()}

    def _like_observed(self, model, tables):
        """Tables of draws with the names of what is observed."""
        observed = model._observed_group()
        return Group(
            {
                name: ((*_OF_DRAWS, *dims), tables[name])
                for name, (dims, _) in observed.variables.items()
            },
            dict(observed.coords),
        )


def _chosen(posterior, places):
    """Stored draws at the same places of each chain, (n_chains, n_draws)."""
    return [[posterior[c, t] for t in places] for c in range(posterior.n_chains)]
