"""What architectures are judged by, and how the networks are trained that stand for them."""

from typing import ClassVar

import numpy as np

from skbnp.icp_network.convolution._images import kept_apart


class KeptLabels:
    """Labels judge that weights have not seen; tensors that stay go on from where they are."""

    WORDS = (
        "by the log likelihood of labels that are kept apart under weights trained for some "
        "steps: indicative, not a posterior"
    )
    # What settings of the sampler are unless they are given: its own defaults.
    STEPS: ClassVar[dict] = {}

    @staticmethod
    def kept(labels):
        """Rows that no weight is fitted to."""
        return kept_apart(labels, np.random.default_rng(0))

    @staticmethod
    def start(z, rng):
        """Where the training of a proposal starts, given what it has inherited."""
        return z

    @staticmethod
    def judging(learnt, kept):
        """Which of two serves: what is had of labels learnt from, or of those kept apart."""
        return kept


class LearntLabels:
    """The paper's rule: labels judge that weights are fitted to, all of them, and from the prior.

    That is no evidence: it rewards each tensor that is added.
    """

    WORDS = (
        "by the log likelihood of the labels that weights are trained on, as in the paper: no "
        "evidence, and not a posterior"
    )
    STEPS: ClassVar[dict] = {"n_start_steps": 540, "n_steps": 540}

    @staticmethod
    def kept(labels):
        """No row."""
        return np.arange(0)

    @staticmethod
    def start(z, rng):
        """A draw from the prior, whatever was inherited."""
        return rng.standard_normal(len(z))

    @staticmethod
    def judging(learnt, kept):
        """The training likelihood is equation (22) of the paper."""
        return learnt


# By the value of the parameter `inference`.
RULES = {"evidence": KeptLabels, "paper": LearntLabels}
