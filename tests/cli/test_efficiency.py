"""The commands about efficiency, as a person types them."""

import json

import pytest

import covaria
from covaria.cli.app import main


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("cli") / "pilot.csv"
    X, y = covaria.draw("linear", n_rows=600, seed=0, noise=1.0)
    X.assign(y=y).to_csv(path, index=False)
    return str(path)


def run(monkeypatch, capsys, *words):
    monkeypatch.setattr("sys.argv", ["covaria", *words])
    with pytest.raises(SystemExit) as left:
        main()
    said = capsys.readouterr()
    return left.value.code or 0, said.out, said.err


def test_efficiency_gives_advice_for_every_feature(table, monkeypatch, capsys, tmp_path):
    picture = tmp_path / "e.svg"
    words = ("efficiency", table, "--target", "y", "--learner", "linear")
    code, out, _ = run(monkeypatch, capsys, *words, "--plot", str(picture))
    assert code == 0
    assert "Trust GCM: LOCO needs" in out
    assert picture.exists()
    code, out, _ = run(monkeypatch, capsys, *words, "--json")
    rows = json.loads(out)
    assert len(rows) == 20
    assert rows[7]["feature"] == "x8"
    assert rows[7]["are"] > 1


def test_plan_tells_the_rows_needed(table, monkeypatch, capsys, tmp_path):
    picture = tmp_path / "p.png"
    words = ("plan", table, "--target", "y", "--power", ".8", "--learner", "linear")
    code, out, _ = run(monkeypatch, capsys, *words, "--json", "--plot", str(picture))
    rows = {(row["method"], row["feature"]): row["rows"] for row in json.loads(out)}
    assert code == 0
    assert 10 < rows["gcm", "x8"] < 30
    assert picture.exists()


def test_theory_gives_the_numbers_of_the_theorem(monkeypatch, capsys):
    words = ("theory", "linear", "--beta", "1", "--sigma", "1", "--rho", ".5")
    code, out, _ = run(monkeypatch, capsys, *words, "--json")
    assert code == 0
    assert json.loads(out)[0]["are_gcm_loco"] == pytest.approx(2.2)
    code, out, _ = run(monkeypatch, capsys, "theory", "b")
    assert "0.7856" in out


def test_theory_lists_the_errata(monkeypatch, capsys):
    code, out, _ = run(monkeypatch, capsys, "theory", "errata", "7")
    assert code == 0
    assert "0.2019" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("theory", "liner"), "linear"),
        (("theory", "linear", "--df", "3"), "--df"),
        (("theory", "errata", "99"), "no erratum"),
        (("theory", "linear", "--sigma", "-1"), "noise"),
        (("efficiency", "nowhere.csv", "--target", "y"), "nowhere.csv"),
    ],
)
def test_bad_words_get_one_sentence(words, said, monkeypatch, capsys):
    code, _, err = run(monkeypatch, capsys, *words)
    assert code == 2
    assert said in err
    assert "Traceback" not in err
