"""What sections say follows from their data: each sentence changes when the data do."""

from dataclasses import replace

import numpy as np
import pytest

from checks.report_sections import said, training
from skbnp.mcmc.diagnostics import Problem
from skbnp.mcmc.posterior import Posterior
from skbnp.mcmc.remedies import Advice, Diagnosis, Illness
from skbnp.reports import (
    association,
    convergence,
    factors,
    network,
    partition,
    profiles,
    scale,
    supervised,
)
from skbnp.summaries.membership import membership


def verdicts(section):
    return {one.part: one for one in section.verdicts}


# -- clusters

LABELS = np.repeat([0, 1], [6, 4])


def of_draws(draws, labels=LABELS, **changes):
    fields = dict(labels=labels, draws=draws, n_blocks=np.array([[2.0, 2.0]]), expected_loss=0.0)
    return partition.Partition(**fields | changes)


def test_rows_that_waver_are_doubtful():
    moved = LABELS.copy()
    moved[0] = 1
    X = np.arange(10.0)[:, np.newaxis]
    sections = {one.name: one for one in partition.sections(of_draws([LABELS, moved]), training(X))}
    assert sections["clusters"].table[0] == {
        "cluster": 0, "rows": 6, "share of rows": 0.6, "mean probability": pytest.approx(0.917),
        "doubtful rows": 1,
    }  # fmt: skip
    assert "the other 1 is doubtful" in said(sections["clusters"])
    assert sections["rows"].table[0] == {
        "row": "row 0", "cluster": 0, "probability": 0.5, "next cluster": 1,
        "its probability": 0.5, "on its own": 0.0,
    }  # fmt: skip
    assert "doubtful: row row 0 (0.50; cluster 1: 0.50)" in said(sections["rows"])
    assert "typical are rows row 2, row 3 and row 1" in said(sections["rows"])  # next to the mean
    assert verdicts(sections["clusters"])["which cluster a row is of"].trust == "yes"


def test_clusters_that_few_draws_have_are_named():
    X = np.arange(10.0)[:, np.newaxis]
    found = partition.sections(of_draws([LABELS, LABELS], unsupported=[1]), training(X))[0]
    verdict = verdicts(found)["cluster 1"]
    assert verdict.trust == "no" and "fewer than half of the draws have such" in verdict.why
    plain = partition.sections(of_draws([LABELS, LABELS]), training(X))[0]
    assert "cluster 1" not in verdicts(plain)


def test_pieces_without_bound_are_trusted_with_care():
    X = np.arange(10.0)[:, np.newaxis]
    words = "of all rows have one value in x0", "leave it out"
    found = partition.sections(of_draws([LABELS, LABELS], unbounded=words), training(X))
    about = verdicts(found[0])
    assert about["densities of rows"].trust == "no"
    assert about["densities of rows"].remedy == "Leave it out."
    assert about["which cluster a row is of"].trust == "with care"
    number = next(one for one in found if one.name == "number")
    verdict = verdicts(number)["the number of clusters"]
    assert verdict.trust == "with care"
    assert "see whether there still are 2 clusters" in verdict.remedy
    assert "open" not in verdict.remedy


def test_small_groups_are_spoken_of_where_there_are_some():
    def remedy(labels, n_blocks, **changes):
        found = of_draws([labels], labels, n_blocks=np.array([n_blocks]), **changes)
        return verdicts(partition.how_many(found))["the number of clusters"].remedy

    large, one = np.repeat([0, 1], [6, 6]), np.zeros(10, dtype=int)
    assert "look at the small ones" in remedy(LABELS, [2, 3])
    for labels in (large, one):
        assert "look at which rows draws have together" in remedy(labels, [2, 3, 4])
    alone = remedy(one, [1, 1], unbounded=("of all rows", "leave it out"))
    assert "there still is 1 cluster." in alone
    assert remedy(one, [1, 1], copies=4).startswith("Keep one row of each such group")


def test_a_partition_that_nobody_has_is_not_trusted():
    rng = np.random.default_rng(0)
    draws = [rng.integers(2, size=10) for _ in range(20)]
    found = partition.sections(of_draws(draws), training(np.zeros((10, 1))))
    verdict = verdicts(found[0])["which cluster a row is of"]
    assert verdict.trust == "no" and "predict_proba" in verdict.remedy


