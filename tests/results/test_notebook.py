"""A result shows itself in a notebook, at a prompt and in a paper; long runs show a bar."""

import io
import re
import sys
from html import escape

import numpy as np
import pandas as pd
import pytest

import covaria
from covaria.execution import progress as shown
from covaria.plots import axes
from covaria.results.notebook import EDGE, MOST_ROWS, WIDTH, page

PLOTS = ("forest", "p_values", "quality", "cost")


@pytest.fixture(scope="module")
def result():
    X, y = covaria.draw("linear", n_rows=200, seed=1)
    X = {f"x{j}": X[f"x{j}"] for j in (1, 2, 3)} | {"50% of a_b & <b>x</b>": X["x8"]}
    return covaria.assess(X, y, learner="linear", methods=["gcm", "loco"])


def test_a_notebook_shows_the_table_with_its_forest_plot(result):
    html = result._repr_html_()
    assert html.count("<svg") == len(result.features)
    assert html.count("<circle") == len(result.features)
    assert "<b>x</b>" not in html
    assert result.headline.split("'")[0] in html


def test_points_of_the_forest_lie_where_their_effects_are(result):
    html = result._repr_html_()
    gcm = result.table[result.table["method"] == "gcm"].set_index("feature")
    largest = gcm["effect"].abs().idxmax()
    own = html[html.index(f">{escape(largest)}</td>") :]
    x = float(own.split('cx="')[1].split('"')[0])
    assert (x > 90) == (gcm.loc[largest, "effect"] > 0)


def test_whole_intervals_are_drawn(result):
    """The end beyond the largest effect had been cut off."""
    html = result._repr_html_()
    gcm = result.only("gcm").table
    ends = [float(x) for x in re.findall(r' x2="([^"]+)" y1="8', html)]
    furthest = gcm[["effect_low", "effect_high"]].abs().to_numpy().max()
    shares = (np.array(ends) - WIDTH / 2) / (WIDTH / 2 - EDGE)
    in_order = gcm.set_index("feature").loc[result.verdicts["feature"], "effect_high"]
    np.testing.assert_allclose(shares * furthest, in_order, atol=0.01 * furthest)


def test_many_features_are_counted(result):

    frame = pd.DataFrame({"feature": [f"x{j}" for j in range(MOST_ROWS + 5)], "verdict": "–"})
    assert "and 5 more features" in page("Many.", frame, [], [], "two-sided")


@pytest.mark.parametrize("kind", PLOTS)
def test_a_result_draws_itself(result, kind):
    assert result.plot(kind).figure is not None


def test_a_picture_that_is_not_there_is_answered_with_the_nearest(result):
    with pytest.raises(covaria.InputError, match="Did you mean 'forest'"):
        result.plot("forrest")


def test_pictures_at_a_prompt_are_those_of_pyplot(result, monkeypatch):
    from matplotlib import pyplot

    before = len(pyplot.get_fignums())
    result.plot()
    assert len(pyplot.get_fignums()) == before
    monkeypatch.setattr(axes, "is_interactive", lambda: True)
    drawn = result.plot()
    assert len(pyplot.get_fignums()) == before + 1
    pyplot.close(drawn.figure)


def test_a_summary_has_the_answer_and_how_it_came(result):
    text = result.summary()
    assert result.headline in text
    assert "seed 0" in text
    assert repr(text) == str(text)


def test_latex_has_every_name_escaped(result):
    text = result.to_latex(label="tab:x")
    assert r"50\% of a\_b \& \textless{}b\textgreater{}x\textless{}/b\textgreater{}" in text
    assert text.count(r"\\") == 1 + len(result.features)
    assert r"\label{tab:x}" in text
    assert text.count("{") == text.count("}")


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_no_bar_is_shown_where_nobody_looks(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with shown.watched(None) as heard:
        assert heard is None


def test_a_terminal_shows_a_bar_unless_it_is_told_not_to(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(shown, "PATIENCE", -1.0)
    with shown.watched(False) as heard:
        assert heard is None
    with shown.watched(None) as heard:
        heard(1, 2)
        heard(2, 2)
    assert "2/2" in sys.stderr.getvalue()


def test_a_notebook_shows_a_line_that_goes(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    monkeypatch.setattr(shown, "in_notebook", lambda: True)
    monkeypatch.setattr(shown, "PATIENCE", -1.0)
    X, y = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60.0) % 7
    covaria.assess(X, y, learner="linear", methods="gcm")
    assert "\rfitting " in sys.stderr.getvalue()
    assert sys.stderr.getvalue().endswith(" \r")


def test_a_short_run_shows_nothing(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(shown, "PATIENCE", 1e9)
    with shown.watched(None) as heard:
        heard(1, 2)
    assert sys.stderr.getvalue() == ""


def test_a_function_hears_of_progress_as_before():
    with shown.watched(print) as heard:
        assert heard is print
