"""Networks whose chains are as short as promises need."""

from numpy.testing import assert_array_equal

from checks.icp_network import with_sampler
from skbnp import ICPNetwork, ICPNetworkClassifier, ICPNetworkRegressor

CHAIN = dict(
    n_chains=2, n_warmup=10, n_draws=8, predict_draws=4, n_hmc=1, n_leapfrog=4, n_births=4,
    n_init_units=3, random_state=0,
)  # fmt: skip


def short(**changes):
    options = dict(n_fantasies=60, n_importance=20, n_temperatures=5, n_particles=2)
    return ICPNetwork(**with_sampler(CHAIN | options | changes))


def regressor(**changes):
    return ICPNetworkRegressor(**with_sampler(CHAIN | dict(n_fantasies=10) | changes))


def classifier(**changes):
    return ICPNetworkClassifier(**with_sampler(CHAIN | dict(n_fantasies=10) | changes))


def of_posterior(net):
    out = {f"network {name}": value for name, value in net.network().items()}
    out |= {"counts": [net.n_hidden_, net.n_edges_, net.depth_], **net.posterior_.traces}
    for t, draw in enumerate(net.posterior_):
        out |= {f"draw {t} {name}": value for name, value in draw.items()}
    return out


def answers(net, X, y=None):
    """All that a fitted network says, by name."""
    out = of_posterior(net)
    if isinstance(net, ICPNetwork):
        out["impute"], out["std"] = net.impute(X, return_std=True)
        out |= {"score_samples": net.score_samples(X), "transform": net.transform(X)}
        out |= {"sample": net.sample(5, random_state=0), "edges": net.edge_probabilities()}
        out["ancestors"] = net.ancestor_probabilities()
    elif isinstance(net, ICPNetworkRegressor):
        out["predict"], out["std"] = net.predict(X, return_std=True)
        out |= {"sample_y": net.sample_y(X, 3, random_state=0), "score": net.score(X, y)}
    else:
        out |= {"predict_proba": net.predict_proba(X), "score": net.score(X, y)}
    return out


def assert_same_answers(one, other):
    assert one.keys() == other.keys()
    for name in one:
        assert_array_equal(one[name], other[name], err_msg=name)
