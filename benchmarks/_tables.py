"""Tables by name: their rows, columns and transforms, how they are split, and which are for what.

`load` gives a table in its own units: X of shape (n, d) and labels of shape (n,), -1 for a row
without, None if no row has one. Those of the mixture are standardised before anything else.

A default is chosen on `for_choices` alone, or on splits with seeds from `CHOICE_SEED` on; what a
benchmark reports is measured on the others, with seeds from 0.
"""

import runpy

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine
from sklearn.decomposition import PCA

CHOICE_SEED = 10
CODES = {"M": 0.0, "F": 1.0, "I": 2.0}  # of the sexes of abalone
NOT_HEARD = -92  # dBm, in uw_floor_wifi


# -- reading


def read(data, file, left_out=()):
    """All rows of a csv.gz file with a header row, as records, and its columns but some."""
    records = np.genfromtxt(
        data / f"{file}.csv.gz", delimiter=",", names=True, dtype=None, encoding="utf-8"
    )
    columns = [name for name in records.dtype.names if name not in left_out]
    return records, columns


def numbers(records, columns):
    """The columns as floats (n, d)."""
    return np.column_stack(
        [
            [CODES[value] for value in records[name]] if name == "sex" else records[name]
            for name in columns
        ]
    ).astype(float)


def _file(file, left_out=(), label=None):
    """A loader of a csv.gz file: all columns but those left out and the label."""

    def table(data):
        records, columns = read(data, file, (*left_out, label))
        codes = None if label is None else np.unique(records[label], return_inverse=True)[1]
        return numbers(records, columns), codes

    return table


def _wine(colour, left_out=()):
    def table(data):
        records, columns = read(data, "wine_quality", (*left_out, "colour"))
        return numbers(records[records["colour"] == colour], columns), None

    return table


def _of_sklearn(loader, labelled=True):
    def table(data):
        X, label = loader(return_X_y=True)
        return X, label if labelled else None

    return table


def _array(file, name):
    def table(data):
        with np.load(data / f"{file}.npz") as arrays:
            X = arrays[name].astype(float)
        return X.reshape(len(X), -1), None

    return table


# -- with a transform


def principal(X, n_components):
    """Principal components, by the exact decomposition."""
    return PCA(n_components, svd_solver="full").fit_transform(X)


def _cancer(data):
    X, label = load_breast_cancer(return_X_y=True)
    return np.log(X + 0.01), label


def _cancer10(data):
    X, label = _cancer(data)
    return X[:, :10], label


def _cancer6(data):
    X, label = _cancer(data)
    return principal(standardised(X), 6), label


def _digits8(data):
    X, label = load_digits(return_X_y=True)
    return principal(X, 8), label


def _mnist04(data):
    """2,000 images of the digits 0 to 4."""
    with np.load(data / "mnist_subset.npz") as file:
        images, label = file["train_images"], file["train_labels"].astype(int)
    rows = np.flatnonzero(label < 5)
    rows = np.random.default_rng(0).permutation(rows)[:2_000]
    return principal(images[rows].reshape(len(rows), -1) / 255, 10), label[rows]


def _dlbcl(data):
    with np.load(data / "dlbcl_flow_gated.npz") as file:
        gate = file["gate"].astype(int)
        return file["X"].astype(float), np.where(gate == 0, -1, gate)


def _dlbcl2000(data):
    """The rows on which agreement with the gates is measured."""
    X, label = _dlbcl(data)
    rows = np.random.default_rng(0).permutation(len(X))[:2_000]
    return X[rows], label[rows]


def _uwwifi(data):
    """Access points that are heard in a fifth of the rows."""
    with np.load(data / "uw_floor_wifi.npz") as file:
        rssi = file["rssi"].astype(float)
    return rssi[:, (rssi > NOT_HEARD).mean(axis=0) > 0.2], None


