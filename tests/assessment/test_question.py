"""One question: arrays, frames and names in, one answer out, and its level."""

import json
import sys
from dataclasses import FrozenInstanceError

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import binom

import covaria
from covaria import InputError, independence_test
from covaria.cli import app as cli

N_ROWS = 200


@pytest.fixture(scope="module")
def chain():
    """Return x ← z → y with an effect of x that is a square, and a kind that follows z."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(N_ROWS, 2))
    x = z[:, 0] + rng.normal(size=N_ROWS)
    frame = pd.DataFrame({"x": x, "z1": z[:, 0], "z2": z[:, 1]})
    frame["y"] = z[:, 0] + rng.normal(size=N_ROWS)
    frame["even"] = 0.7 * x**2 + rng.normal(size=N_ROWS)
    frame["kind"] = np.where(z[:, 0] + rng.normal(size=N_ROWS) > 0, "hut", "flat")
    return frame


def asked(*given, **options):
    return independence_test(*given, **{"learner": "linear", **options})


def test_the_answer_is_that_of_assess_for_this_feature(chain):
    found = asked(chain["x"], chain["y"], given=chain[["z1", "z2"]])
    table = covaria.assess(chain[["x", "z1", "z2"]], chain["y"], learner="linear").table
    own = table[table["feature"] == "x"].set_index("method")
    assert found.p_value == pytest.approx(own.loc["gcm+pcm", "p_value"], rel=1e-12)
    assert found.statistic == pytest.approx(own.loc["gcm+pcm", "statistic"], rel=1e-12)
    assert found.effect == pytest.approx(own.loc["gcm", "effect"], rel=1e-12)
    assert found.interval == pytest.approx(
        (own.loc["gcm", "effect_low"], own.loc["gcm", "effect_high"]), rel=1e-12
    )
    assert (found.method, found.effect_kind) == ("gcm+pcm", "partial correlation")


def test_two_regressions_are_all_that_gcm_takes(chain):
    found = asked(chain, "x", "y", given=["z1", "z2"], methods="gcm", check=False)
    assert int(found.results[0].cost["models"].sum()) == 2 * 5


def test_names_arrays_frames_and_lists_are_one_question(chain):
    first = asked(chain, "x", "y", given=["z1", "z2"])
    x, y, z = chain["x"], chain["y"], chain[["z1", "z2"]]
    every = [
        asked(x, y, given=z),
        asked(x.to_numpy(), y.to_numpy(), given=z.to_numpy()),
        asked(x.tolist(), y.tolist(), given=z.to_numpy().tolist()),
        asked(pl.Series("x", x.to_list()), pl.Series("y", y.to_list()), given=pl.DataFrame(z)),
        asked(pl.from_pandas(chain), "x", "y", given=("z1", "z2")),
        asked({name: chain[name].tolist() for name in chain}, "x", "y", given=["z1", "z2"]),
        asked(x.to_numpy()[:, None], y, given={"z1": z["z1"], "z2": z["z2"]}),
    ]
    assert {found.p_value for found in every} == {first.p_value}
    assert every[1].given == ("z1", "z2")


def test_without_given_it_is_plain_independence(chain):
    found = asked(chain, "x", "y")
    assert found.verdict == "matters"
    assert found.effect == pytest.approx(np.corrcoef(chain["x"], chain["y"])[0, 1], abs=0.02)
    assert asked(chain["x"], chain["z2"]).verdict == "no evidence"


def test_classes_and_several_columns_are_taken_as_they_come(chain):
    assert asked(chain, "x", "kind").verdict == "matters"
    assert asked(chain, "x", "kind", given="z1").verdict == "no evidence"
    assert asked(chain, "kind", "y").verdict == "matters"
    assert asked(chain, "kind", "y", given="z1").verdict == "no evidence"
    assert asked(chain, ["x", "kind"], "y").verdict == "matters"
    assert asked(chain, ["x", "z2"], "kind", given=["z1"]).x == ("x", "z2")


def test_an_even_effect_is_seen_by_the_second_look(chain):
    found = asked(chain, "x", "even", given=["z1", "z2"], learner="splines")
    assert found.verdict == "matters"
    assert found.robustness > 0
    assert asked(chain, "x", "even", given=["z1", "z2"], methods="gcm").verdict == "no evidence"


def test_of_several_columns_of_y_the_smallest_p_counts_as_often(chain):
    both = asked(chain, "x", ["y", "even"], given=["z1"], learner="splines")
    each = [asked(chain, "x", y, given=["z1"], learner="splines") for y in ("y", "even")]
    assert both.p_value == pytest.approx(min(1, 2 * min(one.p_value for one in each)))
    assert len(both.results) == 2
    assert both.headline == "One of 'y', 'even' or more depends on 'x' given 'z1'."


def test_the_record_is_frozen_and_says_what_it_found(chain):
    found = asked(chain, "x", "y")
    with pytest.raises(FrozenInstanceError):
        found.p_value = 0.0
    assert repr(found).startswith("'y' depends on 'x'.\ngcm+pcm: p = ")
    assert "partial correlation 0." in str(found)
    none = asked(chain, "x", "z2", given="z1")
    assert none.headline == "No evidence that 'z2' depends on 'x' given 'z1'."
    assert set(none.warnings) <= set(none.findings)
    assert not any(finding.kind == "some_features" for finding in none.findings)
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["verdict"] == "matters"


def test_weights_and_clusters_are_columns_or_values(chain):
    frame = chain.assign(w=np.linspace(1, 2, N_ROWS), c=np.arange(N_ROWS) // 4)
    named = asked(frame, "x", "y", given="z1", sample_weight="w", clusters="c")
    values = asked(
        frame["x"], frame["y"], given=frame[["z1"]], sample_weight=frame["w"], clusters=frame["c"]
    )
    assert named.p_value == values.p_value
    assert named.p_value != asked(frame, "x", "y", given="z1").p_value


def test_a_constant_x_or_one_that_given_determines_is_no_evidence(chain):
    assert asked(np.ones(N_ROWS), chain["y"]).p_value == 1
    twice = asked(chain["z1"] * 2, chain["y"], given=chain["z1"].rename("z"))
    assert twice.verdict == "no evidence"
    assert [finding.kind for finding in twice.findings] == ["determined"]


def test_the_first_test_decides_where_nothing_combines_them(chain):
    found = asked(chain["x"], chain["y"], given=chain[["z1"]], methods=["gcm", "loco"])
    assert found.method == "gcm"
    model = covaria.Prefit(lambda table: table["x"] + table["z1"], nuisance="linear")
    assert asked(chain, "x", "y", given=["z1"], learner=model).method == "pcm"


def test_what_explains_less_than_the_margin_is_said_to(chain):
    found = asked(chain, "z2", "y", given=["z1"], margin=0.2)
    assert found.verdict == "negligible"
    assert found.headline == (
        "'y' does not depend on 'z2' given 'z1' by as much as 20% of its variance."
    )
    both = asked(chain, "z2", ["y", "even"], given=["z1"], margin=0.2)
    each = [asked(chain, "z2", y, given=["z1"], margin=0.2).verdict for y in ("y", "even")]
    assert (both.verdict == "negligible") == (set(each) == {"negligible"})


def test_symmetric_sees_what_only_the_other_way_shows(chain):
    """even = x² + noise: x tells the mean of even, which tells nothing of the mean of x."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=N_ROWS)
    even = x**2 + rng.normal(size=N_ROWS)
    one_way, other = (asked(*pair, learner="splines") for pair in ((x, even), (even, x)))
    assert one_way.p_value < 0.001 < 0.05 < other.p_value
    both = [asked(*pair, learner="splines", symmetric=True) for pair in ((x, even), (even, x))]
    assert both[0].p_value == pytest.approx(both[1].p_value, rel=1e-9)
    assert both[0].p_value == pytest.approx(2 * one_way.p_value, rel=1e-9)
    assert [len(found.results) for found in both] == [2, 2]
    assert {found.verdict for found in both} == {"matters"}


