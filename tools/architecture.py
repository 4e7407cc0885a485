"""Write docs/architecture.md and its picture from the imports there are."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import check_layers

DOCS = check_layers.ROOT / "docs"
WIDTH, BOX, HEIGHT, GAP = 760, 104, 30, 34

PAGE = """# How it works

One call of `covaria.assess` is a straight line. Each stage is a function of what the stages before it returned, and
charges what it fitted to `result.cost`. All paths on this page are below `src/covaria/`.

| stage | where | what comes back |
| --- | --- | --- |
| prepare | `prepare` in `assessment/front.py` | a `Job` (`assessment/pipeline.py`): the table checked once, the learner, the methods, the options |
| plan | `Job.plan`, inherited from `Request` in `assessment/request.py` → `nuisance/plan.py` | a `Plan`: which regressions on which folds; nothing is fitted yet |
| fit | `fit_all` in `nuisance/several.py` → `fit_residuals` in `nuisance/residuals.py`, once for each target | `Residuals`: each regression fitted once, shared by all methods |
| – choose learners | inside `fit_residuals`: `nuisance/auto` | with `learner="auto"`: which learner fits which regression in which fold |
| – run | inside `fit_residuals`: `nuisance/fit.py` → `nuisance/engines` | the predictions of each regression |
| diagnose | `leftover` in `diagnostics/residual_checks.py` | what the regressions left undone |
| test and conclude | `conclude` in `results/conclusion.py` → `methods/` → `inference/tests.py` | scores, one array a method; from it estimate, error, p-value, interval; then one frozen `Result`: table, findings, quality |

`Job.run` in `assessment/pipeline.py` calls them in this order: `Job._run` makes a plan for each repeat and hands each to
`fit_all`; `Job._finish` does the rest.

**Where is GCM's formula?** At the head of `methods/gcm.py`; the [page of the method](methods/gcm.md) has it for readers. The
function `gcm` returns the scores, a number for each row and feature, and `mean_test` in `inference/tests.py` makes of them
the statistic √n · mean / sd and its p-value, as it does for every method whose scores are averaged (`weighted_gcm` has a
test of its own). With a learner that you name the scores are the products of two residuals. Three corrections may follow,
each in one place:

1. with `auto` the mean of the products is moved towards 0 by what both regressions may have missed (`Residuals.missed`);
2. with `auto` and more than one fold they are spread about that mean by (1 + 2q)/(1 + q), q being the noise in the models'
   predictions;
3. with any learner `steadied` in `methods/few_rows.py` spreads them where few rows carry the sum, until the normal p-value
   is that of permuted residuals.