def test_rows_that_are_more_probably_of_another_cluster():
    other = LABELS.copy()
    other[[0, 9]] = 1, 0
    table = training(np.zeros((10, 1)))

    def rows(draws):
        found = {one.name: one for one in partition.sections(of_draws(draws), table)}
        return said(found["rows"])

    assert "2 rows are more probably of another cluster than of that in labels_" in rows(
        [other] * 3
    )
    other[9] = 1
    assert "1 row is more probably of another" in rows([other] * 3)
    assert "more probably" not in rows([LABELS, LABELS, other])


def test_outlying_rows_stand_on_their_own():
    alone = LABELS.copy()
    alone[9] = 2
    found = partition.sections(of_draws([alone, alone, LABELS]), training(np.zeros((10, 1))))
    rows = {one.name: one for one in found}["rows"]
    assert "row 9 (0.33; on its own: 0.67)" in said(rows)


def test_of_very_many_rows_the_most_doubtful_are_listed(monkeypatch):
    monkeypatch.setattr(partition, "_MOST_LISTED", 3)
    moved = LABELS.copy()
    moved[7] = 0
    found = partition.sections(of_draws([LABELS, moved]), training(np.zeros((10, 1))))
    rows = {one.name: one for one in found}["rows"]
    assert len(rows.table) == 3 and rows.table[0]["row"] == "row 7"
    assert "has the 3 most doubtful of all rows" in said(rows)


def test_how_many_follows_the_joined_draws():
    number = partition.how_many(
        of_draws([LABELS], n_blocks=np.array([[4, 5], [5, 5]]), pieces=np.arange(10) // 2,
                 n_joined=np.array([2, 2, 2, 2, 2, 2, 2, 2, 3, 3]))
    )  # fmt: skip
    assert number.table == [
        {"clusters": 2, "probability": 0.8, "before joins": 0.0},
        {"clusters": 3, "probability": 0.2, "before joins": 0.0},
        {"clusters": 4, "probability": 0.0, "before joins": 0.25},
        {"clusters": 5, "probability": 0.0, "before joins": 0.75},
    ]
    assert "80% have 2 and 20% have 3 clusters, after pieces" in said(number)
    assert "merge_overlap sets how much" in said(number) and "nats" not in said(number)
    # The second chain has both.
    found = verdicts(number)["the number of clusters"]
    assert found.trust == "with care" and found.why.endswith("in no chain fewer than 60%")
    one_chain = of_draws([LABELS], n_blocks=np.array([[2, 2, 2, 2, 3]]))
    assert verdicts(partition.how_many(one_chain))["the number of clusters"].trust == "yes"
    open_number = partition.how_many(of_draws([LABELS], n_blocks=np.array([[1, 3, 3, 3, 2]])))
    assert "has 2, though 3 is the most frequent" in said(open_number)
    assert verdicts(open_number)["the number of clusters"].trust == "no"


@pytest.mark.parametrize(
    ("joined", "lost", "trust"),
    [([2] * 5, (), "with care"), ([2] * 5, ({"size": 5},), "no"), (None, ({"size": 5},), "no")],
)
def test_groups_that_were_given_up_count_against_the_number(joined, lost, trust):
    found = of_draws(
        [LABELS], n_blocks=np.full((1, 5), 2 if joined is None else 4), dropped=lost,
        n_joined=None if joined is None else np.array(joined), has_tree=False,
    )  # fmt: skip
    assert "merge_tree_" not in said(partition.how_many(found))
    assert verdicts(partition.how_many(found))["the number of clusters"].trust == trust


@pytest.mark.parametrize(
    ("changes", "title", "nouns"),
    [
        ({}, "Number of clusters in the draws", "clusters"),
        ({"noun": "branch"}, "Number of branches in the draws", "branches"),
        (
            {"n_joined": np.array([2]), "pieces": LABELS},
            "Number of pieces in the draws, before any joins",
            "pieces",
        ),
    ],
)
def test_the_picture_says_what_is_counted(changes, title, nouns):
    (picture,) = partition.how_many(of_draws([LABELS], **changes)).pictures
    assert picture.title == title
    assert picture.figure().axes[0].get_xlabel() == f"number of {nouns}"


def test_a_tie_is_won_by_the_summary():
    tied = partition.how_many(of_draws([LABELS], n_blocks=np.array([[1, 2, 1, 2]])))
    assert "most frequent" not in said(tied)


