"""What a sweep of the belief network costs, and what each update of activations is worth.

Times are processor times of the compiled sampler with one BLAS thread, the shortest of several
sweeps, on networks planted in random data; an update of activations is one of all layers.

The matrix products of a sweep are counted by, for each layer of K units with p in the layer above
and N rows,

    gram of the parents    N p^2         their products with the children    2 N K p
    activations            2 N p K (residuals), 2 N K p and 2 K p^2 (children's pull on parents)

and their time is that at the rate which products of these shapes reach in the same run.
"""

import numpy as np
from _report import cpu_seconds, growth_row, shortest

from skbnp.cibp_belief_net._model import Prior
from skbnp.cibp_belief_net._sampler import Sampler
from skbnp.mcmc.diagnostics import ess

N_SETTLE, N_TIMED = 2, 4  # sweeps
METHODS = {
    "mtm, 5 tries": dict(activation_update="mtm", n_tries=5),
    "mtm, 20 tries": dict(activation_update="mtm", n_tries=20),
    "slice": dict(activation_update="slice"),
    "ess": dict(activation_update="ess"),
    "hmc": dict(activation_update="hmc"),
    "auto: hmc, slice": dict(activation_update="auto"),
}


def planted(widths, n, share=0.3, precision=1.0, seed=0):
    """Prior and state of a network: so many edges, and rows drawn from it, top down."""
    rng = np.random.default_rng(seed)
    first = np.concatenate([[0], np.cumsum(widths)])
    n_units = first[-1]
    edge = np.zeros((n_units, n_units), dtype=bool)  # children x parents
    for below, above in zip(range(len(widths) - 1), range(1, len(widths)), strict=True):
        block = rng.random((widths[below], widths[above])) < share
        block[rng.integers(widths[below], size=widths[above]), np.arange(widths[above])] = True
        children = slice(first[below], first[below + 1])
        edge[children, first[above] : first[above + 1]] = block
    weight = np.where(edge, rng.normal(size=edge.shape), 0.0)
    bias = 0.3 * rng.normal(size=n_units)
    unit_precision = np.where(np.arange(n_units) < widths[0], precision, 1.0)
    pre = np.zeros((n, n_units))
    for layer in range(len(widths) - 1, -1, -1):
        units = slice(first[layer], first[layer + 1])
        mean = bias[units] + np.tanh(pre / 2) @ weight[units].T
        pre[:, units] = mean + rng.normal(size=mean.shape) / np.sqrt(unit_precision[units])
    children, parents = np.nonzero(edge)
    ones = np.ones(len(widths))
    state = {
        "widths": np.array(widths, dtype=np.intp),
        "edges": np.column_stack([parents, children]).astype(np.int32),
        "weights": weight[children, parents],
        "biases": bias,
        "unit_precision": unit_precision,
        **{name: ones for name in ("mass", "concentration", "weight_precision")},
        **{name: ones for name in ("bias_precision", "noise_rate")},
        **{name: 0.0 * ones for name in ("weight_mean", "bias_mean")},
        "visible": pre[:, : widths[0]],
        "pre_activations": pre[:, widths[0] :],
    }
    return Prior(widths[0], max_layers=len(widths) - 1), state


def chain(widths, n, *, share=0.3, precision=1.0, **options):
    """A sampler that starts in the network which its data were drawn from."""
    prior, state = planted(widths, n, share, precision)
    return Sampler(state["visible"], prior, state, np.random.PCG64(1), **options)


def sweep_seconds(sampler):
    """Once the chain has left its start behind."""
    for _ in range(N_SETTLE):
        sampler.sweep()
    return shortest(sampler.sweep, repeats=N_TIMED)


# -- activations


def activations(data, quick):
    """Effective draws a second of each update, two passes each, the network held fixed."""
    cases = {
        "layer 1 of 25 units over 64": dict(widths=(64, 25), n=200),
        "layer 1 of 25 units over 640": dict(widths=(640, 25), n=200),
        "layer 2 of 5 units over 25": dict(widths=(64, 25, 5), n=200),
    }
    rows = []
    for case, options in cases.items():
        for method, update in METHODS.items():
            sampler = chain(**options, **update, n_activation_passes=2)
            found = {"pull of children": pull(sampler.get_state())}
            found |= effective_draws(sampler, 400 if quick else 4000)
            rows.append({"layer": case, "update": method, **found})
    return {"effective draws of the activations": rows}


