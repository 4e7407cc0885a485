"""A learner is one class in LEARNERS, as CONTRIBUTING.md says: everything else finds it there."""

import json
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from typer.testing import CliRunner

import covaria
from covaria.cli.app import app
from covaria.execution.cost import Ledger
from covaria.execution.executors import Serial
from covaria.learners import LEARNERS, Learner, get_learner
from covaria.learners.estimators import as_targets
from covaria.nuisance import fit
from covaria.report.words import snippet


class Cutting(Serial):
    """An executor that cuts plans as one of several workers does, and runs all of it here."""

    def is_awake(self, *, wanted):
        return True


class HalvesModel:
    """The mean of the target on either side of a column's median, averaged over some columns.

    They are those whose two means differ most, so many as the setting says.
    """

    def __init__(self, *, columns, n_classes=0):
        self.columns, self.n_classes = columns, n_classes

    def fit(self, X, y, weights=None):
        w = np.ones(len(X)) if weights is None else weights
        targets, self.middle_ = as_targets(y, self.n_classes), np.median(X, axis=0)
        above = self._above(X)
        sides = [w[:, None] * side for side in (~above, above)]
        self.means_ = [side.T @ targets / np.maximum(side.sum(axis=0), 1e-9)[:, None]
                       for side in sides]  # fmt: skip
        apart = np.abs(self.means_[1] - self.means_[0]).sum(axis=1)
        best = np.argsort(-apart, kind="stable")[: self.columns]
        self.used_ = np.isin(np.arange(X.shape[1]), best)
        return self

    def _above(self, X):
        return np.greater(X, self.middle_)

    def predict(self, X):
        above = self._above(X)[:, :, None]
        found = np.where(above, self.means_[1], self.means_[0])[:, self.used_].mean(axis=1)
        return found / found.sum(axis=1, keepdims=True) if self.n_classes else found[:, 0]


@dataclass(frozen=True)
class Halves(Learner):
    """A learner that nobody has heard of."""

    name: ClassVar[str] = "halves"
    about: ClassVar[str] = "means of halves"
    says_used: ClassVar[bool] = True
    columns: int = 1

    def model(self, fit):
        return HalvesModel(columns=self.columns, n_classes=fit.n_classes)


@pytest.fixture
def throwaway(monkeypatch):
    monkeypatch.setitem(LEARNERS, "halves", Halves)


@pytest.fixture
def table():
    X = np.random.default_rng(0).normal(size=(150, 3))
    return X, X[:, 0] + np.random.default_rng(1).normal(size=150)


def test_it_is_taken_by_its_name_with_its_settings(throwaway):
    assert get_learner("halves(columns=2)") == Halves(columns=2)
    with pytest.raises(covaria.InputError, match="columns"):
        get_learner("halves(colums=2)")


@pytest.mark.parametrize("classes", [0, 2, 3])
def test_every_method_that_takes_any_learner_takes_it(throwaway, table, classes):
    X, y = table
    y = np.digitize(y, [0.0, 1.0][: classes - 1]).astype(str) if classes else y
    methods = "gcm,pcm,loco,dropout,permutation"
    result = covaria.assess(X, y, learner="halves(columns=3)", methods=methods, splits=3)
    assert set(result.table["status"]) == {"ok"}
    assert "x0" in result.selected["gcm"]
    assert set(result.quality["learner"]) == {"Halves(columns=3)"}


def test_its_setting_reaches_the_model(throwaway, table):
    one, two = (
        covaria.assess(*table, learner=f"halves(columns={columns})", methods="gcm", check=False)
        for columns in (1, 2)
    )
    assert not np.allclose(one.residuals["y_given_rest"], two.residuals["y_given_rest"])


def test_as_many_models_are_fitted_whole_as_in_parts(monkeypatch, table):
    """Two of three columns are not used, so that models without them are spared in both."""
    monkeypatch.setattr(fit, "_stays", lambda *_: False)
    plan = covaria.prepare(*table, learner=Halves(), methods="loco", splits=3).plan(0)
    ledgers = [Ledger(), Ledger()]
    for ledger, executor in zip(ledgers, (None, Cutting(n_workers=2)), strict=True):
        list(fit.run_plan(replace(plan, ledger=ledger, executor=executor)))
    # In each fold one model on all columns, and one without the column that it used.
    assert [ledger.models for ledger in ledgers] == [6, 6]


def test_it_is_stored_and_repeated(throwaway, table, tmp_path):
    result = covaria.assess(*table, learner=Halves(columns=2), methods="gcm")
    result.to_json(tmp_path / "result.json")
    read = covaria.Result.from_json(tmp_path / "result.json")
    assert read.settings["learner"] == Halves(columns=2)
    assert "learner=Halves(columns=2)" in snippet(result)


def test_it_may_be_a_candidate_of_auto(throwaway, table):
    learner = covaria.learners.Auto(candidates=("mean", "halves"))
    result = covaria.assess(*table, learner=learner, methods="gcm", check=False)
    assert "Halves(columns=1)" in set(result.quality["learner"])


def test_the_commands_list_it(throwaway):
    listed = json.loads(CliRunner().invoke(app, ["learners", "--json"]).stdout)
    assert any({"halves", "means of halves"} <= set(row.values()) for row in listed)
