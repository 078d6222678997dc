"""The bound of the rate of the noise's law: a draw that does not know it must be seen."""

from checks.joint_distribution import paired_one_step
from checks.proofs import proof
from checks.tree_factor_model import joint_draw, prior_of
from skbnp.laws import Gamma
from skbnp.tree_factor_model._model import LEAST_NOISE_RATE


@proof(seed=6, wrong=True)
def test_a_rate_without_its_bound_is_noticed(seed):
    """More than half of the mass of this law is below the bound."""

    def shown(sampler):
        return {"below": float(sampler.get_state()["noise_rate"] < LEAST_NOISE_RATE)}

    prior = prior_of("tree", noise_precision=Gamma(3.0, Gamma(0.2, 50.0)))
    z = paired_one_step(joint_draw(prior, fault="unbounded_rate"), shown, 1000, seed=seed)
    assert abs(z["below"]) > 6, z
