"""ICPConvClassifier: images in all forms, answers, errors, and what a fit says of itself."""

import copy
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

from checks.answers import answers, assert_same_answers
from contract.registry import SHORT_TRAINING, ImagesOfOneRow
from skbnp import ICPConvClassifier
from skbnp.icp_network._calibration import raised
from skbnp.icp_network.convolution._model import log_likelihood
from skbnp.samplers import ICPConvSampler

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:X has too few images of each class"),
    pytest.mark.filterwarnings("ignore:Steps of .* networks were too long"),
]
SHORT = dict(n_chains=2, n_warmup=3, n_draws=4, n_architectures=2, random_state=0)
TRAINED = ICPConvSampler(n_start_steps=150, n_steps=10, n_weight_steps=120)


def short(**options):
    return ICPConvClassifier(**({"sampler": SHORT_TRAINING} | SHORT | options))


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:200], y[:200], X[200:400], y[200:400]


@pytest.fixture(scope="module")
def fitted(digits):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return short(sampler=TRAINED, n_draws=20).fit(digits[0], digits[1])


@parametrize_with_checks(
    [
        ImagesOfOneRow(
            n_chains=1, n_warmup=2, n_draws=4, n_architectures=2, sampler=TRAINED, predict_draws=4
        )
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# -- images ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "form",
    [
        lambda X: X.astype(np.uint8),
        lambda X: X.tolist(),
        lambda X: np.asfortranarray(X.reshape(-1, 8, 8)),
        pytest.param(lambda X: X.astype(np.float32), marks=pytest.mark.slow),
        pytest.param(np.asfortranarray, marks=pytest.mark.slow),
        pytest.param(lambda X: X.reshape(-1, 8, 8), marks=pytest.mark.slow),
        pytest.param(lambda X: X.reshape(-1, 8, 8, 1), marks=pytest.mark.slow),
        pytest.param(lambda X: np.ma.masked_array(X.reshape(-1, 8, 8)), marks=pytest.mark.slow),
    ],
)
def test_images_of_any_form_say_the_same(digits, form):
    X, y, new, _ = digits
    wanted = short().fit(X, y).predict_proba(new[:20])
    found = short().fit(form(X), y)
    np.testing.assert_array_equal(found.predict_proba(new[:20]), wanted)
    np.testing.assert_array_equal(found.predict_proba(form(new[:20])), wanted)
    assert found.image_shape_ == (8, 8, 1) and found.n_features_in_ == 64


def test_frames_keep_the_names_of_pixels(digits):
    X, y, new, _ = digits
    names = [f"pixel{j}" for j in range(64)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = short().fit(pd.DataFrame(X, columns=names), y)
    assert found.feature_names_in_.tolist() == names
    wanted = short().fit(X, y).predict_proba(new[:20])
    np.testing.assert_array_equal(
        found.predict_proba(pd.DataFrame(new[:20], columns=names)), wanted
    )


@pytest.mark.parametrize("shape", [(1, 1), (2, 1), (1, 3), (3, 3, 3), (4, 20), (5, 3, 2), (28, 28)])
def test_images_of_any_shape(shape):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, *shape))
    y = np.array(["a", "b", "c"])[rng.integers(3, size=30)]
    clf = short(image_shape=shape).fit(X.reshape(30, -1), y)
    assert clf.image_shape_ == (*shape, 1)[:3]
    probability = clf.predict_proba(X.reshape(30, -1))
    assert probability.shape == (30, 3) and np.isfinite(probability).all()
    np.testing.assert_array_equal(short().fit(X, y).predict_proba(X), probability)
    assert set(clf.predict(X)) <= {"a", "b", "c"}


def test_many_classes():
    X = np.random.default_rng(0).normal(size=(400, 16))
    clf = short().fit(X, np.arange(400) % 200)
    assert clf.predict_proba(X[:3]).shape == (3, 200)


# -- answers --------------------------------------------------------------------------------------


def test_it_learns(fitted, digits):
    _, _, new, y_new = digits
    assert fitted.score(new, y_new) > 0.8
    probability = fitted.predict_proba(new)
    np.testing.assert_allclose(probability.sum(axis=1), 1.0)
    np.testing.assert_allclose(np.log(probability), fitted.predict_log_proba(new))


