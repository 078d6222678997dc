"""Classification of images by convolutional networks of unknown architecture."""

from functools import partial
from numbers import Integral
from typing import ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skbnp.estimators.arguments import refuses_by_name
from skbnp.estimators.chains import BaseMCMCEstimator
from skbnp.icp_network._calibration import raised
from skbnp.icp_network._classes_estimator import ClassProbabilitiesMixin
from skbnp.icp_network.convolution._architectures_estimator import ArchitecturesMixin
from skbnp.icp_network.convolution._evidence import RULES
from skbnp.icp_network.convolution._images import (
    LabelledImages,
    TrainingImages,
    WatchedLabels,
    channels_first,
    log_probabilities,
    shared_out,
    sizes_of,
    units_of_pixels,
)
from skbnp.icp_network.convolution._model import Prior, check_prior, checked_state, network_of
from skbnp.icp_network.convolution._parameters import ConvNetworkParameters
from skbnp.icp_network.convolution._sampler import make_sampler, start_graph
from skbnp.icp_network.convolution._sampler_settings import ICPConvSampler
from skbnp.icp_network.convolution._structure import KINDS
from skbnp.icp_network.convolution._weights_estimator import WeightsMixin
from skbnp.mcmc.caller import warn
from skbnp.mcmc.posterior import Posterior
from skbnp.mcmc.posterior_diagnostics import evenly
from skbnp.summaries.reference import reference_draw
from skbnp.units import Units, check_units

# Proposals per chain: warm-up, and after it.
_LENGTHS = 300, 300
# Largest side of maps that the output reads pixel by pixel.
_MOST_READ = 14
_MOST_BINS = 4
# Multiplications of a step of training above which it is slow, and passes that one is.
_MANY_MULTIPLICATIONS, _PASSES = 1e9, 3
# Pixels beyond so many deviations of the training pixels are taken for these.
_FARTHEST_PIXEL = 1e6


