"""Knockoffs: the s-vectors are knockpy's, the moments are exact, the false discovery rate holds."""

import csv
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from covaria.errors import InputError
from covaria.learners.estimators.boosting import GradientBoosting, bags
from covaria.methods import knockoffs as module
from covaria.methods.knockoff_sampling import (
    CONSTRUCTIONS,
    fit_sampler,
    mvr,
    sdp,
    shrunken_correlation,
    solve_sdp,
)
from covaria.methods.knockoffs import (
    STATISTICS,
    Knockoffs,
    Table,
    e_bh,
    e_values,
    gains,
    knockoff_threshold,
    lasso_coefficients,
)
from covaria.tables.dataset import Dataset

FIXTURES = Path(__file__).parents[1] / "fixtures"
MATRICES = ["ar", "equal", "pair", "wishart"]


def rows_of(name):
    with (FIXTURES / name).open() as file:
        return list(csv.reader(file))


@pytest.fixture(scope="module")
def correlations():
    rows = rows_of("knockpy_correlation.csv")
    return {
        name: np.array([[float(v) for v in row[1:]] for row in rows if row[0] == name])
        for name in MATRICES
    }


@pytest.fixture(scope="module")
def theirs():
    return {
        (name, method): np.array([float(v) for v in s])
        for name, method, *s in rows_of("knockpy_s.csv")
    }


@pytest.fixture(scope="module")
def r_data():
    return np.genfromtxt(FIXTURES / "r_data.csv", delimiter=",", names=True)


def r_columns(r_data):
    return np.column_stack([r_data[f"x{j}"] for j in (1, 2, 3, 4)])


def autoregressive(n_features, correlation):
    place = np.arange(n_features)
    return correlation ** np.abs(np.subtract.outer(place, place))


def wishart(seed, n_features=15, n_rows=25):
    return np.corrcoef(np.random.default_rng(seed).normal(size=(n_rows, n_features)).T)


def joint_covariance(correlation, s):
    apart = correlation - np.diag(s)
    return np.block([[correlation, apart], [apart, correlation]])


# --- s ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MATRICES)
def test_the_sdp_is_the_one_clarabel_finds(correlations, theirs, name):
    ours, exact = sdp(correlations[name]), theirs[name, "clarabel"]
    assert ours.sum() == pytest.approx(exact.sum(), rel=1e-7)
    assert_allclose(ours, exact, atol=1e-4)


@pytest.mark.parametrize("name", MATRICES)
def test_the_sdp_is_as_good_as_knockpys_or_better(correlations, theirs, name):
    # Without DSDP knockpy's own answer is up to 1.8% short of the best.
    assert sdp(correlations[name]).sum() >= theirs[name, "sdp"].sum()


@pytest.mark.parametrize("name", MATRICES)
def test_mvr_is_the_one_knockpy_finds(correlations, theirs, name):
    def loss(s):
        return np.trace(np.linalg.inv(joint_covariance(correlations[name], s)))

    ours, knockpys = mvr(correlations[name]), theirs[name, "mvr"]
    assert loss(knockpys) * (1 - 1e-5) <= loss(ours) <= loss(knockpys)
    # knockpy takes up to 1/1024 off its answer.
    assert_allclose(ours, knockpys, atol=1.1e-3)


