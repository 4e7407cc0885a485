"""Measure covaria on designs that others published, beside the rates they report: yardsticks.md.

    python tools/yardsticks.py [--runs 20] [--only semi,chamma_linear] [--learner auto]
    python tools/yardsticks.py --page

Every run leaves a line a method in benchmarks/yardsticks.csv, so that an interrupted measurement
goes on where it stopped; docs/yardsticks.md is written from that file, with --page from what is
there. The designs are in tools/yardstick_designs.py.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from yardstick_designs import DESIGNS, Array, Design

import covaria

ROOT = Path(__file__).resolve().parent.parent
STORE, PAGE = ROOT / "benchmarks" / "yardsticks.csv", ROOT / "docs" / "yardsticks.md"
LEVEL = 0.05
# Rates of fewer runs are called a smoke test.
ENOUGH = 20
METHODS = ("gcm", "pcm", "gcm+pcm")

Key = tuple[str, str, int]


@dataclass(frozen=True)
class Line:
    """What one method did in one run; a rate is nan where the design has nothing to count.

    `warned` is the share of its false findings whose feature has a warning in `result.quality`,
    `alarmed` the share of all counted features that have one.
    """

    design: str
    learner: str
    run: int
    method: str
    type_1: float
    power: float
    nulls: int
    useful: int
    warned: float
    alarmed: float
    seconds: float

    @property
    def key(self) -> Key:
        return self.design, self.learner, self.run


# --- runs ---------------------------------------------------------------------------------------


def measure_one(design: Design, learner: str, run: int) -> list[Line]:
    """Return what each method finds in a table of a design, at .05 before any correction."""
    X, y, useful = design.draw(np.random.default_rng([run, *design.name.encode()]))
    names = [f"x{j}" for j in range(X.shape[1])]
    groups = {"all others": names[1:]} if design.only_first else None
    start = time.process_time()
    result = covaria.assess(X, y, learner=learner, groups=groups, seed=run)
    seconds = time.process_time() - start
    counted = names[:1] if design.only_first else names
    is_useful = useful[: len(counted)]
    p_values = result.table.pivot(index="feature", columns="method", values="p_value")
    alarms = result.quality.groupby("feature")["warning"].agg(any)
    has_alarm = alarms.reindex(counted, fill_value=False).to_numpy(bool)
    lines = []
    for method in METHODS:
        # A test without an answer rejects nothing.
        is_found = p_values.loc[counted, method].to_numpy(float) < LEVEL
        lines.append(
            Line(
                design.name, learner, run, method,
                type_1=share(is_found[~is_useful]), power=share(is_found[is_useful]),
                nulls=int((~is_useful).sum()), useful=int(is_useful.sum()),
                warned=share(has_alarm[is_found & ~is_useful]), alarmed=share(has_alarm),
                seconds=seconds,
            )
        )  # fmt: skip
    return lines


def share(flags: Array) -> float:
    """Return the share that is true, or nan of none."""
    return float(np.mean(flags)) if len(flags) else np.nan


def wanted(only: Sequence[str]) -> list[Design]:
    """Return the designs of these names or sources; all of them if none are given."""
    unknown = set(only) - set(DESIGNS) - {design.source for design in DESIGNS.values()}
    if unknown:
        raise SystemExit(f"no design or source {sorted(unknown)}: there are {list(DESIGNS)}")
    return [d for d in DESIGNS.values() if not only or d.name in only or d.source in only]


def measure(designs: Iterable[Design], learner: str, runs: int) -> None:
    """Run what is not in the store yet, first run 0 of every design, and put it there."""
    done = {line.key for line in stored()}
    tasks = [(design, run) for run in range(runs) for design in designs]
    left = [(design, run) for design, run in tasks if (design.name, learner, run) not in done]
    for i, (design, run) in enumerate(left, start=1):
        lines = measure_one(design, learner, run)
        keep(lines)
        text = f"{i} of {len(left)}: {design.name} {run}, {lines[0].seconds:.0f} s"
        print(text, file=sys.stderr, flush=True)


def keep(lines: Iterable[Line]) -> None:
    """Append lines to the store."""
    is_new = not STORE.exists()
    with STORE.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Line)], lineterminator="\n")
        if is_new:
            writer.writeheader()
        for line in lines:
            writer.writerow({name: as_text(value) for name, value in asdict(line).items()})


def as_text(value: Any) -> str:
    if isinstance(value, float):
        return "" if np.isnan(value) else f"{value:.6g}"
    return str(value)


def stored() -> list[Line]:
    """Return the lines of the store."""
    if not STORE.exists():
        return []
    with STORE.open(newline="", encoding="utf-8") as file:
        return [_line(row) for row in csv.DictReader(file)]


def _line(row: dict[str, str]) -> Line:
    whole = {name: int(row[name]) for name in ("run", "nulls", "useful")}
    words = {name: row[name] for name in ("design", "learner", "method")}
    rest = {name: float(row[name] or "nan") for name in row if name not in whole | words}
    return Line(**words, **whole, **rest)


# --- the page -----------------------------------------------------------------------------------


def bare(number: float, digits: int = 3) -> str:
    """Return a share, without the zero in front."""
    text = f"{number:.{digits}f}"
    return text.removeprefix("0") if number < 1 else text


def rate(shares: Array, n_each: int) -> str:
    """Return the mean of the runs' shares and its Monte-Carlo error, or a dash."""
    if np.isnan(shares).all():
        return "–"
    return f"{bare(shares.mean())} ± {bare(monte_carlo_error(shares, n_each))}"


