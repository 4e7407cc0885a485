"""Plans handed to engines: to the soonest, or to several where regressions chose learners.

A plan's executor gets it in parts. What comes back is the same for any parts, and any executor.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from covaria.errors import InputError, short
from covaria.execution.cost import Ledger
from covaria.execution.executors import MOST_IN_A_ROW, Died, Executor, Unsendable, each
from covaria.learners import Estimator, Learner
from covaria.nuisance.engines import plain
from covaria.nuisance.parts import parts_of
from covaria.nuisance.plan import Array, Outcome, Plan, Progress, Remembers, Task

# The engines of learners that have one.
ENGINES = {
    "boosting": "boosting",
    "kernel": "kernel",
    "linear": "linear",
    "mean": "mean",
    "network": "network",
    "predictions": "given",
    "ridge": "linear",
    "ridge_path": "ridge_path",
    "splines": "splines",
    "surfaces": "surfaces",
}
# Those whose engines draw once for all models of a fold.
DRAWING = frozenset({"boosting", "network"})
# What a given model of y serves, and what a learner of y alone.
OF_MODEL, OF_Y = frozenset({"y_given_all"}), frozenset({"y_given_all", "y_given_rest"})
# What asks a model of rows in which a feature has other values.
ALTERED = frozenset({"y_dropped", "y_permuted"})
# Those among them, and those that choose among them, that are slow without numba.
COMPILED = frozenset({"auto", "boosting", "forest", "kernel", "network"})
# What stays in this process where a plan is sent to another.
NOT_SENT: dict[str, Any] = {"progress": None, "ledger": None, "executor": None, "memory": None}


class Engine(Protocol):
    """A module below `engines`."""

    __name__: str

    def supports(self, plan: Plan) -> bool:
        """Return whether it has a fast way for the plan."""
        ...

    def cut_by(self, plan: Plan) -> str:
        """Return how workers may share it."""
        ...

    def run(self, plan: Plan) -> Iterable[Outcome]:
        """Return the outcomes of all tasks, in the order of the plan."""
        ...


def engine_for(plan: Plan) -> Engine:
    """Return the engine that fits the plan soonest; the plain one fits any.

    Fast engines are compiled by numba. Where it is missing the plain engine serves.
    """
    if plan.learner.name not in ENGINES or _draws_apart(plan):
        return plain
    try:
        engine = importlib.import_module(f"covaria.nuisance.engines.{ENGINES[plan.learner.name]}")
    except ImportError:
        return plain
    if plan.data.rule is not None and plan.needs & ALTERED and plan.learner.is_linear:
        return plain  # by the linear form a square has another feature's part at once
    return engine if engine.supports(plan) else plain


def run_plan(plan: Plan, *, plainly: bool = False) -> Iterable[Outcome]:
    """Return the outcomes of all tasks, in the order of the plan."""
    if plan.full is not None:
        return _run_beside(replace(plan, full=None), plan.full, OF_MODEL, plainly)
    if plan.of_y is not None:
        return _run_beside(replace(plan, of_y=None), plan.of_y, OF_Y, plainly)
    if plan.choices is not None:
        return _run_mixed(plan, plainly)
    if plan.memory is not None and not plan.memory.is_full and not plainly:
        return _remembered(plan, plan.memory)
    return _run_one(plan, plainly)


def _run_one(plan: Plan, plainly: bool = False) -> Iterable[Outcome]:
    """Return the outcomes of all tasks of one learner, wherever they are fitted."""
    if plan.executor is None:
        return _run_here(plan, plainly)
    return _spread(plan.executor, [Part(plan, plainly)], plan.progress)[0]


def _remembered(plan: Plan, memory: Remembers) -> Iterator[Outcome]:
    """Yield the outcomes of all tasks of one learner, of which some may be known."""
    known = _known(plan)
    if not known:
        outcomes = []
        for outcome in _run_one(plan):
            outcomes.append(outcome)
            yield outcome
        memory.keep(plan, outcomes)
        return
    new = [task for task in plan.tasks if task not in known]
    part = replace(plan, only=frozenset(new))
    fresh = by_task(part, _run_one(part)) if new else {}
    memory.keep(part, fresh)
    found = known | fresh
    yield from (found[task] for task in plan.tasks)


def _known(plan: Plan) -> dict[Task, Outcome]:
    """Return what a run before has found of a plan's tasks.

    Not a model of y whose unused features are still to be left out: beside it that costs nothing.
    """
    found = plan.memory.known(plan) if plan.memory else {}
    without = {t.fold for t in plan.tasks if t.need == "y_given_rest" and t not in found}
    return {
        task: kept
        for task, kept in found.items()
        if isinstance(kept, Outcome) and not (kept.unused and task.fold in without)
    }


def _run_here(plan: Plan, plainly: bool) -> Iterable[Outcome]:
    """Return the outcomes of all tasks of one learner, fitted in this process."""
    if _draws_apart(plan) and not plainly:
        return _run_apart(plan)
    engine = plain if plainly else engine_for(plan)
    if plan.ledger is None:
        outcomes: Iterable[Outcome] = engine.run(plan)
        return outcomes
    return _charged(plan, plan.ledger, engine)


def _draws_apart(plan: Plan) -> bool:
    """Return whether every model makes random draws of its own."""
    return plan.learner.name in DRAWING and not plan.shared_randomness


def _run_apart(plan: Plan) -> Iterator[Outcome]:
    """Yield the outcome of every task, each with a seed of its own, from the fast engine."""
    for done, task in enumerate(plan.tasks, start=1):
        own = replace(
            plan, only=frozenset([task]), shared_randomness=True, own_seed=plan.task_seed(task),
            progress=None,
        )  # fmt: skip
        for outcome in _run_here(own, plainly=False):
            # A model that leaves out an unused feature would draw anew, and differ.
            yield replace(outcome, unused=frozenset())
        if plan.progress:
            plan.progress(done, len(plan.tasks))


def _run_beside(
    plan: Plan, other: Learner, needs: frozenset[str], plainly: bool
) -> Iterator[Outcome]:
    """Yield the outcome of every task, where another learner, or a given model, serves some."""
    tasks = frozenset(plan.tasks)
    of_other = frozenset(task for task in tasks if task.need in needs)
    parts = [(other, None, of_other), (plan.learner, plan.choices, tasks - of_other)]
    found: dict[Task, Outcome] = {}
    for learner, choices, own in parts:
        if not own:
            continue
        part = replace(plan, learner=learner, choices=choices, only=own)
        for task, outcome in by_task(part, run_plan(part, plainly=plainly)).items():
            found[task] = replace(outcome, learner=outcome.learner or str(learner))
    yield from (found[task] for task in plan.tasks)


def along(plan: Plan, counts: Sequence[int]) -> dict[Task, list[Array]]:
    """Return for every task what boosting predicts while it has so many trees."""
    memory, trees = plan.memory, tuple(counts)
    known = memory.known(plan, trees) if memory else {}
    new = frozenset(plan.tasks) - known.keys()
    part = replace(plan, only=new) if known else plan
    fresh = _along(part, trees) if new else {}
    if memory:
        memory.keep(part, fresh, trees)
    found = known | fresh
    return {task: list(found[task]) for task in plan.tasks}  # type: ignore[arg-type]


def _along(plan: Plan, counts: tuple[int, ...]) -> dict[Task, list[Array]]:
    if plan.executor is None:
        return _along_here(plan, counts)
    found = _spread(plan.executor, [Part(plan, counts=counts)])[0]
    return dict(zip(plan.tasks, found, strict=True))


def _along_here(plan: Plan, counts: Sequence[int]) -> dict[Task, list[Array]]:
    from covaria.nuisance.engines import boosting

    start = time.perf_counter()
    found = boosting.along(plan, counts)
    if plan.ledger:
        models = sum(plan.models(task) for task in found)
        plan.ledger.charge(plan.purpose, plan.learner.name, models, time.perf_counter() - start)
    return found


def _charged(plan: Plan, ledger: Ledger, engine: Engine) -> Iterator[Outcome]:
    """Yield the outcomes, and charge the models and the time that each took."""
    at, start = 0, time.perf_counter()
    for outcome in engine.run(plan):
        models = outcome.models
        if models is None:
            models = sum(plan.models(task) for task in plan.tasks[at : at + outcome.count])
        at += outcome.count
        ledger.charge(plan.purpose, plan.learner.name, models, time.perf_counter() - start)
        yield outcome
        start = time.perf_counter()
    ledger.charge(plan.purpose, plan.learner.name, 0, time.perf_counter() - start)


def _run_mixed(plan: Plan, plainly: bool) -> Iterator[Outcome]:
    """Yield the outcome of every task, by the learners that its regression chose."""
    if plan.executor is not None:
        yield from _mixed(plan, plan.tasks, plainly)
        return
    for fold in range(len(plan.folds)):
        yield from _mixed(plan, [task for task in plan.tasks if task.fold == fold], plainly)
        if plan.progress:
            plan.progress(sum(task.fold <= fold for task in plan.tasks), len(plan.tasks))


def _mixed(plan: Plan, tasks: list[Task], plainly: bool) -> Iterator[Outcome]:
    """Yield the outcome of some tasks; the executor gets those of all learners at once."""
    asked = _by_learner(plan, tasks)
    found = {one: {} if plainly else _kept(plan, one, own) for one, own in asked.items()}
    new = {one: frozenset(own) - found[one].keys() for one, own in asked.items()}
    parts = [
        Part(replace(plan, learner=one, choices=None, only=own, progress=None), plainly)
        for one, own in new.items()
        if own
    ]
    outcomes: Sequence[Iterable[Outcome]]
    if plan.executor is None:
        outcomes = [_run_here(part.plan, plainly) for part in parts]
    else:
        outcomes = _spread(plan.executor, parts, plan.progress, len(plan.tasks))
    for part, own in zip(parts, outcomes, strict=True):
        fresh = by_task(part.plan, own)
        found[part.plan.learner] |= fresh
        if plan.memory and not plainly:
            plan.memory.keep(part.plan, fresh)
    yield from (_blended(plan, task, found) for task in tasks)


def _kept(plan: Plan, learner: Learner, tasks: list[Task]) -> dict[Task, Outcome]:
    """Return what was fitted already when learners were compared, or in a run before."""
    known = _known(replace(plan, learner=learner, choices=None, only=frozenset(tasks)))
    if plan.choices is None or plan.targets is not None:
        return known
    kept = plan.choices.kept
    return known | {task: Outcome(kept[task, learner]) for task in tasks if (task, learner) in kept}


def _by_learner(plan: Plan, tasks: list[Task]) -> dict[Learner, list[Task]]:
    found: dict[Learner, list[Task]] = {}
    for task in tasks:
        for learner, _ in plan.blend(task):
            found.setdefault(learner, []).append(task)
    return found


def _blended(plan: Plan, task: Task, found: dict[Learner, dict[Task, Outcome]]) -> Outcome:
    """Return the weighted mean of what a task's learners found, or the reason if one failed."""
    blend = plan.blend(task)
    outcomes = [found[learner][task] for learner, _ in blend]
    label = " + ".join(
        str(learner) if len(blend) == 1 else f"{weight:.2f} {learner}" for learner, weight in blend
    )
    failed = [outcome for outcome in outcomes if outcome.failure]
    if failed:
        return replace(failed[0], learner=label)
    weights = [weight for _, weight in blend]
    prediction = _weighted([outcome.prediction for outcome in outcomes], weights)
    if prediction is not None:
        # Curves of many waves run wild where a training part has no rows.
        prediction = plan.within_reach(task, prediction)
    if len(blend) == 1:
        return replace(outcomes[0], prediction=prediction, learner=label)
    return Outcome(
        prediction=prediction,
        direction=_weighted([outcome.direction for outcome in outcomes], weights),
        dropped=_losses(plan, task, prediction, outcomes, weights, "dropped"),
        permuted=_losses(plan, task, prediction, outcomes, weights, "permuted"),
        seconds=sum(outcome.seconds for outcome in outcomes),
        learner=label,
    )