@pytest.mark.parametrize("name", MATRICES)
def test_the_equicorrelated_s_is_knockpys(correlations, theirs, name):
    ours = CONSTRUCTIONS["equicorrelated"](correlations[name])
    assert_allclose(ours * (1 - 2.0**-10), theirs[name, "equicorrelated"], rtol=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_the_prices_of_the_sdp_prove_that_no_s_has_a_larger_sum(seed):
    correlation = wishart(seed)
    s, Z, floor, ceiling = solve_sdp(correlation)
    assert np.linalg.eigvalsh(2 * correlation - np.diag(s))[0] > 0
    assert s.min() > 0
    assert s.max() < 1
    assert min(np.linalg.eigvalsh(Z)[0], floor.min(), ceiling.min()) > 0
    assert_allclose(np.diag(Z) - floor + ceiling, 1, atol=1e-9)
    bound = 2 * np.trace(Z @ correlation) + ceiling.sum()
    assert bound - s.sum() <= 2e-7 * s.sum()


@pytest.mark.parametrize("seed", range(8))
def test_mvr_is_where_the_slope_is_zero(seed):
    correlation = wishart(seed)
    s = mvr(correlation)
    inverse = np.linalg.inv(2 * correlation - np.diag(s))
    assert_allclose(np.diag(inverse @ inverse), 1 / s**2, rtol=1e-4)
    joint = np.linalg.inv(joint_covariance(correlation, s))
    assert np.trace(joint) == pytest.approx(np.trace(inverse) + (1 / s).sum(), rel=1e-9)


@pytest.mark.parametrize("construction", CONSTRUCTIONS)
def test_uncorrelated_features_have_s_one(construction):
    for n_features in (1, 6):
        assert_allclose(CONSTRUCTIONS[construction](np.eye(n_features)), 1, atol=1e-6)


@pytest.mark.slow
def test_the_sdp_of_500_features_is_optimal_too():
    correlation = wishart(0, 500, 600)
    s, Z, _, ceiling = solve_sdp(correlation)
    assert 2 * np.trace(Z @ correlation) + ceiling.sum() <= s.sum() * (1 + 2e-7)


# --- draws --------------------------------------------------------------------------------


@pytest.mark.parametrize("construction", CONSTRUCTIONS)
@pytest.mark.parametrize("correlation", [autoregressive(8, 0.7), wishart(3), wishart(4, 30, 20)])
def test_a_draw_has_the_moments_that_are_promised(construction, correlation):
    # Rows whose covariance is the given one, as far as it is definite.
    values, vectors = np.linalg.eigh(correlation)
    rows = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    X = np.vstack([rows, -rows]) * 3.0 + 5.0
    sampler = fit_sampler(X, construction)
    shrunk, _ = shrunken_correlation((X - X.mean(axis=0)) / X.std(axis=0, ddof=1))
    own = sampler.kept.T @ shrunk @ sampler.kept + sampler.root @ sampler.root.T
    assert_allclose(own, shrunk, atol=1e-9)
    assert_allclose(shrunk @ sampler.kept, shrunk - np.diag(sampler.s), atol=1e-9)
    assert sampler.s.min() > 0


@pytest.mark.parametrize("construction", CONSTRUCTIONS)
def test_the_moments_of_200000_rows_are_within_two_hundredths(construction):
    rng = np.random.default_rng(1)
    correlation = autoregressive(10, 0.7)
    X = rng.standard_normal((200_000, 10)) @ np.linalg.cholesky(correlation).T
    sampler = fit_sampler(X, construction)
    measured = np.cov(np.hstack([X, sampler.draw(X, rng)]).T)
    expected = joint_covariance(correlation, sampler.s)
    assert np.abs(measured - expected).max() <= 0.02
    assert np.abs(sampler.draw(X, rng).mean(axis=0) - X.mean(axis=0)).max() <= 0.01


def test_too_few_rows_shrink_correlations_as_corpcor_does(r_data):
    # R: cor.shrink(cbind(x[1:12, ], x[1:12, 1] * x[1:12, 2], x[13:24, ], x[25:36, ])), 1.6.10.
    x = r_columns(r_data)
    X = np.column_stack([x[:12], x[:12, 0] * x[:12, 1], x[12:24], x[24:36]])
    correlation, share = shrunken_correlation((X - X.mean(axis=0)) / X.std(axis=0, ddof=1))
    assert share == pytest.approx(0.83630194850114903, rel=1e-12)
    assert correlation[0, 1] == pytest.approx(0.13903630823931379, rel=1e-12)


def test_enough_rows_shrink_nothing():
    Z = np.random.default_rng(0).normal(size=(50, 5))
    Z = (Z - Z.mean(axis=0)) / Z.std(axis=0, ddof=1)
    correlation, share = shrunken_correlation(Z)
    assert share == 0
    assert_allclose(correlation, np.corrcoef(Z.T), rtol=1e-12, atol=1e-14)


# --- statistics ---------------------------------------------------------------------------


def test_the_coefficients_are_those_of_glmnet_at_the_lambdas_of_r_knockoff(r_data, monkeypatch):
    # R, with x standardised by n: cv.glmnet(x, y, foldid = (0:200) %% 10 + 1, thresh = 1e-14,
    #   lambda = max(abs(t(x) %*% y)) / 201 * 2000^-((0:499) / 500)), coefficients at lambda.min.
    fold_of = np.arange(201) % 10
    monkeypatch.setattr(module, "cross_validate", partial(module.cross_validate, fold_of=fold_of))
    X = r_columns(r_data)
    wave = 0.5 * X[:, 0] + 3 * np.sin(37 * np.arange(1, 202))
    from_r = {
        "y": [0.957566785673, 0.49957544171, 0.0620619772196, 0.104641537596],
        "wave": [0.211471201136, 0, 0, 0],
    }
    for name, y in (("y", r_data["y"]), ("wave", wave)):
        table = Table(X, y, None, np.arange(4), 4, 0)
        ours = lasso_coefficients(X, table, np.random.default_rng(0))
        assert_allclose(ours, from_r[name], rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize(
    ("target", "settings", "weight", "expected"),
    [
        ("y", {}, None, [1520.8254064981404, 439.2493615101086, 307.96884763559711, 16.718164946]),
        (
            "y",
            {"splits": 4},
            None,
            [1611.7365461247243, 469.015176400, 504.842195751, 181.916594645],
        ),
        (
            "two",
            {"splits": 2, "n_classes": 2},
            None,
            [53.228289119056946, 22.490929740872861, 37.944559495148212, 7.9758445767479138],
        ),
        ("y", {}, "weight", [1388.321910531866, 426.34678124017125, 230.95289413, 111.1478251008]),
    ],
)
def test_the_gains_are_the_relative_influence_of_gbm(r_data, target, settings, weight, expected):
    # R: relative.influence(gbm.fit(…, bag.fraction = 1), scale. = FALSE), gbm 2.1.8.1.
    X, y = r_columns(r_data), r_data[target]
    weights = None if weight is None else r_data[weight]
    model = GradientBoosting(bag=1, **settings).fit(X, y, weights)
    assert_allclose(gains(model, X, y, weights), expected, rtol=1e-9)


def test_gains_of_bags_add_up_to_what_the_cuts_took_from_the_bags():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    y = X[:, 0] + rng.normal(size=80)
    model = GradientBoosting(trees=1, shrinkage=1.0, bag=0.5, seed=4).fit(X, y)
    (cut,) = model.rounds_[0][0].cuts
    (bag,) = bags(seed=4, n_rows=80, trees=1, bag=0.5)
    z, right = y[bag], X[bag, cut.column] >= cut.threshold
    explained = ((z - z.mean()) ** 2).sum() - sum(
        ((z[side] - z[side].mean()) ** 2).sum() for side in (right, ~right)
    )
    assert gains(model, X, y, None)[cut.column] == pytest.approx(explained)


class Given:
    """A sampler whose draw is known."""

    def __init__(self, knockoffs):
        self.knockoffs = knockoffs

    def draw(self, X, rng):
        return self.knockoffs


@pytest.mark.parametrize("statistic", STATISTICS)
def test_exchanging_a_feature_and_its_knockoff_changes_the_sign_of_its_w_alone(statistic):
    rng = np.random.default_rng(0)
    X, copies = rng.normal(size=(2, 60, 3))
    y = X[:, 0] + copies[:, 1] + 0.3 * X[:, 2] + rng.normal(size=60)
    exchanged = np.array([True, False, True])
    other_X, other_copies = np.where(exchanged, copies, X), np.where(exchanged, X, copies)
    wins = []
    for features, draw in ((X, copies), (other_X, other_copies)):
        table = Table(features, y, None, np.arange(3), 3, 0)
        contest = Knockoffs(statistic=statistic)._contest
        wins.append(contest(table, Given(draw), np.random.default_rng(5)))
    assert np.abs(wins[0]).min() > 0
    assert_allclose(wins[1], np.where(exchanged, -1, 1) * wins[0], rtol=1e-6, atol=1e-9)


# --- thresholds ---------------------------------------------------------------------------

CLEAR = [9, 8, 7, 6, 5, 4, 3, 2, 1, 0.5]
MIXED = [9, 8, 7, 6, 5, 4, 3, -2.5, 2, 1, -0.5]


@pytest.mark.parametrize(
    ("wins", "fdr", "offset", "expected"),
    [
        # Ten winners, no loser: 1/10 with offset 1, 0 with offset 0.
        (CLEAR, 0.1, 1, 0.5),
        (CLEAR, 0.1, 0, 0.5),
        (CLEAR[:9], 0.1, 1, np.inf),
        (CLEAR[:5], 0.2, 1, 5),
        (CLEAR[:4], 0.2, 1, np.inf),
        (CLEAR[:4], 0.3, 1, 6),
        (CLEAR[:3], 0.3, 1, np.inf),
        # Above 2.5 seven winners and no loser; at 2 there is one loser below −2 and eight winners.
        (MIXED, 0.1, 1, np.inf),
        (MIXED, 0.2, 1, 3),
        (MIXED, 0.3, 1, 1),
        (MIXED, 0.1, 0, 3),
        (MIXED, 0.2, 0, 1),
        (MIXED, 0.3, 0, 0.5),
        # A tie counts on both sides at once.
        ([3, 3, 3, 3, -3], 0.2, 0, np.inf),
        ([3, 3, 3, 3, -3], 0.3, 0, 3),
        ([3, 3, 3, 3, 3, -3], 0.2, 0, 3),
        ([3, 3, 3, 3, 3, -3], 0.2, 1, np.inf),
        ([3, 3, 3, 3, 3, 3, 3, 3, 3, 3, -3], 0.2, 1, 3),
        # Nobody wins.
        ([-1, -2, -3, -4, -5], 0.3, 0, np.inf),
        ([-1, -2, -3, -4, -5], 0.3, 1, np.inf),
        ([0, 0, 0, 0, 0, 0], 0.3, 0, np.inf),
        ([0, 0, 0, 0, 0, 0], 0.3, 1, np.inf),
        # Zeros are neither: R's rule, which lets t be 0, would select them all here.
        ([5, 4, 3, 2, 1, 0, 0, 0], 0.2, 1, 1),
        ([], 0.2, 1, np.inf),
    ],
)
def test_the_threshold_is_the_one_counted_by_hand(wins, fdr, offset, expected):
    wins = np.array(wins, dtype=float)
    assert knockoff_threshold(wins, fdr, offset) == expected


def test_e_values_are_those_counted_by_hand():
    # Ten features. Run 1 at .2: five winners, T = 5, nobody below −5: 10 each. Run 2: nothing.
    first = [9, 8, 7, 6, 5, -4, -3, -2, -1, 0]
    second = [9, 8, 7, -6, -5, -4, -3, -2, -1, 0]
    assert_allclose(e_values(np.array([first, second]), 0.4), [5] * 5 + [0] * 5)
    # Offset 0. Run 1: T = 4, one loser: 10/2 each for five. Run 2: T = 7, none: 10 for three.
    expected = [7.5] * 3 + [2.5] * 2 + [0] * 5
    assert_allclose(e_values(np.array([first, second]), 0.4, offset=0), expected)
    # One loser below −T halves what a winner gets.
    tied = [3] * 10 + [-3]
    assert_allclose(e_values(np.array([tied]), 0.4), [5.5] * 10 + [0])


@pytest.mark.parametrize(
    ("e", "fdr", "chosen"),
    [
        # Five of ten need 10/(5 fdr) each: 10 at .2, 5 at .4.
        ([10] * 5 + [0] * 5, 0.2, 5),
        ([9.9] * 5 + [0] * 5, 0.2, 0),
        ([5] * 5 + [0] * 5, 0.4, 5),
        # The fifth is too small for five, but four larger ones do without it.
        ([13, 13, 13, 13, 9, 0, 0, 0, 0, 0], 0.2, 4),
        # The largest k counts, even if a smaller one fails.
        ([12, 10, 10, 10, 10, 0, 0, 0, 0, 0], 0.2, 5),
        ([0] * 10, 0.2, 0),
    ],
)
def test_e_bh_chooses_the_number_counted_by_hand(e, fdr, chosen):
    selected = e_bh(np.array(e, dtype=float), fdr)
    assert_array_equal(selected, np.arange(len(e)) < chosen)


# --- choosing -----------------------------------------------------------------------------


def draw(seed, n_rows=200, n_features=12, n_useful=6, correlation=0.5, size=1.0):
    """Return a table, its target, and which features matter."""
    rng = np.random.default_rng([seed, 23])
    root = np.linalg.cholesky(autoregressive(n_features, correlation))
    X = rng.standard_normal((n_rows, n_features)) @ root.T
    beta = np.zeros(n_features)
    useful = rng.choice(n_features, n_useful, replace=False)
    beta[useful] = size * rng.choice([-1.0, 1.0], n_useful)
    return X, X @ beta + rng.normal(size=n_rows), beta != 0


def chosen(X, y, seed=0, *, table=None, **settings):
    data = Dataset.from_table(X, y, **(table or {}))
    return Knockoffs(**settings).choose(data, np.random.default_rng(seed))


@pytest.mark.parametrize("settings", [{}, {"construction": "mvr", "statistic": "boosting"}])
def test_strong_features_are_found(settings):
    X, y, useful = draw(0, n_features=10)
    choice = chosen(X, y, fdr=0.3, **settings)
    assert choice.selected[useful].all()
    assert choice.statistic[useful].min() > np.abs(choice.statistic[~useful]).max()
    assert choice.note == ""


def test_repeats_give_e_values_and_find_strong_features():
    X, y, useful = draw(1, n_features=12, n_useful=8, correlation=0.2)
    choice = chosen(X, y, fdr=0.3, repeats=3, statistic="boosting")
    assert choice.selected[useful].all()
    assert choice.statistic.max() == 12
    assert choice.note == ""


def test_two_classes_are_told_apart():
    X, y, useful = draw(2, n_rows=200, n_features=5, n_useful=3, size=3.0)
    for statistic in STATISTICS:
        choice = chosen(X, np.where(y > 0, "yes", "no"), fdr=0.4, statistic=statistic)
        assert choice.selected[useful].all()
        assert choice.statistic[useful].min() > 2 * choice.statistic[~useful].max()


def test_three_classes_need_boosting():
    X, y, useful = draw(3, n_rows=300, n_features=8, size=3.0)
    classes = np.array(["a", "b", "c"])[np.digitize(y, np.quantile(y, [1 / 3, 2 / 3]))]
    with pytest.raises(InputError, match=r"has 3 classes.*statistic='boosting'"):
        chosen(X, classes)
    choice = chosen(X, classes, fdr=0.4, statistic="boosting")
    assert choice.statistic[useful].mean() > 3 * choice.statistic[~useful].mean()


@pytest.mark.parametrize("statistic", STATISTICS)
def test_a_category_of_four_levels_is_one_feature(statistic):
    rng = np.random.default_rng(0)
    kind = rng.choice(["detached", "flat", "terrace", "villa"], 200)
    table = {"type": kind, **{f"x{j}": rng.normal(size=200) for j in range(3)}}
    y = 2.0 * (kind == "villa") - 2.0 * (kind == "flat") + table["x0"] + rng.normal(size=200)
    # SDP knockoffs of levels add up to the levels, and trees see through that: hence MVR.
    choice = chosen(table, y, fdr=0.5, statistic=statistic, construction="mvr")
    assert choice.statistic.shape == choice.selected.shape == (4,)
    assert choice.selected[:2].all()


def test_a_group_wins_what_its_columns_win():
    X, y, _ = draw(4, n_features=4, n_useful=3)
    copies = fit_sampler(X, "mvr").draw(X, np.random.default_rng(0))
    contest = Knockoffs(statistic="boosting")._contest
    single, grouped = (
        contest(Table(X, y, None, np.array(owner), 4, 0), Given(copies), np.random.default_rng(1))
        for owner in ([0, 1, 2, 3], [0, 2, 2, 1])
    )
    assert_allclose(grouped, [single[0], single[3], single[1] + single[2], 0])


def test_what_does_not_vary_is_never_selected():
    X, y, _ = draw(5, n_features=8)
    X[:, 3] = 1.0
    for settings in ({}, {"repeats": 2}):
        choice = chosen(X, y, fdr=0.6, offset=0, statistic="boosting", **settings)
        assert choice.statistic[3] == 0
        assert choice.selected.any()
        assert not choice.selected[3]


def test_no_feature_that_varies_is_no_feature_selected():
    choice = chosen({"a": [1.0] * 20, "b": [2.0] * 20}, np.arange(20.0))
    assert not choice.selected.any()
    assert "only 0 have a positive statistic" in choice.note


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({}, "at least 1/fdr = 5 features must be selected at once, and only 3 have"),
        ({"repeats": 2}, "at least 2/fdr = 10 features must be selected at once, and only 3 have"),
        ({"fdr": 0.1}, "at least 1/fdr = 10 features"),
    ],
)
def test_the_reason_for_none_selected_is_said(settings, reason):
    X, y, _ = draw(6, n_features=3, n_useful=3)
    choice = chosen(X, y, statistic="boosting", **settings)
    assert not choice.selected.any()
    assert reason in choice.note


