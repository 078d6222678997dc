"""The sampler against exact answers: no rows give the process, few rows their enumeration.

Null: chain averages equal the exact values; |z| < 4 with autocorrelation-corrected errors.
"""

from collections import Counter

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import gammaln

from checks.cibp_belief_net import make_sampler
from checks.enumeration import canonical, set_partitions
from checks.joint_distribution import assert_z_scores_small
from checks.monte_carlo import p_value, z_score
from checks.proofs import proof
from skbnp.cibp_belief_net import _model
from skbnp.cibp_belief_net._model import Prior, draw_joint
from skbnp.laws import Uniform
from skbnp.processes import cibp, crp

MASS, CONCENTRATION = 0.8, 1.5


def structures(n_sweeps, skip=False, seed=0, fault="none", **options):
    """Widths, edges of columns and edges that skip a layer in a chain without rows."""
    law = Prior(
        3, max_layers=2, mass=(MASS,), concentration=(CONCENTRATION,), skip_connections=skip
    )
    state = draw_joint(law, 0, np.random.default_rng(seed))
    sampler = make_sampler(
        law, state, seed=seed, birth_rate=1.0, block_rate=1.0, fault=fault, **options
    )
    rows = []
    for _ in range(n_sweeps):
        sampler.sweep_only("rows")
        state = sampler.get_state()
        layer = _model.layers_of(state)[state["edges"]]
        rows.append(
            [
                *[*state["widths"][1:], 0, 0][:2],
                np.sum((layer[:, 1] == 0) & (layer[:, 0] == 1)),
                np.sum(layer[:, 0] - layer[:, 1] == 2),
            ]
        )
    return np.array(rows, dtype=float).T


def z_of_structures(width1, width2, edges, far, skip=False):
    expected = cibp.expected_widths(3, 2, MASS, CONCENTRATION, max_depth=2)
    law = stats.poisson(expected[0])
    z = {
        "width 1": z_score(width1, expected[0]),
        "squared width 1": z_score(width1**2, expected[0] + expected[0] ** 2),
        "width 2": z_score(width2, expected[1]),
        "no unit": z_score(width1 == 0, law.pmf(0)),
        "edges of columns": z_score(edges, MASS * 3),
    }
    if skip:
        # Columns take a unit of layer 2 with m of K_1 near children with probability
        # m / (K_1 + concentration), and all units of that layer expect mass K_1 near children.
        k = np.arange(60)
        z["far edges"] = z_score(far, 3 * MASS * (law.pmf(k) @ (k / (k + CONCENTRATION))))
    return z


def test_the_numbers_of_the_spec():
    widths = cibp.expected_widths(3, 2, MASS, CONCENTRATION, max_depth=2)
    np.testing.assert_allclose(widths, [1.6229, 0.9788], atol=5e-5)
    assert np.exp(-widths[0]) == pytest.approx(0.1973, abs=5e-5)


@proof(sweeps=(4000, 200_000), seed=(0, 1), smoke=("{}", "{'skip': True}"))
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"block_births": False},
        {"prior_births": False},
        {"skip": True},
        {"skip": True, "block_births": False},
        {"skip": True, "prior_births": False},
    ],
    ids=str,
)
def test_no_rows_give_the_process(options, size, seed):
    z = z_of_structures(*structures(size, seed=seed, **options), skip="skip" in options)
    assert_z_scores_small(z)


@proof(seed=0, wrong=True)
@pytest.mark.parametrize("fault", ["printed_ratio", "inverted_rate", "squared_count", "own_count"])
def test_no_rows_notice_a_wrong_formula(fault, seed):
    """The published ratio above all, see (B5.7): 7.23 and 26.6 units instead of 1.62 and 0.98."""
    options = {"block_births": False} if fault != "own_count" else {}
    n_sweeps = 600 if fault in ("printed_ratio", "inverted_rate") else 15_000
    z = z_of_structures(*structures(n_sweeps, seed=seed, fault=fault, **options))
    assert max(map(abs, z.values())) > 6, z