def _losses(
    plan: Plan,
    task: Task,
    prediction: Array | None,
    outcomes: list[Outcome],
    weights: list[float],
    name: str,
) -> Array | None:
    """Return losses without each feature: what it costs several learners on average, on top."""
    losses = [getattr(outcome, name) for outcome in outcomes]
    if prediction is None or any(array is None for array in losses):
        return None
    test = plan.folds[task.fold][1]
    found = np.tile(plan.data.loss(prediction, test)[:, None], losses[0].shape[1])
    for outcome, weight, array in zip(outcomes, weights, losses, strict=True):
        assert outcome.prediction is not None
        found += weight * (array - plan.data.loss(outcome.prediction, test)[:, None])
    return np.maximum(found, 0.0)


def _weighted(arrays: list[Array | None], weights: list[float]) -> Array | None:
    if arrays[0] is None:
        return None
    parts = (weight * array for weight, array in zip(weights, arrays, strict=True))  # type: ignore[operator]
    return np.asarray(sum(parts))


def by_task(plan: Plan, outcomes: Iterable[Outcome]) -> dict[Task, Outcome]:
    """Return an outcome for each task, where one may have answered several."""
    found: dict[Task, Outcome] = {}
    for outcome in outcomes:
        tasks = plan.tasks[len(found) : len(found) + outcome.count]
        if outcome.count == 1 and outcome.left is None:
            found[tasks[0]] = outcome
            continue
        predictions = _rows_of(plan, tasks, outcome)
        for task, prediction in zip(tasks, predictions, strict=True):
            found[task] = Outcome(prediction, seconds=outcome.seconds / outcome.count)
    return found


