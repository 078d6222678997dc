"""What each part of CIBPBeliefNet brings: lower halves of digits filled with one thing changed.

400 digits to learn from and 200 validation digits that no other table uses; two splits. Differences
are paired over images, of mean square errors on the scale 0 to 16.
"""

import warnings
from functools import partial
from unittest import mock

import numpy as np
from _report import cpu_seconds, mean_and_error
from sklearn.base import clone
from sklearn.datasets import load_digits

from skbnp import CIBPBeliefNet
from skbnp.cibp_belief_net._sampler import Sampler
from skbnp.samplers import BeliefNetSampler

BASE = dict(
    feature_bounds=(0, 16),
    max_layers=1,
    row_clusters=True,
    sampler=BeliefNetSampler(n_init_units=40),
    n_chains=4,
    n_warmup=60,
    n_draws=4,
    thin=5,
    n_jobs=1,
    random_state=0,
)
CHANGES = {
    "as it is": {},
    "independent units, no row clusters": dict(row_clusters=False),
    "the same, three layers": dict(row_clusters=False, max_layers=3),
    "the same, one layer, prior='rows'": dict(row_clusters=False, impute=dict(prior="rows")),
    "row clusters above two layers": dict(max_layers=2),
    "skip connections, two layers": dict(max_layers=2, skip_connections=True),
    "births for one child alone": dict(sampler__birth="prior"),
    "births for several children alone": dict(sampler__birth="block"),
    "births with moments kept alone": dict(sampler__birth="matched"),
    "no swaps of parents": dict(rates=dict(swap_rate=0.0)),
    "a swap for every row": dict(rates=dict(swap_rate=1.0)),
    "20 units at the start": dict(sampler__n_init_units=20),
    "start without units": dict(sampler__init="empty"),
    "start from the prior": dict(sampler__init="prior"),
    "slices alone": dict(sampler__activation_update="slice"),
    "Hamiltonian Monte Carlo alone": dict(sampler__activation_update="hmc"),
    "visible units gaussian": dict(feature_bounds=None),
    "one chain": dict(n_chains=1),
    "eight chains": dict(n_chains=8),
    "three times the warm-up": dict(n_warmup=180),
}


def ablation(data, quick):
    """The table; ``data`` is not needed."""
    X = load_digits().data
    found = {name: [] for name in CHANGES}
    for seed in range(1 if quick else 2):
        # The other tables take their test images from the front of other permutations.
        order = np.random.default_rng(100 + seed).permutation(len(X))
        train, rows = X[order[:400]], X[order[400:600]]
        for name, changes in CHANGES.items():
            found[name].append(cpu_seconds(partial(square_errors, changes), train, rows))
            print(f"ablation, split {seed}, {name}: {found[name][-1][0].mean():.2f}", flush=True)
    base = np.concatenate([errors for errors, _ in found["as it is"]])
    table = []
    for name, results in found.items():
        errors = np.concatenate([errors for errors, _ in results])
        less, spread = mean_and_error(errors - base)
        table.append(
            {
                "changed": name,
                "mean square error": f"{errors.mean():.2f}",
                "more than as it is": "" if errors is base else f"{less:+.2f} ({spread:.2f})",
                "s": np.mean([time for _, time in results]),
            }
        )
    return {"what each part brings": table}


def square_errors(changes, train, rows):
    """Mean square error of the lower half of each row."""
    options = dict(changes)
    how, rates = options.pop("impute", {}), options.pop("rates", {})
    known = rows.copy()
    known[:, 32:] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # short chains, constant pixels
        with mock.patch("skbnp.cibp_belief_net._new_chain.Sampler", partial(Sampler, **rates)):
            model = clone(CIBPBeliefNet(**BASE)).set_params(**options).fit(train)
        filled = model.impute(known, **how)
    return ((filled - rows)[:, 32:] ** 2).mean(axis=1)