def monte_carlo_error(shares: Array, n_each: int) -> float:
    """Return the standard error of a mean of shares of `n_each` decisions.

    That between the runs, as decisions in a run go together, or the binomial one if that is larger;
    with a success and a failure added (Agresti & Coull), since few runs that agree are no proof.
    """
    n_all = len(shares) * n_each
    moved = (shares.sum() * n_each + 1) / (n_all + 2)
    binomial = np.sqrt(moved * (1 - moved) / (n_all + 2))
    between = shares.std(ddof=1) / np.sqrt(len(shares)) if len(shares) > 1 else 0.0
    return float(max(binomial, between))


def column(lines: Sequence[Line], name: str) -> Array:
    return np.array([getattr(line, name) for line in lines], float)


def pair(lines: Sequence[Line]) -> str:
    """Return type-I error and power of one method."""
    one = lines[0]
    type_1 = rate(column(lines, "type_1"), one.nulls)
    return f"{type_1} / {rate(column(lines, 'power'), one.useful)}"


def warned(lines: Sequence[Line]) -> str:
    """Return how many false findings were warned of, and the share of features with a warning."""
    found = np.nan_to_num(column(lines, "type_1") * column(lines, "nulls"))
    told = np.nan_to_num(column(lines, "warned")) @ found
    return f"{told:.0f} of {found.sum():.0f}; {column(lines, 'alarmed').mean():.0%}"


def published(design: Design) -> list[str]:
    return [f"{bare(error)} / {bare(power, 2)}" for error, power in design.published.values()]


def runs_of(lines: Sequence[Line]) -> str:
    return str(len(lines)) if len(lines) >= ENOUGH else f"{len(lines)}, smoke test"


def row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def table(source: str, lines: Sequence[Line]) -> Iterator[str]:
    """Yield the table of a source: a row a design and learner."""
    designs = [design for design in DESIGNS.values() if design.source == source]
    titles = ["design", *designs[0].published, "covaria", *METHODS]
    titles += ["warned; with a warning", "CPU s", "runs"]
    yield row(titles)
    yield "|" + "---|" * len(titles)
    for design in designs:
        own = [line for line in lines if line.design == design.name]
        for learner in sorted({line.learner for line in own}):
            by_method = [
                [line for line in own if (line.learner, line.method) == (learner, method)]
                for method in METHODS
            ]
            both = by_method[-1]
            cells = [as_cell(design.formula), *published(design), as_cell(learner)]
            cells += [pair(some) for some in by_method]
            cells += [warned(both), f"{column(both, 'seconds').mean():.0f}", runs_of(both)]
            yield row(cells)