def _rows_of(plan: Plan, tasks: list[Task], outcome: Outcome) -> list[Array]:
    """Return the prediction of each task from those of several."""
    is_y, test = tasks[0].need[0] == "y", plan.folds[tasks[0].fold][1]
    owned = [list(plan.targets_of(task.feature)) for task in tasks]
    prediction = outcome.prediction
    if outcome.left is not None:
        columns = [column for own in owned for column in own]
        target = plan.data.y[test] if is_y else plan.x_targets[test][:, columns].T
        prediction = target - outcome.left
    assert prediction is not None
    if is_y:
        return list(prediction)
    return [part.T for part in np.split(prediction, np.cumsum([len(own) for own in owned])[:-1])]


# --- in parts, on an executor -------------------------------------------------------------------

# What takes fewer seconds is not worth sending, and what takes fewer than these not worth cutting.
SHORTEST, SHORT = 0.002, 0.01
# Workers are called for work of so many seconds; where nobody knows, of as many numbers seen.
WORTH_CALLING, MANY_NUMBERS = 0.5, 1e7


@dataclass(frozen=True)
class Part:
    """Some tasks of a plan; with counts, what boosting predicts with so many trees is asked for."""

    plan: Plan
    plainly: bool = False
    counts: tuple[int, ...] = ()

    @property
    def engine(self) -> Engine:
        return plain if self.plainly else engine_for(self.plan)

    @property
    def is_foreign(self) -> bool:
        """Return whether the learner is not ours, and may bring its process down."""
        return isinstance(self.plan.learner, Estimator)

    @cached_property
    def rows_learned(self) -> float:
        """Return the training rows of all models together."""
        plan = self.plan
        return sum(plan.models(task) * len(plan.folds[task.fold][0]) for task in plan.tasks)

    @cached_property
    def kind(self) -> str:
        """Return what parts of about the same pace have in common."""
        needs = sorted({task.need for task in self.plan.tasks})
        return f"{self.plan.learner} {needs} {self.counts}"

    def of(self, plan: Plan) -> Part:
        """Return the same of another plan, as it can be sent."""
        return replace(self, plan=replace(plan, **NOT_SENT))


