"""What a second learner does not confirm is taken off a finding."""

from dataclasses import replace

import numpy as np
import pytest

import covaria
from covaria.assessment import prepare
from covaria.errors import InputError
from covaria.learners import Boosting, Linear, Mean
from covaria.nuisance import second_opinion
from covaria.nuisance.plan import Choices
from covaria.nuisance.policy import POLICY
from covaria.nuisance.promising import promising
from covaria.nuisance.regressions import fit_residuals
from covaria.nuisance.second_opinion import _is_plain


def waves(n_rows=300, seed=0):
    """Return a table in which x0 and y follow the same wave of x1, and x0 says nothing more."""
    rng = np.random.default_rng(seed)
    z = rng.uniform(-1, 1, n_rows)
    wave = np.sin(7 * z)
    X = np.column_stack([wave + 0.5 * rng.normal(size=n_rows), z, rng.normal(size=n_rows)])
    return X, wave + 0.5 * rng.normal(size=n_rows)


def helped(n_rows=300, slope=1.0, seed=0):
    """Return the same with an effect of x0."""
    X, y = waves(n_rows, seed)
    return X, y + slope * X[:, 0]


def found_in(X, y, **options):
    return fit_residuals(prepare(X, y, check=False, **options).plan(0))


@pytest.mark.parametrize("times", [1e-9, 100.0])
def test_what_is_not_confirmed_is_taken_off_the_mean(times, monkeypatch):
    policy = replace(POLICY, matched=times)
    monkeypatch.setattr(second_opinion, "POLICY", policy)
    for X, y in (waves(), helped(slope=0.3)):
        residuals = found_in(X, y)
        result = covaria.assess(X, y, check=False)
        assert residuals.matched == (set(residuals.asked) if times > 1 else set())
        products = residuals.x_given_rest * residuals.y_given_rest
        expected = products.mean(axis=0)
        for j in residuals.asked:
            first, *second = (
                each.x_given_rest[:, j] * each.y_given_rest[:, j]
                for each in (residuals, *residuals.second)
            )
            sd = np.sqrt(np.mean(residuals.x_given_rest[:, j] ** 2))
            sd *= np.sqrt(np.mean(residuals.y_given_rest[:, j] ** 2))
            shares = np.fmax(residuals.learning_curves[j], residuals.model_noise[j])
            missed = policy.still_missed * np.sqrt(shares.prod()) * sd
            stands = 1 - min(1, missed / abs(first.mean()))
            if times > 1:
                endless = second[0] + policy.endless * (second[0] - (second[1] + second[2]) / 2)
                in_errors = (endless.mean() / endless.std()) / (first.mean() / first.std())
                stands = np.clip(in_errors, 0, stands)
            expected[j] *= stands
        np.testing.assert_allclose(result.scores["gcm"].mean(axis=0), expected, atol=1e-12)


def test_a_second_learner_that_errs_far_more_is_no_witness():
    rng = np.random.default_rng(5)
    Z = rng.normal(size=(400, 6))
    x = Z.sum(axis=1) + np.sin(3 * Z[:, 0]) + 0.3 * rng.normal(size=400)  # forests learn no sums
    y = x + Z[:, 1] ** 2 + 0.3 * rng.normal(size=400)
    residuals = found_in(np.column_stack([x, Z]), y)
    assert 0 in residuals.asked
    assert 0 not in residuals.matched


def test_findings_are_asked_about_and_features_far_from_significant_are_not():
    X, y = helped()
    residuals = found_in(X, y)
    ratio = [
        abs(np.mean(s) / np.std(s)) * np.sqrt(len(s))
        for s in (residuals.x_given_rest * residuals.y_given_rest).T
    ]
    assert 0 in residuals.asked
    assert ratio[2] < 1.5
    assert 2 not in residuals.asked
    for one in residuals.second:  # nothing was fitted for it
        assert np.array_equal(one.x_given_rest[:, 2], residuals.x_given_rest[:, 2])


def test_a_larger_level_asks_about_more():
    X, y = waves()
    residuals = found_in(X, y)
    few, many = (set(promising(residuals, alpha)) for alpha in (1e-6, 0.9))
    assert few < many
    assert many == {0, 1, 2}


def test_a_true_effect_is_confirmed():
    X, y = helped(500)
    result = covaria.assess(X, y, check=False)
    assert result.table.set_index(["method", "feature"]).loc[("gcm+pcm", "x0"), "p_value"] < 1e-6


def test_a_finding_that_is_not_confirmed_is_one_that_cannot_be_told():
    seen = set()
    for seed in range(8):
        X, y = helped(200, 0.15, seed)
        on, off = (covaria.assess(X, y, extrapolate=e, check=False) for e in (True, False))
        pairs = zip(on.table["verdict"], off.table["selected"], strict=True)
        assert all(selected for verdict, selected in pairs if verdict == "cannot tell")
        assert (on.table["selected"] == (on.table["verdict"] == "matters")).all()
        assert (on.table["p_value"] >= off.table["p_value"] - 1e-9).all()
        seen |= set(on.table["verdict"])
    assert "cannot tell" in seen


