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

One call of `covaria.assess` runs through seven stages in a straight line. Each stage is a function of what the stages before
it returned, and `result.cost` lists the models and seconds of each. All paths on this page are below `src/covaria/`.

![The seven stages of a run, and what each returns](pipeline.svg)

| stage | where | what it returns |
| --- | --- | --- |
| prepare | `prepare` in `assessment/front.py` | a `Job` (`assessment/pipeline.py`): the checked table, the learner, the methods and the options |
| plan | `Job.plan`, inherited from `Request` in `assessment/request.py`; `nuisance/plan.py` | a `Plan`: which regressions are fitted on which folds; nothing is fitted yet |
| choose learners | `nuisance/auto`, called inside `fit_residuals` | with `learner="auto"`, the learner of each regression in each fold |
| fit | `fit_all` in `nuisance/several.py`, which calls `fit_residuals` in `nuisance/regressions.py` for each target; `nuisance/fit.py`, `nuisance/engines` | `Residuals`: each regression is fitted once and shared by all methods |
| diagnose | `diagnostics/` | what the regressions missed, and how far that can shift a test |
| test | `methods/`, `inference/tests.py` | scores, one array for each method, and from them estimate, standard error, p-value and interval |
| conclude | `results/conclusion.py` | one frozen `Result`: table, findings, quality, cost and settings |

`Job.run` in `assessment/pipeline.py` calls them in this order: `Job._run` makes a plan for each repeat and passes it to
`fit_all`; `Job._finish` does the rest.

**Where is GCM's formula?** At the top of `methods/gcm.py`; the [page about GCM](methods/gcm.md) explains it. The function `gcm`
returns the scores, a number for each row and feature; `mean_test` in `inference/tests.py` computes the statistic, √n · mean /
sd, and its p-value from them, as for every method whose scores are averaged (`weighted_gcm` has a test of its own). With a
learner that you name the scores are the products of two residuals. They may be corrected:

1. with `auto` the mean of the products is moved towards 0 as far as learning curves and a second learner do not confirm it (`Residuals.doubt`);
2. with `auto`, and with least squares on few rows per column, they are spread about their mean by (1 + 2q)/(1 + q), where q is the
   noise in the models' predictions, because folds share training rows;
3. with any learner `steadied` in `methods/few_rows.py` spreads them if only a few rows contribute, until the normal p-value is
   that of permuted residuals.

