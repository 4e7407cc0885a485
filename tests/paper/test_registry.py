"""The paper's figures: what theory says of Fig. 2, verdicts from known results, one page of all."""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from covaria.errors import InputError
from covaria.paper import figure, figures
from covaria.paper.assumption import DRAWN, FACED, ratios
from covaria.paper.evidence import Evidence
from covaria.paper.kept import Results, Stamp, read_results, write_results
from covaria.paper.page import page, write_page
from covaria.paper.registry import Verdict
from covaria.paper.run import Run, in_its_place
from covaria.paper.studies import DF, RHO, STUDIES
from covaria.studies import metrics

FIG2 = [0, 0, 0.896, 1.497, 1.001, 3.960, 1.0004, 1.338]
SIMULATED = ["theory", "fig1", "fig2", "fig3", "fig4", "fig5", "fig6", "fig7",
             "sfig1", "sfig2", "sfig3", "sfig4"]  # fmt: skip


@pytest.fixture(scope="module")
def fig2():
    return ratios(repeats=20, seed=0)


def test_the_ratios_of_fig2_are_those_of_theory(fig2):
    drawn = fig2[fig2["noise"] == DRAWN]
    assert drawn["theory"].tolist() == pytest.approx(FIG2, abs=6e-4)
    assert drawn["sigma"].tolist() == pytest.approx([0.1] * 8)
    error = drawn["sd"] / np.sqrt(20)
    # x6 is a cube: the plug-in of its eighth moment runs low, as all heavy-tailed means do.
    light = [0, 1, 2, 3, 4, 6, 7]
    gap = (drawn["mean"] - drawn["theory"]).abs().to_numpy()
    assert (gap[light] <= np.maximum(5 * error.to_numpy()[light], 0.02)).all()


def test_at_the_learners_error_every_ratio_but_the_even_ones_is_above_one(fig2):
    faced = fig2[fig2["noise"] == FACED]
    assert 2 < faced["sigma"].iloc[0] < 5  # spec B2-14: the mean squared error is about 11
    assert faced["theory"].to_numpy()[:2] == pytest.approx([0, 0], abs=1e-9)
    assert (faced["theory"].to_numpy()[2:] > 1).all()


def test_every_figure_and_table_of_the_paper_has_a_name():
    known = figures()
    assert [name for name in known if known[name].simulated] == SIMULATED
    real = {name for name in known if not known[name].simulated}
    assert real == {"fig8", "fig9", *(f"table{k}" for k in range(1, 7)),
                    *(f"sfig{k}" for k in range(5, 9))}  # fmt: skip
    assert all(known[name].make is not None for name in SIMULATED)
    with pytest.raises(InputError, match="Did you mean 'fig1'"):
        figure("figg1")


def test_the_simulations_have_the_papers_sizes():
    assert {name: s.repeats for name, s in STUDIES.items()} == {
        "boosting": 100, "kernel": 100, "surrogate": 50, "surrogate_network": 50,
        "heavy_tails": 50, "heavy_tails_network": 50, "network": 100, "wide_boosting": 50,
        "wide_kernel": 50, "canonical": 100, "surrogate_beta": 20, "heavy_tails_beta": 20,
        "surrogate_training": 20, "wide_rows": 10,
    }  # fmt: skip
    assert STUDIES["surrogate"].grid("paper")["scenario"][0]["rho"] == RHO
    assert STUDIES["heavy_tails"].grid("paper")["scenario"][0]["df"] == DF
    assert STUDIES["boosting"].grid("paper")["paper"] is True
    assert STUDIES["boosting"].grid("ours")["splits"] == 5


def test_draws_are_new_for_every_model_but_in_the_mode_that_shares_them():
    assert "shared_randomness" not in STUDIES["boosting"].grid("paper")  # the paper's default
    assert STUDIES["network"].grid("paper")["shared_randomness"] is False
    assert STUDIES["boosting"].grid("shared")["shared_randomness"] is True
    assert STUDIES["boosting"].grid("default")["learner"] == [{"name": "auto"}]
    assert "default" not in STUDIES["kernel"].modes  # it draws the rows of boosting


