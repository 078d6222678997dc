"""Parameters checked against X, and the prior and the start that they make for standardised X."""

from numbers import Integral, Real

import numpy as np

from skbnp.laws import Law
from skbnp.mcmc.caller import warn
from skbnp.tree_factor_model._model import Prior
from skbnp.tree_factor_model._old_files import renamed
from skbnp.tree_factor_model._sampler_settings import TreeSampler

# Levels that "auto" takes at most, where branches share half of them and where they own them, and
# branches that a chain starts with at most.
_AUTO_DEPTH, _AUTO_OWN_DEPTH, _AUTO_BRANCHES = 64, 40, 16
# Rows for each level, beyond so many levels. Tables of 36 and 60 rows were filled with smaller
# errors than by 40 levels, one of 120 with the same, in half of the time or less.
_ROWS_PER_LEVEL, _LEAST_AUTO_DEPTH = 6, 10
# Rows for each feature that the covariances of many branches take, and rows for each cluster that
# a chain starts with where there are fewer.
_ROWS_PER_FEATURE, _ROWS_PER_CLUSTER = 10, 75
# Features beyond which a mixture of full Gaussians takes too long to start from.
_MOST_EM_FEATURES = 256
# Least prior mean of a concentration, as a power of ten.
_LEAST_CONCENTRATION = 100