def test_the_summary_says_where_rows_are_doubtful():
    labels = np.repeat([0, 1, 2], [8, 8, 4])
    moved = labels.copy()
    moved[:6] = 1

    def clusters(draws):
        found = of_draws(draws, labels)
        return partition.clusters(found, membership(labels, draws))

    found, sure = clusters([labels, moved]), clusters([labels])
    assert found.in_short.endswith("where clusters 0 and 1 meet: 14 rows may be of either.")
    assert sure.in_short == sure.sentences[0]


def test_pairs_of_clusters_that_are_joined_from_blocks():
    """Each draw cuts the second half elsewhere, in blocks of one cluster."""
    draws = [np.concatenate([np.zeros(5, int), 1 + (np.arange(5) < cut)]) for cut in range(5)]
    labels = np.repeat([0, 1], 5)
    tables = [np.array([[1.0, 0], [0, 1], [0, 1]])[: 2 + (cut > 0)] for cut in range(5)]
    whole, cut = (partition.pairs(of_draws(draws, labels, tables=x)) for x in (tables, None))
    assert "in one cluster with a probability of at least 95%" in said(whole)
    assert "44% are surely together" in said(whole) and "56% surely apart" in said(whole)
    assert [row["surely together"] for row in whole.table] == [1.0, 1.0]
    assert [row["surely together"] for row in cut.table] == [1.0, 0.0]
    draws[0][:1] = 1  # a row that is not with its own in one of five draws
    record = partition.clusters(
        of_draws(draws, labels, tables=tables), membership(labels, draws, tables)
    ).table[0]
    assert record["mean probability"] == 0.96 and record["doubtful rows"] == 0


def test_one_cluster_of_several_pieces_says_so():
    labels, pieces = np.zeros(10, dtype=int), np.repeat([0, 1], [6, 4])
    one = of_draws([labels], labels)
    joined = of_draws([pieces], labels, pieces=pieces, tables=[np.ones((2, 1))])
    probability = np.ones((10, 1))
    assert "there are no groups that the draws agree on" in said(
        partition.clusters(one, probability)
    )
    words = said(partition.clusters(joined, probability))
    assert "made of 2 pieces that overlap, of which the largest has 6 rows. How far" in words
    assert "no groups" not in words
    given_up = replace(joined, dropped=({"size": 4},))
    assert "there are no groups that" in said(partition.clusters(given_up, probability))


def test_an_open_number_is_looked_at_where_joins_are_seen():
    draws = [np.repeat([0, 1], 5), np.zeros(10, dtype=int)] * 2
    plain = of_draws(draws, draws[0], n_joined=np.array([2, 1, 2, 1]))
    joined = of_draws(
        draws, draws[0], n_joined=np.array([2, 1, 2, 1]), tables=[np.eye(2), np.eye(1, 2)] * 2
    )
    remedies = [partition.how_many(one).verdicts[0].remedy for one in (plain, joined)]
    assert "CoclusteringDisplay.from_estimator(estimator)." in remedies[0]
    assert "MergeTreeDisplay and Coclust" in remedies[1] and "joined=False)." in remedies[1]


def test_pairs_by_hand():
    moved = LABELS.copy()
    moved[0] = 1
    found = partition.pairs(of_draws([LABELS, moved]))
    # Of 45 pairs 10 + 6 are always together, 20 never, and 5 + 4 in one of two draws.
    assert "36% are surely together" in said(found) and "44% surely apart" in said(found)
    assert "of 20% the data do not say" in said(found)
    assert found.table[0]["surely together"] == pytest.approx(10 / 15, abs=1e-3)
    assert found.table[1]["surely together"] == 1.0


def test_one_cluster_has_no_profile_and_a_step():
    labels = np.zeros(10, dtype=int)
    found = of_draws([labels], labels, n_blocks=np.ones((1, 4)))
    names = [one.name for one in partition.sections(found, training(np.ones((10, 1))))]
    assert names == ["clusters", "rows", "number", "pairs"]
    first = partition.sections(found, training(np.ones((10, 1))))[0]
    assert "All rows are in one cluster" in said(first) and "No groups were found" in first.steps[0]


def test_profiles_name_what_differs():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], 40)
    code = np.where(rng.random(80) < 0.9, labels, 1 - labels)
    X = np.column_stack([9.0 - 4.0 * labels, code, rng.normal(size=80), rng.normal(size=80)])
    X[:, 0] += 0.5 * rng.normal(size=80)
    X[:40, 3] *= 8.0
    found = profiles.sections(
        of_draws([labels], labels),
        training(X, levels=[None, np.array(["m", "f"]), None, None],
                 families=["gaussian", "categorical", "gaussian", "gaussian"]),
    )  # fmt: skip
    first = found[0].sentences[1]
    assert first.startswith("Cluster 0: high column 0, mean ") and "s), column 1 = m in " in first
    assert "column 3 varies" in first and "times more" in first and "column 2" not in first
    assert "column 1 = f in" in found[0].sentences[2]


