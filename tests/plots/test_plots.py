"""Pictures draw what the tables say, and the same picture is the same bytes."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import covaria
from covaria import InputError, assess, plots


@pytest.fixture(scope="module")
def result(small_data):
    return assess(*small_data, learner="linear", methods=["gcm", "loco"])


@pytest.fixture(scope="module")
def stable(small_data):
    return covaria.stability(*small_data, method=["gcm", "loco"], learner="linear")


@pytest.fixture(scope="module")
def pictures(result, stable):
    model = covaria.scenario("additive")
    return {
        "efficiencies": lambda: plots.efficiencies(covaria.efficiency(result)),
        "power": lambda: plots.power_curves(covaria.power_at(result, [50, 100, 1000]), power=0.8),
        "theory": lambda: plots.theory_bars(covaria.theory.table(model)),
        "forest": lambda: plots.forest(result),
        "p_values": lambda: plots.p_values(result),
        "residuals": lambda: plots.residuals(result, "x0"),
        "quality": lambda: plots.quality(result),
        "cost": lambda: plots.cost(result),
        "stability": lambda: plots.stability(stable),
    }


NAMES = ["efficiencies", "power", "theory", "forest", "p_values", "residuals", "quality", "cost",
         "stability"]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["svg", "png"])
def test_the_same_picture_is_the_same_bytes(name, kind, pictures, tmp_path):
    first, again = (plots.save(pictures[name](), tmp_path / f"{k}.{kind}") for k in range(2))
    assert first.read_bytes() == again.read_bytes()
    assert len(first.read_bytes()) > 1000


def test_a_point_lies_at_its_efficiency(result):
    table = covaria.efficiency(result)
    ax = plots.efficiencies(table)
    known = table[table["are"].notna() & (table["are"] > 0)]
    drawn = sorted(x for line in ax.containers for x in line[0].get_xdata())
    assert drawn == pytest.approx(sorted(known["are"]))


def test_names_with_dollars_are_names(small_data, tmp_path):
    X, y = small_data
    frame = pd.DataFrame(X, columns=["a$b$", "价格", "c_d^e", "<x>"])
    table = covaria.efficiency(assess(frame, y, learner="linear"))
    plots.save(plots.efficiencies(table), tmp_path / "odd.svg")


def test_curves_are_drawn_on_the_axes_given(result):
    ax = plots.axes.new_axes()
    assert plots.power_curves(covaria.power_at(result, [50, 100]), ax=ax) is ax
    with pytest.raises(InputError, match="power_at"):
        plots.power_curves(covaria.efficiency(result))


def test_an_unknown_kind_of_file_gets_a_sentence(result, tmp_path):
    with pytest.raises(InputError, match=r"must end in"):
        plots.save(plots.efficiencies(covaria.efficiency(result)), tmp_path / "x.bmp")


def test_a_forest_shows_effects_and_intervals_where_they_are(result):
    ax = plots.forest(result, "loco")
    own = result.table[result.table["method"] == "loco"]
    drawn = sorted(x for line in ax.containers for x in line[0].get_xdata())
    assert drawn == pytest.approx(sorted(own["effect"]))
    ends = [
        x for line in ax.containers for bar in line[2] for s in bar.get_segments() for x in s[:, 0]
    ]
    # LOCO's test has one side: its interval is open above, and no arm is drawn there.
    assert sorted(ends) == pytest.approx(sorted([*own["effect_low"], *own["effect"]]))


def test_selections_without_a_test_have_a_forest_without_intervals(small_data, tmp_path):
    chosen = assess(*small_data, learner="linear", methods=["lasso"])
    plots.save(plots.forest(chosen), tmp_path / "lasso.svg")
    plots.save(plots.p_values(chosen), tmp_path / "p.svg")


def test_p_values_show_every_test_and_the_level(result):
    ax = plots.p_values(result, alpha=0.01)
    lines = ax.get_lines()
    assert [line.get_label() for line in lines[:2]] == ["gcm", "loco"]
    assert lines[2].get_xdata()[0] == 0.01
    gcm = result.table[result.table["method"] == "gcm"].set_index("feature")["p_adjusted"]
    order = list(result.verdicts["feature"])
    assert list(lines[0].get_xdata()) == pytest.approx(list(gcm[order].clip(lower=1e-16)))
    left, right = ax.get_xlim()
    assert left > right  # clearer to the right


def test_residuals_are_drawn_as_they_are(result):
    line = plots.residuals(result, "x1").get_lines()[0]
    assert list(line.get_xdata()) == list(result.residuals["x_given_rest"][:, 1])
    assert list(line.get_ydata()) == list(result.residuals["y_given_rest"][:, 1])


@pytest.mark.parametrize(
    ("draw", "said"),
    [
        (lambda r: plots.residuals(r, "x9"), "no feature 'x9'"),
        (
            lambda r: plots.residuals(r.__class__(**{**vars(r), "residuals": {}}), "x0"),
            "no residuals",
        ),
        (lambda r: plots.forest(r, "gmc"), "Did you mean 'gcm'"),
        (lambda r: plots.p_values(r, alpha=2), "alpha=2"),
        (lambda r: plots.stability(r), "covaria.stability"),
    ],
)
def test_what_cannot_be_drawn_gets_a_sentence(draw, said, result):
    with pytest.raises(InputError, match=said):
        draw(result)


def test_names_of_any_script_and_any_length_can_be_drawn(small_data, tmp_path):
    import pandas as pd

    from hostile_strings import HOSTILE

    rng = np.random.default_rng(0)
    names = ["价格", "цена", "τιμή", "מחיר", "कीमत", "ราคา", *HOSTILE]
    frame = pd.DataFrame(rng.normal(size=(200, len(names))), columns=names)
    odd = assess(frame, frame["价格"] + rng.normal(size=200), learner="linear")
    plots.save(plots.p_values(odd, most=30), tmp_path / "odd.png")
    plots.save(plots.forest(odd, most=70), tmp_path / "odd.svg")
    text = (tmp_path / "odd.svg").read_text(encoding="utf-8")
    assert "价格" in text
    assert "<script>" not in text


def test_colours_differ_for_eyes_that_lack_a_cone():
    # Viénot, Brettel and Mollon (1999): what is left of a colour without red or green cones.
    from itertools import combinations

    from matplotlib.colors import to_rgb

    from covaria.plots.saving import COLOURS

    protan = np.array([[0.11238, 0.88762, 0], [0.11238, 0.88762, 0], [0.00401, -0.00401, 1]])
    deutan = np.array([[0.29275, 0.70725, 0], [0.29275, 0.70725, 0], [-0.02234, 0.02234, 1]])
    for seen in (np.eye(3), protan, deutan):
        shown = [seen @ np.array(to_rgb(c)) ** 2.2 for c in COLOURS]
        assert min(np.abs(a - b).max() for a, b in combinations(shown, 2)) > 0.04


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_shows_the_picture(name, pictures):
    assert pictures[name]()._repr_png_().startswith(b"\x89PNG")


def test_a_notebook_shows_panels_of_studies_too():
    table = pd.DataFrame(
        {"learner": ["a", "b"], "method": "gcm", "feature": "x", "frequency": [0.5, 1.0]}
    )
    assert plots.selection_rates(table)._repr_png_().startswith(b"\x89PNG")
    part = pd.DataFrame({"method": ["gcm"], "feature": ["x"], "p_mean": [0.5], "p_sd": [0.1]})
    assert plots.p_value_panels({"a": part})._repr_png_().startswith(b"\x89PNG")


def test_what_ipython_displays_is_the_picture(result):
    formatters = pytest.importorskip("IPython.core.formatters")
    shown, _ = formatters.DisplayFormatter().format(plots.forest(result))
    assert shown["image/png"].startswith(b"\x89PNG")


def test_axes_of_the_users_own_are_drawn_on_and_given_back(result):
    from matplotlib.figure import Figure

    own = Figure().add_subplot()
    assert plots.forest(result, ax=own) is own


def test_pictures_leave_no_window_open(result):
    plots.forest(result)._repr_png_()
    done = subprocess.run(
        [sys.executable, "-c", "import sys, covaria.plots; print('matplotlib' in sys.modules)"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == "False"
    from matplotlib import pyplot

    assert pyplot.get_fignums() == []
