"""Parameters checked against X, and the prior and the start that they make for standardised X."""

from numbers import Integral, Real

import numpy as np

from skbnp.mcmc.caller import warn
from skbnp.tree_factor_model._model import Prior

# Levels that "auto" takes at most, where branches share half of them and where they own them, and
# branches that a chain starts with at most.
_AUTO_DEPTH, _AUTO_OWN_DEPTH, _AUTO_BRANCHES = 64, 40, 16
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
        self.max_depth_ = self._checked_depth(n_features, few)
        self.branch_levels_ = self._checked_levels(few)
        self.init_ = self._chosen_init(n_features, few)

    def _checked_depth(self, n_features, few):
        """The levels; ``few`` says whether there are too few rows for covariances of branches."""
        if self.max_depth != "auto":
            return int(self.max_depth)
        by_itself = self.structure == "tree" and self.branch_levels == "auto"
        early = few and by_itself and self.branch_depth is None
        return min(_AUTO_OWN_DEPTH if early else _AUTO_DEPTH, n_features)

    def _checked_levels(self, few):
        """The branching levels, ascending."""
        depth = self.max_depth_
        if self.branch_levels != "auto" and self.branch_depth is not None:
            raise ValueError("branch_levels must be 'auto' where branch_depth is given")
        if self.structure != "tree":
            if self.branch_levels != "auto" or self.branch_depth is not None:
                raise ValueError(
                    "branch_levels and branch_depth must not be given for "
                    f"structure={self.structure!r}"
                )
            return () if self.structure == "single" else (0,)
        if self.branch_depth is not None:
            if self.branch_depth > depth + 1:
                raise ValueError(
                    f"branch_depth must be at most max_depth + 1 = {depth + 1}, got "
                    f"{self.branch_depth}"
                )
            levels = tuple(range(1, self.branch_depth))
        elif self.branch_levels == "auto":
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
        concentration = self.concentration
        if isinstance(concentration, str):
            concentration = None
        elif isinstance(concentration, Real):
            concentration = (float(concentration),) * len(levels)
        else:
            real = [isinstance(a, Real) and not isinstance(a, bool) for a in concentration]
            if len(concentration) != len(levels) or not all(real):
                raise ValueError(
                    f"concentration must have one number for each of the {len(levels)} branching "
                    f"levels, got {concentration!r}"
                )
            concentration = tuple(float(a) for a in concentration)
        if concentration is not None and not all(1e-10 <= a <= 1e4 for a in concentration):
            raise ValueError(f"concentration must be from 1e-10 to 1e4, got {concentration!r}")
        shape, rate = _pair("concentration_prior", self.concentration_prior)
        # In logarithms: powers of the decay leave the range of floats.
        lowest = np.log10(self.concentration_decay) * max(0, len(levels) - 1)
        if concentration is None and not np.log10(shape / rate) + lowest >= -_LEAST_CONCENTRATION:
            raise ValueError(
                "concentration_decay must leave concentrations a prior mean of at least "
                f"1e-{_LEAST_CONCENTRATION} at the last of {len(levels)} branching levels, got "
                f"{self.concentration_decay!r}"
            )
        noise_rate = self.noise_rate_prior
        return Prior(
            n_features=n_features,
            max_depth=self.max_depth_,
            branch_levels=levels,
            concentration=concentration,
            concentration_prior=_pair("concentration_prior", self.concentration_prior),
            concentration_decay=float(self.concentration_decay),
            shrinkage_root=float(self.shrinkage_root),
            shrinkage=float(self.shrinkage),
            local_shrinkage_df=float(self.local_shrinkage_df),
            noise=self.noise,
            noise_prior=_pair("noise_prior", self.noise_prior),
            noise_rate_prior=(
                None if noise_rate is None else _pair("noise_rate_prior", noise_rate)
            ),
            mean_precision_prior=_pair("mean_precision_prior", self.mean_precision_prior),
            branch_scale=self.branch_scale,
            tail=self.tail,
            tail_df=self.tail_df,
            score_precision_prior=float(self.score_precision_prior),
            noise_scale_prior=float(self.noise_scale_prior),
        )

    def _chosen_init(self, n_features, few):
        """Where chains start."""
        if self.init != "auto":
            return self.init
        if self.structure == "single":
            return "single"
        if few:
            return "kmeans"
        return "em" if n_features <= _MOST_EM_FEATURES else "klines"

    def _start_children(self, n_rows):
        """Groups below each branching level at the start."""
        n_levels = len(self.branch_levels_)
        if self.init_ == "single":
            return (1,) * n_levels
        if isinstance(self.init_children, Integral):
            return (int(self.init_children),) * n_levels
        if isinstance(self.init_children, str):
            most = n_rows / _ROWS_PER_CLUSTER if self.init_ == "kmeans" else _AUTO_BRANCHES
            n_branches = min(most, _AUTO_BRANCHES)
            return (max(2, round(n_branches ** (1 / max(1, n_levels)))),) * n_levels
        children = tuple(self.init_children)
        whole = [isinstance(n, Integral) and not isinstance(n, bool) and n > 0 for n in children]
        if len(children) != n_levels or not all(whole):
            raise ValueError(
                f"init_children must have one integer >= 1 for each of the {n_levels} branching "
                f"levels, got {self.init_children!r}"
            )
        return tuple(int(n) for n in children)


def _pair(name, value):
    """Two numbers that leave start values and log densities in the range of floats."""
    numbers = [x for x in value if isinstance(x, Real) and not isinstance(x, bool)]
    if len(value) != 2 or len(numbers) != 2 or not all(1e-10 <= x <= 1e10 for x in numbers):
        raise ValueError(f"{name} must be two positive numbers, 1e-10 to 1e10, got {value!r}")
    return float(value[0]), float(value[1])