def pull(state):
    """Precision that the children add to that of a unit, over it, median over the top layer."""
    parents, children = state["edges"].T
    added = state["weights"] ** 2 * state["unit_precision"][children] / 4
    ratio = np.bincount(parents, added) / state["unit_precision"]
    return float(np.median(ratio[-state["widths"][-1] :]))


def effective_draws(sampler, n_draws):
    """Median and 5 % quantile over units of the top layer and rows, for each second."""
    width = int(sampler.get_state()["widths"][-1])
    for step in range(n_draws // 4):  # warm-up, in which hmc tunes its step
        sampler.sweep_only("activations")
        sampler.adapt(step)
    time, found = 0.0, []
    for _ in range(n_draws):
        time += cpu_seconds(sampler.sweep_only, "activations")[1]
        found.append(np.tanh(sampler.get_state()["pre_activations"][::10, -width:] / 2).ravel())
    size = [ess(trace[np.newaxis]) for trace in np.transpose(found)]
    return {
        "draw, ms": 1e3 * time / n_draws,
        "ESS / s": float(np.median(size)) / time,
        "ESS / s, 5 % quantile": float(np.quantile(size, 0.05)) / time,
    }


# -- sweeps


def cost(data, quick):
    """Tables of what sweeps cost; data are not needed."""
    return {
        "cost: growth of a sweep (elsewhere N = 500, D = 64, 20 units)": growth(quick),
        "cost: moves and matrix products": shares(quick),
    }


def growth(quick):
    """Time of a sweep and of two moves in each size alone, and the slopes of their logarithms."""
    factor = 1 if quick else 2
    grid = {
        "N": [250 * factor * 2**i for i in range(4)],
        "D": [32 * factor * 2**i for i in range(4)],
        "units": [5 * factor * 2**i for i in range(4)],
    }
    rows = []
    for size, values in grid.items():
        times = {"sweep": [], "activations": [], "rows": []}
        for value in values:
            sizes = {"N": 500, "D": 64, "units": 20} | {size: value}
            sampler = chain((sizes["D"], sizes["units"]), sizes["N"])
            times["sweep"].append(sweep_seconds(sampler))
            for move in ("activations", "rows"):
                times[move].append(shortest(sampler.sweep_only, move, repeats=N_TIMED))
        for move, found in times.items():
            rows.append({"size": size} | growth_row(values, found, "ms", 1e3, of=move))
    return rows


def shares(quick):
    """Networks as wide as those of faces and digits: moves, and what products alone would take."""
    cases = {
        "digits, 1 layer": ((64, 40), 400),
        "digits, 3 layers": ((64, 20, 10, 5), 400),
        "faces of 32 x 32, 3 layers": ((1024, 70, 70, 70), 350),
    }
    if not quick:
        cases["faces of 64 x 64, 3 layers"] = ((4096, 70, 70, 70), 350)
    rows = []
    for case, (widths, n) in cases.items():
        sampler = chain(widths, n, share=0.1)
        time = sweep_seconds(sampler)
        widths = sampler.get_state()["widths"]  # births and deaths have changed them
        products = sum(product_seconds(n, *pair) for pair in zip(widths, widths[1:], strict=False))
        row = {"network": case, "widths": "-".join(f"{width}" for width in widths)}
        row |= {"N": n, "sweep, ms": 1e3 * time, "products, ms": 1e3 * products}
        row["share in products"] = products / time
        for move in sampler.moves:
            row[f"{move.NAME}, ms"] = 1e3 * shortest(sampler.sweep_only, move.NAME, repeats=N_TIMED)
        rows.append(row)
    return rows


def product_seconds(n, n_children, n_parents):
    """Time of the products of one pair of layers at the rate of the widest of them."""
    rng = np.random.default_rng(0)
    children, parents = rng.normal(size=(n, n_children)), rng.normal(size=(n, n_parents))
    out = np.empty((n_children, n_parents))
    time = shortest(np.matmul, children.T, parents, out, repeats=N_TIMED)
    flops = 6.0 * n * n_children * n_parents + n * n_parents**2 + 2.0 * n_children * n_parents**2
    return time * flops / (2.0 * n * n_children * n_parents)
