"""The published designs are what their authors wrote, and the tool that runs them leaves a page."""

import csv
import importlib
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

TOOLS = Path(__file__).parents[2] / "tools"
sys.path.insert(0, str(TOOLS))
designs = importlib.import_module("yardstick_designs")
yardsticks = importlib.import_module("yardsticks")
sys.path.remove(str(TOOLS))

DESIGNS = designs.DESIGNS
SHAPES = {
    "chamma": {(1000, 50)},
    "semi": {(300, 50)},
    "single": {(500, 8), (500, 2), (500, 6), (500, 21), (1000, 51)},
}
N_USEFUL = {"semi_masked": 1, "semi_spread": 1}


def draw(name, run=0):
    return DESIGNS[name].draw(np.random.default_rng(run))


def many(name, draws=30):
    """Return the tables of many runs, one below the other, of a design without random weights."""
    tables = [draw(name, run) for run in range(draws)]
    return np.vstack([X for X, _, _ in tables]), np.hstack([y for _, y, _ in tables])


def explained(columns, y):
    """Return the adjusted share of the variance that least squares explain."""
    A = np.column_stack([np.ones(len(y)), columns])
    left = y - A @ np.linalg.lstsq(A, y)[0]
    return 1 - left.var() / y.var() * (len(y) - 1) / (len(y) - A.shape[1])


# --- designs --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DESIGNS)
def test_a_table_has_the_published_shape_and_repeats_with_its_seed(name):
    X, y, useful = draw(name)
    assert X.shape in SHAPES[DESIGNS[name].source]
    assert y.shape == (len(X),)
    assert useful.shape == (X.shape[1],)
    assert useful.dtype == bool
    assert np.isfinite(X).all()
    assert np.isfinite(y).all()
    again, y_again, useful_again = draw(name)
    np.testing.assert_array_equal(X, again)
    np.testing.assert_array_equal(y, y_again)
    np.testing.assert_array_equal(useful, useful_again)


@pytest.mark.parametrize("name", [name for name in DESIGNS if not DESIGNS[name].only_first])
def test_as_many_columns_are_useful_as_published(name):
    expected = 20 if DESIGNS[name].source == "chamma" else N_USEFUL.get(name, 12)
    assert [draw(name, run)[2].sum() for run in range(3)] == [expected] * 3


def test_blocks_of_five_have_correlation_point_eight_within_and_none_between():
    corr = np.corrcoef(designs.blocks(40_000, np.random.default_rng(0)), rowvar=False)
    expected = np.kron(np.eye(10), np.full((5, 5), 0.8))
    np.fill_diagonal(expected, 1.0)
    np.testing.assert_allclose(corr, expected, atol=0.025)


def test_a_chain_has_correlation_point_six_to_the_distance():
    chain = designs.toeplitz(np.random.default_rng(0).normal(size=(40_000, 50)))
    lag = np.abs(np.subtract.outer(np.arange(50), np.arange(50)))
    np.testing.assert_allclose(np.corrcoef(chain, rowvar=False), 0.6**lag, atol=0.025)
    np.testing.assert_allclose(chain.std(axis=0), 1.0, atol=0.02)


@pytest.mark.parametrize(
    ("name", "terms"),
    [
        ("chamma_linear", lambda own: own),
        ("chamma_products", designs.products),
        ("chamma_both", lambda own: np.column_stack([own, designs.products(own)])),
    ],
)
def test_a_signal_four_times_its_noise_leaves_a_seventeenth_of_the_variance(name, terms):
    shares = []
    for run in range(5):
        X, y, useful = draw(name, run)
        shares.append(explained(terms(X[:, useful]), y))
    assert np.mean(shares) == pytest.approx(16 / 17, abs=0.01)


def test_weights_are_those_of_the_paper():
    X, y, useful = draw("chamma_linear")
    weights = np.linalg.lstsq(X[:, useful], y)[0]
    nearest = designs.EFFECTS[np.abs(np.subtract.outer(weights, designs.EFFECTS)).argmin(axis=1)]
    noise = np.sqrt(np.mean((X[:, useful] @ nearest) ** 2)) / 4
    # A column in its block of five: the inverse of .8 + .2·I has a diagonal of less than 5.
    assert np.abs(weights - nearest).max() < 4.5 * noise * np.sqrt(5 / len(y))
    assert set(np.abs(designs.EFFECTS)) == {0.5, 1, 2, 3}