def test_a_near_miss_has_no_excuse():
    wins = np.array([[5.0, 4, 3, 2, 1, -6]])
    choice = Knockoffs()._chosen(wins, "")
    assert not choice.selected.any()
    assert choice.note == ""


def test_all_losers_are_said_to_be_losers():
    choice = Knockoffs(offset=0)._chosen(np.array([[-1.0, -2.0, 0.0]]), "")
    assert choice.note == "None is selected: no feature has a positive statistic."


@pytest.mark.parametrize("statistic", STATISTICS)
def test_more_columns_than_rows_work_and_say_so(statistic):
    X, y, useful = draw(7, n_rows=40, n_features=45, n_useful=3, correlation=0.0, size=3.0)
    choice = chosen(X, y, statistic=statistic, construction="equicorrelated")
    assert np.isfinite(choice.statistic).all()
    assert choice.statistic[useful].mean() > 3 * np.abs(choice.statistic[~useful]).mean()
    assert "40 rows do not show the covariance of 45 columns" in choice.note
    assert "no correlations, as none stands out" in choice.note


@pytest.mark.parametrize("construction", CONSTRUCTIONS)
def test_two_columns_that_are_the_same_are_survived(construction):
    X, y, _ = draw(8, n_features=6, n_useful=3)
    X[:, 5] = X[:, 4]
    choice = chosen(X, y, statistic="boosting", construction=construction)
    assert np.isfinite(choice.statistic).all()
    assert "singular" in choice.note


