"""Categories of many levels: what tests adjust for."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import covaria
from covaria import assess
from covaria.assessment import prepare
from covaria.inference.resampling import Shuffles, product_factor
from covaria.tables.dataset import Dataset
from covaria.tables.encoding import Means, encoded, goes_with, widening, within


def shops(seed, n_rows=600, levels=100, slope=0.0, size=1.0):
    """Return a table in which shops drive x, another column and y; x itself by its slope."""
    rng = np.random.default_rng([seed, levels])
    shop = rng.integers(levels, size=n_rows)
    effect = size * rng.normal(size=levels)[shop]
    X = pd.DataFrame(rng.normal(size=(n_rows, 2)), columns=["a", "b"])
    X["a"] += effect
    X["x"] = effect + rng.normal(size=n_rows)
    X["shop"] = [f"shop {k}" for k in shop]
    return X, effect + X["a"].to_numpy() + slope * X["x"].to_numpy() + rng.normal(size=n_rows)


def p_of_x(X, y, seed, **options):
    options = {"learner": "linear", "methods": "gcm", "check": False, **options}
    table = assess(X, y, seed=seed, **options).table
    return table.set_index("feature").loc["x", "p_value"]


@pytest.mark.parametrize("levels", [60, 300])
def test_a_confounder_of_many_levels_is_adjusted_for(levels):
    # Nineteen columns for 60 levels reject every one of these.
    p = [p_of_x(*shops(seed, levels=levels), seed) for seed in range(30)]
    assert np.mean(np.array(p) < 0.05) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 30)


def test_an_effect_beside_many_levels_is_found():
    p = [p_of_x(*shops(seed, slope=0.3), seed) for seed in range(5)]
    assert max(p) < 0.01


def test_auto_adjusts_for_many_levels_too():
    p = [p_of_x(*shops(seed, n_rows=300, levels=60), seed, learner="auto") for seed in range(3)]
    assert np.sum(np.array(p) < 0.05) <= 1


def test_means_by_level_give_the_slopes_of_a_column_for_every_level():
    X, y = shops(0)
    data = encoded(Dataset.from_table(X, y))
    shop = data.features[data.names.index("shop")]
    means = list(shop.columns[-shop.n_encoded :])
    plain = [data.features[data.names.index(name)].columns[0] for name in ("a", "x")]
    assert shop.n_encoded == 2  # of a and x; b does not go with the shops
    A = np.column_stack([np.ones(len(y)), data.X[:, plain], data.X[:, means]])
    mundlak = np.linalg.lstsq(A, y, rcond=None)[0][1:3]
    dummies = pd.get_dummies(X["shop"]).to_numpy(float)
    fixed = np.linalg.lstsq(np.column_stack([X[["a", "x"]], dummies]), y, rcond=None)[0][:2]
    assert np.allclose(mundlak, fixed)


def test_means_by_level_hold_nothing_of_y():
    X, y = shops(1)
    one, other = (encoded(Dataset.from_table(X, target)) for target in (y, y[::-1]))
    assert np.array_equal(one.X, other.X)


def test_columns_of_means_belong_to_the_category_and_are_not_tested():
    X, y = shops(2, levels=30)
    data = encoded(Dataset.from_table(X, y))
    j = data.names.index("shop")
    feature = data.features[j]
    assert not set(feature.columns) & set(data.without(j).tolist())
    assert len(feature.tested) == len(feature.columns) - feature.n_encoded == 19
    result = assess(X, y, learner="linear", methods="gcm", check=False)
    assert result.table.set_index("feature").loc["shop", "df"] == 19
    assert [len(own) for own in result.about["columns"]] == [1, 1, 1, 19]


def test_residuals_within_levels_have_no_means_left():
    rng = np.random.default_rng(3)
    one, other = rng.integers(30, size=(2, 500))
    values = rng.normal(size=(500, 2)) + one[:, None] + 3.0 * other[:, None]
    left = within(values, [one, other])
    for code in (one, other):
        assert np.abs(Means.of(code).means(left)).max() < 1e-6
    dummies = np.column_stack([pd.get_dummies(one), pd.get_dummies(other)]).astype(float)
    by_hand = values - dummies @ np.linalg.lstsq(dummies, values, rcond=None)[0]
    assert np.allclose(left, by_hand, atol=1e-6)


def test_products_within_levels_are_widened_by_what_their_spread_lacks():
    rng, code = np.random.default_rng(4), np.repeat(np.arange(100), 2)
    sums, spreads = [], []
    for _ in range(2000):
        x, y = (within(rng.normal(size=(200, 1)), [code])[:, 0] for _ in range(2))
        sums.append((x * y).sum())
        spreads.append(np.sqrt(((x * y) ** 2).sum()))
    assert widening([code]) * np.sqrt(np.mean(np.square(spreads))) == pytest.approx(
        np.std(sums), rel=0.05
    )


def test_the_test_of_levels_is_the_f_test_of_one_way():
    from scipy.stats import f_oneway

    rng = np.random.default_rng(5)
    code = rng.integers(8, size=200)
    values = rng.normal(size=(200, 1)) + 0.1 * code[:, None]
    expected = f_oneway(*(values[code == k, 0] for k in range(8))).pvalue
    assert Means.of(code).chances(values)[0] == pytest.approx(expected)
    assert goes_with(values + code[:, None], code)
    assert not goes_with(np.ones((200, 1)), code)


def test_levels_that_say_nothing_cost_next_to_no_power():
    rng = np.random.default_rng(6)
    p = []
    for seed in range(20):
        X = pd.DataFrame(rng.normal(size=(300, 2)), columns=["a", "x"])
        y = 0.25 * X["x"].to_numpy() + rng.normal(size=300)
        named = X.assign(name=[f"name {k}" for k in rng.integers(250, size=300)])
        p.append([p_of_x(table, y, seed) for table in (X, named)])
    found = (np.array(p) < 0.05).mean(axis=0)
    assert found[1] >= found[0] - 0.2


def test_names_of_rows_take_no_power():
    rng = np.random.default_rng(10)
    X = pd.DataFrame(rng.normal(size=(200, 2)), columns=["a", "x"])
    y = X["x"].to_numpy() + rng.normal(size=200)
    named = X.assign(id=[f"row {k}" for k in np.minimum(np.arange(200), 194)])
    assert Dataset.from_table(named, y).levels == ()
    assert p_of_x(named, y, 0) < 1e-6


@pytest.mark.parametrize("splits", [5, 0.3, "none"])
def test_many_levels_go_with_every_kind_of_split_and_target(splits):
    X, y = shops(7, n_rows=200, levels=40)
    for target in (y, (y > 0).astype(int), np.digitize(y, [-1, 1])):
        methods = ["gcm", "loco"] if splits == "none" else "default"
        result = assess(X, target, learner="linear", methods=methods, splits=splits, check=False)
        assert result.table["p_value"].between(0, 1).all()


def test_two_categories_of_many_levels_are_both_adjusted_for():
    p = []
    for seed in range(15):
        rng = np.random.default_rng([seed, 8])
        shop, hour = rng.integers(60, size=800), rng.integers(50, size=800)
        effect = rng.normal(size=60)[shop] + rng.normal(size=50)[hour]
        X = pd.DataFrame({"x": effect + rng.normal(size=800)})
        X["shop"], X["hour"] = [f"s{k}" for k in shop], [f"h{k}" for k in hour]
        p.append(p_of_x(X, effect + rng.normal(size=800), seed))
    assert np.mean(np.array(p) < 0.05) <= 0.27  # five of fifteen come once in 1,600


def test_residuals_beside_two_categories_have_no_means_left_within_the_levels_of_either():
    # Means of x by shop stand in for shops, and hold the slots that a shop's rows share: the
    # residuals went with slots less than by chance, and were left as they were.
    rng = np.random.default_rng(0)
    shop, slot = rng.integers(60, size=1000), rng.integers(40, size=1000)
    effect = rng.normal(size=60)[shop] + rng.normal(size=40)[slot]
    X = pd.DataFrame({"x": effect + rng.normal(size=1000), "shop": shop, "slot": slot})
    X = X.astype({"shop": str, "slot": str})
    X["shop"], X["slot"] = "shop " + X["shop"], "slot " + X["slot"]
    y = effect + rng.normal(size=1000)
    job = covaria.prepare(X, y, learner="linear", methods="gcm", features=["x"], check=False)
    residuals = covaria.fit_residuals(job.plan(0))
    (own,) = residuals.data.features[0].tested
    for left in (residuals.x_given_rest[:, own], residuals.y_given_rest[:, 0]):
        for code in (shop, slot):
            means = np.bincount(code, left) / np.bincount(code)
            assert np.abs(means).max() < 1e-6


def test_the_papers_mode_leaves_the_levels_as_they_were():
    job = prepare(*shops(9), learner="linear", methods="gcm", paper=True)
    assert job.plan(0).data is job.data


@pytest.mark.parametrize("levels", [18, 60])
def test_a_region_given_its_towns_leaves_nothing_to_test(levels):
    # What rounding left of it was tested: .13 to .38 of nulls were rejected.
    for seed in range(5):
        rng = np.random.default_rng(seed)
        town = rng.integers(levels, size=500)
        X = pd.DataFrame({"a": rng.normal(size=500), "x": [f"r{k % 5}" for k in town]})
        X["town"] = [f"t{k}" for k in town]
        y = rng.normal(size=levels)[town] + X["a"].to_numpy() + rng.normal(size=500)
        table = assess(X, y, learner="linear", methods="gcm", seed=seed, check=False).table
        row = table.set_index("feature").loc["x"]
        assert (row["p_value"], row["status"]) == (1.0, "redundant")


def pairs(seed, n_rows=200, size=0.0):
    """Return rare flags and skew noise among levels of two rows."""
    rng = np.random.default_rng(seed)
    effect = size * rng.normal(size=n_rows // 2)[np.arange(n_rows) // 2]
    X = pd.DataFrame(rng.normal(size=(n_rows, 3)), columns=["a", "b", "c"])
    X["x"] = (rng.random(n_rows) < 0.05 * np.exp(effect / 2)).astype(float)
    X.loc[[0, 3], "x"] = 1.0
    X["level"] = [f"l{k // 2}" for k in range(n_rows)]
    return X, effect + X["a"].to_numpy() + rng.exponential(size=n_rows)


@pytest.mark.parametrize("size", [0, 2])
def test_levels_of_two_rows_do_not_make_a_rare_flag_matter(size):
    # With a column for some of them two rows predict each other: .12 were rejected.
    p = np.array([p_of_x(*pairs(seed, size=size), seed) for seed in range(60)])
    assert np.mean(p < 0.05) <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 60)


def test_levels_of_two_rows_have_one_column_and_are_adjusted_for_all_the_same():
    data = Dataset.from_table(*pairs(0))
    assert len(data.features[-1].columns) == 1
    assert len(data.levels) == 1


@pytest.mark.parametrize("methods", ["gcm", "gcm+pcm"])
def test_a_category_of_one_tested_column_beside_means_is_assessed(methods):
    X, y = shops(0, n_rows=300, levels=150)  # a column, and the means of two
    result = assess(X, y, learner="linear", methods=methods, check=False)
    assert (result.table["status"] == "ok").all()


def test_permuting_inside_levels_of_two_rows_swaps_signs():
    # Of five pairs with a flag all sums have the same sign in 2 of 2⁵ cases.
    x, y = np.zeros((40, 1)), np.zeros((40, 1))
    x[:10, 0], y[:, 0] = np.tile([0.5, -0.5], 5), np.repeat(np.arange(1.0, 21), 2) / 2
    y[1::2] *= -1
    shuffles = Shuffles(np.arange(40) // 2, lambda: np.random.default_rng(0))
    factor = product_factor(x, y, (x * y)[:, 0], shuffles, "two-sided")
    ratio = np.sqrt(40) * (x * y).mean() / (x * y).std()
    assert norm.sf(ratio / factor) == pytest.approx(1 / 2**5, rel=0.3)