def test_probabilities_are_means_over_the_draws(fitted, digits):
    new = digits[2][:30]
    images = ((new - fitted._units.center) / fitted._units.scale).reshape(-1, 1, 8, 8)
    of_draws = []
    for draw in fitted.ensemble_:
        of_class = [
            np.exp([log_likelihood(draw, one[np.newaxis], [k], fitted._prior) for one in images])
            for k in range(10)
        ]
        of_draws.append(np.transpose(of_class))
    wanted = raised(np.mean(of_draws, axis=0), fitted.power_)
    np.testing.assert_allclose(fitted.predict_proba(new), wanted, atol=1e-5)
    np.testing.assert_allclose(fitted.predict_std(new), np.std(of_draws, axis=0), atol=1e-5)


@pytest.mark.slow
def test_probabilities_are_sharpened_by_what_weights_have_not_seen(digits):
    """Warm draws disagree, and their mean is too even."""
    X, y, new, y_new = digits
    sampler = ICPConvSampler(n_start_steps=300, n_steps=20, n_weight_steps=700)
    sharp = short(sampler=sampler, temperature=1.0, warm_start=True).fit(X, y)
    even = copy.deepcopy(sharp).set_params(probability_calibration=None).fit(X, y)
    assert even.power_ == 1.0 and sharp.power_ > 1.1
    for name, value in sharp.ensemble_.traces.items():
        np.testing.assert_array_equal(even.ensemble_.traces[name], value)
    np.testing.assert_allclose(
        raised(even.predict_proba(new), sharp.power_), sharp.predict_proba(new), atol=1e-12
    )
    np.testing.assert_array_equal(even.predict(new), sharp.predict(new))
    losses = [-clf.predict_log_proba(new)[np.arange(200), y_new].mean() for clf in (even, sharp)]
    assert losses[1] < losses[0]


def test_feature_maps(fitted, digits):
    new = digits[2][:3]
    maps = fitted.feature_maps(new)
    image = (new - fitted._units.center) / fitted._units.scale
    np.testing.assert_allclose(maps[1].reshape(3, 64), image, rtol=1e-5, atol=1e-6)
    found = fitted.architecture()
    for node, one in maps.items():
        assert one.shape == (3, *found["shapes"][node]) and found["is_live"][node]
        assert node == 1 or (one >= 0.0).all()
    assert len(maps) == found["is_live"].sum() - 1


def test_architectures(fitted):
    found, graph = fitted.architecture(), fitted.structure_graph()
    assert graph.number_of_nodes() == len(found["order"]) == fitted.n_hidden_ + 2
    assert graph.number_of_edges() == len(found["edges"]) == fitted.n_edges_
    assert found["order"][:2].tolist() == [0.0, 1.0]
    assert found["shapes"][:2] == [(1, 1, 10), (8, 8, 1)]
    of_edges = found["is_live"][found["edges"]].all(axis=1)
    np.testing.assert_array_equal(found["n_weights"] > 0, of_edges)
    summary = fitted.architecture_summary_
    assert set(summary) == {"live nodes", "live edges", "depth", "width", "weights"}
    assert summary["live edges"]["mean"] == fitted.posterior_.traces["n_edges"].mean()
    assert "indicative" in fitted.inference_info_["architectures"]
    assert "no posterior" in fitted.inference_info_["weights"]
    for draw, shares in zip(fitted.ensemble_, fitted.node_activity_, strict=True):
        assert len(shares) == len(fitted.feature_maps(np.zeros((1, 64)), draw)) - 1
        assert ((shares >= 0.0) & (shares <= 1.0)).all()


def test_temperature_is_read_when_weights_are_drawn(digits):
    X, y, _, _ = digits
    warm, cold = short(temperature=1.0).fit(X, y), short(temperature=0.0).fit(X, y)
    np.testing.assert_array_equal(
        warm.posterior_.traces["log_joint"], cold.posterior_.traces["log_joint"]
    )
    assert "posterior to" not in warm.inference_info_["weights"]
    assert "without noise" in cold.inference_info_["weights"]


