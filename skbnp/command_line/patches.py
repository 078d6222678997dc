"""A picture as overlapping patches: rows of a table with holes, which a tree of factors fills."""

import numpy as np


def model(**options):
    """The model of a table of patches; options are those of `TreeFactorModel`."""
    from skbnp.tree_factor_model import TreeFactorModel, TreeSampler

    sampler = TreeSampler(init="em", init_children=3)
    return TreeFactorModel(max_depth=16, noise="isotropic", sampler=sampler, **options)


def some_patches(picture, side, n_rows, seed):
    """At most `n_rows` patches, at random, that hold something."""
    rows = patches_at(picture, corners(picture, side, 1), side)
    rows = rows[~np.isnan(rows).all(axis=1)]
    return np.random.default_rng(seed).permutation(rows)[:n_rows]


def fill(picture, model, side, step):
    """The picture without holes.

    Parameters
    ----------
    picture : ndarray of shape (height, width, n_channels)
        NaN where missing.
    model : TreeFactorModel
        Fitted to patches.
    side, step : int
        Of the patches, and between them, in pixels.

    Returns
    -------
    filled : ndarray of shape (height, width, n_channels)
        Each missing pixel with the mean of what the patches around it say, weighted by how sure
        each is.
    """
    corner = corners(picture, side, step)
    rows = patches_at(picture, corner, side)
    holed = np.isnan(rows).any(axis=1)
    corner, rows = corner[holed], rows[holed]
    filled, std = model.impute(rows, return_std=True)
    weights = np.where(np.isnan(rows), 1.0 / np.maximum(std, 1e-6) ** 2, 0.0)
    return joined(filled, weights, corner, picture, side)


def corners(picture, side, step):
    """Top left corners of patches that cover the picture, (n, 2)."""
    edges = [
        np.unique(np.append(np.arange(0, length - side, step), length - side))
        for length in picture.shape[:2]
    ]
    return np.stack(np.meshgrid(*edges, indexing="ij"), axis=-1).reshape(-1, 2)


def patches_at(picture, corner, side):
    """The patches as rows (n, side * side * channels)."""
    windows = np.lib.stride_tricks.sliding_window_view(picture, (side, side), axis=(0, 1))
    return windows[corner[:, 0], corner[:, 1]].reshape(len(corner), -1)


def joined(rows, weights, corner, picture, side):
    """The weighted mean of the patches at each pixel, where the picture is missing."""
    total, weight = np.zeros_like(picture), np.zeros_like(picture)
    shape = (-1, picture.shape[2], side, side)
    for (top, left), row, w in zip(
        corner, rows.reshape(shape), weights.reshape(shape), strict=True
    ):
        at = np.s_[top : top + side, left : left + side]
        total[at] += (w * row).transpose(1, 2, 0)
        weight[at] += w.transpose(1, 2, 0)
    filled, missing = picture.copy(), np.isnan(picture)
    filled[missing] = total[missing] / weight[missing]
    return filled


def psnr(picture, truth, missing):
    """Peak signal to noise ratio over the missing entries, in decibels."""
    return -10.0 * np.log10(np.mean((np.clip(picture, 0.0, 1.0) - truth)[missing] ** 2))
