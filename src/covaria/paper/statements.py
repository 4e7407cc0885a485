"""The paper's real tables and figures by name: what `covaria paper table1 … sfig8` shows.

`ITEMS` names them. `run` makes what one needs, `keep_all` writes it and `stored` reads it again;
`item` has its numbers, the paper's claims about it with verdicts, and what there is to say. A table
and the figure beside it need the same.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from covaria.errors import InputError, plural
from covaria.nuisance.plan import Progress
from covaria.paper import real_tables as real
from covaria.paper.kept import Stamp
from covaria.paper.published import LEARNERS, METHODS, PUBLISHED, SHOWN, Published, published
from covaria.paper.real_tables import Row, Rows, as_rows
from covaria.paper.registry import ERRORS, Verdict, decided
from covaria.selection.refit import Refit
from covaria.tables.files import read_csv
from covaria.tables.writing import write_text

if TYPE_CHECKING:
    import pandas as pd

Frames = dict[str, "pd.DataFrame"]
# Rows of a small table are replaced by new ones of the same data and learner.
KEY = ["data", "learner"]
ABOUT = "about.json"  # what made each part of a folder
PARTS = {"errors": real.errors, "frequencies": real.frequencies, "orderings": real.orderings}
# {name: what it shows}
ITEMS: dict[str, str] = {
    **{known.table: f"prediction error, {known.title}" for known in PUBLISHED.values()},
    **{known.figure: f"selection rates, {known.title}" for known in PUBLISHED.values()},
}


class Said(NamedTuple):
    """One thing the paper says of a table or figure, what we find, and the verdict."""

    text: str
    numbers: str
    verdict: Verdict
    quote: str


@dataclass(frozen=True, eq=False)
class Item:
    """A table or figure of the paper again.

    frame      a table: the paper's errors beside ours; a figure: learner, method, feature,
               frequency
    orderings  GCM's error and steadiness beside LOCO's
    notes      what there is to say, a sentence each
    draws      of the folds
    """

    name: str
    frame: pd.DataFrame
    orderings: pd.DataFrame
    notes: tuple[str, ...]
    draws: int

    @property
    def is_figure(self) -> bool:
        return "fig" in self.name

    @property
    def not_judged(self) -> int:
        """Return how many errors are of another procedure: their claims keep their numbers."""
        verdicts = [] if self.is_figure else self.frame["verdict"].tolist()
        return verdicts.count("another procedure")

    @property
    def said(self) -> list[Said]:
        """Return what the paper says of this table or figure, and whether it came out."""
        known, orderings = published(self.name), as_rows(self.orderings)
        if self.is_figure:
            claims = as_rows(real.claims(self.name, self.frame))
            found = [*_about_features(known, claims), *_about_steadiness(known, orderings),
                     *_about_counts(known, orderings),
                     *_about_insignificant(known, as_rows(self.frame))]  # fmt: skip
        else:
            frame = as_rows(self.frame)
            found = [*_about_errors(known, frame), *_about_prediction(known, orderings),
                     *_about_the_best(known, frame)]  # fmt: skip
        return found if known.is_same_data else [_of_other_data(one) for one in found]


def _of_other_data(said: Said) -> Said:
    """Return a claim that does not hold on another table than the paper's as such."""
    return said._replace(verdict=Verdict.OTHER) if said.verdict is Verdict.NOT_HELD else said


def run(
    name: str,
    *,
    mode: str = "paper",
    seeds: int = 20,
    seed: int = 0,
    fast: bool = False,
    n_jobs: int = 1,
    progress: Progress | None = None,
    kept: Path | None = None,
) -> Frames:
    """Return what a table or figure is made of, run again in the paper's mode or in ours.

    `fast` leaves the networks out; `kept` is a file of draws, as in `real.run`.
    """
    _known(name)
    found = real.run(
        name, mode=mode, learners=("lm", "GBM") if fast else LEARNERS, seeds=seeds, seed=seed,
        n_jobs=n_jobs, progress=progress, kept=kept,
    )  # fmt: skip
    return parts(name, found)


def parts(name: str, found: Refit) -> Frames:
    """Return what is kept of a run."""
    return {part: make(name, found) for part, make in PARTS.items()}


def keep(path: Path, rows: pd.DataFrame) -> None:
    """Write rows to a small table, in place of those of the same data and learner in it."""
    import pandas as pd

    if rows.empty:  # such as other settings of a table that needs none
        return
    if path.exists():
        old = read_csv(path)
        again = pd.MultiIndex.from_frame(old[KEY]).isin(pd.MultiIndex.from_frame(rows[KEY]))
        rows = pd.concat([old[~again], rows], ignore_index=True)
    places = {known.dataset: at for at, known in enumerate(PUBLISHED.values())}
    learners = {name: at for at, name in enumerate(LEARNERS)}
    at = rows.assign(
        a=rows["data"].map(places), b=rows["learner"].map(learners).fillna(len(learners))
    )
    rows = rows.loc[at.sort_values(["a", "b"], kind="stable").index]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, rows.to_csv(index=False, float_format="%.6g", lineterminator="\n"))


