"""The picture of an architecture."""

import numpy as np
import pytest
from matplotlib import pyplot as plt

from contract.registry import SHORT_TRAINING
from skbnp import ICPConvClassifier
from skbnp.plot import ArchitectureDisplay

SMALL = dict(
    order=[0.0, 1.0, 0.8, 0.3],
    edges=[[1, 2], [2, 0], [3, 0]],
    n_weights=[36, 100, 0],
    shapes=[(1, 1, 2), (2, 3, 1), (2, 3, 4), (1, 2, 8)],
    is_live=[True, True, True, False],
)


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close("all")


def test_what_is_drawn():
    display = ArchitectureDisplay(**SMALL, maps={1: np.ones((2, 3, 1)), 2: np.ones((2, 3, 4))})
    display.plot()
    np.testing.assert_array_equal(display.position_[:, 1], SMALL["order"])
    assert [text.get_text() for text in display.names_] == [
        "output, 2 classes", "image, 2 x 3", "2 x 3, 4 channels", "1 x 2, 8 channels",
    ]  # fmt: skip
    widths = display.edges_.get_linewidths()
    assert widths[1] > widths[0] > widths[2]
    assert display.names_[3].get_color() != display.names_[2].get_color()
    assert set(display.images_) == {1, 2}
    _, ax = plt.subplots()
    assert ArchitectureDisplay(**SMALL).plot(ax=ax).ax_ is ax


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"n_weights": [1.0]}, "n_weights must have shape"),
        ({"shapes": [(1, 1, 2)]}, "shapes and is_live must be of 4 nodes"),
        ({"edges": [[1, 9], [2, 0], [3, 0]]}, "edges must be of nodes 0 to 3"),
        ({"edges": [[0, 2], [2, 0], [3, 0]]}, "order must be larger for the parent"),
        ({"maps": {7: np.ones((2, 2, 1))}}, "maps must be of nodes 0 to 3"),
        ({"maps": {1: np.ones(4)}}, "maps must be .height, width, channels"),
    ],
)
def test_what_cannot_be_drawn(change, match):
    with pytest.raises(ValueError, match=match):
        ArchitectureDisplay(**(SMALL | change)).plot()


@pytest.mark.filterwarnings("ignore")
def test_of_an_estimator():
    X = np.random.default_rng(0).normal(size=(24, 4, 5))
    options = dict(n_chains=1, n_warmup=2, n_draws=2, n_architectures=1, random_state=0)
    clf = ICPConvClassifier(sampler=SHORT_TRAINING, **options).fit(X, np.arange(24) % 2)
    display = ArchitectureDisplay.from_estimator(clf, draw=clf.ensemble_[0, 0], image=X[0])
    assert set(display.images_) == set(clf.feature_maps(X[:1], clf.ensemble_[0, 0]))
    assert not ArchitectureDisplay.from_estimator(clf).images_
