"""The engine of surfaces: all models of a fold share the curves of its columns and pairs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from covaria.execution.threads import one_thread
from covaria.learners import Fit, Surfaces
from covaria.learners.estimators import Model
from covaria.learners.estimators.surfaces import SurfacesModel, Table
from covaria.nuisance.engines import plain
from covaria.nuisance.plan import Outcome, Plan, Task

# So many models of y, each without a feature, are worth one more with all of them.
WORTH_A_FULL_MODEL = 3


@dataclass(frozen=True)
class Prepared(Surfaces):
    """Surfaces over the columns of one fold's training rows."""

    table: Table | None = field(default=None, compare=False, repr=False)

    def model(self, fit: Fit) -> Model:
        return SurfacesModel(n_classes=fit.n_classes, table=self.table, columns=fit.columns)


def supports(plan: Plan) -> bool:
    """Return whether it can serve the plan: always."""
    return True


def cut_by(plan: Plan) -> str:
    """Return how a plan may be cut: the model of y on all columns spares others of y."""
    return "needs"


def run(plan: Plan) -> list[Outcome]:
    """Return the outcome of every task, in the order of the plan."""
    found: dict[Task, Outcome] = {}
    with one_thread():  # the same bits on any number of cores
        for fold in range(len(plan.folds)):
            tasks = [task for task in plan.tasks if task.fold == fold]
            found |= _of_fold(plan, fold, tasks) if tasks else {}
            if plan.progress:
                plan.progress(len(found), len(plan.tasks))
    return [found[task] for task in plan.tasks]


def _of_fold(plan: Plan, fold: int, tasks: list[Task]) -> dict[Task, Outcome]:
    train = plan.folds[fold][0]
    weights = None if plan.data.weights is None else plan.data.weights[train]
    learner = Prepared(table=Table(plan.inputs[train], weights))
    shared = replace(plan, learner=learner, progress=None)
    found = _spared(shared, tasks)
    part = replace(shared, only=frozenset(task for task in tasks if task not in found))
    return found | dict(zip(part.tasks, plain.run(part), strict=True))


def _spared(plan: Plan, tasks: list[Task]) -> dict[Task, Outcome]:
    """Return the models of y without features that the model on all columns did not even try."""
    rest = [task for task in tasks if task.need == "y_given_rest"]
    full = Task("y_given_all", tasks[0].fold)
    if len(rest) < WORTH_A_FULL_MODEL or full in tasks:
        return {}
    outcome = plain.fit_task(replace(plan, needs=frozenset({"y_given_all"})), full)
    same = Outcome(outcome.prediction, seconds=outcome.seconds / len(rest), models=0)
    spared = {task: same for task in rest if task.feature in outcome.unused}
    first = dict.fromkeys(list(spared)[:1], replace(same, models=1))
    return spared | first
