"""PCM: what its scores are, its level from theory, and what it sees that GCM does not."""

import numpy as np
import pytest
from scipy.stats import norm

from covaria import InputError, assess
from covaria.assessment import prepare
from covaria.inference.tests import either_p
from covaria.nuisance.regressions import fit_residuals


def with_even_effect(n_rows=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 4))
    return X, X[:, 0] ** 2 + X[:, 1] + rng.normal(size=n_rows)


@pytest.mark.parametrize("n_folds", [2, 5, 10])
@pytest.mark.parametrize("dimensions", [1, 2, 5, 20, 100])
def test_folds_that_learn_from_each_other_reject_no_more_than_five_percent(n_folds, dimensions):
    # A fold's noise is a normal vector S; the others' sum is the function it is tested with.
    rng = np.random.default_rng(dimensions)
    S = rng.normal(size=(20_000, n_folds, dimensions))
    others = S.sum(axis=1, keepdims=True) - S
    T = (S * others).sum(axis=2) / np.linalg.norm(others, axis=2)
    total = T.sum(axis=1) / np.sqrt(2 * n_folds)
    level = np.mean(total > norm.ppf(0.95))
    assert level <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / len(S))
    if dimensions == 100:
        assert level > 0.035  # the factor 2 is needed


def test_the_scores_of_a_linear_model_are_those_of_a_fit_by_hand():
    X, y = with_even_effect(600)
    half = [(np.arange(300, 600), np.arange(300))]
    result = assess(X, y, learner="linear", methods=["pcm"], splits=half)
    (train, test), j = half[0], 1
    A = np.column_stack([np.ones(600), X])
    slope = np.linalg.lstsq(A[train], y[train], rcond=None)[0][1 + j]
    rest = np.delete(A, 1 + j, axis=1)

    def left(target):
        return (target - rest @ np.linalg.lstsq(rest[train], target[train], rcond=None)[0])[test]

    expected = left(slope * X[:, j]) * left(y)
    np.testing.assert_allclose(result.scores["pcm"][:, j], expected, atol=1e-10)
    z = np.sqrt(300) * expected.mean() / expected.std()
    assert result.table["p_value"][j] == pytest.approx(norm.sf(z))


def test_several_folds_stand_further_from_their_mean():
    X, y = with_even_effect()
    result = assess(X, y, learner="linear", methods=["pcm"])
    job = prepare(X, y, learner="linear", methods=["pcm"])
    residuals = fit_residuals(job.plan(0))
    bare = residuals.f_given_rest * residuals.y_given_rest
    np.testing.assert_allclose(result.scores["pcm"].mean(axis=0), bare.mean(axis=0))
    np.testing.assert_allclose(result.scores["pcm"].std(axis=0), np.sqrt(2) * bare.std(axis=0))


def test_it_sees_an_even_effect_that_gcm_does_not():
    X, y = with_even_effect()
    selected = assess(X, y, learner="boosting").selected
    assert selected["gcm"] == ["x1"]
    assert selected["pcm"] == selected["gcm+pcm"] == ["x0", "x1"]


@pytest.mark.parametrize("task", ["two classes", "three classes", "weights", "a group", "clusters"])
def test_it_sees_the_even_effect_in_every_kind_of_table(task):
    X, y = with_even_effect(400)
    options = {}
    if task.endswith("classes"):
        y = np.digitize(y, np.quantile(y, [0.5] if task[1] == "w" else [0.33, 0.67])).astype(str)
    if task == "weights":
        options["sample_weight"] = np.random.default_rng(1).uniform(0.5, 2, 400)
    if task == "a group":
        options = {"groups": {"both": ["x0", "x2"]}}
    if task == "clusters":
        options["clusters"] = np.repeat(np.arange(100), 4)
    result = assess(X, y, learner="boosting", methods=["pcm"], **options)
    assert result.table["p_value"].iloc[0] < 0.01 or result.table["p_value"].min() < 1e-3
    assert np.isfinite(result.scores["pcm"]).all()