def test_a_flag_of_little_spread_hides_no_other_column():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], 200)
    # Means that differ by less than is named.
    flag = np.where(labels == 0, np.arange(400) % 100 == 7, np.arange(400) % 9 == 0)
    real = rng.normal(size=400) * np.where(labels == 0, 1.0, 3.0)
    X = np.column_stack([flag, real])
    kinds = ["bernoulli", "gaussian"]
    first = profiles.sections(of_draws([labels], labels), training(X, families=kinds))[0]
    assert "column 1 varies" in first.sentences[1] and "times less" in first.sentences[1]
    assert "column 0 varies" not in first.sentences[1]


def test_means_have_a_line_for_each_column_and_level():
    labels = np.repeat([0, 1], [3, 2])
    X = np.array([[1.0, 0.0, 1.0], [3.0, 1.0, 0.0], [np.nan, 1.0, 1.0], [8.0, 0, 0], [6.0, 0, 0]])
    found = profiles.sections(
        of_draws([labels], labels),
        training(X, levels=[None, np.array(["m", "f"]), None],
                 families=["gaussian", "categorical", "bernoulli"]),
    )[1]  # fmt: skip
    assert found.name == "means"
    assert found.table == [
        {"column": "column 0", "cluster 0": "2.0", "cluster 1": "7.0", "s": "2.69"},
        {"column": "column 1 = m", "cluster 0": "33%", "cluster 1": "100%", "s": ""},
        {"column": "column 1 = f", "cluster 0": "67%", "cluster 1": "0%", "s": ""},
        {"column": "column 2 = 1", "cluster 0": "67%", "cluster 1": "0%", "s": ""},
    ]


# -- factors, networks, scale


def test_factors_are_alike_by_their_congruence():
    reference = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    draws = np.array([reference, 1.2 * reference, reference[::-1] * [1.0, 0.0]])
    mean, linked, found = factors.over_draws(reference, draws)
    np.testing.assert_allclose(found, [2 / 3, 2 / 3])  # the third has another, and lacks one
    np.testing.assert_allclose(mean, 1.1 * reference)
    np.testing.assert_allclose(linked, reference)
    names = ["a", "b", "c"]
    section = factors.section(np.full((1, 9), 2), np.full((1, 9), 1), mean, linked, found, names)
    assert "Factor 0, in 67% of the draws: a (+1.10, linked with probability 1.00) and b" in said(
        section
    )
    assert verdicts(section)["factor 1"].trust == "with care"


def test_no_factor_is_an_answer():
    nothing = np.zeros((3, 0))
    found = factors.section(*np.zeros((2, 1, 9)), nothing, nothing, np.zeros(0), list("abc"))
    assert "has no factor" in said(found) and not found.pictures


def test_correlations_come_from_the_draws():
    def sample(draw, rng):
        common = rng.normal(size=(500, 1))
        return np.column_stack([draw * common + rng.normal(size=(500, 1)), common, -common])

    columns = np.array([0, 1, 2])
    found = association.correlations(sample, [0.0, 3.0], columns, seed=0)
    expected = np.array([0.0, 3.0 / np.sqrt(10.0)])
    np.testing.assert_allclose(found[:, 0, 1], expected, atol=4 / np.sqrt(500))
    np.testing.assert_allclose(found[:, 1, 2], -1.0)
    section = association.section(found, ["a", "b", "c"], 9)
    assert "Only 3 of the 9 columns" in said(section) and "b and c (-1.00)" in said(section)
    assert section.table[0]["beyond 0.3"] == 1.0
    of_sizes = association.correlations(sample, [0.0], columns, seed=0, of_sizes=True)
    np.testing.assert_allclose(of_sizes[0, 1, 2], 1.0)


def test_columns_on_their_own_do_not_hang_together():
    rng = np.random.default_rng(0)
    found = association.correlations(
        lambda draw, rng: rng.normal(size=(500, 3)), range(20), np.arange(3), seed=rng.integers(9)
    )
    section = association.section(found, ["a", "b", "c"], 3)
    assert "No two columns go together" in said(section) and section.n_shown == 0


