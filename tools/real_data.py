"""Make the tables behind docs/real_data.md, and the page: python tools/real_data.py PART.

Parts: paper (the paper's mode, its learners), instead (settings that give what the stated ones
cannot), ours (cross-fitted selection and tests), networks (what their unstated settings do), page
(docs/real_data.md from the tables). Each writes small tables to results/real/, with the command,
the seed and the version in about.json.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from pathlib import Path
from typing import Any

import pandas as pd

import residua
from residua import datasets
from residua.refit import Refit
from residua.study import real, real_page
from residua.study.published import LEARNERS, PUBLISHED

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "results" / "real"
# Rows of a table are replaced by new ones of the same data and learner.
KEY = ["data", "learner"]


def main() -> None:
    """Run the part that was asked for."""
    read = argparse.ArgumentParser(description=__doc__)
    read.add_argument("part", choices=[*PARTS, "page", "all"])
    read.add_argument("--seeds", type=int, default=20, help="draws of the folds, paper's mode")
    read.add_argument("--network-seeds", type=int, default=20, help="the same, for networks")
    read.add_argument("--raw-seeds", type=int, default=3, help="the same, part networks")
    read.add_argument("--our-seeds", type=int, default=20, help="the same, our mode")
    read.add_argument("--seed", type=int, default=0)
    read.add_argument("--epochs", default="10,20,50,100,200", help="part networks: after these")
    read.add_argument("--only", default="", help="table names, comma-separated")
    asked = read.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    for part in PARTS if asked.part == "all" else [asked.part]:
        if part in PARTS:
            PARTS[part](asked)
            _sign(part, asked)
    if asked.part in ("page", "all"):
        path = ROOT / "docs" / "real_data.md"
        path.write_text(real_page.page(FOLDER), encoding="utf-8")
        print(path)


def _names(asked: argparse.Namespace) -> list[str]:
    return [n.strip() for n in asked.only.split(",") if n.strip()] or list(PUBLISHED)


def _sign(part: str, asked: argparse.Namespace) -> None:
    """Write down how a part was made, for each table."""
    path = FOLDER / "about.json"
    about = json.loads(path.read_text()) if path.exists() else {}
    how = {
        "command": "python tools/real_data.py " + " ".join(sys.argv[1:]),
        "seed": asked.seed,
        "version": residua.__version__,
        "python": platform.python_version(),
    }
    made = [name for name in _names(asked) if part != "instead" or PUBLISHED[name].instead]
    about.setdefault(part, {}).update(dict.fromkeys(made, how))
    path.write_text(json.dumps(about, indent=1, sort_keys=True) + "\n")


def _keep(name: str, rows: pd.DataFrame) -> None:
    """Write rows to a table, in place of the rows of the same data in it."""
    path = FOLDER / f"{name}.csv"
    if rows.empty:  # a learner that the paper draws no conclusion from
        return
    if path.exists():
        old = pd.read_csv(path)
        again = pd.MultiIndex.from_frame(old[KEY]).isin(pd.MultiIndex.from_frame(rows[KEY]))
        rows = pd.concat([old[~again], rows], ignore_index=True)
    places = {known.dataset: at for at, known in enumerate(PUBLISHED.values())}
    learners = {name: at for at, name in enumerate(LEARNERS)}
    at = rows.assign(
        a=rows["data"].map(places), b=rows["learner"].map(learners).fillna(len(learners))
    )
    rows = rows.loc[at.sort_values(["a", "b"], kind="stable").index]
    rows.to_csv(path, index=False, float_format="%.6g", lineterminator="\n")


def _keep_refit(prefix: str, name: str, found: Refit) -> None:
    data = PUBLISHED[name].dataset
    _keep(f"{prefix}_table", real.table(name, found))
    _keep(f"{prefix}_errors", found.table.assign(data=data))
    _keep(f"{prefix}_frequencies", found.frequencies.assign(data=data))
    _keep(f"{prefix}_claims", real.claims(name, found))
    _keep(f"{prefix}_orderings", real.orderings(name, found))


def _paper(asked: argparse.Namespace) -> None:
    """Least squares and boosting on so many draws of the folds, networks on their own number."""
    for learners, seeds in ((["lm", "GBM"], asked.seeds), (["NN"], asked.network_seeds)):
        for name in _names(asked) if seeds else ():
            settings = {"learners": learners, "seeds": seeds, "seed": asked.seed}
            found = _refitted(f"paper {name} {learners}", name, **settings)
            _keep_refit("paper", name, found)
            data = PUBLISHED[name].dataset
            if datasets.groups(data):
                one = _refitted(f"paper {name}, grouped", name, grouped=True, **settings)
                _keep("paper_grouped_errors", one.table.assign(data=data))
                _keep("paper_grouped_frequencies", one.frequencies.assign(data=data))


def _refitted(what: str, name: str, **settings: Any) -> Refit:
    start = time.perf_counter()
    found = real.run(name, **settings)
    print(f"{what}: {time.perf_counter() - start:.0f} s", flush=True)
    return found


def _networks(asked: argparse.Namespace) -> None:
    """What the networks' unstated settings do."""
    for name in _names(asked):
        _keep("networks_epochs", real.epochs(name, [int(mark) for mark in asked.epochs.split(",")]))
        print(f"epochs {name}", flush=True)
    for name, epochs in RAW_EPOCHS.items():
        if name in _names(asked):
            settings = {"seeds": asked.raw_seeds, "seed": asked.seed}
            rows = [real.raw_networks(name, epochs=count, **settings) for count in epochs]
            _keep("networks_raw", pd.concat(rows, ignore_index=True))
            print(f"raw {name}", flush=True)


# Around where the error on all features of such a network is the published one: all that was tried.
RAW_EPOCHS = {"table3": [80, 100, 200], "table4": [200], "table5": [100], "table6": [40]}


def _instead(asked: argparse.Namespace) -> None:
    for name in _names(asked):
        if PUBLISHED[name].instead:
            _keep("instead", real.instead(name, seeds=asked.seeds, seed=asked.seed))
            print(f"instead {name}", flush=True)


def _ours(asked: argparse.Namespace) -> None:
    """The paper's learners, cross-fitted and corrected; then the tests on all rows."""
    for name in _names(asked):
        if asked.our_seeds:
            settings = {"mode": "ours", "seeds": asked.our_seeds, "seed": asked.seed}
            _keep_refit("ours", name, _refitted(f"ours {name}", name, **settings))
        start = time.perf_counter()
        _keep("ours_tests", real.all_verdicts(name, seed=asked.seed))
        print(f"tests {name}: {time.perf_counter() - start:.0f} s", flush=True)


PARTS = {"paper": _paper, "instead": _instead, "ours": _ours, "networks": _networks}

if __name__ == "__main__":
    main()