def test_the_papers_search_judges_by_the_labels_that_it_learns(digits):
    X, y, new, _ = digits
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        clf = short(inference="paper").fit(X[:50], y[:50])
    assert (clf.posterior_.traces["log_kept"] == 0.0).all()
    wanted = short(inference="evidence").fit(X[:50], y[:50])
    np.testing.assert_array_equal(
        wanted.predict_proba(new), short().fit(X[:50], y[:50]).predict_proba(new)
    )
    assert not np.array_equal(wanted.predict_proba(new), clf.predict_proba(new))
    assert "in the paper: no evidence" in clf.inference_info_["architectures"]


def test_steps_of_training_are_those_of_the_rule_unless_given():
    for inference, wanted in (("evidence", (800, 80)), ("paper", (540, 540))):
        settings = ICPConvClassifier(inference=inference)._sampler_settings()
        assert (settings.n_start_steps, settings.n_steps) == wanted
    given = ICPConvSampler(n_steps=7)
    assert ICPConvClassifier(inference="paper", sampler=given)._sampler_settings() is given


@pytest.mark.parametrize("inference", ["evidence", "paper"])
def test_the_same_draws_for_all_jobs_and_files(digits, tmp_path, inference):
    X, y, new, _ = digits
    one, two = (short(n_jobs=n, inference=inference).fit(X, y) for n in (1, 2))
    assert_same_answers(answers(one, new[:9]), answers(two, new[:9]))
    for name, value in one.ensemble_.traces.items():
        np.testing.assert_array_equal(value, two.ensemble_.traces[name])
    one.save(tmp_path / "file")
    loaded = ICPConvClassifier.load(tmp_path / "file")
    assert_same_answers(answers(one, new[:9]), answers(loaded, new[:9]))
    assert_same_answers(answers(one, new[:9]), answers(pickle.loads(pickle.dumps(one)), new[:9]))
    assert_same_answers(answers(one, new[:9]), answers(copy.deepcopy(one), new[:9]))


@pytest.mark.parametrize("inference", ["evidence", "paper"])
def test_a_checkpoint_goes_on(digits, tmp_path, inference):
    X, y, new, _ = digits
    wanted = dict(inference=inference)
    whole = short(n_draws=6, **wanted).fit(X, y)
    short(n_draws=3, checkpoint=tmp_path, **wanted).fit(X, y)
    resumed = short(n_draws=6, checkpoint=tmp_path, **wanted).fit(X, y)
    assert resumed.posterior_.n_sweeps_run < whole.posterior_.n_sweeps_run
    np.testing.assert_array_equal(resumed.predict_proba(new), whole.predict_proba(new))
    going_on = short(n_draws=3, warm_start=True, **wanted).fit(X, y)
    going_on.set_params(n_draws=6).fit(X, y)
    np.testing.assert_array_equal(going_on.predict_proba(new), whole.predict_proba(new))


def test_in_a_grid_search(digits):
    X, y, _, _ = digits
    found = GridSearchCV(short(), {"n_channels": [1, 2]}, cv=2).fit(X, y)
    assert found.best_params_["n_channels"] in (1, 2)


# -- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"image_shape": (8,)}, "image_shape must be .*height, width"),
        ({"image_shape": (8, 8, 1, 1)}, "image_shape must be .*height, width"),
        ({"image_shape": (8, 0)}, "image_shape must be .*height, width"),
        ({"image_shape": (8, 8.0)}, "image_shape must be .*height, width"),
        ({"image_shape": (8, 9)}, "as many numbers as X has features, 64"),
        ({"n_bins": 0}, "n_bins"),
        ({"n_channels": 0}, "n_channels"),
        ({"mass": -1.0}, "mass"),
        ({"temperature": -0.1}, "temperature"),
        ({"readout": "all"}, "readout"),
        ({"probability_calibration": "loo"}, "probability_calibration"),
        ({"n_architectures": 0}, "n_architectures"),
        ({"inference": "likelihood"}, "inference"),
        ({"sampler": ICPConvSampler(init="sideways")}, "init"),
        ({"sampler": ICPConvSampler(batch_size=0)}, "batch_size"),
        ({"max_units": -1}, "max_units"),
    ],
)
def test_wrong_parameters(digits, options, match):
    with pytest.raises(ValueError, match=match):
        short(**options).fit(digits[0], digits[1])


