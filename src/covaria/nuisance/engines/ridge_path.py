"""The engine of the ridge that chooses its penalty: one eigendecomposition a fold for all models.

With S = Z'Z the products of the scaled columns and P = (S + λ)⁻¹, the ridge of a target t without
column j has the slopes β − P_j β_j / P_jj, where β = P Z't. So its error, and the degrees of
freedom it uses, come from P's diagonal, the lengths of its columns and a few sums over eigenvalues,
at any penalty λ. Nothing is decomposed again for a feature.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

import numpy as np

from covaria.execution.threads import one_thread
from covaria.learners.estimators.wide import PENALTIES, Scaling, best_penalty
from covaria.nuisance.engines import plain
from covaria.nuisance.plan import Array, Outcome, Plan, Task

SERVED = frozenset({"y_given_all", "y_given_rest", "x_given_rest"})
# Eigenvalues below this share of the largest are rounding.
ROUNDING = 1e-12


def supports(plan: Plan) -> bool:
    """Return whether predictions are all that is asked for."""
    return plan.needs <= SERVED


def cut_by(plan: Plan) -> str:
    """Return how a plan may be cut: all models of a fold share a decomposition."""
    return "folds"


def run(plan: Plan) -> list[Outcome]:
    """Return the outcome of every task, in the order of the plan."""
    found: dict[Task, Outcome] = {}
    with one_thread():  # the same bits on any number of cores
        for fold, tasks in groupby(plan.tasks, key=lambda task: task.fold):
            found |= _of_fold(plan, fold, list(tasks))
            if plan.progress:
                plan.progress(len(found), len(plan.tasks))
    return [found[task] for task in plan.tasks]


def _of_fold(plan: Plan, fold: int, tasks: list[Task]) -> dict[Task, Outcome]:
    quick = [task for task in tasks if _is_quick(plan, task)]
    found = {task: plain.fit_task(plan, task) for task in tasks if task not in set(quick)}
    if quick:
        predictions = Space.of(plan, fold).predictions(plan, quick)
        for task, own in zip(quick, predictions.T, strict=True):
            shape = (-1, 1) if task.need == "x_given_rest" else (-1,)
            found[task] = (
                Outcome(np.ascontiguousarray(own).reshape(shape))
                if np.isfinite(own).all()
                else plain.fit_task(plan, task)
            )
    return found


def _is_quick(plan: Plan, task: Task) -> bool:
    """Return whether one column, and no more, is left out, for one target of numbers."""
    if plan.data.classes and task.need != "x_given_rest":
        return False
    if task.need == "y_given_all":
        return True
    owned, n_columns = plan.data.features[task.feature].columns, plan.data.X.shape[1]
    has_one = task.need == "y_given_rest" or len(plan.targets_of(task.feature)) == 1
    return len(owned) == 1 and has_one and n_columns > 1


@dataclass(frozen=True)
class Space:
    """The scaled columns of a fold's training rows by their eigenvectors."""

    fold: int
    scaling: Scaling
    Z: Array
    values: Array  # the eigenvalues of Z'Z that are not zero
    axes: Array  # (columns, eigenvalues)

    @classmethod
    def of(cls, plan: Plan, fold: int) -> Space:
        train = plan.folds[fold][0]
        weights = None if plan.data.weights is None else plan.data.weights[train]
        scaling = Scaling.of(plan.inputs[train], weights)
        Z = scaling.apply(plan.inputs[train])
        is_tall = Z.shape[0] >= Z.shape[1]
        values, axes = np.linalg.eigh(Z.T @ Z if is_tall else Z @ Z.T)
        known = values > ROUNDING * max(values.max(initial=0.0), 1e-300)
        values, axes = values[known], axes[:, known]
        return cls(fold, scaling, Z, values, axes if is_tall else Z.T @ axes / np.sqrt(values))

    def predictions(self, plan: Plan, tasks: list[Task]) -> Array:
        """Return what the models predict for the test rows, a column a task."""
        train, test = plan.folds[self.fold]
        targets = np.column_stack([_target(plan, task)[train] for task in tasks])
        means, targets = self.scaling.centred(targets)
        left_out = [_left_out(plan, task) for task in tasks]
        w = self.axes.T @ (self.Z.T @ targets)
        mixes = np.empty_like(w)
        for at, j in enumerate(left_out):
            total = float(targets[:, at] @ targets[:, at])
            mixes[:, at] = self._mix(w[:, at], j, total)
        slopes = self.axes @ mixes
        for at, j in enumerate(left_out):
            if j is not None:
                slopes[j, at] = 0.0
        Z = (plan.inputs[test] - self.scaling.center) / self.scaling.scale
        return np.asarray(means + Z @ slopes)

    def _mix(self, w: Array, j: int | None, total: float) -> Array:
        """Return the weights of the axes in the slopes of a target without column j.

        The slope of that column itself, which is zero, may be off where columns outnumber rows.
        """
        own = np.zeros_like(w) if j is None else self.axes[j]
        n_rows, sizes = len(self.Z), self.values.sum()
        if j is not None:
            sizes -= self.Z[:, j] @ self.Z[:, j]
        if not sizes > ROUNDING * self.values.sum():
            return np.zeros_like(w)  # nothing varies but column j
        beyond = 0.0 if len(w) == len(self.axes) or j is None else max(0.0, 1 - own @ own)
        penalties = PENALTIES * sizes
        once = 1 / (self.values[:, None] + penalties)
        pull, length = own**2 @ once + beyond / penalties, own**2 @ once**2 + beyond / penalties**2
        share = np.zeros_like(pull) if j is None else (own * w) @ once / _positive(pull)
        # What is left of the target along each axis, and beyond all of them.
        roots = np.sqrt(self.values)
        left = once * ((w / roots)[:, None] * penalties + (roots * own)[:, None] * share)
        missed = max(0.0, total - float(np.square(w / roots).sum()))
        used = self.values @ once
        if j is not None:
            used = used - 1 + penalties * length / _positive(pull)
        best = best_penalty(missed + np.square(left).sum(axis=0), used, n_rows)
        mix = (w - share[best] * own) * once[:, best]
        return np.asarray(mix + share[best] / penalties[best] * own if beyond else mix)


def _positive(values: Array) -> Array:
    return np.maximum(values, 1e-300)


def _target(plan: Plan, task: Task) -> Array:
    if task.need == "x_given_rest":
        return np.asarray(plan.x_targets[:, plan.targets_of(task.feature)[0]])
    return plan.data.y


def _left_out(plan: Plan, task: Task) -> int | None:
    """Return the column that a model may not use."""
    return None if task.need == "y_given_all" else plan.data.features[task.feature].columns[0]
