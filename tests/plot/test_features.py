"""FeatureDisplay: images are weights, absent edges black, deeper layers multiplied down."""

import sys
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

from skbnp import CIBPBeliefNet
from skbnp.plot import FeatureDisplay

SHAPE = (2, 3)
N_VISIBLE = 6
# Units 6, 7, 8 in layer 1; 9, 10 in layer 2, 11 in layer 3; 9 also has a pixel of its own.
LAYER = np.repeat([0, 1, 2, 3], [N_VISIBLE, 3, 2, 1])
EDGES = np.array(
    [[6, 0], [7, 0], [7, 1], [8, 2], [8, 3], [8, 4], [9, 6], [9, 7], [9, 5], [10, 8], [11, 9]]
)
WEIGHTS = np.array([1.0, -2.0, 0.5, 3.0, 1.0, -1.0, 2.0, 1.0, 4.0, -1.0, 0.5])


def fitted(edges=EDGES, weights=WEIGHTS, layer=LAYER):
    """What a fitted belief network offers; a draw is the factor of its weights."""
    network = {"layer": layer, "edges": edges}
    return SimpleNamespace(
        n_features_in_=N_VISIBLE,
        posterior_=None,
        network=lambda draw: {**network, "weights": weights * (1.0 if draw is None else draw)},
    )


def dense():
    """Weights from each unit to each, NaN where there is no edge."""
    found = np.full((len(LAYER), len(LAYER)), np.nan)
    found[tuple(EDGES.T)] = WEIGHTS
    return found


def shown(display):
    return np.array([np.ma.filled(image.get_array(), np.nan) for image in display.images_])


def titles(display):
    return [ax.get_title() for ax in display.axes_]


def test_images_are_the_weights_of_the_first_layer():
    display = FeatureDisplay.from_estimator(fitted(), image_shape=SHAPE)
    units = [8, 7, 6]  # 3, 2 and 1 edges
    assert titles(display) == ["unit 8\n3 edges", "unit 7\n2 edges", "unit 6\n1 edge"]
    assert_array_equal(shown(display), dense()[units, :N_VISIBLE].reshape(3, *SHAPE))
    for image in display.images_:
        assert image.get_clim() == (-3.0, 3.0)
    display.figure_.canvas.draw()


def test_absent_edges_are_black_and_zero_is_not():
    features = np.array([[np.nan, 0.0, 1.0, -1.0]])
    (image,) = FeatureDisplay(features, image_shape=(1, 4)).plot().images_
    absent, zero, positive, negative = image.to_rgba(image.get_array())[0]
    assert_array_equal(absent, (0, 0, 0, 1))
    assert np.all(zero > 0.95)
    assert positive[2] > positive[0] and negative[0] > negative[2]  # blue, red
    assert min(positive[:3].max(), negative[:3].max()) > 0.3  # neither reads as black


def test_deeper_layers_are_multiplied_down():
    estimator = fitted()
    joined, weights = ~np.isnan(dense()), np.nan_to_num(dense())
    direct, twice = weights[9:11, :6], weights[9:11] @ weights[:, :6]
    paths = joined[9:11, :6] + joined[9:11].astype(int) @ joined[:, :6]
    expected = np.where(paths > 0, direct + twice, np.nan)
    display = FeatureDisplay.from_estimator(estimator, image_shape=SHAPE, layer=2)
    assert titles(display) == ["unit 9\n3 edges", "unit 10\n1 edge"]
    assert_allclose(shown(display), expected.reshape(2, *SHAPE))
    assert shown(display)[0, 0, 0] == 2.0 * 1.0 + 1.0 * -2.0  # zero, but there are paths
    top = FeatureDisplay.from_estimator(estimator, image_shape=SHAPE, layer=3)
    assert_allclose(shown(top), 0.5 * expected[:1].reshape(1, *SHAPE))


def test_fitted_networks():
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 2)) @ random.normal(size=(2, 6)) + 0.3 * random.normal(size=(60, 6))
    X[:, 2] = 1.0  # set aside by the estimator, black here
    model = CIBPBeliefNet(n_chains=1, n_warmup=10, n_draws=4, random_state=0)
    with pytest.warns(UserWarning, match="constant|converged"):
        model.fit(X)
    display = FeatureDisplay.from_estimator(model, image_shape=SHAPE, max_units=100)
    network = model.network()
    assert len(display.images_) == model.layer_widths_[0]
    images = shown(display).reshape(-1, 6)
    into_pixels = network["layer"][network["edges"][:, 0]] == 1
    assert np.sum(~np.isnan(images)) == np.sum(into_pixels)
    assert_allclose(np.nansum(images), network["weights"][into_pixels].sum())
    assert np.isnan(images[:, 2]).all()


