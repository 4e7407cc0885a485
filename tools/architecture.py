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
charges what it fitted to `result.cost`.

| stage | where | what comes back |
| --- | --- | --- |
| prepare | `prepare` in `assessment/front.py` | a `Job`: the table checked once, the learner, the methods, the options |
| plan | `Job.plan` in `assessment/request.py` → `nuisance/plan.py` | a `Plan`: which regressions on which folds; nothing is fitted yet |
| choose learners | `nuisance/auto` | with `learner="auto"`: who fits which regression in which fold |
| fit | `nuisance/residuals.py` → `nuisance/fit.py` → `nuisance/engines` | `Residuals`: each regression fitted once, shared by all methods |
| test | `methods/` → `inference/tests.py` | scores, one array a method; from it estimate, error, p-value, interval |
| diagnose | `diagnostics/` | what the regressions left undone, and how far that can shift a test |
| conclude | `results/conclusion.py` | one frozen `Result`: table, findings, quality, cost, settings |

**Where is GCM's formula?** At the head of `methods/gcm.py`. The function `gcm` returns the scores, the product of two
residuals, a number for each row and feature; `mean_test` in `inference/tests.py` makes the statistic and its p-value of
them, √n · mean / sd, as of every method's scores. The [page of the method](methods/gcm.md) has the same formula for
readers.

**How do I add a learner?** To use one, pass any scikit-learn estimator as `learner=`. To give one a name and settings of
its own: a model with `fit` and `predict` in `learners/estimators/`, a frozen class in `learners/__init__.py` that makes
it, and the class in `LEARNERS`. `nuisance/engines/plain.py` then fits it; a fast engine of the same name is optional.
`CONTRIBUTING.md` has the steps.

**How do I add a method?** `methods/yours.py` with its formula, and one entry in `METHODS` with label, long name,
reference and needs: table, report, methods paragraph, pictures, commands and studies find it there.

**What happens between `fit_residuals` and `Result`?** `Job.run` in `assessment/pipeline.py` hands the residuals of each repeat to
`Job._finish`, and that to `conclude` in `results/conclusion.py`:

1. methods without a p-value, such as the lasso, select (`select_without_test`);
2. the residuals are regressed once more, to see what was left undone (`leftover` in `diagnostics/residual_checks.py`);
3. each test has its scores (`score`: the method's function, then `methods/few_rows.py` where few rows carry them), from
   these estimate, error, p-value and interval (`mean_test`), and the repeats are combined (`combine_repeats`);
4. p-values are corrected, features selected, and a verdict is *cannot tell* where what both regressions may miss
   explains it;
5. quality table, findings and cost are put beside the table in one frozen `Result`.

**Why is a number .03 and not .05?** Thresholds that decide a verdict, a warning or a learner are fields of a `…Policy`,
each with its evidence: `QualityPolicy.evidence()`.

## Where it runs

Below the plan there is one `Executor` (`execution/executors.py`) with three kinds: everything here, processes beside
this one (`n_jobs`), a Dask cluster (`--dask`). Choosing learners, fitting, functions of features, halves, model noise and
diagnostics all hand their plans to `nuisance/fit.run_plan`, which cuts them into parts (`nuisance/parts.py`) and joins what
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