def test_pairs_and_cubes_are_counted_as_combinatorics_says():
    X = np.random.default_rng(0).normal(size=(3, 20))
    assert designs.products(X).shape[1] == 190
    assert designs.cubic_terms(X[:, :12]).shape[1] == 12 + 78 + 364
    np.testing.assert_allclose(designs.products(X[:, :2])[:, 0], X[:, 0] * X[:, 1])
    x = X[:, :1]
    np.testing.assert_allclose(designs.cubic_terms(x), np.hstack([x, x**2, x**3]))


def test_the_rectified_target_is_zero_for_half_of_the_rows():
    zeros = [np.mean(draw("chamma_relu", run)[1] == 0) for run in range(5)]
    assert min(draw("chamma_relu")[1]) == 0
    assert np.mean(zeros) == pytest.approx(0.5, abs=0.05)


def test_classes_are_two_and_their_log_odds_are_linear_in_the_useful_columns():
    from sklearn.linear_model import LogisticRegression

    X, y, useful = draw("chamma_classes")
    assert set(y) == {0.0, 1.0}
    assert np.mean(y) == pytest.approx(0.5, abs=0.1)
    fit = LogisticRegression(C=1e6, max_iter=5000).fit(X, y)
    weights = np.abs(fit.coef_[0])
    assert weights[useful].mean() > 3 * weights[~useful].mean()


def test_a_useful_column_hides_behind_its_neighbour():
    X, y, useful = draw("semi_masked")
    (j,) = np.flatnonzero(useful)
    assert (X[:, j - 1] - X[:, j]).std() == pytest.approx(0.1, rel=0.15)
    assert (y - X[:, j]).std() == pytest.approx(0.5, rel=0.15)
    assert np.corrcoef(y - X[:, j], X[:, j - 1])[0, 1] == pytest.approx(0, abs=0.2)


def test_cosines_of_twelve_uniform_columns_have_variance_six():
    X, y, useful = draw("semi_cosines")
    assert np.abs(X).max() < np.pi
    assert X.std() == pytest.approx(np.pi / np.sqrt(3), rel=0.02)
    assert (y - np.cos(X[:, useful]).sum(axis=1)).std() == pytest.approx(0.2, rel=0.15)
    variances = [draw("semi_cosines", run)[1].var() for run in range(20)]
    assert np.mean(variances) == pytest.approx(12 / 2 + 0.2**2, rel=0.1)


def test_a_columns_spread_follows_y_but_its_mean_does_not():
    wide, narrow = [], []
    for run in range(20):
        X, y, useful = draw("semi_spread", run)
        x = X[:, useful][:, 0]
        wide.append(x[y > 0])
        narrow.append(x[y <= 0])
    wide, narrow = np.hstack(wide), np.hstack(narrow)
    assert wide.std() == pytest.approx(2.5, rel=0.05)
    assert narrow.std() == pytest.approx(1.0, rel=0.05)
    assert abs(wide.mean()) < 4 * 2.5 / np.sqrt(len(wide))


def test_the_threshold_adds_one_to_half_of_the_rows():
    y = np.hstack([draw("semi_threshold", run)[1] for run in range(20)])
    assert y.mean() == pytest.approx(0.5, abs=0.03)
    assert y.var() == pytest.approx(0.25 + 0.3**2, rel=0.05)


def test_heavy_columns_have_the_tails_of_a_t_distribution_and_the_first_twelve_matter():
    X, y, useful = draw("semi_heavy")
    np.testing.assert_array_equal(np.flatnonzero(useful), np.arange(12))
    left = y - X[:, useful] @ np.linalg.lstsq(X[:, useful], y)[0]
    assert left.std() * np.sqrt(300 / 288) == pytest.approx(1.0, rel=0.12)
    first = np.hstack([draw("semi_heavy", run)[0][:, 0] for run in range(20)])
    assert stats.kstest(first, stats.t(3).cdf).pvalue > 0.001