def test_units_and_draws_as_asked_for():
    display = FeatureDisplay.from_estimator(fitted(), image_shape=SHAPE, max_units=2)
    assert titles(display) == ["unit 8\n3 edges", "unit 7\n2 edges"]
    display = FeatureDisplay.from_estimator(fitted(), image_shape=SHAPE, units=[10, 6], draw=2.0)
    assert titles(display) == ["unit 10\n1 edge", "unit 6\n1 edge"]
    below = np.full((2, N_VISIBLE), np.nan)
    below[0, 2:5], below[1, 0] = -4.0 * np.array([3.0, 1.0, -1.0]), 2.0
    assert_allclose(shown(display), below.reshape(2, *SHAPE))


def test_many_images_share_a_grid_and_a_scale():
    features = np.random.default_rng(0).normal(size=(7, 6))
    display = FeatureDisplay(features, image_shape=SHAPE).plot()
    assert display.axes_.shape == (7,) and len(display.figure_.axes) == 8  # and the scale
    limit = np.abs(features).max()
    assert {image.get_clim() for image in display.images_} == {(-limit, limit)}
    assert (display.colorbar_.vmin, display.colorbar_.vmax) == (-limit, limit)
    assert titles(display) == [""] * 7
    display.figure_.canvas.draw()


def test_a_unit_without_paths_is_all_black():
    (image,) = FeatureDisplay(np.full((1, 6), np.nan), image_shape=SHAPE).plot().images_
    assert image.get_array().mask.all() and image.get_clim() == (-1.0, 1.0)


def test_axes_and_style_of_the_user():
    figure, axes = plt.subplots(1, 3)
    display = FeatureDisplay.from_estimator(
        fitted(), image_shape=SHAPE, ax=axes, cmap="PuOr", vmin=-9.0
    )
    assert display.figure_ is figure and list(display.axes_) == list(axes)
    assert display.colorbar_ is None and len(figure.axes) == 3
    assert display.images_[0].get_cmap().name == "PuOr"
    assert display.images_[0].get_clim() == (-9.0, 3.0)
    with pytest.raises(ValueError, match="ax must hold 3 axes, got 2"):
        FeatureDisplay.from_estimator(fitted(), image_shape=SHAPE, ax=axes[:2])


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"image_shape": (2, 2)}, r"features must have shape \(n, 4\), n >= 1, for images of"),
        ({"layer": 0}, "layer must be from 1 to 3, the depth of the network, got 0"),
        ({"layer": 4}, "layer must be from 1 to 3, the depth of the network, got 4"),
        ({"max_units": 0}, "max_units must be an integer >= 1, got 0"),
        ({"units": [12]}, "units must be from 0 to 11, got"),
        ({"units": []}, "units must be from 0 to 11, got"),
        ({"units": [7, 5]}, "units must be hidden ones"),
    ],
)
def test_bad_arguments_are_named(asked, message):
    with pytest.raises(ValueError, match=message):
        FeatureDisplay.from_estimator(fitted(), **{"image_shape": SHAPE, **asked})
    with pytest.raises(ValueError, match="titles must be 2, got 1"):
        FeatureDisplay(np.zeros((2, 6)), image_shape=SHAPE, titles=["a"]).plot()


def test_a_network_without_hidden_units_says_so():
    empty = fitted(np.zeros((0, 2), dtype=int), np.zeros(0), LAYER[:N_VISIBLE])
    with pytest.raises(ValueError, match="the network has no hidden units"):
        FeatureDisplay.from_estimator(empty, image_shape=SHAPE)


def test_nothing_to_show_yet():
    with pytest.raises(NotFittedError, match="call fit"):
        FeatureDisplay.from_estimator(SimpleNamespace(), image_shape=SHAPE)
    with pytest.raises(TypeError, match=r"pipeline\[-1\]"):
        FeatureDisplay.from_estimator(make_pipeline("passthrough"), image_shape=SHAPE)


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"skbnp\[plot\]"):
        FeatureDisplay(np.zeros((1, 6)), image_shape=SHAPE).plot()
