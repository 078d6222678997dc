"""Classification by networks of any shape."""

from typing import ClassVar

import numpy as np
from sklearn.utils._param_validation import StrOptions

from skbnp.estimators.export import Axis
from skbnp.estimators.parameters import parameter
from skbnp.icp_network._calibration import best_power, leave_one_out, raised
from skbnp.icp_network._classes_estimator import ClassProbabilitiesMixin
from skbnp.icp_network._model import labels_of
from skbnp.icp_network._supervised_estimator import SupervisedICPNetwork
from skbnp.markup import counted

# Training rows that the power of class probabilities is chosen by, at most.
_MOST_LEFT_OUT = 5000


class ICPNetworkClassifier(ClassProbabilitiesMixin, SupervisedICPNetwork):
    r"""Classification by a network whose hidden nodes, edges and depth are inferred.

    .. math::

        a_{ni} \sim \mathcal{N}\Big(b_i + \sum_k Z_{ki} W_{ki} u_{nk},\; 1/\rho_i\Big), \qquad
        u_{nk} = \tanh(a_{nk} / 2)

    where the features are inputs of order 1, and u of an input is its scaled value. Each class has
    a node of order 0 and precision 1, and a row belongs to the class with the largest a. Two
    classes share one node; the second class is where a > 0. All other nodes are hidden. The graph Z
    follows the Indian chefs process: node k has an order in [0, 1], and its children have lower
    orders. The hidden nodes, with their orders and popularities, are a Poisson process of intensity
    :math:`\alpha \gamma \pi^{-1} (1 - \pi)^{\alpha - 1}`, with mass :math:`\gamma` and
    concentration :math:`\alpha`. Node k is a parent of each node below it with probability
    :math:`\pi_k`. Only hidden nodes from which a target descends are kept [1]_. Popularities of
    inputs are :math:`\mathrm{Beta}(\phi, \alpha)`. Weights and biases are normal with mean 0, and
    the precisions :math:`\rho_i` have gamma distributions. All priors are for data as scaled
    inside.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels of the classes, sorted.
    power_ : float
        The power that `predict_proba` raises probabilities to; 1 without
        `probability_calibration`.
    n_hidden_ : int
        Number of hidden nodes of the reference draw, the draw of the highest log joint density.
    n_edges_ : int
        Number of its edges.
    depth_ : int
        Number of edges on its longest path.
    posterior_ : skbnp.mcmc.posterior.Posterior
        The draws, with traces (``n_hidden``, ``n_edges``, ``depth`` and others), R-hat and
        effective sample sizes. Each draw is a network for X as scaled inside; see `network`.
    n_guard_rejections_ : int
        Number of proposals, over all chains, that were refused because of `max_units`.
    n_chains_ : int
        Number of chains.
    n_warmup_ : int
        Sweeps of warm-up: what "auto" stood for.
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
    ICPNetworkRegressor : The same for real targets.
    ICPNetwork : Density of all columns alike, with missing cells.

    Notes
    -----
    Units are those of [2]_. A sweep updates the hidden activations of each unit, of each row by
    elliptical slices [3]_, and of all rows along Hamiltonian trajectories, in which the nodes of
    the classes are integrated out; every edge, with the weights and the bias of its child
    integrated out; hidden nodes, by births and deaths, by splitting edges and by exchanging
    neighbours; the orders; and the hyperparameters.

    For N rows, K nodes and E edges a sweep costs O(N K^2) in matrix products and O(N E) in
    everything else; the trajectories repeat the latter about 60 times. The paper's density is not
    normalised, and its acceptance ratios are right only for that density. This and several other
    formulas of the paper are corrected here.

    The paper's priors are ``mass=Gamma(0.5, 0.5)``, ``concentration=InverseGamma(0.5, 0.5)``,
    ``observed_popularity=Gamma(0.5, 0.5)``, ``noise_precision=Gamma(0.5, 0.5)``,
    ``weight_variance=1`` and ``bias_variance=1``, and ``input_weight_variance=1``. Under them
    networks of hundreds of nodes are not rare a priori.

    Hidden nodes are identified only up to their signs, and cannot be compared across draws. Graphs
    mix slowly, more slowly than predictions: expect `fit` to warn. Constant columns are set aside.
    float32 input is computed in float64 (a copy of twice its size). Files of `save` hold the
    training rows, for ``posterior_.loo()``. Sparse X is refused. `sample_weight` and `partial_fit`
    are not available.

    References
    ----------
    .. [1] P. Dallaire, L. Ambrogioni, L. Trottier, U. Guclu, M. Hinne, P. Giguere, B. Chaib-draa,
       M. van Gerven and F. Laviolette (2020). The Indian Chefs Process.
    .. [2] R. P. Adams, H. M. Wallach and Z. Ghahramani (2010). Learning the structure of deep
       sparse graphical models. Proceedings of the 13th International Conference on Artificial
       Intelligence and Statistics, 1-8.
    .. [3] I. Murray, R. P. Adams and D. J. C. MacKay (2010). Elliptical slice sampling.
       Proceedings of the 13th International Conference on Artificial Intelligence and Statistics,
       541-548.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from skbnp import ICPNetworkClassifier
    >>> X, y = make_moons(100, noise=0.1, random_state=0)
    >>> net = ICPNetworkClassifier(n_chains=2, n_warmup=100, n_draws=50, random_state=0).fit(X, y)
    >>> bool(net.score(X, y) > 0.9)
    True
    """

    probability_calibration: str | None = parameter(
        default="loo",
        of_chains=False,
        kind='"loo" or None',
        rules=[StrOptions({"loo"}), None],
        text="""
        What `predict_proba` makes of the posterior predictive probabilities. None: nothing. "loo":
        they are raised to one power, at least 1, and made to sum to one again. The power,
        `power_`, is chosen in `fit` by the log loss of leave-one-out predictions of training rows,
        at most 5,000 of them. These come from importance sampling over the draws, not from
        refits. Draws of a network may each be sure of a class and disagree, and their mean is then
        too even. Where labels are noisy, the power comes to 1.
        """,
    )

    _fitted_attributes: ClassVar[dict] = {
        **SupervisedICPNetwork._fitted_attributes,
        "classes_": np.ndarray,
        "power_": float,
    }

    def predict_proba(self, X):
        """Probabilities of the classes.

        Those of the posterior predictive distribution, raised to the power `power_`: a departure
        from that distribution, which `probability_calibration=None` gives.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New rows; NaN is refused.

        Returns
        -------
        probability : ndarray of shape (n_samples, n_classes)
            In the order of `classes_`.
        """
        probability, _ = self._predicted(X)
        return raised(probability, self.power_)

    # -- after sampling

    def _summarise(self, X):
        super()._summarise(X)
        self.power_ = 1.0
        if self.probability_calibration == "loo":
            self.power_ = self._best_power()

    def _best_power(self):
        """The power with which training rows, each left out in turn, are predicted best."""
        X, labels = self._training_rows.visible, self._training_rows.labels
        if len(X) > _MOST_LEFT_OUT:
            rows = np.random.default_rng(self.seed_).choice(len(X), _MOST_LEFT_OUT, replace=False)
            X, labels = X[rows], labels[rows]

        def probabilities(law, t, A):
            return self._outputs_under(law, t, A)[0]

        left_out = [
            leave_one_out(np.concatenate(parts), labels[block])
            for block, parts in self._over_draws(X, probabilities)
        ]
        return best_power(np.concatenate(left_out), labels)

    # -- report

    def _about_target(self):
        target = f"which of {counted(len(self.classes_), 'class', 'classes')} a row is of"
        return {"target": target, "power": self.power_}

    # -- files

    @classmethod
    def _parameters_of_file(cls, parameters):
        # Files of version 0.1 have the probabilities as they are.
        return {"probability_calibration": None} | super()._parameters_of_file(parameters)

    @classmethod
    def _fitted_of_file(cls, fitted):
        fitted = super()._fitted_of_file(fitted)
        return fitted if "power_" in fitted else fitted | {"power_": 1.0}

    # -- before sampling

    def _about_data(self):
        return [repr(label) for label in self.classes_.tolist()]

    def _observed(self, X):
        d = self.n_features_in_
        if len(np.unique(X[:, d])) < len(self.classes_):
            raise ValueError(f"max_rows must leave rows of every class, got {self.max_rows}")
        units = self._input_units = self._of_inputs(X[:, :d])
        n_latents, n_inputs = self._n_latents(), len(units.columns)
        return (
            np.hstack([np.zeros((len(X), n_latents)), units.to_visible(X[:, :d])]),
            np.zeros(len(X)),
            X[:, d].astype(np.intp),
            ["latent"] * n_latents + ["input"] * n_inputs,
            [0.0] * n_latents + [1.0] * n_inputs,
        )

    def _n_latents(self):
        return 1 if len(self.classes_) == 2 else len(self.classes_)

    # -- nodes

    def _node_columns(self):
        n_latents = self._n_latents()
        return np.concatenate([np.arange(n_latents), n_latents + self._input_units.columns])

    def _node_names(self):
        return [str(label) for label in self.classes_[-self._n_latents() :]] + self._feature_names()

    # -- for ArviZ

    def _outputs_axis(self):
        names = self._node_names()[: self._n_latents()]
        return Axis("class", np.array(names, dtype=object))

    def _replicated(self, A):
        return {"y": labels_of({"visible": A}, self._prior)}

    def _check_loaded(self):
        super()._check_loaded()
        self._check_loaded_classes()
        if self._prior.roles.count("latent") != self._n_latents():
            raise ValueError("the prior must have a latent for each class, one for two")