@dataclass(frozen=True)
class Fitted:
    """What came of a part: outcomes in the order of its tasks, and what they cost."""

    outcomes: list[Any]
    cost: tuple[tuple[str, str, int, float], ...] = ()
    seconds: float = 0.0


def fit_part(part: Part) -> Fitted:
    """Return what comes of a part, in whatever process this is."""
    ledger, start = Ledger(), time.perf_counter()
    plan = replace(part.plan, ledger=ledger)
    if part.counts:
        found = _along_here(plan, part.counts)
        outcomes: list[Any] = [found[task] for task in plan.tasks]
    else:
        outcomes = list(_run_here(plan, part.plainly))
    cost = tuple((*key[1:], *row) for key, row in ledger.rows.items())
    return Fitted(outcomes, cost, time.perf_counter() - start)


def _spread(
    executor: Executor, wholes: list[Part], progress: Progress | None = None, total: int = 0
) -> list[list[Any]]:
    """Return the outcomes of each plan, in the order of its tasks, from all workers at once."""
    start = time.perf_counter()
    cut = [_cut(executor, whole) for whole in wholes]
    parts = [part for some in cut for part in some]
    all_tasks = sum(len(part.plan.tasks) for part in parts)
    total, done = total or all_tasks, 0
    fitted: dict[int, Fitted] = {}
    for place, found in _fitted(executor, parts):
        fitted[place] = found
        _note(executor, parts[place], found)
        done += len(parts[place].plan.tasks)
        if progress:
            progress(done * total // all_tasks, total)
    every = iter([fitted[place] for place in range(len(parts))])
    joined = [
        _joined(whole.plan, [(part.plan, next(every)) for part in some])
        for whole, some in zip(wholes, cut, strict=True)
    ]
    if wholes and (ledger := wholes[0].plan.ledger):
        ledger.passed += time.perf_counter() - start
    return joined


def _cut(executor: Executor, whole: Part) -> list[Part]:
    """Return a plan in parts, or as it is where it is short or workers are not worth calling."""
    engine, work = whole.engine, whole.rows_learned
    cut, pace = engine.cut_by(whole.plan), executor.pace.get(whole.kind)
    if pace is None:  # a first guess
        seconds, is_long = np.inf, work * whole.plan.data.X.shape[1] > MANY_NUMBERS
    else:
        seconds = pace * work
        is_long = executor.worked + seconds > WORTH_CALLING
    is_awake = executor.is_awake(wanted=whole.is_foreign or (is_long and bool(cut)))
    if not is_awake or seconds < SHORT:
        return [whole.of(whole.plan)]
    lanes = getattr(engine, "LANES", 1)
    return [whole.of(part) for part in parts_of(whole.plan, cut, executor.n_workers, lanes)]


def _fitted(executor: Executor, parts: list[Part]) -> Iterator[tuple[int, Fitted]]:
    """Yield the place of each part and what came of it: first those that stay in this process."""
    here = [at for at, part in enumerate(parts) if _stays(executor, part, len(parts))]
    for at in here:
        yield at, _here(executor, parts[at])
    # The longest first, so that nobody waits long for the last.
    away = sorted(set(range(len(parts))) - set(here), key=lambda at: -_guess(executor, parts[at]))
    yield from _sent(executor, parts, [at for at in away if not parts[at].is_foreign])
    yield from _sent_apart(executor, parts, [at for at in away if parts[at].is_foreign])


def _sent(executor: Executor, parts: list[Part], places: list[int]) -> Iterator[tuple[int, Fitted]]:
    """Yield what workers made of some parts with learners of ours; what dies is fitted here."""
    for place, value in _each(executor, [parts[at] for at in places]):
        at = places[place]
        yield at, _here(executor, parts[at]) if isinstance(value, Died) else value


def _sent_apart(
    executor: Executor, parts: list[Part], places: list[int]
) -> Iterator[tuple[int, Fitted]]:
    """Yield what workers made of some parts with learners that may bring their process down.

    Once one does, every task of what is left is sent by itself.
    """
    left: list[int] = []
    for place, value in _each(executor, [parts[at] for at in places], most_deaths=0):
        if isinstance(value, Died):
            left.append(places[place])
        else:
            yield places[place], value
    if left:
        yield from zip(left, _one_by_one(executor, [parts[at] for at in left]), strict=True)


def _stays(executor: Executor, part: Part, count: int) -> bool:
    """Return whether a part is fitted in this process: a learner of ours, and soon done."""
    is_short = count == 1 or _guess(executor, part) < SHORTEST
    is_short |= not part.engine.cut_by(part.plan)
    return not part.is_foreign and (is_short or not executor.is_awake(wanted=False))


def _guess(executor: Executor, part: Part) -> float:
    """Return how many seconds a part will take, by those of its kind."""
    return executor.pace.get(part.kind, 1.0) * part.rows_learned


def _here(executor: Executor, part: Part) -> Fitted:
    found = fit_part(part)
    executor.worked += found.seconds
    return found


def _each(
    executor: Executor, parts: list[Part], most_deaths: int = MOST_IN_A_ROW
) -> Iterator[tuple[int, Fitted | Died]]:
    """Yield the place of each part and what workers made of it."""
    for part in parts:
        for value in (part.plan.data, part.plan.folds, part.plan.targets):
            if value is not None:
                executor.share(value)
    try:
        yield from each(executor, fit_part, parts, most_deaths=most_deaths)
    except Unsendable as error:
        raise InputError(
            f"{parts[0].plan.learner} cannot be sent to other processes ({error}). Use n_jobs=1."
        ) from error


def _one_by_one(executor: Executor, parts: list[Part]) -> list[Fitted]:
    """Return what comes of parts where each task is sent by itself."""
    alone = [
        part.of(replace(part.plan, only=frozenset([task])))
        for part in parts
        for task in part.plan.tasks
    ]
    found: dict[int, Fitted] = {}
    for at, value in _each(executor, alone, most_deaths=plain.MOST_DEATHS):
        if executor.name == "Dask" and isinstance(value, Died):
            raise InputError(
                f"Fitting {short(str(alone[at].plan.learner))} fails on Dask again and again: the "
                "process that does it dies. Use another learner, or workers with more memory."
            )
        found[at] = _or_dead(value)
    every = iter([found[at] for at in range(len(alone))])
    return [_together([next(every) for _ in part.plan.tasks]) for part in parts]


def _together(every: list[Fitted]) -> Fitted:
    return Fitted(
        [outcome for one in every for outcome in one.outcomes],
        tuple(row for one in every for row in one.cost),
        sum(one.seconds for one in every),
    )


def _or_dead(value: Fitted | Died) -> Fitted:
    if isinstance(value, Fitted):
        return value
    return Fitted([Outcome(failure=plain.DIED if value.tried else plain.NOT_TRIED, models=0)])


def _note(executor: Executor, part: Part, found: Fitted) -> None:
    """Remember how long parts of a kind take."""
    now, before = found.seconds / max(1.0, part.rows_learned), executor.pace.get(part.kind)
    executor.pace[part.kind] = now if before is None else (now + before) / 2


def _joined(plan: Plan, parts: list[tuple[Plan, Fitted]]) -> list[Any]:
    """Return the outcomes of parts in the order of the plan, and charge what they cost."""
    place = {task: at for at, task in enumerate(plan.tasks)}
    every: list[tuple[int, Any]] = []
    for part, found in parts:
        at = 0
        for outcome in found.outcomes:
            every.append((place[part.tasks[at]], outcome))
            at += outcome.count if isinstance(outcome, Outcome) else 1
        if plan.ledger:
            for row in found.cost:
                plan.ledger.charge(*row, passed=0.0)
    return [outcome for _, outcome in sorted(every, key=lambda pair: pair[0])]