**How do I add a learner?** To use one, pass any scikit-learn estimator as `learner=`. To give one a name and settings of
its own: a model with `fit` and `predict` in `learners/estimators/`, a frozen class in `learners/__init__.py` that makes
it, and the class in `LEARNERS`. `nuisance/engines/plain.py` then fits it; a fast engine is optional, and may serve several
learners (`ENGINES` in `nuisance/fit.py`: ridge is fitted by `linear.py`). `CONTRIBUTING.md` has the steps, and
[How to choose](choose.md#a-learner-class-of-your-own) does it in a notebook.

**How do I add a method?** `methods/yours.py` with its formula, and one entry in `METHODS` with label, long name,
reference and needs: table, report, methods paragraph, pictures, commands and studies find it there.

**What happens between `fit_residuals` and `Result`?** `Job._run` hands the residuals of all repeats to `Job._finish`
(`assessment/pipeline.py`), which takes steps 1, 2, 6 and 7; `conclude` in `results/conclusion.py` takes the others:

1. methods without a p-value, such as the lasso, select (`select_without_test`);
2. the residuals are regressed once more, to see what was left undone (`leftover` in `diagnostics/residual_checks.py`);
3. each test has its scores (`score`: the method's function, then `methods/few_rows.py` where few rows carry them), from
   these estimate, error, p-value and interval (`mean_test`), and the repeats are combined (`combine_repeats`). p-values are
   corrected and features selected, each method by itself; `gcm+pcm` is made of the rows of its two parts, with a p-value that
   is corrected in turn (`rows_of_both` in `results/rows.py`);
4. with `auto` step 3 is done a second time without the models that were refitted on half the training rows, so without
   correction 1 above. A feature that is selected only then has the verdict *cannot tell*, and intervals are widened to hold
   both answers;
5. quality table and findings are put beside the table in one frozen `Result`;
6. where they were asked for, `margin` says which features are negligible and groups of features are tested;
7. cost and settings are added.

**Why is a number .03 and not .05?** Thresholds that decide a verdict, a warning or a learner are fields of a `…Policy`,
each with its evidence: `from covaria.diagnostics.quality import QualityPolicy`, then `QualityPolicy.evidence()`.

## Where it runs

Below the plan there is one `Executor` (`execution/executors.py`) with three kinds: everything here, processes beside
this one (`n_jobs`), a Dask cluster (`--dask`). Choosing learners, fitting, functions of features, models refitted on half
the training rows and diagnostics all hand their plans to `nuisance/fit.run_plan`, which cuts them into parts (`nuisance/parts.py`) and joins what
comes back; stability and studies hand over whole runs. Nobody else knows where anything runs.

- **The same bytes.** An engine says how its plans may be cut without a bit changing (`cut_by`): by features, by folds or
  not at all. A test compares parts with the whole for every engine.
- **The table goes once to each worker**: through a file in memory that all of them map, or Dask's scatter. A task is half
  a kilobyte.
- **Processes start only for work worth it**, half a second or more. Until they are awake the process that asked goes on
  by itself; then it is one of the `n_jobs`, and they stay five minutes for the next call. Learners that are not ours
  (scikit-learn's), stability and studies run in other processes only, which end with the call.
- **Who dies is missed at once.** Each process has pipes of its own (`execution/workers.py`), so one that dies takes its
  own task along and no other. That is tried again by itself; after three deaths in a row the rest of its kind is not
  tried, and each feature says so. No process outlives the one that started it.
- **A Dask cluster of ours ends with the call**, and is never what other code computes on; a client that is given stays
  as it is.
- **The cost adds up**: `result.cost` counts the same models for any number of jobs; with several, the seconds are those
  of all workers together.

## Who imports whom

{doors} packages and modules stand at the top of `covaria`, in {layers} layers. A module may import from the layers below its
own, and inside its layer from what stands to its right; no two modules of a package may need each other. The order is
data, `[tool.covaria] layers` in `pyproject.toml`, and `make lint` checks it. The picture and the table are made of the
imports there are (`python tools/architecture.py`). `execution`, the one executor of "Where it runs", is the only package
that was added to the tree this code was designed with.

![Packages in layers, with an arrow for every import between them](architecture.svg)

| package | its one job | imports |
| --- | --- | --- |
{rows}
"""


def between() -> dict[str, set[str]]:
    """Return which packages each package at the top imports."""
    found: dict[str, set[str]] = {}
    for name, others in check_layers.arrows().items():
        own = name.split(".")[0]
        tops = {other.split(".")[0] for other in others} - {own, ""}
        if own:
            found.setdefault(own, set()).update(tops)
    return found


def job(name: str) -> str:
    """Return the first line of a package's or module's own docstring."""
    path = check_layers.PACKAGE / name / "__init__.py"
    path = path if path.exists() else check_layers.PACKAGE / f"{name}.py"
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return text.splitlines()[0].rstrip(".") if text else ""


def picture(rows: list[list[str]], needs: dict[str, set[str]]) -> str:
    """Return the packages in their layers, and an arrow for every import, as SVG."""
    place = {}
    for at, row in enumerate(rows):
        step = WIDTH / len(row)
        for k, name in enumerate(row):
            place[name] = (step * (k + 0.5), 12 + at * (HEIGHT + GAP))
    height = 24 + len(rows) * (HEIGHT + GAP) - GAP // 2
    lines = []
    for name, others in sorted((name, needs[name]) for name in needs.keys() & place.keys()):
        for other in sorted(others & place.keys()):
            lines.append(
                f'<path d="{_arrow(*place[name], *place[other])}" fill="none" stroke="#8aa" '
                'stroke-width="0.8" marker-end="url(#tip)"/>'
            )
    boxes = [
        f'<g><rect x="{x - BOX / 2:.0f}" y="{y}" width="{BOX}" height="{HEIGHT}" rx="5" '
        f'fill="#eef4f4" stroke="#366"/><text x="{x:.0f}" y="{y + 19}" text-anchor="middle" '
        f'font-family="sans-serif" font-size="13" fill="#122">{name}</text></g>'
        for name, (x, y) in place.items()
    ]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        'aria-label="Packages of covaria in layers; every import points down or to the right">'
        '<defs><marker id="tip" viewBox="0 0 6 6" refX="5" refY="3" markerWidth="5" '
        'markerHeight="5" orient="auto"><path d="M0 0 6 3 0 6z" fill="#8aa"/></marker></defs>'
    )
    return "\n".join([head, *lines, *boxes, "</svg>"]) + "\n"


def _arrow(x: float, y: float, to_x: float, to_y: float) -> str:
    """Return the curve from a box to one below it, or to one on its right in the same row."""
    if y == to_y:
        sags = y + HEIGHT + GAP / 2
        return (
            f"M{x:.0f} {y + HEIGHT} C{x:.0f} {sags:.0f} {to_x:.0f} {sags:.0f} {to_x:.0f} "
            f"{to_y + HEIGHT + 4}"
        )
    y += HEIGHT
    middle = (y + to_y) / 2
    return f"M{x:.0f} {y} C{x:.0f} {middle:.0f} {to_x:.0f} {middle:.0f} {to_x:.0f} {to_y - 4}"


def made() -> dict[str, str]:
    """Return the page and its picture, by the names of their files."""
    rows, needs = check_layers.layers(), between()
    names = [name for row in rows for name in row]
    table = "\n".join(
        f"| `{name}` | {job(name)} | {', '.join(sorted(needs.get(name, ()))) or '–'} |"
        for name in names
    )
    return {
        "architecture.md": PAGE.format(rows=table, doors=len(names), layers=len(rows)),
        "architecture.svg": picture(rows, needs),
    }


def main() -> None:
    """Write the page and its picture."""
    for name, text in made().items():
        (DOCS / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
