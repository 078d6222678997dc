"""People by their genes: branches of the tree beside the regions and populations they come from.

Microsatellites of the panel of human diversity (Rosenberg et al. 2002): of each locus the mean
length of the two alleles, NaN where missing, every column standardised. The tree takes the holes
as they are; the peers see column means there and cluster the first 20 principal components. Every
figure is the mean over four chains, or four seeds of a peer; "between runs" is the adjusted Rand
index of pairs of them. Peers are told how many clusters to find: 7 regions, as many as the tree
has leaves, 54 populations.
"""

import time
import warnings
from itertools import combinations

import numpy as np
from _data import load_genotypes
from sklearn.cluster import AgglomerativeClustering, KMeans
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score, v_measure_score
from sklearn.mixture import GaussianMixture

from skbnp import TreeFactorModel
from skbnp.samplers import TreeSampler

N_LOCI = {"all": 678, "as many as the paper's": 377}
N_COMPONENTS, N_RUNS = 20, 4
TREE = dict(
    max_depth=10,
    sampler=TreeSampler(init="kmeans"),
    n_warmup=40,
    n_draws=10,
    n_jobs=-1,
    random_state=0,
)
TREES = {
    "tree that branches late": {"branch_levels": (5, 10)},
    "tree that branches early": {"branch_levels": (1, 3)},
}
# Populations of the panel from two countries, as the paper groups them.
COUNTRIES = {
    "China": (
        "Dai Daur Han Han-NChina Hezhen Lahu Miao Mongola Naxi Oroqen She Tu Tujia Uygur Xibo Yi"
    ).split(),
    "Italy": ["Italian", "Sardinian", "Tuscan"],
}


def nodes_at(draw, level):
    """Which node of a level each row goes through; the leaf if the level is below all nodes."""
    node = np.asarray(draw["leaf_node"])
    if level > draw["level"].max():
        return draw["branch"].astype(int)
    while np.any(draw["level"][node] > level):
        node = np.where(draw["level"][node] > level, draw["parent"][node], node)
    return node[draw["branch"]]


def best_draws(posterior):
    """The draw of each chain with the highest log joint density."""
    best = posterior.traces["log_joint"].argmax(axis=1)
    return [posterior[chain, draw] for chain, draw in enumerate(best)]


def tree_labels(X, name, quick):
    """Heading -> labels of each chain: nodes below every branching, from the root down."""
    chains = {"n_warmup": 10, "n_draws": 4} if quick else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the last column says it
        model = TreeFactorModel(**{**TREE, **TREES[name], **chains}, n_chains=N_RUNS).fit(X)
    draws = best_draws(model.posterior_)
    return {
        f"{name}, branches below level {level}": [nodes_at(draw, level + 1) for draw in draws]
        for level in model.branch_levels_
    }


def peer_labels(X, n_leaves):
    """The same for clusterings of principal components."""
    filled = np.where(np.isnan(X), 0.0, X)
    score = PCA(N_COMPONENTS, random_state=0).fit_transform(filled)
    found = {}
    for k in (7, n_leaves, 54):
        found[f"KMeans({k})"] = [
            KMeans(k, n_init=10, random_state=seed).fit_predict(score) for seed in range(N_RUNS)
        ]
        found[f"GaussianMixture({k}), diagonal"] = [
            GaussianMixture(k, covariance_type="diag", n_init=5, random_state=seed).fit_predict(
                score
            )
            for seed in range(N_RUNS)
        ]
        found[f"AgglomerativeClustering({k})"] = [AgglomerativeClustering(k).fit_predict(score)]
    return found


def share_on_one(label, rows):
    """Share of the rows that the commonest label among them has."""
    return np.unique(label[rows], return_counts=True)[1].max() / rows.sum()


def figures(runs, region, population):
    """Labels of several runs in numbers."""
    pairs = [adjusted_rand_score(a, b) for a, b in combinations(runs, 2)]
    row = {"groups": ", ".join(f"{k}" for k in sorted({len(np.unique(run)) for run in runs}))}
    for what, truth in (("regions", region), ("populations", population)):
        row[f"ARI, {what}"] = np.mean([adjusted_rand_score(truth, run) for run in runs])
        row[f"V, {what}"] = np.mean([v_measure_score(truth, run) for run in runs])
    for country, names in COUNTRIES.items():
        rows = np.isin(population, names)
        row[f"{country} on one"] = np.mean([share_on_one(run, rows) for run in runs])
    row["between runs"] = np.mean(pairs) if pairs else np.nan
    return {what: value if what == "groups" else float(value) for what, value in row.items()}


def populations(data, quick):
    """A table for each set of loci."""
    everything, region, population = load_genotypes(data)
    tables = {}
    for which, n_loci in list(N_LOCI.items())[quick:]:
        X = everything[:, :n_loci]
        X = (X - np.nanmean(X, axis=0)) / np.nanstd(X, axis=0)
        found = {}
        for name in TREES:
            started = time.perf_counter()
            found |= tree_labels(X, name, quick)
            print(f"{name}: {time.perf_counter() - started:.0f} s", flush=True)
        leaves = list(found.values())[-1]
        found |= peer_labels(X, round(np.mean([len(np.unique(run)) for run in leaves])))
        heading = f"populations, {len(X)} people, {n_loci} loci ({which})"
        tables[heading] = [
            {"method": name, **figures(runs, region, population)} for name, runs in found.items()
        ]
    return tables