def test_a_feature_that_the_model_never_uses_has_p_one():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=200), np.r_[np.ones(4), np.zeros(196)]])
    row = assess(X, 3 * X[:, 0], learner="boosting", methods=["pcm"]).table.iloc[1]
    assert (row["status"], row["p_value"]) == ("unused", 1.0)


def test_in_sample_it_says_that_it_needs_held_out_rows():
    with pytest.raises(InputError, match="needs held-out rows"):
        assess(*with_even_effect(50), methods=["pcm"], splits="none")
    default = assess(*with_even_effect(50), learner="linear", splits="none")
    assert default.methods == ["gcm", "loco"]


def test_a_full_model_that_fails_is_said():
    class Moody:
        def fit(self, X, y):
            if X.shape[1] == 4:
                raise RuntimeError("four is too many")
            return self

        def predict(self, X):
            return X[:, 0]

    result = assess(*with_even_effect(60), learner=Moody(), methods=["gcm+pcm"])
    status = result.table.set_index(["method", "feature"])["status"]
    assert status["pcm", "x0"].startswith("failed: ")
    assert status["gcm", "x0"] == status["gcm+pcm", "x0"] == "ok"


# --- the verdict --------------------------------------------------------------------------------


@pytest.mark.parametrize("repeats", [1, 3])
def test_the_verdict_is_at_most_twice_the_smaller_p_and_stands_beside_its_parts(repeats):
    result = assess(*with_even_effect(), learner="boosting", methods=["gcm+pcm"], repeats=repeats)
    assert result.methods == ["gcm", "pcm", "gcm+pcm"]
    assert result.verdict == "gcm+pcm"
    p = result.table.pivot(index="feature", columns="method", values="p_value")
    least = p[["gcm", "pcm"]].min(axis=1)
    expected = np.minimum(1, 2 * least)
    if repeats == 1:  # less, by how much the two go together
        together = [
            np.corrcoef(result.scores["gcm"][:, j], result.scores["pcm"][:, j])[0, 1]
            for j in range(4)
        ]
        assert (p["gcm+pcm"] <= expected).all()
        expected = either_p(p["gcm"].to_numpy(), p["pcm"].to_numpy(), np.array(together))
    np.testing.assert_allclose(p["gcm+pcm"], expected)
    assert result.verdicts["verdict"].tolist()[:2] == ["matters", "matters"]
    assert "2 of 4 features matter" in result.headline


@pytest.mark.parametrize("correlation", [-0.95, -0.5, 0.0, 0.3, 0.8, 0.99])
def test_the_verdict_of_two_normals_has_its_level_whatever_their_correlation(correlation):
    T = np.random.default_rng(0).multivariate_normal(
        [0, 0], [[1, correlation], [correlation, 1]], 100_000
    )
    two_sided, one_sided = 2 * norm.sf(np.abs(T[:, 0])), norm.sf(T[:, 1])
    p = either_p(two_sided, one_sided, np.full(len(T), correlation))
    for level in (0.01, 0.05, 0.2):
        assert np.mean(p < level) == pytest.approx(level, abs=4 * np.sqrt(level / len(T)))
    least = np.minimum(two_sided, one_sided)
    assert (p >= least).all()
    assert (p <= 2 * least).all()


def test_a_tiny_p_stays_tiny():
    p = either_p(np.array([1e-280, 5e-324]), np.array([0.5, 1.0]), np.array([0.5, -0.5]))
    assert (p > 0).all()
    assert (p < 1e-270).all()


def test_p_values_do_not_depend_on_units():
    X, y = with_even_effect(200)
    plain = assess(X, y, learner="linear").table["p_value"]
    scaled = assess(X * [1e3, 1e-4, -7, 1] + 5, 1e-6 * y - 3, learner="linear").table["p_value"]
    np.testing.assert_allclose(plain, scaled, rtol=1e-6)