def test_common_parents_by_hand():
    one = {"edges": np.array([[3, 0], [3, 1], [4, 1], [4, 2], [0, 2]])}
    other = {"edges": np.array([[5, 0], [5, 2]])}
    columns = np.array([0, 2, 3])  # the second column is constant
    found = network.common_parents([one, other, {"edges": np.empty((0, 2), dtype=int)}], columns, 4)
    assert found[0, 2] == found[2, 3] == found[0, 3] == pytest.approx(1 / 3)
    assert not found[1].any()


def test_edges_are_told_by_their_probability():
    nodes = {"names": ["a", "b"], "edges": np.array([[2, 0], [2, 1]]), "order": np.zeros(3)}
    nodes["weights"] = np.array([0.5, -2.0])
    traces = {"hidden units": np.array([[1, 2, 3]])}
    together = np.array([[1.0, 0.4], [0.4, 1.0]])
    found = network.section(traces, nodes, 2, together, np.array([[0.0, 0.8], [0.1, 0.0]]))
    assert "a to b (0.80)" in said(found) and "unit 0 to b (-2)" in said(found)
    assert "No two columns share a hidden unit for sure" in said(found)
    assert found.table == [
        {"column": "a", "other column": "b", "common unit": 0.4, "edge there": 0.8,
         "edge back": 0.1}
    ]  # fmt: skip
    assert [one.trust for one in found.verdicts] == ["no"]


def test_of_many_columns_some_are_compared():
    names = [f"c{j}" for j in range(250)]
    nodes = {"names": names, "edges": np.empty((0, 2), dtype=int), "weights": np.empty(0)}
    traces = {"edges": np.zeros((1, 9))}
    found = network.section(traces, nodes | {"order": np.zeros(250)}, 250, np.eye(250))
    assert "Only 84 of the 250 columns" in said(found) and len(found.table) == 84 * 83 // 2
    assert {one["column"] for one in found.table} <= set(names[::3])


def test_scale_groups_columns():
    labels = np.array([-1, -1, 0])
    found = scale.section(np.array([0, -1, 0]), labels, ["a", "b", "c"])
    assert "Driven by factor 0: a and c." in said(found) and "own: b." in said(found)
    assert "67% of the rows are background" in said(found)
    nothing = scale.section(np.array([-1, -1]), np.array([-1]), ["a", "b"])
    assert "no such columns" in said(nothing) and "All rows are background" in said(nothing)


# -- predictions


def test_influence_is_that_of_the_columns_that_predictions_use():
    X = np.random.default_rng(0).normal(size=(500, 3))
    found = supervised.influence(lambda X: 2.0 * X[:, 0], X, [0, 1], seed=0)
    assert found[0] == pytest.approx(np.sqrt(2.0), rel=0.15) and found[1] == 0.0
    assert np.isnan(found[2])
    assert supervised.influence(lambda X: np.ones(len(X)), X, [0], seed=0)[0] == 0.0


# -- chains


def posterior_of(traces):
    log_joint = next(iter(traces.values()))
    draws = [[{}] * log_joint.shape[1]] * len(log_joint)
    return Posterior(draws, {"log_joint": log_joint} | traces, n_warmup=5)


def diagnosis(traces, *illnesses):
    """Of chains that differ in such traces, with advice on such illnesses."""
    return Diagnosis(
        tuple(Problem(f"R-hat of {name} is poor", name) for name in traces),
        tuple(Advice(one, one.value, "wait") for one in illnesses),
    )


def test_chains_that_agree_are_trusted_and_others_not():
    rng = np.random.default_rng(0)
    good = rng.normal(size=(4, 200))
    traces = {"log_density": good, "n_clusters": good + [[0.0], [5.0], [0.0], [0.0]]}
    chains = posterior_of(traces), list(traces)
    found = convergence.section(*chains, diagnosis([None], Illness.UNKNOWN))
    trust = {part: one.trust for part, one in verdicts(found).items()}
    assert trust == {"how well rows are described": "yes", "how many pieces draws have": "no"}
    assert "R-hat of None is poor" in said(found) and found.is_urgent
    assert "n_warmup=5" in found.steps[0]
    named = convergence.section(*chains, diagnosis(["n_clusters"], Illness.UNKNOWN))
    assert "do not agree yet, or are too short for how many pieces draws have" in said(named)
    fine = convergence.section(posterior_of(traces), ["log_density"], Diagnosis())
    assert "the chains agree" in said(fine) and not fine.steps