class PriorMixin:
    """Makes of constructor parameters and data what chains take."""

    def _advise(self):
        """Warn of hyperparameters for which the prior has no finite variances."""
        for name, least in (("shrinkage_root", 1), ("shrinkage", 2), ("local_shrinkage_df", 2)):
            if getattr(self, name) <= least:
                warn(
                    f"{name} should be > {least}, got {getattr(self, name)}: the prior variance "
                    "of the loadings is infinite",
                )

    def _settle(self, n_rows, n_features):
        """Depth, branching levels and start, what "auto" comes to."""
        few = n_rows < _ROWS_PER_FEATURE * n_features
        self.max_depth_ = self._checked_depth(n_rows, n_features, few)
        self.branch_levels_ = self._checked_levels(few)
        self.init_ = self._chosen_init(n_features, few)

    def _checked_depth(self, n_rows, n_features, few):
        """The levels; ``few`` says whether there are too few rows for covariances of branches."""
        if self.max_depth != "auto":
            return int(self.max_depth)
        early = few and self.structure == "tree" and self.branch_levels == "auto"
        most = _AUTO_OWN_DEPTH if early else _AUTO_DEPTH
        least = _LEAST_AUTO_DEPTH
        if self.branch_levels != "auto":
            # What is no integer is refused where the levels are looked at.
            least = max([least, *(h for h in self.branch_levels if isinstance(h, Integral))])
        return min(most, n_features, max(least, n_rows // _ROWS_PER_LEVEL))

    def _checked_levels(self, few):
        """The branching levels, ascending."""
        depth = self.max_depth_
        if self.structure != "tree":
            if self.branch_levels != "auto":
                raise ValueError(
                    f"branch_levels must not be given for structure={self.structure!r}"
                )
            return () if self.structure == "single" else (0,)
        if self.branch_levels == "auto":
            levels = tuple(sorted({1, min(2, depth)} if few else {max(1, depth // 2), depth}))
        else:
            levels = tuple(self.branch_levels)
        whole = [isinstance(h, Integral) and not isinstance(h, bool) for h in levels]
        if not levels or not all(whole) or sorted(set(levels)) != list(levels):
            raise ValueError(
                f"branch_levels must be ascending integers, at least one, got {levels!r}"
            )
        if levels[0] < 0 or levels[-1] > depth:
            raise ValueError(f"branch_levels must be from 0 to max_depth = {depth}, got {levels!r}")
        return tuple(int(h) for h in levels)

    def _make_prior(self, n_features):
        """The hyperparameters, checked."""
        levels = self.branch_levels_
        prior = Prior(
            n_features=n_features,
            max_depth=self.max_depth_,
            branch_levels=levels,
            concentration=self._checked_concentration(len(levels)),
            concentration_decay=float(self.concentration_decay),
            shrinkage_root=float(self.shrinkage_root),
            shrinkage=float(self.shrinkage),
            local_shrinkage_df=float(self.local_shrinkage_df),
            noise=self.noise,
            noise_precision=self.noise_precision,
            mean_precision=self.mean_precision,
            branch_scale=self.branch_scale,
            tails=self.tails,
            tail_df=self.tail_df,
            score_precision_shape=float(self.score_precision_shape),
            noise_scale_shape=float(self.noise_scale_shape),
        )
        # In logarithms: powers of the decay leave the range of floats.
        lowest = np.log10(self.concentration_decay) * max(0, len(levels) - 1)
        if prior.has_free_concentration and not (
            np.log10(prior.concentration.mean()) + lowest >= -_LEAST_CONCENTRATION
        ):
            raise ValueError(
                "concentration_decay must leave concentrations a prior mean of at least "
                f"1e-{_LEAST_CONCENTRATION} at the last of {len(levels)} branching levels, got "
                f"{self.concentration_decay!r}"
            )
        return prior

    def _checked_concentration(self, n_levels):
        """The law of the concentrations, or a number for each branching level."""
        concentration = self.concentration
        if isinstance(concentration, Law):
            return concentration
        if isinstance(concentration, Real):
            concentration = (float(concentration),) * n_levels
        else:
            real = [isinstance(a, Real) and not isinstance(a, bool) for a in concentration]
            if len(concentration) != n_levels or not all(real):
                raise ValueError(
                    f"concentration must have one number for each of the {n_levels} branching "
                    f"levels, got {concentration!r}"
                )
            concentration = tuple(float(a) for a in concentration)
        if not all(1e-10 <= a <= 1e4 for a in concentration):
            raise ValueError(f"concentration must be from 1e-10 to 1e4, got {concentration!r}")
        return concentration

    def _chosen_init(self, n_features, few):
        """Where chains start."""
        init = self._sampler_settings().init
        if init != "auto":
            return init
        if self.structure == "single":
            return "single"
        if few:
            return "kmeans"
        return "em" if n_features <= _MOST_EM_FEATURES else "klines"

    def _start_children(self, n_rows):
        """Groups below each branching level at the start."""
        settings = self._sampler_settings()
        n_levels = len(self.branch_levels_)
        if self.init_ == "single":
            return (1,) * n_levels
        if isinstance(settings.init_children, Integral):
            return (int(settings.init_children),) * n_levels
        if isinstance(settings.init_children, str):
            most = n_rows / _ROWS_PER_CLUSTER if self.init_ == "kmeans" else _AUTO_BRANCHES
            n_branches = min(most, _AUTO_BRANCHES)
            return (max(2, round(n_branches ** (1 / max(1, n_levels)))),) * n_levels
        children = tuple(settings.init_children)
        whole = [isinstance(n, Integral) and not isinstance(n, bool) and n > 0 for n in children]
        if len(children) != n_levels or not all(whole):
            raise ValueError(
                f"init_children must have one integer >= 1 for each of the {n_levels} branching "
                f"levels, got {settings.init_children!r}"
            )
        return tuple(int(n) for n in children)


def parameters_of_now(parameters):
    """Constructor parameters from a file, also those of version 0.1, in the names of now.

    Parameters
    ----------
    parameters : dict

    Returns
    -------
    parameters : dict
    """
    newer = renamed(parameters)
    if newer is parameters:
        return parameters
    depth = newer.pop("branch_depth")
    if depth is not None:
        newer["branch_levels"] = tuple(range(1, depth))
    newer["scaling"] = {"global": "common", "column": "each"}[newer.pop("scale")]
    settings = TreeSampler()
    settings.set_params(**{name: newer.pop(name) for name in settings.get_params()})
    return newer | {"sampler": settings}