def test_the_interval_holds_what_is_seen_and_what_is_left_of_it():
    X, y = waves()
    on, off = (
        covaria.assess(X, y, methods=["gcm", "pcm"], extrapolate=e, check=False).table
        for e in (True, False)
    )
    assert (on["low"] <= off["low"] + 1e-12).all()
    assert (on["high"] >= off["high"] - 1e-12).all()
    gcm, plain = on[on["method"] == "gcm"], off[off["method"] == "gcm"]
    assert (gcm["estimate"].abs() <= plain["estimate"].abs() + 1e-12).all()
    assert ((gcm["low"] <= gcm["estimate"]) & (gcm["estimate"] <= gcm["high"])).all()
    excluded = (gcm["low"] > 0) | (gcm["high"] < 0)
    assert ((gcm["p_value"] < 0.05) == excluded).all()


@pytest.mark.parametrize("kind", ["two classes", "three classes", "group", "weights", "clusters"])
def test_every_kind_of_question_is_asked_and_answered_with_numbers(kind):
    X, y = helped(240)
    options = {}
    if kind == "two classes":
        y = (y > 0).astype(int)
    elif kind == "three classes":
        y = np.digitize(y, [-0.5, 0.5])
    elif kind == "group":
        options["groups"] = {"both": ["x0", "x2"]}
    elif kind == "weights":
        options["sample_weight"] = np.linspace(0.5, 2, 240)
    else:
        options["clusters"] = np.arange(240) // 4
    residuals = found_in(X, y, **options)
    doubts = np.append(residuals.doubt, residuals.doubt_of_functions)
    assert residuals.asked
    assert ((doubts >= 0) & (doubts <= 1)).all()
    table = covaria.assess(X, y, check=False, **options).table
    assert np.isfinite(table["p_value"]).all()
    assert np.isfinite(table.loc[table["method"] != "gcm+pcm", "estimate"]).all()


def test_a_weight_of_two_is_a_row_that_stands_twice():
    X, y = waves(240)
    residuals = found_in(X, y)
    twice = replace(residuals, data=replace(residuals.data, weights=np.full(240, 2.0)))
    assert np.allclose(twice.doubt, residuals.doubt)


def test_lines_and_means_are_not_asked_about():
    plan = prepare(*waves(), check=False).plan(0)
    line, curve, mean = (((one, 1.0),) for one in (Linear(), Boosting(trees=100), Mean()))
    for x, y, expected in (
        (line, curve, False), (curve, line, False), (line, line, True),
        (curve, curve, False), (mean, curve, True), (curve, mean, True),
    ):  # fmt: skip
        each = dict.fromkeys(range(3), x)
        choices = Choices([y] * 5, [each] * 5, [each] * 5, [{}] * 5)
        assert _is_plain(replace(plan, choices=choices), 0) is expected


def test_a_learner_that_was_named_is_not_asked_about():
    X, y = waves()
    on, off = (covaria.assess(X, y, learner="linear", extrapolate=e) for e in (True, False))
    assert on.table.equals(off.table)


def test_nothing_is_asked_where_it_is_not_wanted():
    X, y = waves()
    off = covaria.assess(X, y, extrapolate=False, check=False)
    assert "second opinion" not in set(off.cost["purpose"])
    on = covaria.assess(X, y, check=False)
    assert on.cost.loc[on.cost["purpose"] == "second opinion", "models"].sum() > 0
    assert not on.table["p_value"].equals(off.table["p_value"])


@pytest.mark.parametrize("odd", [3, "yes", None, 0.5])
def test_an_odd_setting_is_one_sentence(odd):
    with pytest.raises(InputError, match="must be True, False or 'auto'"):
        covaria.assess(*waves(60), extrapolate=odd)


def test_few_rows_are_not_halved():
    result = covaria.assess(*waves(80), check=False)
    assert "second opinion" not in set(result.cost["purpose"])


def test_trees_of_long_tables_see_some_of_the_rows(monkeypatch):
    sizes, forest = [], second_opinion.forest_predictions

    def seen(bins, y, weights, train, test, leaf, drawn, seed):
        sizes.append((len(train), drawn.shape[1]))
        return forest(bins, y, weights, train, test, leaf, drawn, seed)

    monkeypatch.setattr(second_opinion, "forest_predictions", seen)
    monkeypatch.setattr(second_opinion, "MOST_ROWS", 120)
    found_in(*helped(300))
    assert set(sizes) == {(240, 120), (120, 60)}
