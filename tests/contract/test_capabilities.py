"""What estimators can do has one name and one form in all of them, whatever the model."""

import inspect

import numpy as np
import pytest
from sklearn.utils import get_tags

from contract.registry import DEFAULTS, SETTINGS, SHORTEST, UNSUPERVISED
from skbnp.estimators.completion import CompletionMixin
from skbnp.estimators.density import DensityMixin
from skbnp.estimators.factors import FactorsMixin, OutputsMixin
from skbnp.estimators.network import ColumnGraphMixin, NetworkMixin
from skbnp.estimators.partition import PartitionMixin

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:.*reach beyond the range"),
    pytest.mark.filterwarnings("ignore:the density of .* rests on fewer"),
]

# What each capability offers.
OFFERS = {
    DensityMixin: ("score_samples", "score", "sample", "impute", "X_imputed_", "X_imputed_std_"),
    CompletionMixin: ("sample_missing",),
    PartitionMixin: ("predict", "predict_proba", "novelty_proba", "coclustering", "credible_ball"),
    OutputsMixin: ("transform", "fit_transform", "get_feature_names_out"),
    NetworkMixin: ("network", "structure_graph"),
    ColumnGraphMixin: ("edge_probabilities", "ancestor_probabilities"),
}
# Those of a regressor, of a classifier and of classes alone, or of what a model alone can do.
OWN = {
    "DirichletProcessMixture": {"sample_prior", "draw_labels", "leave_one_out"},
    "TreeFactorModel": {"invert"},
    "DeepScaleModel": {"predict", "predict_proba"},
    "ICPNetworkRegressor": {"predict", "sample_y", "score"},
    "ImagesOfOneRow": {
        *("predict", "predict_proba", "predict_log_proba", "predict_std", "score"),
        *("feature_maps", "architecture", "structure_graph"),
    },
    "ICPNetworkClassifier": {"predict", "predict_proba", "predict_log_proba", "score"},
}
# Of all estimators: scikit-learn's, and files.
COMMON = {
    *("fit", "save", "load", "get_params", "set_params", "get_metadata_routing", "set_callbacks"),
    *("set_output", "fit_predict", "report"),
}


@pytest.mark.parametrize("setting", DEFAULTS, ids=str)
def test_public_methods_are_those_of_capabilities(setting):
    """A method that only one model has is in the table above, so that no name comes twice."""
    offered = {name for kind in OFFERS if issubclass(setting.kind, kind) for name in OFFERS[kind]}
    methods = {
        name
        for name, value in inspect.getmembers(setting.kind)
        if not name.startswith("_") and callable(value) and not name.endswith("_request")
    }
    assert methods - offered - COMMON == OWN.get(setting.kind.__name__, set()) - offered
    assert offered <= {name for name in dir(setting.kind) if not name.startswith("_")}


@pytest.mark.parametrize("setting", UNSUPERVISED, ids=str)
def test_what_predicts_no_target_is_a_density(setting):
    assert issubclass(setting.kind, DensityMixin)
    is_clusterer = get_tags(setting.kind()).estimator_type == "clusterer"
    assert is_clusterer or get_tags(setting.kind()).estimator_type == "density_estimator"


@pytest.fixture(scope="module", params=UNSUPERVISED, ids=str)
def density(request):
    X = request.param.table()
    return request.param.fit(X, **SHORTEST), X


def test_samples_have_the_form_of_the_table(density):
    """Rows alone, but for the mixture, which says of which cluster they are as GaussianMixture."""
    model, X = density
    found = model.sample(5, random_state=0)
    if type(model).__name__ == "DirichletProcessMixture":
        found, labels = found
        assert labels.shape == (5,) and set(labels) <= {-1, *range(model.n_clusters_)}
    assert found.shape == (5, X.shape[1])
    assert np.isfinite(found).all()


def test_densities_are_one_a_row(density):
    model, X = density
    log_density = model.score_samples(X)
    assert log_density.shape == (len(X),)
    assert model.score(X) == pytest.approx(log_density.mean())
    assert model.score_samples(np.full((1, X.shape[1]), np.nan)) == 0.0


def test_imputation_leaves_what_is_there(density):
    model, X = density
    filled, std = model.impute(X, return_std=True)
    holes = np.isnan(X)
    np.testing.assert_array_equal(filled[~holes], X[~holes])
    assert np.isfinite(filled).all()
    assert (std[holes] > 0.0).all() and not std[~holes].any()


