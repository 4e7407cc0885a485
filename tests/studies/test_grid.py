"""A study file says what it means, or one sentence says what to mend."""

import numpy as np
import pytest

import covaria
from covaria.errors import InputError
from covaria.simulation.formulas import formula
from covaria.simulation.scenarios import add_scenario
from covaria.studies.grid import Source, read_grid

BASE = {
    "scenario": [{"name": "additive", "n_rows": 50}],
    "learner": [{"name": "linear"}],
    "methods": {"names": ["gcm"]},
}


def test_the_file_of_the_manual_is_read(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(
        """
        repeats = 100
        seed = 0
        paper = false
        [[scenario]]
        name = "surrogate"
        n_rows = 1000
        rho = [0, 0.5, 0.9]
        [[learner]]
        name = "boosting"
        trees = 100
        [methods]
        names = ["gcm", "loco", "dropout"]
        """
    )
    grid = read_grid(path)
    assert [cell.parameters["rho"] for cell in grid.cells] == [0, 0.5, 0.9]
    assert {cell.learner for cell in grid.cells} == {"boosting(trees=100)"}
    assert {cell.option for cell in grid.cells} == {"splits=5"}
    assert len(grid.tasks) == 300
    assert grid.methods == ("gcm", "loco", "dropout")


def test_lists_multiply_in_scenarios_learners_and_settings():
    grid = read_grid(
        {
            **BASE,
            "splits": [2, 5],
            "scenario": [{"name": "e", "n_rows": [50, 80], "rho": [0.0, 0.5, 0.9]}],
            "learner": [{"name": "linear", "ridge": [0.0, 1.0]}, {"name": "splines"}],
        }
    )
    assert len(grid.cells) == 2 * 6 * 3
    assert len({(c.source, c.learner, c.option) for c in grid.cells}) == 36
    assert grid.varied == ["n_rows", "rho"]


def test_a_learner_can_be_for_some_scenarios_and_hidden_layers_are_one_value():
    grid = read_grid(
        {
            **BASE,
            "scenario": ["a", "b"],
            "learner": [
                {"name": "linear", "scenarios": ["a"]},
                {"name": "network", "hidden": [8, 4], "scenarios": ["additive"]},
            ],
        }
    )
    found = [(cell.scenario, cell.learner) for cell in grid.cells]
    assert found == [("linear", "linear"), ("additive", "network(hidden=[8, 4])")]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"repeats": 0}, "repeats = 0 must be a whole number, 1 or more"),
        ({"repeat": 3}, "A study has no 'repeat'. Did you mean 'repeats'"),
        ({"scenario": []}, r"no scenario. Add \[\[scenario\]\]"),
        ({"scenario": [{"name": "aditive"}]}, "no scenario 'aditive'. Did you mean 'additive'"),
        ({"scenario": [{"name": "e", "rhoo": 1}]}, "no setting 'rhoo'. Did you mean 'rho'"),
        ({"scenario": [{"name": "e", "rho": "high"}]}, "rho='high' .* must be a number"),
        ({"scenario": [{"name": "e", "rho": []}]}, r"rho = \[\] has no value"),
        ({"scenario": [{"name": "a", "n_rows": 0}]}, "n_rows = 0 must be a whole number"),
        ({"learner": [{"name": "linaer"}]}, "no learner 'linaer'. Did you mean 'linear'"),
        ({"learner": [{"name": "linear", "ridg": 1}]}, "no setting 'ridg'. Did you mean 'ridge'"),
        ({"learner": [{"name": "linear", "scenarios": "c"}]}, "which the study does not have"),
        ({"methods": {"names": ["gmc"]}}, "no method 'gmc'. Did you mean 'gcm'"),
        ({"methods": {"name": ["gcm"]}}, r"\[methods\] has no 'name'"),
        ({"methods": ["lazy"]}, "lazy needs learner='network'"),
        ({"paper": True, "splits": 2}, "paper = true is in sample"),
        ({"correction": "bonf"}, "correction='bonf' is not known"),
        ({"scenario": [{"name": "m", "y": "x1 +"}]}, "cannot be read"),
        ({"scenario": [{"name": "m", "y": "__import__('os')"}]}, "may hold|is not|no function"),
        ({"scenario": [{"name": "m", "y": "x1.real"}]}, "may hold numbers"),
        ({"scenario": [{"name": "m", "y": "sinn(x1)"}]}, "no function 'sinn'. Did you mean 'sin'"),
        ({"scenario": [{"name": "m", "y": "2 + 1"}]}, "names no feature"),
        ({"scenario": [{"name": "m", "table": "no.csv", "target": "y"}]}, "no.csv"),
        ({"scenario": [{"name": "m", "table": "no.csv"}]}, "no target"),
        ({"scenario": [{"name": "m", "file": "no.py"}]}, "would run no.py: allow it"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_sentence(change, said):
    with pytest.raises(InputError, match=said) as raised:
        read_grid({**BASE, **change})
    assert "\n" not in str(raised.value)


def test_a_file_that_is_not_toml_is_one_sentence(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text("repeats == 3")
    with pytest.raises(InputError, match="is not a study file in TOML"):
        read_grid(path)
    with pytest.raises(InputError, match="cannot be opened"):
        read_grid(tmp_path / "other.toml")


def test_a_formula_is_the_model_it_says():
    model = formula(
        y="2 * sin(x1) - x2 * x3 + 1.5 * (x4 > 0) - 1", noise=0.5, n_features=6,
        correlation=[["x1", "x5", 0.6]],
    )  # fmt: skip
    X, _ = model.draw(200, seed=1)
    x = X.to_numpy()
    by_hand = 2 * np.sin(x[:, 0]) - x[:, 1] * x[:, 2] + 1.5 * (x[:, 3] > 0) - 1
    np.testing.assert_allclose(model.mean(x), by_hand)
    assert model.support == ["x1", "x2", "x3", "x4"]
    table = covaria.theory.table(formula(y="sin(x1) + 3 * x2", noise=0.1))
    expected = covaria.theory.table(covaria.Model([np.sin, lambda x: 3 * x], noise=0.1))
    np.testing.assert_allclose(table["A_ratio"], expected["A_ratio"])
    assert np.corrcoef(model.draw(20_000, seed=2)[0].to_numpy().T)[0, 4] == pytest.approx(
        0.6, abs=0.02
    )


def test_scenarios_of_a_users_own_run_from_a_file_a_formula_and_python(tmp_path):
    (tmp_path / "models.py").write_text(
        "import covaria\n\ndef bent(power=2, noise=1.0):\n"
        "    return covaria.Model([lambda x: x**power, lambda x: 0 * x], noise=noise)\n"
    )
    path = tmp_path / "study.toml"
    path.write_text(
        """
        repeats = 2
        splits = 2
        methods = ["gcm"]
        learner = ["linear"]
        [[scenario]]
        name = "bent"
        file = "models.py"
        power = [1, 3]
        n_rows = 60
        [[scenario]]
        name = "waves"
        y = "sin(x1) + x2"
        noise = 0.3
        n_features = 4
        n_rows = 60
        """
    )
    store = tmp_path / "study.sqlite"
    found = covaria.run_study(path, store=store, code=tmp_path / "models.py")
    assert not found.failures
    assert found.table["scenario"].tolist() == ["bent"] * 8 + ["waves"] * 8
    assert found.table["power"].tolist()[:8] == [1.0] * 4 + [3.0] * 4
    assert found.table.loc[found.table["scenario"] == "waves", "active"].tolist() == [
        True, True, False, False,
    ] * 2  # fmt: skip
    # The store has the text of the file: it resumes where the file is gone, and sees a change.
    (tmp_path / "models.py").unlink()
    covaria.studies.runner.resume_study(store, trust=True)
    (tmp_path / "models.py").write_text(
        "import covaria\n\ndef bent(power=2, noise=1.0):\n"
        "    return covaria.Model([lambda x: 2 * x**power, lambda x: 0 * x], noise=noise)\n"
    )
    with pytest.raises(InputError, match="the file of scenario 1 has changed: line 4 was"):
        covaria.run_study(path, store=store, trust=True)


def test_a_model_given_in_python_is_run_and_is_resumed_there(tmp_path):
    store = tmp_path / "study.sqlite"
    mine = {"name": "mine", "model": covaria.Model([1.0, 0.0, 0.0], noise=0.5), "n_rows": 50}
    study = {**BASE, "repeats": 2, "scenario": [mine]}
    found = covaria.run_study(study, store=store)
    assert found.table["active"].tolist() == [True, False, False] * 2
    with pytest.raises(InputError, match="was given in Python"):
        covaria.studies.runner.resume_study(store)
    changed = {**mine, "model": covaria.Model([2.0, 0.0, 0.0], noise=0.5)}
    with pytest.raises(InputError, match=r"data.mine n_rows=50 was \w+ and is"):
        covaria.run_study({**study, "scenario": [changed]}, store=store)


def test_names_of_the_paper_cannot_be_taken_by_others():
    for name in ("linear", "a", ""):
        with pytest.raises(InputError, match="taken or empty"):
            add_scenario(name, lambda: covaria.Model([1.0]))


@pytest.mark.parametrize("name", ["linear", "additive"])
def test_wide_copies_repeat_the_eight_features(name):
    grid = read_grid({**BASE, "scenario": [{"name": name, "copies": 5, "n_features": 500}]})
    model = Source(grid.cells[0]).model()
    assert model.active == tuple(range(40))
    narrow = covaria.scenario(name)
    X = np.zeros((3, 500))
    X[0, :8], X[1, 16:24] = np.arange(1, 9) / 4, np.arange(1, 9) / 4
    means = model.mean(X)
    one = narrow.mean(X[:1, :20])[0] - narrow.mean(np.zeros((1, 20)))[0]
    assert means[0] - means[2] == pytest.approx(one)
    assert means[1] == pytest.approx(means[0])
