"""Data of the benchmarks but tables: Gaussian mixtures with a known truth, genotypes, images."""

from dataclasses import dataclass

import numpy as np
from _densities import log_joint
from scipy.special import logsumexp
from sklearn.datasets import load_digits

# -- populations with a known truth


@dataclass(frozen=True)
class Population:
    """A mixture of Gaussians: weight (k,), mean (k, d), covariance (k, d, d)."""

    weight: np.ndarray
    mean: np.ndarray
    covariance: np.ndarray

    @classmethod
    def random(cls, n_clusters, n_features, spread, scale, seed):
        """Dirichlet(5) weights, centres with deviation ``spread``, Wishart covariances near I.

        All of it is multiplied by ``scale``, which moves the log density and nothing else.
        """
        rng = np.random.default_rng(seed)
        weight = rng.dirichlet(np.full(n_clusters, 5.0))
        mean = spread * rng.normal(size=(n_clusters, n_features))
        df = n_features + 4
        root = rng.normal(size=(n_clusters, n_features, df))
        covariance = root @ root.transpose(0, 2, 1) / df
        return cls(weight, scale * mean, scale**2 * covariance)

    def draw(self, n, seed):
        """n rows and their labels."""
        rng = np.random.default_rng(seed)
        label = rng.choice(len(self.weight), size=n, p=self.weight)
        root = np.linalg.cholesky(self.covariance)
        noise = rng.normal(size=(n, self.mean.shape[1]))
        return self.mean[label] + np.einsum("nde,ne->nd", root[label], noise), label

    def log_joint(self, X):
        """log p(x, label) of each row and label, (n, k)."""
        return log_joint(X, self.weight, self.mean, self.covariance)

    def score_samples(self, X):
        """True log density of each row."""
        return logsumexp(self.log_joint(X), axis=1)

    def predict(self, X):
        """The oracle's label of each row: the most probable one."""
        return np.argmax(self.log_joint(X), axis=1)


def load_patches(data, n_train, n_test):
    """Random training and test patches (n, 64) of 8 x 8 pixels, from different photographs."""
    random = np.random.default_rng(20110628)
    found = []
    for name, n in (("train", n_train), ("test", n_test)):
        with np.load(data / f"bsds_patches_{name}.npz") as file:
            found.append(random.permutation(file["patches"])[:n])
    return found


def load_genotypes(data):
    """Mean allele length of each person and locus, NaN where missing; regions and populations.

    The 971 people of the panel of Rosenberg et al. (2002).
    """
    with np.load(data / "hgdp_microsatellites.npz") as file:
        panel = file["in_hgdp_panel"]
        alleles = file["alleles"][panel].astype(float)
        population = file["population"][panel]
        X = np.where((alleles == 0).any(axis=2), np.nan, alleles.mean(axis=2))
        return X, file["population_region"][population], file["population_name"][population]


def load_faces(data):
    """698 views of a face (n, 1024) of 32 x 32 pixels, intensities from 0 to 1."""
    with np.load(data / "isomap_faces_32x32.npz") as file:
        return file["images"].reshape(len(file["images"]), -1) / 65535


# -- images in rows, intensities from 0 to 1: training rows, test rows, shape of an image


def _digits(data, random):
    images = load_digits().images / 16
    order = random.permutation(len(images))
    return images[order[:400]], images[order[400:500]]


def _olivetti(data, random):
    """350 and 50 of the faces, reduced to 32 x 32 pixels."""
    with np.load(data / "olivetti_faces.npz") as file:
        images = file["images"] / 255
    images = images.reshape(len(images), 32, 2, 32, 2).mean(axis=(2, 4))
    order = random.permutation(len(images))
    return images[order[:350]], images[order[350:]]


def _mnist(data, random):
    """50 and 10 of each digit."""
    found = []
    with np.load(data / "mnist_subset.npz") as file:
        for part, n in (("train", 50), ("test", 10)):
            labels = file[f"{part}_labels"]
            rows = [random.permutation(np.flatnonzero(labels == digit))[:n] for digit in range(10)]
            found.append(file[f"{part}_images"][random.permutation(np.concatenate(rows))] / 255)
    return found


def _frey(data, random):
    """1865 and 100 frames of a film, so that a row's neighbours in time are among the others."""
    with np.load(data / "frey_faces.npz") as file:
        images = file["images"] / 255
    order = random.permutation(len(images))
    return images[order[:1865]], images[order[1865:]]


IMAGES = {"digits": _digits, "Olivetti": _olivetti, "MNIST": _mnist, "Frey": _frey}


def load_images(name, data, seed):
    """A random split: training rows (n, pixels), test rows, (height, width)."""
    train, test = IMAGES[name](data, np.random.default_rng(seed))
    return train.reshape(len(train), -1), test.reshape(len(test), -1), train.shape[1:]