@proof(sweeps=(4000, 100_000), seed=1)
def test_unbounded_networks_without_rows(size, seed):
    """Depth, against the exact absorbing chain; 200 units are not exceeded in practice."""
    law = Prior(2, max_layers=None, max_units=200, mass=(0.5,), concentration=(1.0,))
    state = draw_joint(law, 0, np.random.default_rng(0))
    sampler = make_sampler(law, state, seed=seed, birth_rate=1.0, block_rate=1.0)
    depth, units = [], []
    for _ in range(size):
        sampler.sweep_only("rows")
        widths = sampler.get_state()["widths"]
        depth.append(float(len(widths) - 1))
        units.append(float(widths[1:].sum()))
    assert_z_scores_small(
        {
            "depth": z_score(depth, cibp.expected_depth(2, 0.5, 1.0)),
            "units": z_score(units, cibp.expected_units(2, 0.5, 1.0)),
            "no unit": z_score(np.array(depth) == 0, cibp.depth_cdf(2, 1, 0.5, 1.0)[0]),
        }
    )


@proof(sweeps=(5000, 100_000), seed=3)
@pytest.mark.parametrize("skip", [False, True])
def test_no_rows_give_the_prior(skip, size, seed):
    """Whole sweeps with sampled hyperparameters; a layer's rates and masses where there is one."""
    law = Prior(
        2, max_layers=2, mass=(Uniform(0.0, 1.2),), concentration=(Uniform(0.0, 1.5),),
        skip_connections=skip, highest_precision=np.inf,
    )  # fmt: skip
    state = draw_joint(law, 0, np.random.default_rng(2))
    sampler = make_sampler(law, state, seed=seed, birth_rate=1.0)
    rows = []
    for _ in range(size):
        sampler.sweep()
        s = sampler.get_state()
        nu, rho = s["unit_precision"][0], s["weight_precision"][0]
        rows.append(
            [s["mass"][0], s["concentration"][0], nu / (1 + nu), rho, np.tanh(s["biases"][0])]
        )
    rows = np.array(rows).T
    names = ("mass", "concentration", "nu", "rho_w", "bias")
    expected = (0.6, 0.75, 0.5, 1.0, 0.0)
    assert_z_scores_small(
        {n: z_score(x, mean) for n, x, mean in zip(names, rows, expected, strict=True)}
    )


# -- row clusters -----------------------------------------------------------------------------


def log_evidence(x):
    """log p(x) of one cluster and one unit given its rate s, as a function of log s."""
    n, kappa, shape = len(x), 0.2 + len(x), 2.0 + len(x) / 2
    half = 0.5 * (np.sum(x**2) - np.sum(x) ** 2 / kappa)

    def of(log_s):
        return (
            gammaln(shape) - gammaln(2.0) + 2.0 * log_s - shape * np.log(np.exp(log_s) + half)
            + 0.5 * np.log(0.2 / kappa) - n / 2 * np.log(2 * np.pi)
        )  # fmt: skip

    return of


def exact_partitions(A):
    """Partition -> probability, with means, precisions and rates integrated out."""
    weight = {}
    for z in set_partitions(len(A)):
        total = crp.log_prob(np.array(z), 5.0)
        for x in A.T:
            parts = [log_evidence(x[np.array(z) == c]) for c in range(max(z) + 1)]

            def density(log_s, parts=parts):
                return np.exp(sum(part(log_s) for part in parts) - np.exp(log_s) + log_s)

            total += np.log(integrate.quad(density, -25.0, 6.0, limit=200, epsabs=0)[0])
        weight[z] = np.exp(total)
    return {z: w / sum(weight.values()) for z, w in weight.items()}