def test_rows_of_weight_zero_change_nothing():
    X, y, _ = draw(9, n_rows=80, n_features=6)
    weight = np.where(np.arange(80) < 60, 1.5, 0.0)
    weighted = chosen(X, y, table={"sample_weight": weight}, statistic="boosting")
    alone = chosen(X[:60], y[:60], statistic="boosting")
    assert_allclose(weighted.statistic, alone.statistic, rtol=1e-9)


def test_weights_move_the_statistic():
    X, y, _ = draw(9, n_rows=80, n_features=6)
    weight = np.random.default_rng(0).exponential(size=80)
    for statistic in STATISTICS:
        plain = chosen(X, y, statistic=statistic).statistic
        weighted = chosen(X, y, table={"sample_weight": weight}, statistic=statistic).statistic
        assert np.abs(plain - weighted).max() > 0.01 * np.abs(plain).max()


def test_units_do_not_matter():
    X, y, _ = draw(10, n_rows=100, n_features=5, n_useful=3)
    scale = 10.0 ** np.arange(-6, 9, 3)
    plain = chosen(X, y).statistic
    assert_allclose(chosen(X * scale + 3 * scale, y).statistic, plain, rtol=1e-4, atol=1e-6)


def test_the_order_of_the_columns_does_not_matter():
    X, y, _ = draw(11, n_features=6)
    table = {f"x{j}": X[:, j] for j in range(6)}
    turned = {name: table[name] for name in reversed(table)}
    plain, other = (chosen(t, y, statistic="boosting").statistic for t in (table, turned))
    assert_array_equal(plain, other[::-1])