def keep_all(folder: Path, mode: str, found: Frames, *, keep_fuller: bool = False) -> bool:
    """Write what `run` found, where `stored` finds it; or only what has as many draws or more.

    Return whether anything was written.
    """
    fuller = _fuller(folder / f"{mode}_errors.csv", found["errors"]) if keep_fuller else []
    for part, rows in found.items():
        keep(folder / f"{mode}_{part}.csv", rows[~rows["learner"].isin(fuller)])
    return not set(found["errors"]["learner"]) <= set(fuller)


def sign(folder: Path, part: str, names: Iterable[str], stamp: Stamp) -> None:
    """Write down what made a part, for each table."""
    about = signed(folder)
    how = {**asdict(stamp), "python": platform.python_version()}
    about.setdefault(part, {}).update(dict.fromkeys(names, how))
    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / ABOUT, json.dumps(about, indent=1, sort_keys=True) + "\n")


def signed(folder: Path) -> dict[str, dict[str, Row]]:
    """Return how each part was made, for each table."""
    path = folder / ABOUT
    known: dict[str, dict[str, Row]] = json.loads(path.read_text()) if path.is_file() else {}
    return known


def seed_of(folder: Path, name: str, mode: str) -> int | None:
    """Return the seed of a stored table, None where it is not known."""
    how = signed(folder).get(mode, {}).get(published(name).table)
    return None if how is None else int(how["seed"])


def _fuller(path: Path, errors: pd.DataFrame) -> list[str]:
    """Return the learners of which more draws of the folds are stored."""
    if not path.is_file():
        return []
    old = read_csv(path)
    old = old[old["data"].isin(errors["data"])]
    there = old.groupby("learner")["seeds"].max()
    now = errors.groupby("learner")["seeds"].max()
    return [str(name) for name in now.index if there.get(name, 0) > now[name]]


def stored(folder: Path, name: str, mode: str = "paper") -> Frames | None:
    """Return what was written of a table or figure, None where nothing was."""
    known = _known(name)
    paths = {part: folder / f"{mode}_{part}.csv" for part in PARTS}
    if not all(path.is_file() for path in paths.values()):
        return None
    every = {part: read_csv(path) for part, path in paths.items()}
    own = {part: frame[frame["data"] == known.dataset] for part, frame in every.items()}
    return None if any(frame.empty for frame in own.values()) else own


def item(name: str, mode: str, found: Frames) -> Item:
    """Return a table or figure from what `run` or `stored` found."""
    known = _known(name)
    notes = list(known.remarks)
    if name == known.table:
        frame = real.table(name, found["errors"], mode)
        notes += [note for note in dict.fromkeys(frame["note"]) if note and note not in notes]
        notes += _side_by_side(as_rows(frame)) if mode == "ours" else []
    else:
        frame = found["frequencies"]
    if "NN" not in set(frame["learner"]):
        notes.append("Few draws of the folds and no networks: leave --fast out for the numbers.")
    draws = int(found["errors"]["seeds"].max())
    return Item(name, frame.reset_index(drop=True), found["orderings"], tuple(notes), draws)


def _known(name: str) -> Published:
    known = published(name)
    if name not in ITEMS:
        raise InputError(f"Give '{known.table}' or '{known.figure}' rather than '{name}'.")
    return known


def _about_errors(known: Published, rows: Rows) -> Iterator[Said]:
    for row in rows:
        if row["verdict"] == "another procedure":
            continue
        draws = plural(int(row["seeds"]), "draw")
        yield Said(
            f"{row['learner']}, {SHOWN[row['method']]}: {row['paper']:g} ± {row['paper_se']:g} "
            "(within two of the paper's standard errors)",
            f"{row['ours']:.4g} ± {row['ours_se']:.2g} over {draws} of the folds, "
            f"{row['in_paper_se']:+.1f} of the paper's standard errors",
            _of_error(known, row), f"{known.table}: the table itself",
        )  # fmt: skip


def _of_error(known: Published, row: Row) -> Verdict:
    """Return the verdict on an error: the settings of networks and of two boosters are not told."""
    if not known.is_same_data:
        return Verdict.OTHER
    if abs(row["in_paper_se"]) <= ERRORS:
        return Verdict.HELD
    is_open = row["learner"] == "NN" or (row["learner"] == "GBM" and known.cannot)
    return Verdict.NOT_STATED if is_open else Verdict.NOT_HELD