def known_runs(recall):
    """Return runs in which each method finds so many of 8 features in each repeat."""
    rows = []
    for method, found in recall.items():
        for repeat, tp in enumerate(found):
            counts = {"tp": tp, "fp": 0, "tn": 12, "fn": 8 - tp}
            rates = metrics.rates(*(np.array([float(n)]) for n in counts.values()))
            rows.append(
                {"scenario": "additive", "setting": "n_rows=9", "learner": "boosting",
                 "options": "paper", "repeat": repeat, "method": method, **counts,
                 **{name: float(v[0]) for name, v in rates.items()}, "failed": 0, "seconds": 1.0}
            )  # fmt: skip
    return pd.DataFrame(rows)


@pytest.mark.parametrize(
    ("gcm", "loco", "verdict", "numbers"),
    [
        ([8, 8, 8], [4, 4, 4], "held", "1.00 vs .500, paired difference .500 ± .00"),
        ([4, 4, 4], [8, 8, 8], "not held", ".500 vs 1.00, paired difference -.500 ± .00"),
        ([8, 0, 8], [4, 4, 4], "undecided", ".667 vs .500, paired difference .167 ± .333"),
        ([4, 4, 4], [4, 4, 4], "not held", ".500 vs .500, paired difference .00 ± .00"),
        ([8], [4], "undecided", "1.00 vs .500, paired difference .500 ± —"),
    ],
)
def test_a_difference_is_decided_by_two_standard_errors_of_paired_runs(gcm, loco, verdict, numbers):
    evidence = evidence_of({"gcm": gcm, "loco": loco})
    evidence.says("5.1", "GCM can identify more significant variables than LOCO")
    evidence.higher("recall", "gcm", "loco", "in (b)", scenario="additive")
    (claim,) = evidence.claims
    assert claim.text == "GCM has higher recall than LOCO in (b)"
    assert claim.numbers == numbers
    assert str(claim).endswith(verdict)
    assert (claim.id, claim.section) == ("fig1-1", "5.1")
    assert claim.quote.startswith("GCM can identify")


def evidence_of(recall, praised=""):
    return Evidence("fig1", Results(known_runs(recall)), praised)


def test_a_claim_keeps_its_id_where_others_have_nothing_to_be_judged_by():
    every = evidence_of({"gcm": [8, 7, 8], "loco": [4, 4, 4], "dropout": [2, 2, 3]})
    of_gcm = evidence_of({"gcm": [8, 7, 8], "loco": [4, 4, 4]}, praised="gcm")
    for evidence in (every, of_gcm):
        evidence.higher("recall", "gcm", ("loco", "dropout"), "in (b)", scenario="additive")
        evidence.higher("recall", "loco", "dropout", "in (b)", scenario="additive")
        evidence.at_least("recall", ["gcm"], "in (b)", 0.5, scenario="additive")
    assert [claim.id for claim in every.claims] == ["fig1-1", "fig1-2", "fig1-3", "fig1-4"]
    assert [claim.id for claim in of_gcm.claims] == ["fig1-1", "fig1-4"]


def test_times_of_our_programs_are_not_held_against_the_paper():
    evidence = evidence_of({"gcm": [4, 4], "loco": [4, 4]})
    evidence.higher("seconds", "gcm", "loco", "in (b)")
    assert evidence.claims[0].verdict is Verdict.OTHER


def test_the_default_stands_in_the_place_of_gcm_beside_the_rivals():
    rivals = Results(known_runs({"gcm": [1, 1], "loco": [2, 2]}))
    runs = known_runs({"gcm": [5, 5], "gcm+pcm": [7, 7]}).assign(learner="auto", options="5")
    found = in_its_place(Results(runs), rivals).runs
    means = found.groupby("method")["recall"].mean()
    assert means.to_dict() == {"gcm": 7 / 8, "loco": 2 / 8}
    assert set(found["learner"]) == {"boosting"}
    assert set(found["options"]) == {"paper"}


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """Return a run of the cheap simulations, two repeats each."""
    return Run(tmp_path_factory.mktemp("paper"), fast=True, repeats=2)