def test_the_same_stream_gives_the_same_choice_and_another_another():
    X, y, _ = draw(12, n_features=6)
    first, again, other = (chosen(X, y, seed, statistic="boosting").statistic for seed in (0, 0, 1))
    assert_array_equal(first, again)
    assert (first != other).any()


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"fdr": 0.0}, "fdr=0.0 must be between 0 and 1"),
        ({"fdr": 1}, "fdr=1 must be between 0 and 1"),
        ({"fdr": "0.2"}, "fdr='0.2' must be between 0 and 1"),
        ({"fdr": float("nan")}, "fdr=nan must be between 0 and 1"),
        ({"construction": "spd"}, "construction='spd' is not known. Did you mean 'sdp'"),
        ({"statistic": "laso"}, "statistic='laso' is not known. Did you mean 'lasso'"),
        ({"statistic": ["lasso"]}, "is not known"),
        ({"offset": 2}, "offset=2 must be 1"),
        ({"offset": True}, "offset=True must be 1"),
        ({"repeats": 0}, "repeats=0 must be a whole number"),
        ({"repeats": 1.5}, "repeats=1.5 must be a whole number"),
    ],
)
def test_a_bad_setting_is_one_sentence(settings, sentence):
    with pytest.raises(InputError, match=sentence.replace("'", ".")):
        Knockoffs(**settings)