**How do I add a learner?** To use a model, pass any scikit-learn estimator as `learner=`. To add a learner with a name and
settings of its own, write a model with `fit` and `predict` in `learners/estimators/`, a frozen class in
`learners/__init__.py` that creates it, and add the class to `LEARNERS`. `nuisance/engines/plain.py` then fits it; a fast
engine is optional and may serve several learners (`ENGINES` in `nuisance/fit.py`: ridge is fitted by `linear.py`).
`CONTRIBUTING.md` lists the steps; [How to choose](choose.md#a-learner-class-of-your-own) does it in a notebook.

**How do I add a method?** Write `methods/yours.py` with its formula, and one entry in `METHODS` with label, long name,
reference and the regressions it needs. The table, the report, its methods paragraph, the plots, the commands and studies
read `METHODS`.

**What happens inside `fit_residuals`?** `nuisance/regressions.py` chooses learners (`nuisance/auto`), hands the plan to an engine
(`nuisance/fit.py`) and puts the outcomes side by side as `Residuals` (`nuisance/outcomes.py`). Then come the functions
of each feature that PCM tests (`nuisance/functions.py`, `nuisance/targets.py`). With `auto`, the models of features that would be
significant are refitted on either half of the training rows, which says what they may still miss and how noisy they are
(`nuisance/learning_curves.py`), and forests are fitted beside them (`nuisance/second_opinion.py`). Last, residuals that still depend
on a category of many levels are taken within its levels (`nuisance/many_levels.py`).

**What happens between `fit_residuals` and `Result`?** `Job._run` passes the residuals of all repeats to `Job._finish`
(both in `assessment/pipeline.py`), which does this:

1. methods without a p-value, such as the lasso, select their features (`select_without_test` in `results/choices.py`);
2. trees are fitted to the residuals, to see whether the regressions missed something (`check_residuals` in
   `diagnostics/residual_checks.py`; `residual_r2` in `result.quality`); if you named the learner, kernels and curves as well;
3. `conclude` in `results/conclusion.py` computes the scores of each test (`score`: the method's function, and
   `methods/few_rows.py` where only a few rows contribute), from them estimate, error, p-value and interval (`mean_test`), and
   combines the repeats (`combine_repeats`);
4. p-values are corrected and features selected, for each method by itself (`results/rows.py`). `gcm+pcm` combines the rows of
   its two parts into one p-value, which is corrected in turn (`rows_of_both`);
5. with `auto`, steps 3 and 4 are done a second time without the second learner and the learning curves, that is without
   correction 1 above. A feature that is selected only then gets the verdict *cannot tell*, and intervals cover both results;
6. the quality of the regressions and the findings (`results/cautions.py`) are put beside the table in one frozen `Result`;
7. if they were asked for, `margin` says which features are negligible, and groups of features are tested. `Job._finish` then adds
   the cost and the settings.

**Where does a threshold come from?** Thresholds that decide a verdict, a warning or a learner are fields of a `…Policy`
class, each with its evidence: `from covaria.diagnostics.quality import QualityPolicy`, then `QualityPolicy.evidence()`.

## Where it runs

All models are fitted through one `Executor` (`execution/executors.py`), of which there are three: in this process, in
several processes (`n_jobs`), and on a Dask cluster (`--dask`). Choosing learners, fitting, the functions that PCM learns, models of
half the rows and diagnostics all pass their plans to `run_plan` in `nuisance/fit.py`, which cuts a plan into parts
(`nuisance/parts.py`), runs them and joins the results. Stability selection and studies pass whole runs. No other code depends on
where a model is fitted.

- **The numbers do not depend on where it runs**, to the last bit. Each engine declares how its plans can be cut without
  changing a bit (`cut_by`): by features, by folds or not at all. A test compares the parts with the whole for every engine.
- **The table is sent to each worker once**, through a memory-mapped file or Dask's scatter. A task is half a kilobyte.
- **Processes are started only for work that takes half a second or more.** While they start, the calling process works
  alone; after that it is one of the `n_jobs`. Idle processes wait five minutes for the next call. Learners of other
  libraries (scikit-learn's), stability selection and studies run in separate processes that end with the call.
- **A process that dies is noticed at once.** Each process has its own pipes (`execution/workers.py`), so only its own task is
  lost. That task is tried again; after three deaths in a row the remaining tasks of that kind are given up, and the status of each
  feature says so. No process outlives the one that started it.
- **A Dask cluster that covaria started ends with the call** and is never the default client of other code; a client that you
  pass is left as it is.
- **The cost adds up**: `result.cost` counts the same models for any number of jobs. With several jobs the seconds are the
  sum over all workers.

## Who imports whom

covaria has {doors} packages and modules at the top, in {layers} layers. A module may import from the layers below its own and,
inside its layer, from what is to its right; no two modules of a package may import each other. The order is written in
`pyproject.toml` (`[tool.covaria] layers`) and `make lint` checks it. The picture and the table are generated from the imports
(`python tools/architecture.py`). The tree is that of the design with one package more: `execution`, which holds the executors.

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
    head = _head(height, "Packages of covaria in layers; every import points down or to the right")
    return "\n".join([head, *lines, *boxes, "</svg>"]) + "\n"


STAGES = (
    ("prepare", "Job"),
    ("plan", "Plan"),
    ("choose", "learners"),
    ("fit", "Residuals"),
    ("diagnose", "warnings"),
    ("test", "scores"),
    ("conclude", "Result"),
)


def pipeline() -> str:
    """Return the stages of a run from left to right, each above what it returns, as SVG."""
    step = WIDTH / len(STAGES)
    drawn = []
    for k, (stage, product) in enumerate(STAGES):
        x = step * (k + 0.5)
        drawn.append(
            f'<g><rect x="{x - step * 0.4:.0f}" y="12" width="{step * 0.8:.0f}" height="{HEIGHT}" '
            f'rx="5" fill="#eef4f4" stroke="#366"/><text x="{x:.0f}" y="31" '
            f'text-anchor="middle" font-family="sans-serif" font-size="13" fill="#122">{stage}'
            f'</text><text x="{x:.0f}" y="62" text-anchor="middle" font-family="sans-serif" '
            f'font-size="12" font-style="italic" fill="#366">{product}</text></g>'
        )
        if k:
            drawn.append(
                f'<path d="M{x - step * 0.6:.0f} 27H{x - step * 0.4 - 2:.0f}" stroke="#366" '
                'marker-end="url(#tip)"/>'
            )
    return "\n".join([_head(76, "The stages of a run"), *drawn, "</svg>"]) + "\n"


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


def _head(height: int, label: str) -> str:
    """Return the beginning of a picture, with the tip of its arrows."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="{label}">'
        '<defs><marker id="tip" viewBox="0 0 6 6" refX="5" refY="3" markerWidth="5" '
        'markerHeight="5" orient="auto"><path d="M0 0 6 3 0 6z" fill="#8aa"/></marker></defs>'
    )


def made() -> dict[str, str]:
    """Return the page and its pictures, by the names of their files."""
    rows, needs = check_layers.layers(), between()
    names = [name for row in rows for name in row]
    table = "\n".join(
        f"| `{name}` | {job(name)} | {', '.join(sorted(needs.get(name, ()))) or '–'} |"
        for name in names
    )
    return {
        "architecture.md": PAGE.format(rows=table, doors=len(names), layers=len(rows)),
        "architecture.svg": picture(rows, needs),
        "pipeline.svg": pipeline(),
    }


def main() -> None:
    """Write the page and its pictures."""
    for name, text in made().items():
        (DOCS / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
