"""One table on a Dask cluster: the data is sent once, every fold of every repeat is a task."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, fields
from typing import Any

from covaria.assessment import Job, prepare
from covaria.errors import InputError, short
from covaria.nuisance.fit import engine_for
from covaria.nuisance.plan import Outcome, Plan, Progress
from covaria.nuisance.residuals import Residuals, fit_residuals, gather, is_sound
from covaria.randomness import seed_of, stream
from covaria.results.result import Result
from covaria.studies.pools import DEAD, FAILED, GIVEN, client_of, outcomes, quiet, send
from covaria.tables.dataset import Rows

TRIES = 3
# Learners that look at all folds at once are fitted whole, as one task.
WHOLE = ("auto", "prefit")
EXTRA = {"f_given_rest", "square_given_rest", "y_conditional"}


def assess_on_dask(where: Any, X: Any, y: Any = None, **settings: Any) -> Result:
    """Return what `assess` returns, fitted on a cluster: an address, "local", or a client."""
    progress = settings.pop("progress", None)
    return run_on_dask(prepare(X, y, **settings), where, progress)


def run_on_dask(job: Job, where: Any, progress: Progress | None = None) -> Result:
    """Return the result of a run that has been checked; a worker that dies costs its folds only."""
    with client_of(where, max(2, job.n_jobs)) as client, quiet():
        plans = [job.plan(repeat) for repeat in range(job.options.repeats)]
        fitted = _fitted(client, job, plans, progress)
    return job.conclude(plans[0], fitted)


def _fitted(client: Any, job: Job, plans: list[Plan], progress: Progress | None) -> list[Residuals]:
    # A choice of learners, and targets that models suggest, need all folds in one place.
    if job.learner.name in WHOLE or any(plan.needs & EXTRA for plan in plans):
        wanted = [(repeat, -1) for repeat in range(len(plans))]
    else:
        wanted = [(r, fold) for r, plan in enumerate(plans) for fold in range(len(plan.folds))]
    found = _run(client, job, wanted, progress)
    return [_put_together(plan, r, found) for r, plan in enumerate(plans)]


def _put_together(plan: Plan, repeat: int, found: dict[tuple[int, int], Any]) -> Residuals:
    if (repeat, -1) in found:
        whole: Residuals = found[repeat, -1]
        return whole
    outcomes = [o for fold in range(len(plan.folds)) for o in found[repeat, fold]]
    residuals = gather(plan, outcomes)
    if not is_sound(residuals):
        return fit_residuals(plan)  # it says which fit failed
    from dataclasses import replace

    return replace(residuals, engine=engine_for(plan).__name__.rsplit(".", 1)[-1])


def _run(
    client: Any, job: Job, wanted: list[tuple[int, int]], progress: Progress | None
) -> dict[tuple[int, int], Any]:
    """Return the outcomes of every fold; what a dying worker took along is sent again."""
    found: dict[tuple[int, int], Any] = {}
    died: Counter[tuple[int, int]] = Counter()
    for at in range(TRIES):
        left = [key for key in wanted if key not in found]
        if not left or any(died[key] > 1 for key in left):
            break
        (sent,) = send(client, [job], again=at > 0)
        calls = {key: (_fit, sent, *key) for key in left}
        for key, outcome, value in outcomes(client, calls):
            if outcome == FAILED:
                value = _fit(job, *key)  # what is wrong shows itself here
            if outcome in (GIVEN, FAILED):
                found[key] = value
                if progress:
                    progress(len(found), len(wanted))
            elif outcome == DEAD:
                died[key] += 1
    for key in wanted:
        if key not in found:
            fold = f"fold {key[1] + 1} of repeat {key[0] + 1}" if key[1] >= 0 else "all folds"
            why = "the process that does it dies" if died[key] else "the cluster loses it"
            raise InputError(
                f"Fitting {short(str(job.learner))} to {fold} fails on Dask again and again: "
                f"{why}. Use another learner, or workers with more memory."
            )
    return found


@dataclass(frozen=True)
class OneFold(Plan):
    """A plan of one fold that keeps the seeds it has as the fold `at` of the whole plan."""

    at: int = 0

    def learner_seed(self, fold: int) -> int:
        """Return the seed of the fold in the whole plan."""
        return seed_of(self.seed, "learner", self.repeat, self.at)

    def shuffles(self, fold: int) -> list[Rows]:
        """Return the shuffles of the fold in the whole plan."""
        rng, n_rows = stream(self.seed, "permutation", self.repeat, self.at), len(self.folds[0][1])
        return [rng.permutation(n_rows).astype(int) for _ in range(self.permutations)]


def _fit(job: Job, repeat: int, fold: int) -> list[Outcome] | Residuals:
    """Return the outcomes of one fold, or what a whole repeat left over; runs on a worker."""
    whole = job.plan(repeat)
    if fold < 0:
        return fit_residuals(whole)
    given = {f.name: getattr(whole, f.name) for f in fields(Plan)}
    plan = OneFold(**{**given, "folds": [whole.folds[fold]]}, at=fold)
    return list(engine_for(plan).run(plan))
