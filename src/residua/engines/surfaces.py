"""The engine of surfaces: all models of a fold share the curves of its columns and pairs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from residua.engines import Outcome, Plan, Task, plain
from residua.estimators import Model
from residua.estimators.surfaces import SurfacesModel, Table
from residua.learners import Fit, Surfaces


@dataclass(frozen=True)
class Prepared(Surfaces):
    """Surfaces over the columns of one fold's training rows."""

    table: Table | None = field(default=None, compare=False, repr=False)

    def model(self, fit: Fit) -> Model:
        return SurfacesModel(n_classes=fit.n_classes, table=self.table, columns=fit.columns)


def supports(plan: Plan) -> bool:
    """Return whether it can serve the plan: always."""
    return True


def run(plan: Plan) -> list[Outcome]:
    """Return the outcome of every task, in the order of the plan."""
    found: dict[Task, Outcome] = {}
    for fold, (train, _) in enumerate(plan.folds):
        tasks = [task for task in plan.tasks if task.fold == fold]
        if not tasks:
            continue
        weights = None if plan.data.weights is None else plan.data.weights[train]
        learner = Prepared(table=Table(plan.inputs[train], weights))
        part = replace(plan, learner=learner, only=frozenset(tasks), n_jobs=1, progress=None)
        found |= dict(zip(part.tasks, plain.run(part), strict=True))
        if plan.progress:
            plan.progress(len(found), len(plan.tasks))
    return [found[task] for task in plan.tasks]
