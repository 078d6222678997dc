"""What was fitted stays what it is, whatever becomes of the parameters afterwards."""

import numpy as np
import pytest

from checks.answers import answers, assert_same_answers
from contract.parameters import other_values
from contract.registry import DEFAULTS, SHORTEST, UNSUPERVISED, VARIED, others_slow

pytestmark = pytest.mark.filterwarnings("ignore")

# Of prediction and of runs.
READ_LATER = {"predict_draws", "n_jobs", "random_state", "verbose", "warm_start", "checkpoint"}
READ_LATER |= {"checkpoint_every", "store"}
# Values that constraints of single parameters do not name.
TABLES = {
    "family": ["poisson", ["gaussian", "gaussian", "poisson"], {"x": "bernoulli"}],
    "mean_prior": [[0.0, 0.0, 0.0]],
    "covariance_prior": [2.0, np.eye(3)],
    "detection_limit": [0.0],
    "feature_bounds": [(-9.0, 9.0)],
    "branch_levels": [(1,)],
    "observed_order": [[0.0, 0.5, 1.0]],
}


def fitted(setting):
    X = setting.table()
    return setting.fit(X, **SHORTEST), X


@pytest.mark.parametrize("setting", others_slow(VARIED, DEFAULTS), ids=str)
def test_a_parameter_changed_after_fit_changes_no_answer(setting):
    model, X = fitted(setting)
    rows = X[:6]  # a hole among them
    before = answers(model, rows)
    for name, value in model.get_params().items():
        if name in READ_LATER or "__" in name or not model._declared[name].of_chains:
            continue
        others = other_values(setting.kind, name, value) + TABLES.get(name, [])
        # All that an option may be, and one number of the many.
        for other in others if any(isinstance(one, str) for one in others) else others[:1]:
            model.set_params(**{name: other})
            assert_same_answers(answers(model, rows), before)
            model.set_params(**{name: value})


@pytest.mark.parametrize("name", ["network", "architecture", "structure_graph"])
@pytest.mark.parametrize("setting", VARIED, ids=str)
def test_a_draw_to_show_is_one_of_the_estimator(setting, name):
    if not hasattr(setting.kind, name):
        return
    model, X = fitted(setting)
    show, draw = getattr(model, name), model.posterior_[0, 0]
    assert show(draw) is not None
    for wrong in (0, (0, 0), "first", [draw], np.zeros(3), model.posterior_):
        with pytest.raises(TypeError, match="draw must be None or a draw of posterior_, such as"):
            show(wrong)
    others = [{}, draw | {"edges": draw["edges"] + 1000}, draw | {"weights": np.full(3, np.nan)}]
    others += [{key: value for key, value in draw.items() if key != "weights"}]
    other = next(one for one in UNSUPERVISED if one.kind is not setting.kind)
    others.append(fitted(other)[0].posterior_[0, 0])
    for wrong in others:
        with pytest.raises(ValueError, match="draw must be None or a draw of posterior_"):
            show(wrong)
