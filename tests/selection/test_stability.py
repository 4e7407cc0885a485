"""Selecting again on parts of the rows: the parts, the frequencies and what bounds them."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

import covaria
from covaria import InputError, assess, prepare
from covaria.randomness import seed_of
from covaria.selection.bounds import unimodal_bound, worst_case_bound
from covaria.selection.stability import LEAST_ROWS, Rule, _expected_false, part_of, stability
from covaria.tables.dataset import Dataset

QUICK = {"learner": "linear", "methods": "gcm", "splits": "none"}


@pytest.fixture(scope="module")
def mixed_data():
    """Return 90 rows with text, gaps and two classes to tell apart."""
    rng = np.random.default_rng(3)
    number = rng.normal(size=90)
    X = pd.DataFrame(
        {
            "number": number,
            "gaps": np.where(rng.random(90) < 0.2, np.nan, rng.normal(size=90)),
            "type": rng.choice(["a", "b", "c", "d"], size=90),
            "noise": rng.normal(size=90),
        }
    )
    return X, np.where(number + 0.5 * rng.normal(size=90) > 0, "yes", "no")


# The parts


def test_four_of_five_is_the_rule_and_rounding_does_not_change_it():
    assert (Rule().count, Rule().needed) == (5, 4)
    assert Rule(folds=10, threshold=0.7).needed == 7
    assert Rule("half_samples", pairs=3, threshold=0.75).needed == 5
    assert Rule("half_samples", threshold=1).needed == 100


def test_halves_are_complementary_and_of_one_size(small_data):
    data = Dataset.from_table(small_data[0][:41], small_data[1][:41])
    samples = Rule("half_samples", pairs=4).samples(data, seed=0)
    assert len(samples) == 8
    for (rows, rest), (again, used) in zip(samples[::2], samples[1::2], strict=True):
        assert len(rows) == len(rest) == 20
        assert not set(rows) & set(rest)
        assert (rows.tolist(), rest.tolist()) == (used.tolist(), again.tolist())
    assert len({tuple(rows) for rows, _ in samples}) == 8


def test_clusters_stay_whole_in_halves_and_in_folds():
    rng = np.random.default_rng(0)
    clusters = np.repeat(np.arange(12), 5)
    data = Dataset.from_table(rng.normal(size=(60, 2)), rng.normal(size=60), clusters=clusters)
    for scheme in ("folds", "half_samples"):
        for rows, rest in Rule(scheme, folds=3, pairs=2).samples(data, seed=1):
            assert not set(clusters[rows]) & set(clusters[rest])
            assert part_of(data, rows).clusters.max() + 1 == len(set(clusters[rows]))


def test_classes_are_shared_out_evenly_between_halves(mixed_data):
    data = Dataset.from_table(*mixed_data)
    for rows, rest in Rule("half_samples", pairs=5).samples(data, seed=0):
        assert abs(data.y[rows].sum() - data.y[rest].sum()) <= 1


def test_a_part_leaves_out_what_does_not_vary_in_it():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"rare": [1.0] + [0.0] * 39, "type": ["a", "b"] * 10 + ["a", "c"] * 10})
    X["gaps"] = [np.nan] * 5 + rng.normal(size=35).tolist()
    data = Dataset.from_table(X, ["u"] * 3 + ["v", "w"] * 18 + ["v"], sample_weight=np.arange(40))
    part = part_of(data, np.arange(20, 40))
    assert [f.kind for f in data.features] == ["number", "category", "number"]
    assert [f.kind for f in part.features] == ["constant", "category", "number"]
    assert [len(f.columns) for f in data.features] == [1, 2, 2]
    assert [len(f.columns) for f in part.features] == [0, 1, 1]
    assert sorted(c for f in part.features for c in f.columns) == list(range(part.X.shape[1]))
    assert part.holes is None
    assert part.classes == ("v", "w")
    assert set(part.y) == {0.0, 1.0}
    assert part.weights.mean() == pytest.approx(1)


# What is found


@pytest.mark.parametrize("scheme", ["folds", "half_samples"])
def test_a_part_selects_what_assess_selects_on_its_rows(scheme, small_data):
    X, y = small_data
    options = {"learner": "linear", "correction": "none", "splits": 2}
    found = stability(X, y, methods="gcm", scheme=scheme, pairs=2, seed=5, **options)
    for at, (rows, _) in enumerate(found.samples):
        seed = seed_of(5, "stability", scheme, at)
        alone = assess(X[rows], y[rows], methods="gcm", seed=seed, **options)
        assert found.chosen["gcm"][at].tolist() == alone.table["selected"].tolist()
    frequency = found.table["frequency"].to_numpy()
    assert np.array_equal(frequency, found.chosen["gcm"].mean(axis=0))
    assert found.table["selected"].tolist() == (frequency >= 0.8).tolist()
    assert found.q["gcm"] == pytest.approx(frequency.sum())


def test_the_papers_rule_is_p_below_05_in_sample_on_four_of_five_training_parts(small_data):
    X, y = small_data
    found = stability(X, y, method=["gcm", "loco"], learner="linear", paper=True)
    assert sorted(row for _, rest in found.samples for row in rest) == list(range(120))
    for method in ("gcm", "loco"):
        times = np.zeros(4, dtype=int)
        for rows, _ in found.samples:
            table = assess(X[rows], y[rows], learner="linear", methods=method, paper=True).table
            times += (table["p_value"] < 0.05).to_numpy()
        lines = found.table[found.table["method"] == method]
        assert lines["times"].tolist() == times.tolist()
        assert lines["selected"].tolist() == (times >= 4).tolist()


def test_several_methods_give_what_each_gives_alone(small_data):
    both = stability(*small_data, method="gcm, loco", **QUICK)
    for method in ("gcm", "loco"):
        alone = stability(*small_data, method=method, **QUICK)
        assert both.chosen[method].tolist() == alone.chosen[method].tolist()
        assert both.expected_false[method] == alone.expected_false[method]


def test_more_processes_give_the_same_bytes_and_another_seed_others(small_data):
    options = {"scheme": "half_samples", "pairs": 4, "correction": "none", "learner": "linear"}
    one, two = (stability(*small_data, n_jobs=n, **options) for n in (1, 2))
    other = stability(*small_data, seed=1, **options)
    assert json.dumps(one.to_dict()) == json.dumps(two.to_dict())
    assert one == two
    assert one != other


def test_text_gaps_and_groups_are_one_feature_each(mixed_data):
    X, y = mixed_data
    found = stability(X, y, **QUICK, groups={"rest": ["noise", "gaps"]})
    assert found.features == ["number", "rest", "type"]
    assert found.selected == {"gcm": ["number"]}
    assert found.about["task"] == "classification"


def test_selection_without_a_p_value_is_stable_too(small_data):
    found = stability(*small_data, method="lasso", scheme="half_samples", pairs=2)
    assert "x0" in found.selected["lasso"]
    assert "worst_case" in found.expected_false["lasso"]
    assert "level" not in found.expected_false["lasso"]


def test_progress_counts_the_parts_and_the_page_says_how_often(small_data):
    seen = []
    found = stability(*small_data, **QUICK, progress=lambda *at: seen.append(at))
    assert seen == [(at, 5) for at in range(1, 6)]
    json.dumps(found.to_dict(), allow_nan=False)
    text = str(found)
    assert "2 by gcm (4 or more of 5 training parts)" in text
    assert "x0       5/5 *" in text
    assert "no theorem" in text
    halves = stability(*small_data, **QUICK, scheme="half_samples", pairs=2)
    assert "at worst" in str(halves)
    assert "no theorem" not in str(halves)


class NotTwo(LinearRegression):
    """Least squares that will not do with two columns."""

    def fit(self, X, y):
        if X.shape[1] == 2:
            raise RuntimeError("two are too few")
        return super().fit(X, y)


def test_fits_that_fail_are_told(small_data):
    from sklearn.neighbors import KNeighborsRegressor

    options = {"splits": 2, "folds": 2}
    with pytest.raises(InputError, match="On a part of 60 rows: No feature could be tested"):
        stability(*small_data, learner=KNeighborsRegressor(n_neighbors=500), **options)
    groups = {"pair": ["x0", "x1"]}
    found = stability(*small_data, learner=NotTwo(), groups=groups, **options)
    assert not found.table.set_index("feature").loc["pair", "selected"].any()
    assert any("fits failed" in alert for alert in found.alerts)


# What is refused


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"threshold": 0.5}, "threshold=0.5 must be a share above 0.5"),
        ({"threshold": 1.1}, "threshold=1.1 must be"),
        ({"threshold": "most"}, "threshold='most' must be"),
        ({"folds": 1}, "folds=1 must be a whole number, 2 or more"),
        ({"folds": 2.0}, "folds=2.0 must be a whole number"),
        ({"folds": 61}, "folds=61 is too many for 120 rows. Use 60 or fewer."),
        ({"pairs": 0}, "pairs=0 must be a whole number, 1 or more"),
        ({"scheme": "half"}, "scheme='half' is not known. Did you mean 'half_samples'?"),
        ({"alpa": 0.1}, "There is no option 'alpa'. Did you mean 'alpha'?"),
        ({"splits": [([0], [1])]}, "splits as lists of row numbers fit the whole table only"),
        ({"method": "gcn"}, "no method 'gcn'"),
        ({"n_jobs": 0}, "n_jobs must be"),
        ({"clusters": np.repeat(range(6), 20), "scheme": "half_samples"}, "halves need 10"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(options, sentence, small_data):
    with pytest.raises(InputError, match=r".") as error:
        stability(*small_data, **{"learner": "linear", **options})
    assert sentence in str(error.value)


def test_too_few_rows_in_a_part_are_refused(small_data):
    X, y = (array[:10] for array in small_data)
    with pytest.raises(InputError, match="On a part of 5 rows: splits=5 is too many"):
        stability(X, y, learner="linear", scheme="half_samples")
    weights = np.r_[np.ones(10), np.zeros(10)]
    with pytest.raises(InputError, match="sample_weight is above 0 in fewer than 5 rows"):
        stability(*(a[:20] for a in small_data), **QUICK, folds=2, sample_weight=weights)


def test_a_target_that_varies_in_one_part_only_is_refused(small_data):
    y = np.repeat(["a", "b"], [118, 2])
    with pytest.raises(InputError, match="Class 'b'"):
        stability(small_data[0], y, learner="linear")
    numbers = np.r_[np.zeros(118), 1.0, 2.0]
    clusters = np.repeat(np.arange(12), 10)
    with pytest.raises(InputError, match="On a part of 60 rows: The target 'y' is the same"):
        stability(
            small_data[0],
            numbers,
            clusters=clusters,
            scheme="half_samples",
            task="regression",
            **QUICK,
        )


# How many are false


def test_no_more_are_false_than_there_are_features():
    rule = Rule("half_samples", pairs=50, threshold=0.6)
    assert _expected_false(rule, 9.0, 10, None)["worst_case"] == 10
    few = _expected_false(rule, 1.0, 10, None)
    assert few["worst_case"] == pytest.approx(worst_case_bound(1, 10, 0.6))
    assert few["unimodal"] == pytest.approx(unimodal_bound(1, 10, 0.6, 50))
    assert "level" not in few


def test_runs_are_equal_where_all_their_numbers_are(small_data):
    one, again = (stability(*small_data, **QUICK) for _ in range(2))
    assert one == again
    assert (one == stability(*small_data, **QUICK, threshold=0.9)) is False
    assert (one == "another thing") is False


def test_it_is_said_how_many_are_selected_at_a_time(small_data):
    found = stability(*small_data, **QUICK)
    assert any(f"gcm selects {found.q['gcm']:.3g} features" in alert for alert in found.alerts)
    assert found.q["gcm"] == found.chosen["gcm"].sum() / 5
    found = stability(*small_data, method="lasso", learner="linear")
    assert any("nothing bounds" in alert for alert in found.alerts)


def test_as_few_rows_and_clusters_as_are_needed_will_do(small_data):
    X, y = (array[:20] for array in small_data)
    data = Dataset.from_table(X, y, sample_weight=np.r_[np.ones(12), np.zeros(8)])
    rows = np.r_[np.arange(LEAST_ROWS), np.arange(12, 18)]
    assert np.count_nonzero(part_of(data, rows).weights) == LEAST_ROWS
    with pytest.raises(InputError, match="sample_weight is above 0 in fewer"):
        part_of(data, rows[1:])
    ten = Dataset.from_table(*small_data, clusters=np.arange(120) % 10)
    assert len(Rule("half_samples", pairs=1).samples(ten, seed=0)) == 2


def false_selections(draws, n_features, **options):
    """Return how many features of pure noise were stable in each draw, and the results."""
    found = []
    for draw in range(draws):
        rng = np.random.default_rng(draw)
        X = rng.normal(size=(100, n_features))
        found.append(stability(X, rng.normal(size=100), **QUICK, seed=draw, **options))
    return np.array([one.table["selected"].sum() for one in found]), found


def test_false_selections_of_half_samples_stay_below_their_bounds():
    rule = {"scheme": "half_samples", "pairs": 5, "threshold": 0.7, "alpha": 0.25}
    counts, found = false_selections(6, 8, correction="none", **rule)
    q = np.mean([one.q["gcm"] for one in found])
    assert 0 < counts.mean() < unimodal_bound(q, 8, 0.7, 5) < worst_case_bound(q, 8, 0.7)


@pytest.mark.slow
@pytest.mark.parametrize(("alpha", "threshold"), [(0.1, 0.6), (0.25, 0.6), (0.25, 0.8)])
def test_false_selections_of_many_half_samples_stay_below_their_bounds(alpha, threshold):
    rule = {"scheme": "half_samples", "pairs": 25, "threshold": threshold, "alpha": alpha}
    counts, found = false_selections(60, 10, correction="none", **rule)
    q = np.mean([one.q["gcm"] for one in found])
    error = counts.std() / np.sqrt(len(counts))
    bounds = worst_case_bound(q, 10, threshold), unimodal_bound(q, 10, threshold, 25)
    print(f"{alpha} {threshold} q {q:.2f}: {counts.mean():.3f} ± {error:.3f}, bounds {bounds}")
    assert counts.mean() + 3 * error < min(bounds)


@pytest.mark.slow
def test_a_useless_feature_passes_four_of_five_folds_as_often_as_computed():
    counts, found = false_selections(400, 5, correction="none")
    rate, error = counts.mean() / 5, counts.std() / 5 / np.sqrt(400)
    print(f"{rate:.4f} ± {error:.4f}")
    # In sample GCM rejects .056 of nulls at .05, so 4 of 5 of them a little more than .0152.
    assert 0.010 < rate < 0.025
    assert found[0].expected_false["gcm"]["level"] == pytest.approx(5 * 0.0152, abs=1e-3)


def test_the_linear_scenario_comes_out_stable():
    X, y = covaria.draw("linear", n_rows=300, seed=1)
    found = stability(X, y, **QUICK, correction="bonferroni")
    assert {f"x{j}" for j in range(3, 9)} <= set(found.selected["gcm"])
    assert set(found.selected["gcm"]) <= set(covaria.scenario("linear").support)


def test_a_category_of_many_levels_is_cut_to_each_part():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(200, 2)), columns=["a", "b"])
    X["town"] = [f"t{at}" for at in rng.integers(0, 40, 200)]
    found = covaria.stability(X, X["a"] + rng.normal(size=200), learner="linear", methods="gcm")
    assert found.selected["gcm"] == ["a"]


@pytest.fixture(scope="module")
def lives():
    """Return 120 rows of two features, two targets, and a time until an event that c shortens."""
    rng = np.random.default_rng(0)
    found = pd.DataFrame(rng.normal(size=(120, 2)), columns=["b", "c"])
    found["y"], found["z"] = rng.normal(size=(2, 120)) + found["c"].to_numpy()
    found["weight"] = rng.uniform(1, 2, 120)
    return found.assign(time=rng.exponential(np.exp(-found["c"])), event=rng.integers(0, 2, 120))


@pytest.mark.parametrize(
    ("y", "asked"), [("time", {"event": "event"}), (["y", "z"], {}), ("y", {"loss": "absolute"})]
)
def test_a_part_of_any_target_is_that_of_its_rows(lives, y, asked):
    rows, asked = np.arange(0, 120, 2), {"sample_weight": "weight", **asked}
    part = part_of(prepare(lives, y, **asked).data, rows)
    alone = prepare(lives.iloc[rows], y, **asked).data
    np.testing.assert_allclose(part.columns_of_y, alone.columns_of_y)
    np.testing.assert_allclose(part.weights, alone.weights)
    everything = np.arange(60)
    constant = part.mean_prediction(everything, 60)
    np.testing.assert_allclose(part.loss(constant, everything), alone.loss(constant, everything))


def test_times_are_stable_too(lives):
    found = stability(lives[["b", "c", "time", "event"]], "time", event="event", learner="linear",
                      methods="gcm")  # fmt: skip
    assert "c" in found.selected["gcm"]