# --- calibration --------------------------------------------------------------------------


def rates(seed, settings, problem):
    """Return the share of false ones among the selected, and of useful ones that are found."""
    X, y, useful = draw(seed, **problem)
    selected = chosen(X, y, seed, **settings).selected
    return (selected & ~useful).sum() / max(1, selected.sum()), selected[useful].mean()


def measured(n_runs, settings, problem):
    """Return the false discovery rate, its standard error, and the power."""
    false, found = np.array([rates(seed, settings, problem) for seed in range(n_runs)]).T
    print(f"{settings}: FDR {false.mean():.3f}, power {found.mean():.3f}")
    return false.mean(), false.std() / np.sqrt(n_runs), found.mean()


def test_the_false_discovery_rate_is_kept_in_a_few_runs():
    problem = {"n_rows": 200, "n_features": 20, "n_useful": 8, "size": 0.5}
    rate, error, power = measured(40, {"statistic": "boosting", "construction": "mvr"}, problem)
    assert rate <= 0.2 + 3 * error
    assert power >= 0.4


# Measured: FDR and power are in docs/methods/knockoffs.md.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "size", "n_useful", "least_power"),
    [
        ({"construction": "sdp", "statistic": "lasso"}, 0.25, 10, 0.6),
        ({"construction": "mvr", "statistic": "lasso"}, 0.25, 10, 0.6),
        ({"construction": "equicorrelated", "statistic": "boosting"}, 0.5, 10, 0.5),
        ({"construction": "sdp", "statistic": "boosting"}, 0.5, 10, 0.5),
        ({"construction": "mvr", "statistic": "boosting"}, 0.5, 10, 0.5),
        ({"construction": "mvr", "statistic": "boosting", "repeats": 5}, 0.6, 15, 0.3),
        ({"construction": "mvr", "statistic": "lasso", "repeats": 5}, 0.25, 15, 0.6),
    ],
)
def test_the_false_discovery_rate_is_kept_in_500_runs(settings, size, n_useful, least_power):
    problem = {"n_rows": 300, "n_features": 30, "n_useful": n_useful, "size": size}
    rate, error, power = measured(500, settings, problem)
    assert rate <= 0.2 + 3 * error
    assert power >= least_power
