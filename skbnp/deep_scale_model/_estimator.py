"""The public estimator."""

from functools import partial
from typing import ClassVar

import numpy as np

from skbnp.deep_scale_model._model import Prior, draw_joint
from skbnp.deep_scale_model._parameters import ScaleParameters
from skbnp.deep_scale_model._predictive import (
    LEAST_EFFECTIVE,
    cell_moments,
    feature_labels,
    log_density,
    parts_of,
    row_moments,
    sample_rows,
)
from skbnp.deep_scale_model._sampler import Sampler
from skbnp.deep_scale_model._saved import check_draw, check_fitted
from skbnp.deep_scale_model._standard_prior import PriorMixin
from skbnp.deep_scale_model._start import start_state
from skbnp.deep_scale_model._training_rows import TrainingRows, WatchedRows
from skbnp.laws import Law
from skbnp.mcmc.caller import warn
from skbnp.mcmc.fields import Field
from skbnp.reports import scale
from skbnp.summaries.factors import column_signs
from skbnp.summaries.reference import reference_draw
from skbnp.units import Units

# Share of the warm-up in which the noise is annealed.
_ANNEALED = 0.4
# Sweeps of a row's own chain that each draw keeps, in averages over draws.
_N_KEPT = 20


class DeepScaleModel(PriorMixin, ScaleParameters):
    r"""Factors of scale: groups of columns that become loud or quiet together.

    The model of Pan and Han [1]_ with its repairs. Row t of standardised X has scores
    :math:`y_{tk}` of sparse factors, amplitudes :math:`A_t = W y_t`, and

    .. math::

        x_{tn} \sim \mathcal{N}\big(\mu_n + c A_{tn},\; A_{tn}^2 + s_n^2\big), \qquad
        y_{tk} \sim \mathcal{N}\big(0,\; 1 + (A^{(2)}_{tk})^2\big):

    factors drive the variances of the columns, and through the drift c their means. Links of
    columns to factors follow an Indian buffet process. So do links of factors to the layer above
    them, whose amplitudes are :math:`A^{(2)}`. NaN marks a missing cell; cells are taken to be
    missing at random.

    It finds groups of columns that become loud or quiet together while their means stay. The
    groups should be mostly disjoint. What it offers are `feature_labels_`, predicted variances and
    factors of energy. It is not for clusters that differ in their means, as most signal strengths
    do, nor for clusters that share columns: the cluster of a row is the factor with the largest
    share of its energy, and four clusters need not give four factors. A Gaussian mixture beat it
    as a clusterer on every table we measured; to cluster, take `InfiniteFactorClusterer`.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        The factor that in most draws has the largest share of the row's energy; -1 for the
        background.
    n_clusters_ : int
        Number of clusters in `labels_`, without the background.
    labels_per_level_ : list of ndarray of shape (n_samples,)
        `labels_`, and for each layer above the first the factor with the largest share of a row's
        energy in the layer below, in the reference draw; -1 for the background.
    feature_labels_ : ndarray of shape (`n_features_in_`,)
        The factor with the largest part in a column's variance, in the reference draw; -1 where
        noise has the largest part, and for constant columns.
    n_factors_ : float
        Posterior mean of the number of factors with a link.
    n_shared_factors_ : float
        Posterior mean of the number of factors that are linked to two columns or more. Only these
        can be known; other factors come and go.
    n_layers_ : int
        Number of layers, counted from the first, that in at least half of the draws have a factor
        with two links and more than one per cent of the energy.
    energy_correlation_ : ndarray of shape (n_features, n_features)
        Correlations of log squared deviations from the mean, in the training data. They are high
        for columns that become loud together: 1/2 where two columns have one factor in common and
        nothing else.
    posterior_ : skbnp.mcmc.posterior.Posterior
        The draws, with traces, R-hat and effective sample sizes.
    n_chains_ : int
        Number of chains.
    n_warmup_ : int
        Sweeps of warm-up: what "auto" came to.
    n_draws_ : int
        Draws per chain: what "auto" came to.
    seed_ : int
        Entropy from which every chain got its own seed.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, where X had them.

    See Also
    --------
    skbnp.InfiniteFactorClusterer : Clusters over sparse factors.
    skbnp.processes.ibp : The prior on links on its own.

    Notes
    -----
    A sweep draws links and loadings one by one [2]_, adds and removes factors, splits and merges
    them, and draws scores by elliptical [3]_ and univariate slices, then scales, noise, location,
    drift and mass. For T rows, N columns and K factors it costs some 25 T N K operations. Every
    attempt to add or remove a factor costs T times the 61 points of a grid (121 beyond 2,000 rows).

    Without noise the paper's model has no density: a column without a link to any factor would
    have the variance 0. Variances of loadings are integrated out. Constant columns are set aside
    and restored. To find no factors is an answer. float32 input is computed in float64, which takes
    a copy of twice its size. Files of `save` hold the training rows, for ``posterior_.loo()``.
    Sparse X is refused. `sample_weight` and `partial_fit` are not available.

    References
    ----------
    .. [1] E. Pan and Z. Han. Non-parametric Bayesian learning with deep learning structure and its
       applications in wireless networks.
    .. [2] D. Knowles and Z. Ghahramani (2011). Nonparametric Bayesian sparse factor models with
       application to gene expression modeling. Annals of Applied Statistics 5, 1534-1552.
    .. [3] I. Murray, R. P. Adams and D. J. C. MacKay (2010). Elliptical slice sampling. AISTATS 9,
       541-548.

    Examples
    --------
    >>> import numpy as np
    >>> from skbnp import DeepScaleModel
    >>> rng = np.random.default_rng(0)
    >>> loud = np.repeat([[5, 5, 1, 1], [1, 1, 5, 5]], 60, axis=0)  # the same means
    >>> X = loud * rng.normal(size=(120, 4))
    >>> dsm = DeepScaleModel(n_chains=2, n_warmup=100, n_draws=50, random_state=0).fit(X)
    >>> first, second, third, fourth = dsm.feature_labels_
    >>> bool(first == second != third == fourth)
    True
    """

    _reported_traces = ("log_density", "n_shared_factors")
    _findings = "factors"
    _saved_types = (Prior, Units, TrainingRows)
    _fitted_attributes: ClassVar[dict] = {
        **ScaleParameters._fitted_attributes,
        "_prior": Prior,
        "_training_rows": TrainingRows,
    }
    _may_hold: ClassVar[dict] = {**ScaleParameters._may_hold, "X": (np.nan,)}

    # -- clusters

    def predict(self, X):
        """Factor that most probably has the largest share of each row's energy.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, NaN where missing. Training rows count as new rows; their own clusters are in
            `labels_`.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            -1 is the background.
        """
        A = self._modelled(self._check_new(X))
        signs = column_signs(self._reference["loadings1"])

        def labels(start, stop):
            found = row_moments(self._reference, A[start:stop], self.seed_)
            label = np.argmax(found["largest"][0], axis=1) - 1
            return _split_by_sign(label, found["mean"] * signs) if self.signed else label

        return self._by_row_blocks(labels, len(A))

    def predict_proba(self, X):
        """Probability that each factor has the largest share of a row's energy.

        Given the loadings of the reference draw; `signed` does not change it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, NaN where missing.

        Returns
        -------
        proba : ndarray of shape (n_samples, 1 + n_factors)
            That of the background first. Rows sum to one.
        """
        A = self._modelled(self._check_new(X))

        def largest(start, stop):
            return row_moments(self._reference, A[start:stop], self.seed_)["largest"][0]

        return self._by_row_blocks(largest, len(A))

    # -- factors

    def transform(self, X):
        """Expected scores of the factors given each row, averaged over draws.

        Columns are the factors of one draw, the reference. Factors of other draws are matched to
        them by the correlation of scores, and the largest loading of each is positive. Where a draw
        has no partner for a column, it does not count in this column.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, NaN where missing.

        Returns
        -------
        scores : ndarray of shape (n_samples, n_factors)
            What `transform_output` says, in the scale of the model's scores, not in units of X.
            There are no columns where the reference draw has no factor.
        """
        scores = super().transform(X)
        if self.transform_output == "log_energy":
            return np.log(np.maximum(scores, np.finfo(float).tiny))
        return scores

    # -- before sampling

    def _prepare(self, X):
        """Check the parameters against X, scale it and say how to build a sampler."""
        self._check_parameters(X)
        self._units = self._fitted_units(X)
        A = self._modelled(X)
        self._prior = self._make_prior()
        self._training_rows = TrainingRows(A, self._prior, self._units)
        self._advise(A)
        settings = self._sampler_settings()
        n_warmup = self._length if self.n_warmup == "auto" else int(self.n_warmup)
        return partial(
            _make_sampler,
            X=A,
            prior=self._prior,
            n_init_factors=int(settings.n_init_factors),
            n_births=settings.n_births,
            n_split_merge=settings.n_split_merge,
            # The paper does not anneal.
            n_anneal=0 if self.birth_move == "pan-han" else int(_ANNEALED * n_warmup),
            schedule=settings.schedule,
            n_greedy=n_warmup // (self._prior.max_layers + 1),
            log_jacobian=float(self._units.log_jacobian(X).sum()),
        )

    def _density(self, X, rows):
        return WatchedRows(self._training_rows.X[rows], self._units)

    # -- after sampling

    def _summarise(self, X):
        draws = self._summary_draws()
        labels = [draw["level_labels"][0] for draw in draws]
        partitions = [one + 1 for one in labels]
        self._reference = reference_draw(self.posterior_, draws, partitions)
        self.labels_ = self._most_frequent(draws, labels)
        if self.signed:
            scores = self._reference["scores1"] * column_signs(self._reference["loadings1"])
            self.labels_ = _split_by_sign(self.labels_, scores)
        self.n_clusters_ = len(np.unique(self.labels_[self.labels_ >= 0]))
        self._summarise_factors(draws)

    def _feature_labels(self):
        return feature_labels(self._reference)

    def _found(self, training):
        return [
            scale.section(self.feature_labels_, self._factor_of_rows(), training.names),
            self._factors_section(training),
            self._association_section(training, of_sizes=True),
        ]

    def _factor_of_rows(self):
        """`labels_` as numbers of factors, whatever the sign of the scores."""
        return np.where(self.labels_ < 0, -1, self.labels_ // 2) if self.signed else self.labels_

    def _score_sizes(self, draw):
        return np.sqrt(np.mean(draw["scores1"] ** 2, axis=0))

    def _anchor_scores(self):
        return lambda draw: draw["scores1"]

    def _most_frequent(self, draws, labels):
        """The label that each row has in most draws, factors matched to those of the reference."""
        n_factors = self._reference["loadings1"].shape[1]
        # Background first; a factor without a partner in the reference has no say.
        share = np.zeros((len(labels[0]), n_factors + 1))
        for one, (column, _) in zip(labels, self._alignments(draws), strict=True):
            place = np.full(one.max(initial=-1) + 2, -1)
            place[0] = 0
            for k, partner in enumerate(column):
                if 0 <= partner < len(place) - 1:
                    place[partner + 1] = k + 1
            at = place[one + 1]
            rows = np.flatnonzero(at >= 0)
            share[rows, at[rows]] += 1
        return np.argmax(share, axis=1) - 1

    # -- files

    def _check_draw(self, draw):
        check_draw(draw, self._prior, *self._training_rows.X.shape)

    def _check_loaded(self):
        super()._check_loaded()
        check_fitted(self)

    # -- for ArviZ

    @property
    def _draw_fields(self):
        fields = []
        if isinstance(self._prior.noise_variance, Law):
            fields.append(Field("noise_variance", float, ("n_modelled",)))
        if self._prior.location_variance > 0.0:
            fields.append(Field("location", float, ("n_modelled",)))
        return tuple(fields)

    def _extra_of(self, draw):
        # The factor with the largest share of the row's energy, -1 where that is the noise.
        return {"label": (("n_samples",), draw["level_labels"][0])}

    def _prior_chain(self, rng):
        state, A = draw_joint(self._prior, *self._training_rows.X.shape, rng)
        return Sampler(A, self._prior, state, rng.bit_generator), A

    # -- one draw

    def _law_of(self, draw, t):
        return draw, parts_of(draw)

    def _log_density_of(self, law, t, rows):
        draw, parts = law
        return np.stack(log_density(draw, rows, self.seed_, t, parts=parts))

    def _judge(self, figures):
        few = np.count_nonzero(figures.mean(axis=0) > 1 / LEAST_EFFECTIVE)
        if few:
            warn(
                f"the density of {few} row(s) rests on fewer than {LEAST_EFFECTIVE:g} effective "
                "points: they are far from what the factors explain",
            )

    def _cell_moments_of(self, law, t, rows):
        return cell_moments(law[0], rows, self.seed_, t)

    def _scores_of(self, law, t, rows):
        return row_moments(law[0], rows, self.seed_, t, n_kept=_N_KEPT)[self._output_kind()]

    @property
    def _scores_have_signs(self):
        return self._output_kind() == "mean"

    def _sample_of(self, draw, n_rows, rng):
        return sample_rows(draw, n_rows, rng)

    def _output_kind(self):
        """What `transform` averages: "mean", "magnitude" or "energy" of scores."""
        if self.transform_output == "auto":
            return "magnitude" if self._prior.drift == 0.0 else "mean"
        return "energy" if self.transform_output == "log_energy" else self.transform_output


def _split_by_sign(labels, scores):
    """Labels 2 k where the score of factor k is positive, 2 k + 1 where negative, -1 as before."""
    factor = np.maximum(labels, 0)
    if not scores.shape[1]:
        return labels
    negative = scores[np.arange(len(labels)), factor] < 0
    return np.where(labels < 0, -1, 2 * factor + negative)


def _make_sampler(bit_generator, chain, *, X, prior, n_init_factors, n_anneal, **options):
    """The sampler of one chain; runs where the chain runs."""
    rng = np.random.Generator(bit_generator)
    state = start_state(X, prior, rng, n_init_factors, annealed=n_anneal > 0)
    return Sampler(X, prior, state, bit_generator, n_anneal=n_anneal, **options)
