"""All estimators with their main settings: what every promise to users is tested over.

A test of ``tests/contract`` takes its cases from here, so that a new estimator, or a new setting,
is held to all promises at once.
"""

from dataclasses import dataclass, field

import numpy as np
from sklearn.base import is_classifier, is_regressor

from checks.answers import cheap_options
from checks.slow import slow_where
from skbnp import (
    CIBPBeliefNet,
    DeepScaleModel,
    DirichletProcessMixture,
    ICPConvClassifier,
    ICPNetwork,
    ICPNetworkClassifier,
    ICPNetworkRegressor,
    InfiniteFactorClusterer,
    TreeFactorModel,
)
from skbnp.laws import Normal, ShiftedBetaNegativeBinomial
from skbnp.samplers import ICPConvSampler, ICPSampler, MixtureSampler

# Chains as short as an answer can be: promises hold for any length.
SHORT = dict(n_chains=2, n_warmup=4, n_draws=4, random_state=0)
# Networks that are hardly trained.
SHORT_TRAINING = ICPConvSampler(n_start_steps=10, n_steps=2, n_weight_steps=80)
# Least squares for the start of a network take longer than so short a chain.
AT_RANDOM, SMALL = ICPSampler(init="two-level"), ICPSampler(n_init_units=2)
# And shorter still, where a test has many fits and looks at anything but the chains.
SHORTEST = dict(n_chains=1, n_warmup=1, n_draws=2)


class ImagesOfOneRow(ICPConvClassifier):
    """Any number of pixels are an image: tables of any number of columns are such images."""

    def _image_shape(self, shape):
        return (1, self.n_features_in_, 1)


@dataclass(frozen=True, eq=False)
class Setting:
    """One estimator with options, and what it needs to be fitted."""

    name: str
    kind: type
    options: dict = field(default_factory=dict)

    def make(self, **changes):
        """A new estimator with short chains, whose answers take few random numbers."""
        return self.kind(**(SHORT | cheap_options(self.kind) | self.options | changes))

    @property
    def is_supervised(self):
        """Whether ``fit`` needs a target."""
        estimator = self.kind()
        return is_classifier(estimator) or is_regressor(estimator)

    @property
    def takes_holes(self):
        """Whether X may hold NaN."""
        return self.kind().__sklearn_tags__().input_tags.allow_nan

    def table(self):
        """A small table of two groups, with a hole where X may have some."""
        X = np.random.default_rng(0).normal(size=(24, 3))
        X[:12] += 3.0
        if self.takes_holes:
            X[3, 1] = np.nan
        return X

    def target(self, X):
        """A target of the rows of X that the estimator can learn, None where it needs none."""
        if not self.is_supervised:
            return None
        signal = np.nan_to_num(np.asarray(X, dtype=np.float64))[:, 0]
        return (signal > np.median(signal)).astype(int) if is_classifier(self.kind()) else signal

    def fit(self, X, **changes):
        """A new estimator fitted to X, and to a target where it needs one."""
        return self.make(**changes).fit(X, self.target(X))

    def __str__(self):
        return self.name


SETTINGS = [
    Setting("mixture", DirichletProcessMixture),
    Setting("mixture-diag", DirichletProcessMixture, {"covariance_type": "diag"}),
    Setting("mixture-spherical", DirichletProcessMixture, {"covariance_type": "spherical"}),
    Setting(
        "mixture-parallel",
        DirichletProcessMixture,
        {"sampler": MixtureSampler(algorithm="parallel")},
    ),
    Setting(
        "mixture-gibbs",
        DirichletProcessMixture,
        {"sampler": MixtureSampler(algorithm="gibbs"), "n_components": 3},
    ),
    Setting(
        "mixture-sampled",
        DirichletProcessMixture,
        {"n_components": ShiftedBetaNegativeBinomial(1, 4, 3)},
    ),
    Setting("tree", TreeFactorModel),
    Setting("tree-single", TreeFactorModel, {"structure": "single"}),
    Setting("tree-mixture", TreeFactorModel, {"structure": "mixture"}),
    Setting("tree-t", TreeFactorModel, {"tails": "t"}),
    Setting("tree-prior", TreeFactorModel, {"new_branch": "prior"}),
    Setting("cibp", CIBPBeliefNet),
    Setting("cibp-deep", CIBPBeliefNet, {"max_layers": 2}),
    Setting("cibp-rows", CIBPBeliefNet, {"max_layers": 1, "row_clusters": True}),
    Setting("cibp-sigmoid", CIBPBeliefNet, {"visible": "sigmoid"}),
    Setting("icp", ICPNetwork, {"sampler": SMALL}),
    Setting("icp-sigmoid", ICPNetwork, {"visible": "sigmoid", "sampler": AT_RANDOM}),
    Setting("icp-free", ICPNetwork, {"observed_order": "free", "sampler": AT_RANDOM}),
    Setting("icp-regressor", ICPNetworkRegressor, {"sampler": SMALL}),
    Setting("icp-classifier", ICPNetworkClassifier, {"sampler": SMALL}),
    Setting(
        "icp-images",
        ImagesOfOneRow,
        {"n_architectures": 2, "sampler": SHORT_TRAINING},
    ),
    Setting("clusterer", InfiniteFactorClusterer),
    Setting("scale", DeepScaleModel),
    Setting("scale-drift", DeepScaleModel, {"drift": Normal(0.0, 1.0), "max_layers": 2}),
]
UNSUPERVISED = [setting for setting in SETTINGS if not setting.is_supervised]
# One setting of each class: for promises that no option touches.
DEFAULTS = list({setting.kind: setting for setting in reversed(SETTINGS)}.values())[::-1]
# And those beside them whose fitted attributes are others.
_VARIED = {"mixture-diag", "tree-t", "cibp-rows", "icp-sigmoid"}
VARIED = [*DEFAULTS, *(setting for setting in SETTINGS if setting.name in _VARIED)]


def others_slow(settings, fast=VARIED):
    """Settings as parameters of a test, which is a slow one for those that are not in ``fast``."""
    return slow_where(settings, lambda setting: setting not in fast)