def test_the_training_table_filled(density):
    """`X_imputed_` is what `impute` answers for the training table, where that is quick."""
    model, X = density
    if not model._fills_training_table:
        with pytest.raises(AttributeError, match=r"call impute\(X\)"):
            model.X_imputed_  # noqa: B018
        return
    filled, std = model.impute(X, return_std=True)
    np.testing.assert_array_equal(model.X_imputed_, filled)
    np.testing.assert_array_equal(model.X_imputed_std_, std)


@pytest.mark.parametrize("setting", UNSUPERVISED, ids=str)
def test_a_whole_table_has_nothing_to_fill(setting):
    X = setting.table()
    X[np.isnan(X)] = 0.0
    model = setting.fit(X, **SHORTEST)
    for name in ("X_imputed_", "X_imputed_std_"):
        with pytest.raises(AttributeError, match=r"missing cells|call impute\(X\)"):
            getattr(model, name)


WITH_OUTPUTS = [setting for setting in SETTINGS if issubclass(setting.kind, OutputsMixin)]


@pytest.mark.parametrize("setting", WITH_OUTPUTS, ids=str)
def test_names_of_outputs(setting):
    X = setting.table()
    model = setting.fit(X, **SHORTEST)
    names = model.get_feature_names_out()
    assert model.transform(X).shape == (len(X), len(names))
    words = {name.rstrip("0123456789") for name in names}
    assert words <= {model._output_name} <= {"cluster", "factor", "unit"}
    assert list(names) == [f"{model._output_name}{k}" for k in range(len(names))]


@pytest.mark.parametrize(
    "setting", [setting for setting in SETTINGS if issubclass(setting.kind, FactorsMixin)], ids=str
)
def test_factors_of_all_draws_have_the_columns_of_the_reference(setting):
    model = setting.fit(setting.table(), **SHORTEST)
    n_factors = model._reference["loadings1"].shape[1]
    assert len(model.get_feature_names_out()) == n_factors
    for column, sign in model._alignments(list(model.posterior_)):
        assert column.shape == sign.shape == (n_factors,)
        assert len(set(column[column >= 0])) == (column >= 0).sum()
        assert (np.abs(sign) == 1.0).all()


WITH_NETWORK = [setting for setting in SETTINGS if issubclass(setting.kind, NetworkMixin)]


@pytest.fixture(scope="module", params=WITH_NETWORK, ids=str)
def network_model(request):
    return request.param.fit(request.param.table())


def test_networks(network_model):
    """The same keys and numbering in all; edges lead downwards."""
    for draw in (None, network_model.posterior_[1, 2]):
        network = network_model.network(draw)
        level = network_model._level_name
        assert set(network) == {"names", level, "edges", "weights", "biases", "unit_precision"}
        n_nodes, n_edges = len(network[level]), len(network["weights"])
        assert network["edges"].shape == (n_edges, 2)
        assert len(network["biases"]) == len(network["unit_precision"]) == n_nodes
        assert len(network["names"]) <= n_nodes
        parent, child = network["edges"].T
        assert (network[level][parent] > network[level][child]).all()


def test_graphs(network_model):
    networkx = pytest.importorskip("networkx")
    network, graph = network_model.network(), network_model.structure_graph()
    assert networkx.is_directed_acyclic_graph(graph)
    level = network_model._level_name
    assert [graph.nodes[k][level] for k in graph] == network[level].tolist()
    assert {tuple(edge) for edge in network["edges"].tolist()} == set(graph.edges)
    named = [graph.nodes[k]["name"] for k in graph if "name" in graph.nodes[k]]
    assert named == network["names"]


@pytest.mark.parametrize(
    "setting", [one for one in SETTINGS if issubclass(one.kind, ColumnGraphMixin)], ids=str
)
def test_probabilities_of_edges_and_ancestors(setting):
    model = setting.fit(setting.table(), **SHORTEST)
    n_columns = len(model.network()["names"])
    edge, ancestor = model.edge_probabilities(), model.ancestor_probabilities()
    assert edge.shape == ancestor.shape == (n_columns, n_columns)
    assert (edge >= 0.0).all() and (edge <= ancestor).all() and (ancestor <= 1.0).all()
    assert not np.diag(ancestor).any()