def test_symmetric_takes_classes_and_several_columns(chain):
    found = asked(chain, ["x", "z2"], "kind", given=["z1"], symmetric=True)
    one_way = asked(chain, ["x", "z2"], "kind", given=["z1"])
    other = asked(chain, "kind", ["x", "z2"], given=["z1"])
    assert found.p_value == min(1, 2 * min(one_way.p_value, other.p_value))
    assert (found.x, found.y, len(found.results)) == (("x", "z2"), ("kind",), 3)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"margin": 0.1}, "margin is of y alone"),
        ({"loss": "absolute"}, "loss is of y alone"),
        ({"learner": covaria.Prefit(lambda table: table["x"])}, "A prefit model predicts y, not x"),
        ({"symmetric": "yes"}, "symmetric='yes' must be True or False"),
    ],
)
def test_what_is_of_y_alone_cannot_be_asked_both_ways(chain, options, said):
    with pytest.raises(InputError, match=said):
        asked(chain, "x", "y", given=["z1"], **{"symmetric": True, **options})


def test_dates_of_an_index_are_a_column(chain):
    days = pd.date_range("2024-01-01", periods=N_ROWS)
    by_index, by_hand = (asked(x, chain["y"]) for x in (days, pd.Series(days)))
    assert by_index.p_value == by_hand.p_value