def _side_by_side(rows: Rows) -> Iterator[str]:
    """Yield our errors beside the paper's, which they are not to be judged by."""
    for learner in dict.fromkeys(row["learner"] for row in rows):
        own = [row for row in rows if row["learner"] == learner]
        ours = ", ".join(
            f"{SHOWN[row['method']]} {row['ours']:.4g} ± {row['ours_se']:.2g}" for row in own
        )
        theirs = " and ".join(f"{row['paper']:g}" for row in own)
        yield f"{learner}: {ours}; the paper's {theirs} are of its own procedure."


def _about_prediction(known: Published, rows: Rows) -> Iterator[Said]:
    """Yield whether GCM's features predict better than LOCO's, or as well where the paper's do."""
    for row in rows:
        gcm, loco = (known.error(row["learner"], method)[0] for method in METHODS)
        words = "better than" if gcm < loco else "as well as"
        mean, error = real.mean_and_error(row, "gap")
        same = Verdict.HELD if abs(mean) <= ERRORS * error else Verdict.NOT_HELD
        yield Said(
            f"{row['learner']}: GCM's features predict {words} LOCO's",
            f"LOCO's error less GCM's is {_mean(row, 'gap')}, GCM's is lower in "
            f"{100 * row['gcm_better']:.0f}% of the draws",
            decided(mean, error) if gcm < loco else same, known.predicts,
        )  # fmt: skip


def _about_the_best(known: Published, rows: Rows) -> Iterator[Said]:
    """Yield whether the learner that the paper calls the best errs least with GCM's features."""
    errors = {row["learner"]: row["ours"] for row in rows if row["method"] == "gcm"}
    if known.best and set(errors) == set(known.errors):
        least = min(errors, key=errors.__getitem__)
        yield Said(
            f"{known.best} predicts better than the others",
            ", ".join(f"{learner} {error:.4g}" for learner, error in errors.items()),
            Verdict.HELD if least == known.best else Verdict.NOT_HELD,
            "the gradient boosted decision tree algorithm outperforms the others",
        )  # fmt: skip


def _mean(row: Row, name: str) -> str:
    """Return a mean over draws ± its standard error."""
    mean, error = real.mean_and_error(row, name)
    return f"{mean:.3g} ± {error:.2g}"


def _about_features(known: Published, rows: Rows) -> Iterator[Said]:
    """Yield each conclusion once for every learner and method it is about."""
    about: dict[tuple[str, str, str], Rows] = {}
    for row in rows:
        about.setdefault((row["claim"], row["learner"], row["method"]), []).append(row)
    quotes = {claim.text: claim.quote for claim in known.claims}
    for (claim, learner, method), own in about.items():
        rates = ", ".join(f"{row['feature']} {row['frequency']:.2f}" for row in own)
        held = all(row["stable"] == row["expected"] for row in own)
        yield Said(
            f"{claim} ({learner}, {SHOWN[method]})", rates,
            Verdict.HELD if held else Verdict.NOT_HELD, quotes[claim],
        )  # fmt: skip


def _about_steadiness(known: Published, rows: Rows) -> Iterator[Said]:
    for row in rows if known.steady else ():
        gcm, loco = row["gcm_wavering"], row["loco_wavering"]
        verdict = decided(*real.mean_and_error(row, "steadier"))
        yield Said(
            f"{row['learner']}: GCM is steadier than LOCO (features selected on some parts but not "
            "on all)",
            f"{gcm:.2f} features against {loco:.2f}, LOCO's less GCM's {_mean(row, 'steadier')}",
            # With both as steady as can be, neither can be steadier.
            verdict if gcm or loco else Verdict.UNDECIDED, known.steady,
        )  # fmt: skip


def _about_counts(known: Published, rows: Rows) -> Iterator[Said]:
    """Yield whether GCM selects more features than LOCO, where the paper says so."""
    for row in rows if known.more else ():
        gcm, loco = row["gcm_selects"], row["loco_selects"]
        yield Said(
            f"{row['learner']}: GCM selects more features than LOCO", f"{gcm:.2f} and {loco:.2f}",
            decided(gcm - loco), known.more,
        )  # fmt: skip


def _about_insignificant(known: Published, rows: Rows) -> Iterator[Said]:
    """Yield whether GCM selects what the paper does not call important less often than LOCO."""
    if not known.insignificant:
        return
    important = {feature for claim in known.claims for feature in claim.features}
    for learner in dict.fromkeys(row["learner"] for row in rows):
        rates = {
            method: [r["frequency"] for r in rows if r["learner"] == learner
                     and r["method"] == method and r["feature"] not in important]
            for method in METHODS
        }  # fmt: skip
        gcm, loco = (sum(found) / len(found) for found in rates.values())
        yield Said(
            f"{learner}: GCM selects the other features no oftener than LOCO, on average",
            f"{gcm:.3f} and {loco:.3f}", decided(loco - gcm, strict=False), known.insignificant,
        )  # fmt: skip