def test_the_wave_is_shared_and_the_square_is_only_in_the_alternative():
    for name, square in (("pcm_null", 0.0), ("pcm_alternative", 0.2)):
        X, y = many(name)
        wave = np.sin(2 * np.pi * X[:, 1])
        assert (X[:, 0] - wave).std() == pytest.approx(0.1, rel=0.03)
        assert (y - wave - square * X[:, 0] ** 2).std() == pytest.approx(1.0, rel=0.03)
        assert draw(name)[2].tolist() == [square > 0, True, *[False] * 6]


def test_a_test_that_knows_all_regressions_finds_the_square_in_16_percent_of_runs():
    """The best score is (y − E[y|Z])·h with h = E[y|x, Z] − E[y|Z], one-sided."""
    X, y = many("pcm_alternative", draws=400)
    wave, x = np.sin(2 * np.pi * X[:, 1]), X[:, 0]
    h = 0.2 * (x**2 - wave**2 - 0.1**2)
    scores = ((y - wave - 0.2 * (wave**2 + 0.1**2)) * h).reshape(400, 500)
    z = scores.mean(axis=1) / scores.std(axis=1) * np.sqrt(500)
    assert np.mean(z > stats.norm.isf(0.05)) == pytest.approx(0.16, abs=0.05)
    # h has variance .2²·(4·.1²·E wave² + 2·.1⁴), with E wave² = ½.
    assert h.var() == pytest.approx(0.04 * (0.02 + 0.0002), rel=0.03)
    assert stats.norm.sf(stats.norm.isf(0.05) - np.sqrt(500 * h.var())) == pytest.approx(
        0.16, abs=0.01
    )


@pytest.mark.parametrize("a", [2, 6, 12])
def test_x_and_y_follow_the_same_damped_wave(a):
    X, y = many(f"shah_peters_{a}")
    wave = np.exp(-(X[:, 1] ** 2) / 2) * np.sin(a * X[:, 1])
    assert (X[:, 0] - wave).std() == pytest.approx(1.0, rel=0.03)
    assert (y - wave).std() == pytest.approx(1.0, rel=0.03)
    assert abs(np.corrcoef(X[:, 0] - wave, y - wave)[0, 1]) < 4 / np.sqrt(len(y))


@pytest.mark.parametrize("n_z", [1, 5, 20])
def test_post_nonlinear_shapes_are_all_drawn(n_z):
    kinds = set()
    for run in range(40):
        _, y, useful = draw(f"post_nonlinear_{n_z}", run)
        assert useful.tolist() == [False] + [True] * n_z
        is_small = np.abs(y).max() <= 1
        kinds.add((y.min() < 0, is_small, stats.kurtosis(y) > 5))
    assert len(kinds) >= 4  # x, x², tanh and e^−|x| at least can be told apart


def test_the_double_robust_designs_differ_by_b_alone():
    """With s = c'Z + bx + .5N near normal of variance v, E cos s = exp(−v/2)."""
    X, y = many("double_null")
    v = 0.25 + 4 / (3 * 50)
    assert y.mean() == pytest.approx(np.exp(-v / 2), abs=0.005)
    assert np.abs(X[:, 0]).max() <= 1
    assert (~draw("double_null")[2])[0]
    X, y = many("double_alternative")
    assert np.corrcoef(X[:, 0] ** 2, y)[0, 1] < -0.1


# --- the command ----------------------------------------------------------------------------------


@pytest.fixture
def places(tmp_path, monkeypatch):
    store, page = tmp_path / "yardsticks.csv", tmp_path / "yardsticks.md"
    monkeypatch.setattr(yardsticks, "STORE", store)
    monkeypatch.setattr(yardsticks, "PAGE", page)
    return store, page