def _gaussian14(data):
    """One normal law of three factors: loadings normal, unique variance .3."""
    rng = np.random.default_rng(0)
    loadings = rng.normal(size=(14, 3))
    scores = rng.normal(size=(138, 3))
    return scores @ loadings.T + np.sqrt(0.3) * rng.normal(size=(138, 14)), None


def _golub(n_components):
    """Leading components of the genes that pass the usual filter."""

    def table(data):
        with np.load(data / "golub_leukemia.npz") as file:
            X, label = file["X"].astype(float).clip(100, 16_000), file["is_aml"].astype(int)
        least, most = X.min(axis=0), X.max(axis=0)
        X = np.log10(X[:, (most > 5 * least) & (most - least > 500)])
        return principal(standardised(X), n_components), label

    return table


# -- the tables

TABLES = {
    "galaxy": _array("classic_mixtures_1d", "galaxy"),
    "acidity": _array("classic_mixtures_1d", "acidity"),
    "enzyme": _array("classic_mixtures_1d", "enzyme"),
    "old_faithful": _file("old_faithful"),
    "iris": _of_sklearn(load_iris),
    "wine": _of_sklearn(load_wine),
    "diabetes": _of_sklearn(load_diabetes, labelled=False),
    "cancer": _cancer,
    "cancer10": _cancer10,
    "cancer6": _cancer6,
    "digits8": _digits8,
    "mnist04": _mnist04,
    "wifi": _file("wifi_localization", label="room"),
    "uwwifi": _uwwifi,
    "yeast": _file("yeast", left_out=("sequence", "erl", "pox"), label="site"),
    "yeast, all columns": _file("yeast", left_out=("sequence",), label="site"),
    "cloud": _file("cloud"),
    "abalone": _file("abalone"),
    "redwine": _wine("red", left_out=("quality",)),
    "redwine with quality": _wine("red"),
    "dlbcl": _dlbcl,
    "dlbcl2000": _dlbcl2000,
    "gvhd": _array("gvhd_flow", "positive"),
    "gvhd, control": _array("gvhd_flow", "control"),
    "gaussian14": _gaussian14,
    "whitewine": _wine("white", left_out=("quality",)),
    "golub5": _golub(5),
    "golub10": _golub(10),
}
CHAINS_OF_CLUSTERS = range(60, 100)  # seeds of simulated tables whose neighbours overlap by 4-5 %
REAL_FOR_CHOICES = ("whitewine", "golub5", "golub10")


def load(name, data):
    """X in its own units and labels; FileNotFoundError where the folder lacks the file."""
    return TABLES[name](data)


def standardised(X):
    """Columns of mean 0 and standard deviation 1; a constant one is 0."""
    scale = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(scale > 0, scale, 1.0)


def loaded(names, data):
    """(name, X, label) of each table whose file is there."""
    for name in names:
        try:
            X, label = load(name, data)
        except FileNotFoundError:
            print(f"no file of {name} in {data}: left out")
            continue
        yield name, X, label


def simulated(data):
    """(name, X, labels) of the 52 simulated tables."""
    yield from runpy.run_path(data / "simulated_tables.py")["development"]()


def group_of(name):
    """Which of the seven groups a simulated table belongs to; a real one is a group of its own."""
    if name in REAL_FOR_CHOICES:
        return name
    family, *_, seed = name.split("-")
    chain = family != "moon" and int(seed) in CHAINS_OF_CLUSTERS
    return f"{family}, chain" if chain else family


def for_choices(data):
    """(name, X, label) of all tables on which defaults are chosen."""
    yield from simulated(data)
    yield from loaded(REAL_FOR_CHOICES, data)


def split(X, label, seed, share=0.8):
    """Training and held-out rows and labels, at random."""
    order = np.random.default_rng(seed).permutation(len(X))
    train, held_out = np.split(order, [round(share * len(X))])
    pick = (lambda rows: None) if label is None else label.__getitem__
    return X[train], pick(train), X[held_out], pick(held_out)


def rounding_step(X):
    """Smallest difference between two values of each column: what it was rounded to."""
    return np.array([np.diff(np.unique(column)).min() for column in X.T])
