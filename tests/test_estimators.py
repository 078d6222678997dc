"""What every estimator promises to scikit-learn, and results that depend on the data alone."""

import inspect
import pickle
import re
import threading
import warnings
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_html_repr
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_limits

import skbnp
from checks.callbacks import NEEDS_CALLBACKS
from checks.slow import slow_where
from checks.toy_samplers import TaskLog
from contract.registry import SHORT_TRAINING
from skbnp import DirichletProcessMixture
from skbnp.estimators.chains import BaseMCMCEstimator
from skbnp.laws import Beta
from skbnp.samplers import MixtureSampler

KINDS = ["full", "diag", "spherical"]
PUBLIC = [getattr(skbnp, name) for name in skbnp.__all__ if name[0].isupper()]
ESTIMATORS = [one for one in PUBLIC if issubclass(one, BaseMCMCEstimator)]

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def short(**changes):
    """A run long enough for two far clusters and no longer."""
    options = dict(n_chains=2, n_warmup=10, n_draws=10, predict_draws=10, random_state=0)
    return DirichletProcessMixture(**(options | changes))


PARALLEL = MixtureSampler(algorithm="parallel")
ALGORITHMS = [
    {"sampler": PARALLEL},
    {"sampler": MixtureSampler(algorithm="gibbs"), "n_components": 3},
]