class ICPConvClassifier(
    ArchitecturesMixin, WeightsMixin, ClassProbabilitiesMixin, ConvNetworkParameters
):
    r"""Classification of images by convolutional networks whose architecture is inferred.

    .. math::

        T_i = \mathrm{ReLU}\Big(\beta_i + \sum_{k \to i} W_{ki} * \mathrm{pool}(T_k)\Big), \qquad
        y \sim \mathrm{Categorical}\Big(\mathrm{softmax}\big(\beta_Y + \sum_{k \to Y}
        \langle V_k, \mathrm{pool}(T_k) \rangle\big)\Big)

    where T is the map of a node, kernels W are 3 x 3, padded by one pixel, and pool takes means of
    pixels. The graph of nodes follows the Indian chefs process [1]_: the image has the order 1, the
    output the order 0, hidden nodes have orders between, and parents are above their children. The
    hidden nodes, with their orders and popularities, are a Poisson process of intensity
    :math:`\alpha \gamma \pi^{-1} (1 - \pi)^{\alpha - 1}`, with mass :math:`\gamma` and
    concentration :math:`\alpha`; a node is a parent of each node below it with the probability of
    its popularity :math:`\pi`, that of the image being :math:`\mathrm{Beta}(\phi, \alpha)`. The
    order of a node decides its map: orders are cut into bins, and each bin downwards halves the
    side and doubles the channels. Weights are normal: W with the variance `weight_variance` / (9
    channels), V with `readout_variance` / (numbers of the map), both of the parent, biases with 1.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels of the classes, sorted.
    image_shape_ : tuple of int
        Height, width and channels.
    n_bins_ : int
        What `n_bins` came to.
    posterior_ : skbnp.mcmc.posterior.Posterior
        Architectures, with the weights that the search gave them, and traces: ``log_kept``, the log
        likelihood of the labels that are kept apart, ``n_live``, ``n_edges``, ``depth``, ``width``,
        ``n_weights`` and others. Each draw is a dict: ``order`` of the nodes, output and image
        first; ``edges``, each [parent, child]; ``weights``, those of all live edges.
    ensemble_ : skbnp.mcmc.posterior.Posterior
        What predictions average over: a chain for each of `n_architectures` architectures of
        `posterior_`, whose draws differ in their weights.
    architecture_summary_ : dict
        Of live nodes, live edges, depth, width and weights: mean, sd and quantiles over all draws,
        and R-hat.
    power_ : float
        The power that `predict_proba` raises probabilities to; 1 without
        `probability_calibration`.
    node_activity_ : list of ndarray
        For each draw of `ensemble_`, in order: the share of the pixels of each live hidden node
        that are above 0, over at most 200 training images.
    inference_info_ : dict
        In words, what the draws of architectures and of weights are, and what they are not.
    n_hidden_ : int
        Number of hidden nodes of the reference draw, the draw of the highest log joint density.
    n_edges_ : int
        Number of its edges.
    depth_ : int
        Number of live edges on its longest path from image to output.
    n_chains_ : int
        Number of chains.
    n_warmup_ : int
        Proposals of warm-up: what "auto" stood for.
    n_draws_ : int
        Draws per chain: what "auto" stood for.
    seed_ : int
        Entropy from which the seeds of all chains are derived.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if X had any.

    See Also
    --------
    ICPNetworkClassifier : Networks of single units, whose draws are those of the posterior.

    Notes
    -----
    **Architectures** are proposed as the process has them: an edge comes or goes, a node is born
    or dies with all its edges, or takes another order, an edge is split by a node, or a node
    merged into one. Where that changes live edges, the network is trained for some steps on three
    quarters of the images, and the log likelihood of the others stands for its evidence. This is an
    approximation: training is noisy, weights are single ones, a quarter of the images decides, and
    weights that stay are trained on and on. Posteriors of architectures are *indicative*.

    **Weights** of `n_architectures` of them are then drawn on all images, by stochastic-gradient
    Hamiltonian Monte Carlo [2]_ of the posterior raised to the power 1 / `temperature`. That is not
    the posterior of the model, and predicts better here ("cold posteriors" [3]_). Steps are shorter
    for many images, and are halved for a network whose weights they make worse.

    **Probabilities** are averages over all these draws, raised to one power and made to sum to one
    again. The power is chosen by training images that weights have not seen: they are drawn a
    second time, without one fold of the images for each architecture.

    A search costs about `n_steps` gradients a proposal, of `batch_size` images each. On 500 images
    of 8 x 8 pixels a fit takes a minute or two of one core. There are no augmentation, no
    dropout and no batch normalisation: draws with these would be of no posterior. All is compiled
    for CPUs in single precision. For a GPU, or for more than about 1e6 weights, use torch.

    Pixels are centred and scaled by one mean and one deviation over all training pixels. Missing
    pixels are refused: fill them before, by :class:`~skbnp.BNPImputer` say. Chains find different
    architectures that predict alike: expect `fit` to warn. `sample_weight` and `partial_fit` are
    not available.

    References
    ----------
    .. [1] P. Dallaire, L. Ambrogioni, L. Trottier, U. Guclu, M. Hinne, P. Giguere, B. Chaib-draa,
       M. van Gerven and F. Laviolette (2020). The Indian Chefs Process.
    .. [2] T. Chen, E. B. Fox and C. Guestrin (2014). Stochastic gradient Hamiltonian Monte Carlo.
       Proceedings of the 31st International Conference on Machine Learning, 1683-1691.
    .. [3] F. Wenzel et al. (2020). How good is the Bayes posterior in deep neural networks really?
       Proceedings of the 37th International Conference on Machine Learning, 10248-10259.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from skbnp import ICPConvClassifier
    >>> from skbnp.samplers import ICPConvSampler
    >>> X, y = load_digits(return_X_y=True)
    >>> sampler = ICPConvSampler(n_start_steps=300, n_steps=20, n_weight_steps=400)
    >>> clf = ICPConvClassifier(
    ...     n_chains=1, n_warmup=10, n_draws=10, n_architectures=2, sampler=sampler, random_state=0
    ... ).fit(X[:300], y[:300])
    >>> bool(clf.score(X[300:600], y[300:600]) > 0.75)
    True
    """

    _finite = True
    _reported_traces = ("log_kept", "n_live", "n_edges")
    _findings = "architectures"
    _moves_of_traces: ClassVar[dict] = {
        "n_hidden": ("births", "deaths", "splits", "merges"),
        "n_edges": KINDS,
    }
    _settings_type = ICPConvSampler
    _saved_types = (Prior, Units, TrainingImages)
    _fitted_attributes: ClassVar[dict] = {
        **BaseMCMCEstimator._fitted_attributes,
        "classes_": np.ndarray,
        "image_shape_": tuple,
        "n_bins_": Integral,
        "n_hidden_": Integral,
        "n_edges_": Integral,
        "depth_": Integral,
        "ensemble_": Posterior,
        "power_": float,
        "node_activity_": list,
        "_prior": Prior,
        "_units": Units,
        "_reference": dict,
        "_training_rows": TrainingImages,
    }

    @refuses_by_name
    def predict_proba(self, X):
        """Probabilities of the classes, means over architectures and weights.

        These are raised to the power `power_`, a departure from the average, which
        `probability_calibration=None` gives.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New images, in any form that `fit` takes.

        Returns
        -------
        probability : ndarray of shape (n_samples, n_classes)
            In the order of `classes_`.
        """
        return raised(self._predicted(X)[0], self.power_)

    @refuses_by_name
    def predict_std(self, X):
        """How much the draws disagree: standard deviations of the probabilities over them.

        Of probabilities as the draws have them, before the power `power_`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New images, in any form that `fit` takes.

        Returns
        -------
        std : ndarray of shape (n_samples, n_classes)
            In the order of `classes_`.
        """
        return np.sqrt(np.maximum(self._predicted(X)[1], 0.0))

    @refuses_by_name
    def feature_maps(self, X, draw=None):
        """Maps of the live nodes for some images.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Images, in any form that `fit` takes.
        draw : dict, default=None
            One of `posterior_` or `ensemble_`; None is the reference draw.

        Returns
        -------
        maps : dict
            Number of a node -> ndarray of shape (n_samples, height, width, channels); node 1 is the
            image as it is scaled inside.
        """
        images = self._images(self._check_new(X))
        network, weights = network_of(self._given_draw(draw), self._prior)
        layout = self._layout(draw)
        return dict(zip(layout.nodes, network.maps(images, weights), strict=True))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags

    # -- before sampling

    def _check_training(self, X, y):
        shape = self._shape_of(X)
        X = super()._check_training(self._rows(X, shape), y)
        table = self._with_target(X, y)
        self.image_shape_ = self._image_shape(shape)
        return table

    def _shape_of(self, X):
        """What X itself says of the shape of images: None where its rows are flat."""
        shape = np.shape(X) if hasattr(X, "shape") else ()
        return tuple(map(int, shape[1:])) if len(shape) in (3, 4) else None

    def _rows(self, X, shape):
        """X with a row for each image."""
        return X if shape is None else np.ma.asanyarray(X).reshape(len(X), int(np.prod(shape)))

    def _filled_by(self, imputer):
        return (
            f"make_pipeline({imputer}, {type(self).__name__}(image_shape=(height, width))) with "
            "the rows of pixels X.reshape(len(X), -1)"
        )

    def _image_shape(self, shape):
        """Height, width and channels."""
        d, given = self.n_features_in_, self.image_shape
        if given is None and shape is None:
            side = int(round(d**0.5))
            if side * side != d:
                raise ValueError(
                    "image_shape must be given where rows of X are not square images of one "
                    f"channel, got {d} features"
                )
            return side, side, 1
        found = sizes_of("image_shape", shape if given is None else given)
        if given is not None and shape is not None and sizes_of("X", shape) != found:
            raise ValueError(f"X must have images of image_shape {given}, got {shape}")
        if int(np.prod(found)) != d:
            raise ValueError(
                f"image_shape must have as many numbers as X has features, {d}, got {given}"
            )
        return found

    def _lattice_columns(self, X):
        # Grey levels are measurements.
        return ()

    def _auto_n_chains(self, X):
        return 2

    def _auto_lengths(self, X):
        return _LENGTHS

    def _sampler_settings(self):
        """The value of `sampler`, the defaults of the rule where that is None."""
        given = self.sampler
        return ICPConvSampler(**RULES[self.inference].STEPS) if given is None else given

    def _prepare(self, X):
        settings = self._sampler_settings()
        labels = X[:, -1].astype(np.intp)
        self._units = units_of_pixels(X[:, :-1])
        self._prior = self._make_prior()
        inits = ("chain", "prior") if settings.init == "auto" else (settings.init,)
        self._refuse_slow(settings)
        if inits == ("prior",):
            # To see that chains can start, before any does.
            start_graph("prior", self._prior, np.random.default_rng(0))
        images = self._images(X[:, :-1])
        rule = RULES[self.inference]
        kept = rule.kept(labels)
        learnt = np.setdiff1d(np.arange(len(labels)), kept)
        if not len(rule.judging(learnt, kept)):
            warn(
                "X has too few images of each class to keep some apart: architectures follow the "
                "prior"
            )
        data = LabelledImages(images, labels, learnt, kept)
        # A copy: the user may change X afterwards.
        self._training_rows = TrainingImages(X[:, :-1].copy(), images, labels, self._prior)
        return partial(
            make_sampler,
            data=data,
            prior=self._prior,
            inits=inits,
            rule=rule,
            settings=settings.get_params(deep=False),
        )

    def _make_prior(self):
        side = max(self.image_shape_[:2])
        bins = max(1, min(_MOST_BINS, int(np.floor(np.log2(side)))))
        self.n_bins_ = bins if self.n_bins == "auto" else int(self.n_bins)
        return Prior(
            image_shape=self.image_shape_,
            n_classes=len(self.classes_),
            n_bins=self.n_bins_,
            n_channels=int(self.n_channels),
            readout=_MOST_READ if self.readout == "auto" else int(self.readout),
            weight_variance=float(self.weight_variance),
            readout_variance=float(self.readout_variance),
            mass=float(self.mass),
            concentration=float(self.concentration),
            observed_popularity=float(self.observed_popularity),
            max_units=int(self.max_units),
        )

    def _refuse_slow(self, settings):
        graph = start_graph("chain", self._prior, None)
        per_image = self._prior.layout(graph["order"], graph["edges"]).multiplications()
        n = _PASSES * settings.batch_size * per_image
        if n > _MANY_MULTIPLICATIONS and not self.allow_slow:
            raise ValueError(
                f"X has images of {self.image_shape_} and a step of training takes {n:.2g} "
                "multiplications, more than 1e9: make them smaller, or set allow_slow=True"
            )

    def _check_new(self, X):
        shape = self._shape_of(X)
        check_is_fitted(self, "posterior_")
        if shape is not None and sizes_of("X", shape) != self.image_shape_:
            raise ValueError(f"X must have images of shape {self.image_shape_}, got {shape}")
        return super()._check_new(self._rows(X, shape))

    def _images(self, X):
        scaled = np.clip(self._units.scaled(X), -_FARTHEST_PIXEL, _FARTHEST_PIXEL)
        return channels_first(scaled, self.image_shape_)

    # -- after sampling

    def _summarise(self, X):
        draw = self._reference = reference_draw(self.posterior_)
        layout = self._layout(draw)
        self.n_hidden_, self.n_edges_ = len(draw["order"]) - 2, len(draw["edges"])
        self.depth_ = layout.depth
        rows = self._training_rows
        everything = np.arange(len(rows.labels))
        self.ensemble_ = self._drawn_weights(
            LabelledImages(rows.images, rows.labels, everything, everything[:0])
        )
        self.node_activity_ = self._activities(rows.images)

    def _chosen_draws_of_chains(self):
        """Draws to average over: evenly spaced in each chain, as many of each.

        Chains stay near where they started. An average gains more from architectures that differ
        than from those of the better chains alone.
        """
        chains = self.posterior_.all_draws()
        lengths = [len(draws) for draws in chains]
        counts = shared_out(min(self.n_architectures, sum(lengths)), lengths)
        return [
            draws[t]
            for draws, count in zip(chains, counts, strict=True)
            for t in evenly(len(draws), count)
        ]

    def _predicted(self, X):
        """Means and variances of the probabilities over the draws."""
        images = self._images(self._check_new(X))
        moments = self._moments(images, self._probabilities)
        _, mean, variance = zip(*moments, strict=True)
        return np.concatenate(mean), np.concatenate(variance)

    def _draws_to_predict_from(self):
        return self.ensemble_

    def _probabilities(self, draw, t, images):
        """Of the classes under one draw, without a variance of their own."""
        probability = np.exp(log_probabilities(draw, self._prior, images))
        return probability, np.zeros_like(probability)

    def _density(self, X, rows):
        return WatchedLabels(self._training_rows, rows)

    # -- for ArviZ

    def _replicate(self, draw, rng):
        probability, _ = self._probabilities(draw, 0, self._training_rows.images)
        u = rng.uniform(size=(len(probability), 1))
        return np.minimum((np.cumsum(probability, axis=1) < u).sum(axis=1), len(self.classes_) - 1)

    def _replicated(self, A):
        return {"y": A}

    def _prior_chain(self, rng):
        rows = self._training_rows
        data = LabelledImages(rows.images, rows.labels, np.arange(len(rows.labels)), np.arange(0))
        settings = self._sampler_settings().get_params(deep=False)
        chain = make_sampler(
            rng.bit_generator,
            0,
            data=data,
            prior=self._prior,
            inits=("prior",),
            rule=RULES[self.inference],
            settings=settings | {"n_start_steps": 0},
        )
        return chain, self._replicate(chain.draw(), rng)

    # -- files

    def _check_draw(self, draw):
        checked_state(draw, self._prior)

    def _check_loaded(self):
        check_prior(self._prior)
        check_units(self._units, self.n_features_in_)
        if len(self._units.columns) != self.n_features_in_ or not (self._units.scale > 0.0).all():
            raise ValueError("all pixels must have units")
        if self.image_shape_ != self._prior.image_shape:
            raise ValueError("image_shape_ must be that of the prior")
        if self._prior.n_pixels != self.n_features_in_ or self._prior.n_bins != self.n_bins_:
            raise ValueError("the prior must be of as many pixels as there are features")
        self._check_loaded_classes()
        if len(self.classes_) != self._prior.n_classes:
            raise ValueError("the prior must have a class for each of classes_")
        for chain in self.ensemble_.all_draws():
            for draw in chain:
                self._check_draw(draw)
        if not self.ensemble_.n_stored:
            raise ValueError("ensemble_ must hold draws")
        rows = self._training_rows
        n = len(rows.labels)
        if rows.table.shape != (n, self.n_features_in_) or rows.prior != self._prior:
            raise ValueError("the training images must be of the prior")
        if rows.images.shape != rows.table.shape or rows.images.dtype != np.float32:
            raise ValueError("the training images must be there as they are scaled inside")
        draw = self._reference
        self._check_draw(draw)
        found = (len(draw["order"]) - 2, len(draw["edges"]), self._layout(draw).depth)
        if (self.n_hidden_, self.n_edges_, self.depth_) != found:
            raise ValueError("n_hidden_, n_edges_ and depth_ must be those of the reference draw")
        if not all(isinstance(one, np.ndarray) and one.ndim == 1 for one in self.node_activity_):
            raise ValueError("node_activity_ must be arrays")