def test_a_tiny_run_is_stored_once_and_told_on_a_page(places):
    store, page = places
    command = ["--runs", "1", "--learner", "linear", "--only", "semi_heavy,shah_peters_2"]
    yardsticks.main(command)
    with store.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["design"] for row in rows] == ["semi_heavy"] * 3 + ["shah_peters_2"] * 3
    assert [row["method"] for row in rows[:3]] == ["gcm", "pcm", "gcm+pcm"]
    assert rows[0]["nulls"] == "38"
    assert rows[0]["useful"] == "12"
    assert float(rows[0]["power"]) > 0.3
    assert float(rows[0]["type_1"]) < 0.3
    assert rows[3]["power"] == ""
    text = page.read_text(encoding="utf-8")
    assert "| t₃ columns, linear | .030 / .80 | .055 / .55 | .049 / .32 | linear |" in text
    assert "1, smoke test" in text
    assert "nan" not in text
    before = store.read_bytes()
    yardsticks.main(command)
    assert store.read_bytes() == before
    page.unlink()
    yardsticks.main(["--page"])
    assert page.read_text(encoding="utf-8") == text


def test_a_page_of_an_empty_store_has_all_sources_and_what_was_chosen(places):
    _, page = places
    yardsticks.main(["--page"])
    text = page.read_text(encoding="utf-8")
    assert text.count("what was chosen where a text is silent") == 3
    functions = {getattr(design.draw, "func", design.draw) for design in DESIGNS.values()}
    assert text.count("Chosen: ") == len(functions)


def test_what_was_written_behind_the_tables_stays(places):
    _, page = places
    yardsticks.main(["--page"])
    page.write_text(page.read_text(encoding="utf-8") + "\n## What stands out\n\nA loss.\n", "utf-8")
    text = page.read_text(encoding="utf-8")
    yardsticks.main(["--page"])
    assert page.read_text(encoding="utf-8") == text
    assert text.endswith("-->\n\n## What stands out\n\nA loss.\n")


def test_an_unknown_design_is_named(places):
    with pytest.raises(SystemExit, match="nonsense"):
        yardsticks.main(["--only", "nonsense"])


def test_rates_and_their_errors_are_those_of_the_binomial_or_between_runs():
    # 400 of 1,000 with one decision a run: the usual formula, but for what was added.
    shares = np.repeat([1.0, 0.0], [400, 600])
    assert yardsticks.monte_carlo_error(shares, 1) == pytest.approx(np.sqrt(0.24 / 1000), rel=0.01)
    # Runs that differ as a whole: their spread counts, not the number of decisions.
    whole = np.array([0.0, 1.0])
    assert yardsticks.monte_carlo_error(whole, 1000) == pytest.approx(0.5)
    # Five runs that agree are no proof.
    assert yardsticks.monte_carlo_error(np.ones(5), 1) > 0.1
    assert yardsticks.rate(np.array([np.nan]), 0) == "–"


def test_warnings_are_counted_over_false_findings():
    line = yardsticks.Line("d", "auto", 0, "gcm", 0.25, 1.0, 8, 1, 0.5, 0.25, 1.0)
    none = yardsticks.Line("d", "auto", 1, "gcm", 0.0, 1.0, 8, 1, np.nan, 0.75, 1.0)
    assert yardsticks.warned([line, none]) == "1 of 2; 50%"


# --- few runs of what people use ------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", ["semi_cosines", "semi_spread", "semi_heavy", "semi_masked"])
def test_auto_has_a_third_of_the_best_published_power_at_least_and_keeps_its_level(name):
    design = DESIGNS[name]
    lines = [yardsticks.measure_one(design, "auto", run)[-1] for run in range(3)]
    best = max(power for _, power in design.published.values())
    assert np.mean([line.type_1 for line in lines]) <= 0.12
    assert np.mean([line.power for line in lines]) >= best / 3


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["shah_peters_2", "shah_peters_6", "shah_peters_12", "double_null", "pcm_null"]
)
def test_auto_rejects_few_true_nulls_of_one_x(name):
    """A valid test rejects 4 or more of 15 in one of 180 designs."""
    lines = [yardsticks.measure_one(DESIGNS[name], "auto", run)[-1] for run in range(15)]
    assert sum(line.type_1 for line in lines) < 4