def test_rows_that_are_no_squares_need_a_shape():
    with pytest.raises(ValueError, match="image_shape must be given .* got 6 features"):
        short().fit(np.random.default_rng(0).normal(size=(10, 6)), np.arange(10) % 2)


@pytest.mark.parametrize("shape", [(4, 16), (8, 8, 2)])
def test_images_of_another_shape(fitted, digits, shape):
    with pytest.raises(ValueError, match=r"X must have images of shape \(8, 8, 1\)"):
        fitted.predict(np.zeros((2, *shape)))
    with pytest.raises(ValueError, match="image_shape"):
        short(image_shape=shape).fit(digits[0].reshape(-1, 8, 8), digits[1])


def test_missing_pixels_are_refused(fitted, digits):
    X, y = digits[0].copy(), digits[1]
    X[3, 5] = np.nan
    for ask in (lambda: short().fit(X, y), lambda: fitted.predict(X)):
        with pytest.raises(ValueError, match=r"NaN.*\n?.*BNPImputer"):
            ask()
    # What it says works: an imputer takes rows.
    advice = r"ICPConvClassifier\(image_shape=\(height, width\)\)\) with the rows of pixels X\.resh"
    with pytest.raises(ValueError, match=advice):
        short().fit(X.reshape(-1, 8, 8), y)
    with pytest.raises(ValueError, match="minimum of 1 is required"):
        fitted.predict(np.zeros((0, 8, 8)))
    masked = np.ma.masked_invalid(X)
    with pytest.raises(ValueError, match="BNPImputer"):
        short().fit(masked, y)


def test_pixels_that_do_not_vary():
    with pytest.raises(ValueError, match="X must have pixels that vary, got 3"):
        short().fit(np.full((10, 16), 3.0), np.arange(10) % 2)


def test_labels():
    X = np.random.default_rng(0).normal(size=(10, 16))
    for y, match in (
        (None, "requires y"),
        (np.zeros(10), "at least 2 classes"),
        (np.linspace(0, 1, 10), "Unknown label type"),
        (np.arange(9) % 2, "inconsistent numbers of samples"),
        (np.ma.masked_equal(np.arange(10) % 2, 0), "masked"),
    ):
        with pytest.raises(ValueError, match=match):
            short().fit(X, y)


def test_too_few_images_to_keep_some_apart():
    X = np.random.default_rng(0).normal(size=(3, 16))
    with pytest.warns(UserWarning, match="too few images of each class"):
        clf = short().fit(X, [0, 1, 2])
    assert (clf.posterior_.traces["log_kept"] == 0.0).all()


def test_large_images_are_refused_unless_asked_for():
    X = np.zeros((4, 180 * 180))
    X[:, 0] = [0, 1, 2, 3]
    with pytest.raises(ValueError, match="allow_slow=True"):
        short().fit(X, [0, 1, 0, 1])


def test_before_fit():
    for name in ("architecture_summary_", "inference_info_"):
        with pytest.raises(NotFittedError):
            getattr(short(), name)
    for name in ("predict", "predict_proba", "predict_std", "feature_maps"):
        with pytest.raises(NotFittedError):
            getattr(short(), name)(np.zeros((1, 64)))


def test_far_pixels_have_finite_answers(fitted):
    X = np.zeros((2, 64))
    X[:, 5] = 1e40, -1e40
    assert np.isfinite(fitted.predict_proba(X)).all()


def test_networks_whose_steps_are_too_long_are_named(digits):
    sampler = ICPConvSampler(n_start_steps=50, n_steps=5, n_weight_steps=200, step_length=1.0)
    with pytest.warns(UserWarning, match="2 of 2 networks were too long"):
        clf = short(sampler=sampler, temperature=100.0).fit(digits[0], digits[1])
    assert np.isfinite(clf.predict_proba(digits[2])).all()
