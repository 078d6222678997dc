"""The prior of the clusterer in standardised units, checked against the parameters' rules."""

from dataclasses import replace

from skbnp.estimators.arguments import number_or_law
from skbnp.infinite_factor_clusterer._model import NOISE_RATE_LAW, Prior
from skbnp.infinite_factor_clusterer._parameters import MOST_CONCENTRATION
from skbnp.laws import Law


class PriorMixin:
    """What the parameters say, as the model takes it."""

    def _check_parameters(self):
        """What rules of single parameters do not say."""
        self._check_shared_parameters()
        self._check_law("score_variance", self.score_variance)
        self._check_noise()
        self._check_law("concentration", self.concentration)
        if isinstance(self.concentration, Law):
            if not self.concentration.mean() <= MOST_CONCENTRATION:
                raise ValueError(
                    f"concentration must have a mean (shape / rate) <= {MOST_CONCENTRATION:g}, "
                    f"got {self.concentration!r}"
                )

    def _check_noise(self):
        law = self.noise_variance
        if not isinstance(law.scale, NOISE_RATE_LAW):
            raise ValueError(
                f"noise_variance must have a {NOISE_RATE_LAW.__name__} law for its scale, got "
                f"{law!r}"
            )
        self._check_law("scale of noise_variance", law.scale)
        self._check_law("noise_variance", replace(law, scale=1.0))

    def _make_prior(self):
        return Prior(
            **self._shared_prior(),
            concentration=number_or_law(self.concentration),
            score_variance=self.score_variance,
            mean_precision_prior=float(self.mean_precision_prior),
            noise=self.noise,
            noise_variance=self.noise_variance,
            means=self.means,
            tails=self.tails,
        )