def test_a_formula_asks_the_same_question(chain):
    pytest.importorskip("formulaic")
    found = asked("y ~ x + kind | z1 + z2", chain)
    plain = asked(chain, ["x", "kind"], "y", given=["z1", "z2"])
    assert (found.x, found.y, found.given) == (plain.x, plain.y, plain.given)
    assert found.p_value == plain.p_value
    assert asked("y ~ x", chain).given == ()
    beside = chain.assign(block=np.arange(N_ROWS) // 4)
    assert asked("y ~ x | .", beside, clusters="block").given == ("z1", "z2", "even", "kind")
    with pytest.raises(InputError, match="A formula says what is given"):
        asked("y ~ x", chain, given=["z1"])


@pytest.mark.parametrize(
    ("given", "options", "said"),
    [
        (("frame", "x", "why"), {}, "There is no column 'why'. Did you mean 'y'"),
        (("frame", "x", "x"), {}, "'x' is both x and y."),
        (("frame", "x", "y"), {"given": ["x"]}, "'x' is both x and given."),
        (("frame", [], "y"), {}, "x names no column."),
        (("x", "short"), {}, "x has 200 rows but y has 5."),
        (("x", "y"), {"given": np.zeros((2, N_ROWS))}, "np.column_stack(given)"),
        (("x", "moved"), {}, "different row labels"),
        (("x", "y", "z"), {}, "write independence_test(x, y, given=z)"),
        (("x", 3), {}, "y=3 must be a column or a table."),
        (("x", "text"), {}, "y='y' must be a column or a table. With names of columns write"),
        (("x", "y"), {"learners": "linear"}, "no option 'learners'. Did you mean 'learner'"),
        (("x", "y"), {"features": ["x"]}, "no option 'features'."),
        (("x", "y"), {"alpha": 2}, "alpha=2 must lie between 0 and 1."),
        (("x", "y"), {"methods": "lasso"}, "lasso has no p-value."),
        (("x", "same"), {}, "is the same in every row"),
        (("frame", "x", "y"), {"clusters": "k"}, "There is no column 'k' of clusters."),
    ],
)
def test_what_cannot_be_asked_is_one_sentence(chain, given, options, said):
    things = {
        "frame": chain,
        "short": [1, 2, 3, 4, 5],
        "moved": chain["y"].set_axis(range(1, N_ROWS + 1)),
        "text": "y",
        "same": np.ones(N_ROWS),
        **{name: chain[column].to_numpy() for name, column in (("y", "y"), ("z", "z1"))},
        "x": chain["x"].to_numpy() if "z" in given else chain["x"],
    }
    if given[0] == "x":
        given = [things[one] if isinstance(one, str) else one for one in given]
    else:
        given = [chain, *given[1:]]
    with pytest.raises(InputError) as error:
        asked(*given, **options)
    assert said in str(error.value)


@pytest.mark.parametrize("kinds", ["numbers", "classes", "several"])
def test_the_level_is_held_where_both_follow_z(kinds):
    rng = np.random.default_rng(7)
    rejected, draws = 0, 30
    for _ in range(draws):
        z = rng.normal(size=(150, 2))
        x, y = (np.sin(z[:, 0]) + rng.normal(size=150) for _ in range(2))
        x, y = {
            "numbers": (x, y),
            "classes": (np.where(x > 0, "a", "b"), np.where(y > 0, "c", "d")),
            "several": (np.column_stack([x, rng.normal(size=150)]), np.column_stack([y, -z[:, 1]])),
        }[kinds]
        found = independence_test(x, y, given=z, learner="splines", methods="gcm", check=False)
        rejected += found.verdict == "matters"
    # Above this of 30 a test of level .05 lands once in a thousand.
    assert rejected <= binom.isf(0.001, draws, 0.05)


def test_the_command_asks_it_of_a_file(chain, tmp_path, monkeypatch, capsys):
    chain.to_csv(tmp_path / "chain.csv", index=False)

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["covaria", "independence", *map(str, words)])
        with pytest.raises(SystemExit) as leaving:
            cli.main()
        return leaving.value.code or 0, *capsys.readouterr()

    shared = [tmp_path / "chain.csv", "--x", "x", "--y", "y", "--learner", "linear"]
    code, out, _ = run(*shared)
    assert code == 0
    assert out.startswith("'y' depends on 'x'.")
    code, out, _ = run(*shared, "--given", "z1,z2", "--json")
    found = json.loads(out)
    assert (found["verdict"], found["given"]) == ("no evidence", ["z1", "z2"])
    assert found["p_value"] == pytest.approx(asked(chain, "x", "y", given=["z1", "z2"]).p_value)
    code, _, err = run(*shared, "--given", "z3")
    assert code == cli.BAD_INPUT
    assert "There is no column 'z3'. Did you mean" in err


def test_the_event_of_a_time_is_a_column_of_the_frame():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(150, 2)), columns=["x", "z"])
    frame = frame.assign(time=rng.exponential(np.exp(-frame["x"])), event=1)
    asked = {"given": ["z"], "learner": "linear"}
    named = independence_test(frame, "x", "time", event="event", **asked)
    assert named.p_value == independence_test(
        frame, "x", "time", event=frame["event"].to_numpy(), **asked
    ).p_value  # fmt: skip
    assert named.verdict == "matters"