def test_chains_that_differ_by_little_may_stay():
    rng = np.random.default_rng(0)
    trace = rng.normal(size=(4, 200)) + 2.0 * np.arange(4)[:, np.newaxis]
    traces = {"log_density": trace, "n_clusters": np.full((4, 200), 10.0)}
    chains, differ = (posterior_of(traces), list(traces)), ["log_density", "log_density"]
    found = convergence.section(*chains, diagnosis(differ, Illness.LITTLE))
    verdict = verdicts(found)["how well rows are described"]
    assert verdict.trust == "with care" and verdict.why.endswith("but the chains differ by little")
    little = Illness.LITTLE.value
    assert found.steps[0].startswith(f"The chains may stay as they are: {little}: wait (this fit")
    assert not found.is_urgent and "and by little" in said(found)
    for more in (
        diagnosis([*differ, "concentration"], Illness.LITTLE),
        # Of a trace whose name contains that of another.
        diagnosis([*differ, "log_density_of_rest"], Illness.LITTLE),
        diagnosis(differ, Illness.LITTLE, Illness.FEW_DRAWS),
    ):
        found = convergence.section(*chains, more)
        assert found.steps[0].startswith("Fit again") and found.is_urgent
        assert "thin=1)" in found.steps[0]


def test_chains_that_describe_rows_alike_may_stay_for_predictions():
    traces = {"log_density": np.zeros((2, 100)), "n_hidden": np.zeros((2, 100))}
    for illnesses, stays in (
        ([Illness.COUNTS], True),
        ([Illness.COUNTS, Illness.FEW_DRAWS], False),
        ([Illness.DRIFT, Illness.COUNTS], False),
    ):
        found = convergence.section(
            posterior_of(traces), list(traces), diagnosis(["n_hidden"], *illnesses)
        )
        predictions = "Where only densities and predictions count, the chains may stay"
        assert found.steps[0].startswith(predictions if stays else "Fit again") and found.is_urgent


def test_chains_that_are_stuck_near_one_another_may_not():
    traces = {"log_density": np.repeat([[1.0], [1.01]], 100, axis=1)}
    found = convergence.section(
        posterior_of(traces), list(traces), diagnosis(["log_density"], Illness.LITTLE)
    )
    verdict = verdicts(found)["how well rows are described"]
    assert verdict.trust == "no" and "little" not in verdict.why
    assert found.is_urgent and found.steps[0].startswith("Fit again")


def test_figures_of_chains_are_on_their_side_of_the_limit():
    verdict = convergence._verdict("x", {"rhat": 1.0504, "ess_bulk": 99.8}, 100)
    assert (verdict.trust, verdict.why) == ("with care", "R-hat 1.0504, 99 effective draws")


def test_chains_that_are_stuck_or_too_short():
    stuck = np.repeat([[1.0], [2.0]], 20, axis=1)
    found = convergence.section(posterior_of({"n_factors": stuck}), ["n_factors"], Diagnosis())
    assert verdicts(found)["the number of factors"].why == "each chain stays where it is"
    found = convergence.section(
        posterior_of({"n_edges": np.ones((2, 2))}), ["n_edges"], Diagnosis()
    )
    assert verdicts(found)["the number of edges"].why == "the chains are too short to say"


def test_an_ensemble_is_judged_by_what_more_of_it_would_gain():
    posterior = posterior_of({"log_density": np.random.default_rng(0).normal(size=(4, 20))})
    good = convergence.section(posterior, ["log_density"], Diagnosis(), is_ensemble=True)
    assert [one.trust for one in good.verdicts] == ["yes"]
    small = diagnosis([], Illness.DISAGREEMENT)
    poor = convergence.section(posterior, ["log_density"], small, is_ensemble=True)
    assert [one.trust for one in poor.verdicts] == ["with care"] and "wait" in said(poor)


def test_one_chain_has_nobody_to_agree_with():
    trace = np.random.default_rng(0).normal(size=(1, 40))
    found = convergence.section(posterior_of({"log_density": trace}), ["log_density"], Diagnosis())
    assert "is not known" in said(found)
    # Nor is it asked for as many effective draws as several are: for 25, as by `fit`.
    assert verdicts(found)["how well rows are described"].trust == "yes"
    assert "25 or more are enough" in said(found)


def test_the_picture_of_chains_is_drawn():
    traces = {"log_density": np.zeros((2, 9)), "n_edges": np.ones((2, 9))}
    (picture,) = convergence.section(posterior_of(traces), list(traces), Diagnosis()).pictures
    assert len(picture.figure().axes) == 2