def as_cell(text: str) -> str:
    return text.replace("|", "\\|")


def choices(source: str) -> list[str]:
    """Return the designs and what was chosen where a paper is silent, as their docstrings say."""
    draws = [design.draw for design in DESIGNS.values() if design.source == source]
    docs = [getattr(draw, "func", draw).__doc__ or "" for draw in draws]
    return [f"- {' '.join(doc.split())}" for doc in dict.fromkeys(docs)]


HEAD = f"""# How does it do where others measured?

Written by `python tools/yardsticks.py` from benchmarks/yardsticks.csv, with covaria
{covaria.__version__}; the designs are in tools/yardstick_designs.py, and run r takes seed r. A cell
has the type-I error over the columns that say nothing of y given the others, then the power over
those that do: the share with p < {LEVEL} before any correction (`p_value`). Behind ± stands the
Monte-Carlo standard error: between runs, or the binomial one with a success and a failure added if
that is larger. With fewer than {ENOUGH} runs it is a smoke test, which tells a broken test from a
sound one and no more. Published rates are the authors', with learners they chose; tables are not
theirs but drawn anew from their formulas. *warned* is how many false findings of gcm+pcm have a
warning in `result.quality`, *with a warning* the share of all counted features that have one.
"""

# Behind it stands what the tables show, in words.
BY_HAND = "<!-- tools/yardsticks.py writes above -->"

PARTS = {
    "chamma": """
## Ten blocks of five

Chamma, Engemann & Thirion (NeurIPS 2023; 100 runs): n = 1,000, p = 50 normal columns in ten blocks
with correlation .8 within, 20 useful, β from ±{.5, 1, 2, 3}, signal-to-noise 4. Choices for Xβ and
the classes are those of the authors' public code.
""",
    "semi": """
## A chain of fifty

Reyero Lobo, Thirion & Neuvial, Semi-knockoffs (ICML 2026): n = 300, p = 50, correlation .6^|i − j|;
rates of others from the authors' p-values by seed, with gradient boosting. vimpy, as called there,
rejects 26–44% of these nulls. Choices are those of the authors' public code.
""",
    "single": """
## One x given all of Z

Designs whose papers show curves, no tables: Lundborg, Kim, Shah & Samworth (PCM, 2024), Shah &
Peters (GCM, 2020), post-nonlinear models as kernel tests are measured on, and the double-robust
test of Shi et al. (2021), whose size is .038–.058 there for d = 50 … 250 (power at d = 200 and
b = .15, .30, .45, .60, .75: .06, .19, .72, 1, 1). Only x is counted; all of Z is tested as one
feature. A design is a null or an alternative, so one of the two rates is a dash.
""",
}


def by_hand() -> str:
    """Return what somebody wrote at the end of the page, which stays."""
    text = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    return text[text.index(BY_HAND) :].rstrip() if BY_HAND in text else BY_HAND


def write_page() -> None:
    """Write the page from the store."""
    lines = stored()
    parts = [HEAD]
    for source, head in PARTS.items():
        parts += [head, *table(source, lines)]
        parts += [
            "",
            "The designs, and what was chosen where a text is silent:",
            "",
            *choices(source),
        ]
    parts += ["", by_hand()]
    PAGE.write_text("\n".join(parts) + "\n", encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, then write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=ENOUGH)
    parser.add_argument("--only", default="", help="names or sources of designs, with commas")
    parser.add_argument("--learner", default="auto")
    parser.add_argument("--page", action="store_true", help="only write the page")
    given = parser.parse_args(arguments)
    if not given.page:
        designs = wanted([name for name in given.only.split(",") if name])
        measure(designs, given.learner, given.runs)
    write_page()


if __name__ == "__main__":
    main()