@proof(sweeps=(8000, 80_000), seed=6)
def test_row_clusters_follow_their_enumeration(size, seed):
    """All 15 partitions of 4 rows whose two top activations are given."""
    law = Prior(2, max_layers=1, row_clusters=True, mass=(2.0,), concentration=(1.0,))
    rng = np.random.default_rng(5)
    state = draw_joint(law, 4, rng)
    while len(state["widths"]) < 2 or state["widths"][1] != 2:
        state = draw_joint(law, 4, rng)
    state["pre_activations"] = np.array([[0.1, -0.2], [0.3, 0.1], [-2.0, 2.5], [1.5, 2.0]])
    expected = exact_partitions(state["pre_activations"])
    sampler = make_sampler(law, state, seed=seed)
    drawn = []
    for _ in range(size):
        sampler.sweep_only("clusters")
        drawn.append(canonical(sampler.get_state()["row_cluster"].tolist()))
    assert set(Counter(drawn)) <= set(expected)
    assert max(expected.values()) < 0.5
    assert_z_scores_small(
        {z: z_score([float(one == z) for one in drawn], p) for z, p in expected.items() if p > 1e-3}
    )


@proof(sweeps=(8000, 80_000), seed=8)
def test_labels_without_units_follow_the_restaurant(size, seed):
    """No unit in the top layer: the labels' prior."""
    law = Prior(2, max_layers=2, row_clusters=True, max_units=0)
    state = draw_joint(law, 4, np.random.default_rng(7))
    sampler = make_sampler(law, state, seed=seed)
    drawn = []
    for _ in range(size):
        sampler.sweep_only("clusters")
        drawn.append(canonical(sampler.get_state()["row_cluster"].tolist()))
    probability = {z: np.exp(crp.log_prob(np.array(z), 5.0)) for z in set_partitions(4)}
    assert_z_scores_small(
        {z: z_score([float(one == z) for one in drawn], p) for z, p in probability.items()}
    )


# -- conditionals -----------------------------------------------------------------------------


@proof(sweeps=(8000, 80_000), seed=9)
@pytest.mark.parametrize("update", ["slice", "hmc", "mtm", "ess"])
def test_activations_follow_their_density(update, size, seed):
    """One unit above one column and one row: quadrature of its density given all else."""
    law = Prior(1, max_layers=1)
    state = {
        "widths": np.array([1, 1]),
        "edges": np.array([[1, 0]], dtype=np.int32),
        "weights": np.array([1.7]),
        "biases": np.array([0.3, -0.4]),
        "unit_precision": np.array([2.5, 0.4]),
        **{name: np.ones(2) for name in _model.HYPER},
        "visible": np.array([[0.9]]),
        "pre_activations": np.array([[0.2]]),
    }
    sampler = make_sampler(law, state, seed=seed, activation_update=update)
    for step in range(200):
        sampler.sweep_only("activations")
        sampler.adapt(step)
    drawn = []
    for _ in range(size):
        sampler.sweep_only("activations")
        drawn.append(sampler.get_state()["pre_activations"][0, 0])

    def density(a, power=0):
        mean = 0.3 + 1.7 * np.tanh(a / 2)
        return np.tanh(a / 2) ** power * np.exp(-1.25 * (0.9 - mean) ** 2 - 0.2 * (a + 0.4) ** 2)

    total, first, second = (
        integrate.quad(density, -30, 30, args=(power,), limit=300)[0] for power in range(3)
    )
    u = np.tanh(np.array(drawn) / 2)
    assert_z_scores_small({"u": z_score(u, first / total), "u^2": z_score(u**2, second / total)})


@proof(sweeps=(3000, 30_000), seed=10)
def test_missing_cells_follow_their_normal_law(size, seed):
    law = Prior(2, max_layers=1)
    rng = np.random.default_rng(11)
    state = draw_joint(law, 6, rng)
    while len(state["edges"]) < 2:
        state = draw_joint(law, 6, rng)
    X = state["visible"].copy()
    X[2, 1] = X[4, 0] = np.nan
    sampler = make_sampler(law, state, X, seed=seed)
    drawn = []
    for _ in range(size):
        sampler.sweep_only("missing")
        drawn.append(sampler.get_state()["visible"][[2, 4], [1, 0]])
    mean = _model.means_of(state)[[2, 4], [1, 0]]
    white = (np.array(drawn) - mean) * np.sqrt(state["unit_precision"][[1, 0]])
    for column in white.T:
        assert p_value(stats.kstest(column, "norm")) > 1e-4