def test_a_figure_runs_draws_and_judges_and_resumes_what_it_has(quick):
    made = figure("fig3").make(quick)
    assert made.runs == 2
    assert len(made.claims) >= 20
    assert {"GCM", "LOCO", "lasso", "knockoff", "guess"} <= set(made.table["method"])
    assert made.draw() is not None
    stamp = quick.store("boosting").stat().st_mtime_ns
    again = figure("fig1").make(replace(quick, known={}))  # the same store, in a new session
    assert quick.store("boosting").stat().st_mtime_ns == stamp
    assert len({claim.id for claim in again.claims}) == len(again.claims) == 15
    assert all(claim.quote and claim.section for claim in again.claims)


def test_results_written_are_results_read(quick, tmp_path):
    found = quick.of("boosting")
    write_results(tmp_path, "boosting", "paper", found)
    stamp = Stamp.read((tmp_path / "boosting-paper.csv").read_text().splitlines()[0])
    assert (stamp.command, stamp.seed) == ("covaria paper fig3 --mode paper", 0)
    assert stamp.tasks == 8
    assert stamp.cpu_seconds > 0
    assert "torch" in stamp.versions
    back = read_results(tmp_path, "boosting", "paper")
    columns = ["scenario", "method", "repeat", *metrics.METRICS]
    pd.testing.assert_frame_equal(back.runs[columns], found.runs[columns], rtol=1e-5)
    first = found.runs.iloc[0]
    assert len(first["p_values"].split()) == 20
    assert len(first["chosen"].split()) == first["tp"] + first["fp"]
    stored = Run(tmp_path / "nowhere", results=tmp_path)
    claims = [str(claim) for claim in figure("fig1").make(quick).claims]
    assert [str(claim) for claim in figure("fig1").make(stored).claims] == claims
    for mode, name in (("ours", "fig1"), ("paper", "fig5"), ("paper", "table4")):
        with pytest.raises(InputError, match=f"in {mode} mode. Leave --results out to run it"):
            figure(name).make(replace(stored, mode=mode))
    assert not (tmp_path / "nowhere").exists()  # nothing was run


def test_pictures_have_the_same_bytes_each_time(quick, tmp_path):
    from covaria.plots import save

    made = figure("fig1").make(quick)
    one, two = (save(made.draw(), tmp_path / f"{k}.svg").read_bytes() for k in "ab")
    assert one == two


def test_the_page_lists_every_claim_and_a_quick_one_does_not_replace_a_full_one(quick, tmp_path):
    made = {"paper": {"fig1": figure("fig1").make(quick), "fig2": figure("fig2").make(quick)}}
    text = page(made, figures(), "covaria paper all --fast")
    claims = [claim for one in made["paper"].values() for claim in one.claims]
    for claim in claims:
        assert f"| {claim.id} | {claim.text} | " in text
        assert f"**{claim.verdict}**: {claim.numbers} |" in text
        assert f"> {claim.quote} (Section {claim.section})" in text
    assert f"| claims | {len(claims)} |" in text
    assert "- the paper's mode: 2 of 100 repeats (a smoke test)" in text
    path = tmp_path / "docs" / "reproduction.md"
    assert write_page(path, text, keep_fuller=True)
    assert write_page(path, "the full study", keep_fuller=False)
    assert not write_page(path, text, keep_fuller=True)
    assert path.read_text() == "the full study"


def test_the_command_lists_and_makes_figures(tmp_path):
    def covaria(*words):
        return subprocess.run(
            [sys.executable, "-m", "covaria", "paper", *words],
            cwd=tmp_path, capture_output=True, text=True, timeout=200, check=False,
        )  # fmt: skip

    listed = json.loads(covaria("list", "--json").stdout)
    assert [row["name"] for row in listed] == list(figures())
    done = covaria("fig2", "--fast")
    assert done.returncode == 0, done.stderr
    assert "fig2 (paper mode, 10 repeats): 7 claims: 6 held, 1 not held" in done.stdout
    assert "few repeats" in done.stdout
    assert (tmp_path / "covaria-paper" / "fig2-paper.svg").stat().st_size > 1000
    table = pd.read_csv(tmp_path / "covaria-paper" / "fig2-paper.csv")
    assert table["theory"].tolist()[:8] == pytest.approx(FIG2, abs=6e-4)
    wrong = covaria("fig99")
    assert wrong.returncode == 2
    assert wrong.stderr.count("\n") == 1