@parametrize_with_checks([short(n_chains=1)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [short(covariance_type=kind) for kind in KINDS[1:]] + [short(sampler=PARALLEL)]
)
def test_scikit_learn_checks_of_options(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def X():
    """Two far clusters with holes."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1, (30, 3)), rng.normal(8, 1, (30, 3))])
    X[rng.random(X.shape) < 0.1] = np.nan
    return X


@pytest.fixture(scope="module")
def fitted(X):
    """A fit that nobody changes."""
    return short().fit(X)


@pytest.fixture(scope="module")
def expected(fitted, X):
    return answers(fitted, X)


def answers(dpm, X):
    """Everything that a fitted estimator says, by name."""
    return {
        "labels of draws": np.array([draw["label"] for draw in dpm.posterior_]),
        **dpm.posterior_.traces,
        "labels_": dpm.labels_,
        "X_imputed_": dpm.X_imputed_,
        "X_imputed_std_": dpm.X_imputed_std_,
        "predict": dpm.predict(X),
        "predict_proba": dpm.predict_proba(X),
        "novelty_proba": dpm.novelty_proba(X),
        "score_samples": dpm.score_samples(X),
        "impute": np.stack(dpm.impute(X, return_std=True)),
        "sample": dpm.sample(5, random_state=0)[0],
    }


def assert_same_answers(one, other):
    assert one.keys() == other.keys()
    for name in one:
        assert_array_equal(one[name], other[name], err_msg=name)


# -- the scikit-learn contract


def test_parameters_come_back():
    dpm = DirichletProcessMixture(n_components=3, mean_prior=[0.0, 1.0], concentration=2)
    assert dpm.get_params() == clone(dpm).get_params()
    assert dpm.set_params(concentration=3).concentration == 3


def test_clone_is_unfitted_and_fits_the_same(X, fitted, expected):
    again = clone(fitted)
    assert not hasattr(again, "labels_")
    assert_same_answers(expected, answers(again.fit(X), X))


@pytest.mark.parametrize("kind", KINDS)
def test_pickles(X, kind):
    dpm = short(covariance_type=kind).fit(X)
    assert_same_answers(answers(dpm, X), answers(pickle.loads(pickle.dumps(dpm)), X))


def test_a_second_fit_forgets_the_first(X):
    dpm = short().fit(X)
    complete = np.nan_to_num(X[:, :2])
    dpm.fit(complete)
    assert dpm.n_features_in_ == 2
    assert not hasattr(dpm, "X_imputed_")
    assert_array_equal(dpm.labels_, short().fit(complete).labels_)


def test_html():
    html = estimator_html_repr(DirichletProcessMixture(n_components=7))
    assert "DirichletProcessMixture" in html
    assert "n_components" in html


def test_pandas_in_and_out(X):
    frame = pd.DataFrame(X, columns=["a", "b", "c"], index=np.arange(60) + 100)
    dpm = short().set_output(transform="pandas").fit(frame)
    assert_array_equal(dpm.feature_names_in_, ["a", "b", "c"])
    out = dpm.transform(frame)
    assert list(out.columns) == ["cluster0", "cluster1"] == list(dpm.get_feature_names_out())
    assert_array_equal(out.index, frame.index)
    assert_array_equal(out.to_numpy(), dpm.predict_proba(frame))
    with pytest.raises(ValueError, match="feature names"):
        dpm.predict(frame.rename(columns={"a": "z"}))


def test_fit_predict_and_fit_transform(X):
    dpm = short()
    assert_array_equal(dpm.fit_predict(X), dpm.labels_)
    assert_array_equal(dpm.fit_transform(X), dpm.transform(X))


@pytest.mark.parametrize("kind", KINDS)
def test_grid_search_over_a_pipeline(X, kind):
    pipeline = make_pipeline(StandardScaler(), short(covariance_type=kind))
    grid = {"dirichletprocessmixture__n_components": [1, None]}
    search = GridSearchCV(pipeline, grid, cv=KFold(2, shuffle=True, random_state=0)).fit(X)
    # Two clusters eight standard deviations apart: one Gaussian cannot be the better density.
    assert search.best_params_ == {"dirichletprocessmixture__n_components": None}
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.predict(X).shape == (60,)


def test_cross_validation_scores_are_held_out_densities(X):
    folds = KFold(3, shuffle=True, random_state=0)
    scores = cross_val_score(short(), X, cv=folds)
    for score, (train, test) in zip(scores, folds.split(X), strict=True):
        assert score == short().fit(X[train]).score_samples(X[test]).mean()


def test_sparse_says_what_to_do(X):
    filled = np.nan_to_num(X)
    with pytest.raises(TypeError, match=r"[Ss]parse.*toarray"):
        short().fit(sparse.csr_matrix(filled))
    with pytest.raises(TypeError, match=r"[Ss]parse.*toarray"):
        short().fit(filled).predict(sparse.csr_matrix(filled))


def test_what_is_absent_is_named_as_absent():
    for estimator in PUBLIC:
        text = " ".join(inspect.getdoc(estimator).split())
        for name, present in [
            ("sample_weight", "sample_weight" in inspect.signature(estimator.fit).parameters),
            ("partial_fit", hasattr(estimator, "partial_fit")),
        ]:
            assert present or re.search(rf"`{name}`[^.]* not available", text)


# -- the same results from the same data


FORMS = {
    "Fortran": np.asfortranarray,
    "non-contiguous": lambda X: np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)[::2, ::2],
    "reversed": lambda X: X[::-1].copy()[::-1],
    "list": lambda X: X.tolist(),
    "object": lambda X: X.astype(object),
    "pandas": pd.DataFrame,
    "nullable pandas": lambda X: pd.DataFrame(X).convert_dtypes(),
    "byte order": lambda X: X.astype(">f8"),
}


@pytest.mark.parametrize("kind", slow_where(KINDS, lambda kind: kind != "full"))
def test_form_of_the_input_does_not_matter(X, kind):
    expected = answers(short(covariance_type=kind).fit(X), X)
    for form in FORMS.values():
        other = form(X.copy())
        assert_same_answers(expected, answers(short(covariance_type=kind).fit(other), other))


def test_read_only_input_is_read_only(X, expected):
    fixed, before = X.copy(), X.copy()
    fixed.flags.writeable = False
    assert_same_answers(expected, answers(short().fit(fixed), fixed))
    short().fit(before)
    assert_array_equal(before, X)


@pytest.mark.parametrize("dtype", [np.int16, np.int64, np.uint8, np.float32])
def test_number_types(X, dtype):
    """Values that the type holds exactly give the same results as float64."""
    values = np.round(np.clip(np.nan_to_num(X) * 16, 0, 255))
    values = values.astype(dtype)
    if dtype == np.float32:
        values[3, 1] = np.nan
    dpm = short().fit(values)
    other = short().fit(values.astype(np.float64))
    assert_array_equal(dpm.posterior_.traces["log_joint"], other.posterior_.traces["log_joint"])
    assert_array_equal(dpm.score_samples(values), other.score_samples(values.astype(np.float64)))
    assert dpm.score_samples(values).dtype == dpm.transform(values).dtype == np.float64


BACKENDS = [("threading", 1), ("threading", 2), ("threading", 3), ("loky", 2)]


@pytest.mark.parametrize("kind", KINDS)
def test_jobs_and_backends_do_not_matter(X, kind):
    options = dict(covariance_type=kind, n_chains=3, discount=Beta(1, 9))
    expected = answers(short(**options).fit(X), X)
    for backend, n_jobs in BACKENDS:
        with joblib.parallel_config(backend=backend, n_jobs=n_jobs):
            assert_same_answers(expected, answers(short(**options).fit(X), X))
    assert_same_answers(expected, answers(short(n_jobs=2, **options).fit(X), X))
    assert_same_answers(expected, answers(short(n_jobs=-1, **options).fit(X), X))


@pytest.mark.parametrize(
    "options",
    slow_where(ALGORITHMS, lambda options: options["sampler"].algorithm == "gibbs"),
    ids=lambda options: options["sampler"].algorithm,
)
def test_threads_over_rows_do_not_matter(many, options):
    """One chain takes all threads for its rows; of three, two run side by side."""
    for n_chains in (1, 3):
        mixture = short(n_chains=n_chains, n_warmup=2, n_draws=2, predict_draws=2, **options)
        expected = answers(clone(mixture).fit(many), many)
        for backend, n_jobs in BACKENDS[1:]:
            with joblib.parallel_config(backend=backend, n_jobs=n_jobs):
                assert_same_answers(expected, answers(clone(mixture).fit(many), many))


def test_auto_algorithm_follows_the_number_of_rows(X, monkeypatch):
    from skbnp.dirichlet_process_mixture import _estimator

    assert short().fit(X).algorithm_ == "collapsed"
    monkeypatch.setattr(_estimator, "_MANY_ROWS", len(X) - 1)
    dpm = short().fit(X)
    assert dpm.algorithm_ == "parallel"
    assert_array_equal(dpm.labels_, short(sampler=PARALLEL).fit(X).labels_)


@pytest.fixture(scope="module")
def many():
    """Four blocks of rows, the last one short, with holes in every pattern."""
    rng = np.random.default_rng(1)
    many = rng.normal(4, 5, (3500, 3))
    many[rng.random(many.shape) < 0.2] = np.nan
    return many


@pytest.mark.parametrize("kind", KINDS)
def test_threads_of_prediction_do_not_matter(X, many, kind):
    dpm = short(covariance_type=kind, predict_draws=5).fit(X)
    expected = answers(dpm, many)
    for n_jobs in (2, 3, -1):
        assert_same_answers(expected, answers(dpm.set_params(n_jobs=n_jobs), many))
    # One row says the same alone as among others; BLAS may round its solve differently.
    rows = [0, 1500, 3499]
    alone = np.concatenate([dpm.score_samples(many[i : i + 1]) for i in rows])
    np.testing.assert_allclose(alone, expected["score_samples"][rows], rtol=1e-12)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_prediction_from_several_threads_at_once(X, many, n_jobs):
    dpm = short(n_jobs=n_jobs, predict_draws=5).fit(X)
    expected = answers(dpm, many)
    start = threading.Barrier(4)

    def work(_):
        start.wait()
        return answers(dpm, many)

    with ThreadPoolExecutor(4) as pool:
        for got in pool.map(work, range(4)):
            assert_same_answers(expected, got)


def test_fits_in_several_threads_at_once(X, expected):
    with ThreadPoolExecutor(4) as pool:
        for dpm in pool.map(lambda _: short(n_jobs=2).fit(X), range(4)):
            assert_same_answers(expected, answers(dpm, X))


def test_random_state(X):
    assert short(random_state=3).fit(X).seed_ == short(random_state=3).fit(X).seed_
    assert short(random_state=3).fit(X).seed_ != short(random_state=4).fit(X).seed_
    shared = np.random.RandomState(0)
    assert short(random_state=shared).fit(X).seed_ != short(random_state=shared).fit(X).seed_
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    short().fit(X).sample(5, random_state=0)
    assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002


# -- callbacks, warnings


@NEEDS_CALLBACKS
@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_callbacks_see_fit_chain_sweep(tmp_path, X, backend):
    log = TaskLog(tmp_path / "log")
    with joblib.parallel_config(backend=backend, n_jobs=2):
        short(n_warmup=2, n_draws=3, thin=2).set_callbacks(log).fit(X)
    names = ["DirichletProcessMixture", "chain", "sweep"]
    lines = [line.split() for line in log.lines()]
    depth = Counter((event, path.count("/")) for event, path in lines)
    assert depth == {(e, d): n for e in ("begin", "end") for d, n in enumerate([1, 2, 2 * 8])}
    for _, path in lines:
        for level, task in enumerate(path.split("/")[1:], start=1):
            assert task.startswith(names[level])


@NEEDS_CALLBACKS
def test_progress_bar_inside_a_grid_search(X, capsys):
    from sklearn.callback import ProgressBar

    search = GridSearchCV(
        short(), {"n_components": [2, None]}, cv=KFold(2, shuffle=True, random_state=0)
    )
    search.set_callbacks(ProgressBar()).fit(X)
    assert search.best_estimator_.n_clusters_ == 2
    shown = capsys.readouterr().out
    assert "DirichletProcessMixture - chain #1" in shown


@NEEDS_CALLBACKS
def test_watching_changes_nothing(tmp_path, X, expected):
    watched = short().set_callbacks(TaskLog(tmp_path / "log")).fit(X)
    assert_same_answers(expected, answers(watched, X))


def test_verbose_tells_the_time(X, capsys):
    short(verbose=1).fit(X)
    assert "2 chains, all 20 sweeps; log_density" in capsys.readouterr().out
    short(verbose=0).fit(X)
    assert capsys.readouterr().out == ""


@pytest.mark.filterwarnings("always")
def test_warnings_name_the_quantity_and_point_here(X):
    holed = X.copy()
    holed[5] = np.nan
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        short(n_draws=3).fit(holed)
        short(n_draws=6, n_warmup=0).fit(X)
    text = [str(w.message) for w in caught]
    assert all(w.filename == __file__ for w in caught), [w.filename for w in caught]
    assert any("1 row(s) with no observed value" in t for t in text)
    said = [str(w.message) for w in caught if issubclass(w.category, ConvergenceWarning)]
    assert any("for 3 draws per chain" in t for t in said), said
    assert any("effective sample size of concentration is" in t for t in said), said


# -- documentation


def sections(function_or_class):
    """Section name -> lines of a numpydoc docstring."""
    parts = re.split(r"\n(?=[A-Z][A-Za-z ]+\n-{3,}\n)", inspect.getdoc(function_or_class))
    return {part.split("\n")[0]: part.split("\n")[2:] for part in parts[1:]}


def entries(lines):
    """Name -> type of the entries of a section; "a, b : int" are two."""
    found = {}
    for line in lines:
        if match := re.match(r"(\S.*?) : (.*)", line):
            found |= dict.fromkeys(match[1].split(", "), match[2])
    return found


def public_methods(estimator):
    for name, method in inspect.getmembers(estimator, inspect.isfunction):
        if not name.startswith("_") and method.__module__.startswith("skbnp"):
            yield name, method


@pytest.mark.parametrize("estimator", PUBLIC)
def test_parameters_are_documented_with_their_defaults(estimator):
    documented = entries(sections(estimator)["Parameters"])
    signature = inspect.signature(estimator).parameters
    assert list(documented) == list(signature)
    for name, parameter in signature.items():
        assert parameter.kind is inspect.Parameter.KEYWORD_ONLY
        quoted = re.search(r"default=(.*)$", documented[name])[1]
        assert quoted.replace('"', "'") == repr(parameter.default), name
    assert set(estimator._parameter_constraints) == set(signature)


def of_images(estimator):
    """What an estimator of images cannot do without, and short training."""
    takes_images = "image_shape" in estimator._parameter_constraints
    return {"image_shape": (1, 3), "sampler": SHORT_TRAINING} if takes_images else {}


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_attributes_are_documented(estimator, X):
    documented = set(entries(sections(estimator)["Attributes"]))
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    target = None
    if is_regressor(estimator()) or is_classifier(estimator()):
        # Their features are given, and cannot be missing.
        frame, target = frame.fillna(0.0), np.arange(len(frame)) % 2
    options = dict(n_chains=2, n_warmup=2, n_draws=4, random_state=0)
    if "interval_calibration" in estimator._parameter_constraints:
        options["interval_calibration"] = "holes"
    options |= of_images(estimator)
    fit = estimator(**options).fit(frame, target)
    lazy = {
        name
        for name in dir(estimator)
        if isinstance(inspect.getattr_static(estimator, name), property)
        and not name.startswith("_")
        and hasattr(fit, name)
    }
    fitted = {name for name in vars(fit) if name.endswith("_") and not name.startswith("_")}
    assert documented == fitted | lazy


@pytest.mark.parametrize("estimator", PUBLIC)
def test_methods_are_documented(estimator):
    for name, method in public_methods(estimator):
        found = sections(method)
        parameters = {
            "**" * (one.kind is one.VAR_KEYWORD) + key: one
            for key, one in inspect.signature(method).parameters.items()
            if key != "self"
        }
        documented = entries(found.get("Parameters", []))
        assert list(documented) == list(parameters), name
        for key, parameter in parameters.items():
            if parameter.default not in (inspect.Parameter.empty, None):
                shown = documented[key].replace('"', "'")
                assert f"default={parameter.default!r}" in shown, (name, key)
        assert "Returns" in found, name


def test_blas_threads_do_not_show():
    """Also in what happens before the sampling: the prior follows the data."""
    X = np.random.default_rng(1).normal(size=(3000, 20))
    found = []
    for n_threads in (1, 2):
        with threadpool_limits(n_threads, user_api="blas"):
            dpm = short(
                n_chains=1, n_warmup=1, n_draws=1, sampler=MixtureSampler(n_split_merge=0)
            ).fit(X)
        found.append(dpm.posterior_[0, 0]["factor"])
    assert_array_equal(*found)


def test_coclustering():
    X = np.concatenate([np.random.default_rng(2).normal(c, 1, (20, 2)) for c in (0, 9)])
    together = short().fit(X).coclustering()
    assert together.shape == (40, 40)
    assert together[:20, :20].mean() > 0.8 and together[:20, 20:].mean() < 0.1
    for mixture in (short(), short().fit(X)):
        with pytest.raises(AttributeError, match=r"call coclustering\(\)"):
            mixture.coclustering_  # noqa: B018
        assert "coclustering_" not in dir(mixture)
    with pytest.raises(AttributeError, match="X_imputed_ is there once fit has seen"):
        short().fit(X).X_imputed_  # noqa: B018
    with pytest.raises(AttributeError, match="has no attribute 'clusters_'"):
        short().clusters_  # noqa: B018


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_the_number_of_chains_may_be_left_to_the_estimator(estimator, X):
    rows = np.nan_to_num(X[20:40])
    y = {True: rows[:, 0] > 0, False: rows[:, 0]}[is_classifier(estimator())]
    options = dict(n_warmup=1, n_draws=4, predict_draws=4, random_state=0)
    options |= of_images(estimator)
    auto = estimator(**options).fit(rows, y)
    told = estimator(n_chains=auto.n_chains_, **options).fit(rows, y)
    # Architectures are searched for from two starts.
    n_chains = 2 if "image_shape" in options else 4
    assert auto.n_chains == "auto" and auto.n_chains_ == auto.posterior_.n_chains == n_chains
    np.testing.assert_array_equal(
        told.posterior_.traces["log_joint"], auto.posterior_.traces["log_joint"]
    )
    auto.set_params(warm_start=True, n_chains=n_chains, n_draws=5).fit(rows, y)
    assert auto.n_draws_ == 5


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_warnings_of_fit_name_the_line_that_called_it(estimator):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    X[:, 2] = 5.0
    y = {True: X[:, 0] > 0, False: X[:, 0]}[is_classifier(estimator())]
    # The mixture refuses constant columns but where its components are diagonal.
    options = {"covariance_type": "diag"} if estimator is DirichletProcessMixture else {}
    options |= of_images(estimator)
    model = estimator(n_chains=2, n_warmup=2, n_draws=4, predict_draws=4, **options)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    assert caught
    assert {warning.filename for warning in caught} == {__file__}
