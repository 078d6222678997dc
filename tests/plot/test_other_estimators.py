"""A display of an estimator that has nothing of the kind says so, and not that it is unfitted."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from contract.registry import DEFAULTS
from skbnp.plot import (
    ArchitectureDisplay,
    ClusterCountDisplay,
    ClusterDisplay,
    ClusterProfileDisplay,
    CoclusteringDisplay,
    CompletionDisplay,
    FeatureDisplay,
    MergeTreeDisplay,
    NetworkDisplay,
    TreeDisplay,
)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
X = np.random.default_rng(0).normal(size=(12, 4))
HOLES = np.where(X > 1, np.nan, X)

DISPLAYS = {
    "clusters": (
        lambda estimator: ClusterDisplay.from_estimator(estimator, X),
        {"mixture", "tree", "clusterer", "scale", "icp-classifier", "icp-images"},
    ),
    "counts": (ClusterCountDisplay.from_estimator, {"mixture", "tree", "clusterer"}),
    "joins": (MergeTreeDisplay.from_estimator, {"mixture"}),
    "profiles": (
        ClusterProfileDisplay.from_estimator,
        {"mixture", "tree", "clusterer", "scale"},
    ),
    "coclustering": (CoclusteringDisplay.from_estimator, {"mixture", "tree", "clusterer"}),
    "completion": (
        lambda estimator: CompletionDisplay.from_estimator(estimator, HOLES, image_shape=(2, 2)),
        {"mixture", "tree", "cibp", "icp", "clusterer", "scale"},
    ),
    "features": (
        lambda estimator: FeatureDisplay.from_estimator(estimator, image_shape=(2, 2)),
        {"cibp"},
    ),
    "network": (
        NetworkDisplay.from_estimator,
        {"cibp", "icp", "icp-regressor", "icp-classifier"},
    ),
    "architecture": (ArchitectureDisplay.from_estimator, {"icp-images"}),
    "tree": (TreeDisplay.from_estimator, {"tree"}),
}


@pytest.mark.parametrize("setting", DEFAULTS, ids=str)
def test_every_estimator_in_every_display(setting):
    estimator = setting.make()
    for show, _ in DISPLAYS.values():
        with pytest.raises(NotFittedError, match="is not fitted: call fit before"):
            show(estimator)
    estimator.fit(X, setting.target(X))
    for show, shown in DISPLAYS.values():
        if setting.name in shown:
            show(estimator)
            continue
        with pytest.raises(TypeError, match=f"^estimator must have .*{setting.kind.__name__}"):
            show(estimator)


def test_a_frame_to_complete_has_the_names_of_fit(recwarn):
    setting = DEFAULTS[0]
    frame = pd.DataFrame(X, columns=list("abcd"))
    estimator = setting.fit(frame)
    holes = frame.mask(frame > 1)
    recwarn.clear()
    CompletionDisplay.from_estimator(estimator, holes, image_shape=(2, 2))
    assert not [str(warning.message) for warning in recwarn]
    with pytest.raises(ValueError, match="feature names should match"):
        CompletionDisplay.from_estimator(estimator, holes[list("dcba")], image_shape=(2, 2))
