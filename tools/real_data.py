"""Make the tables behind docs/real_data.md, and the page: python tools/real_data.py PART.

Parts: paper (the paper's mode, its learners), instead (settings that give what the stated ones
cannot), ours (cross-fitted selection and tests), networks (what their unstated settings do), page
(docs/real_data.md from the tables). Each writes small tables to results/real/, with the command,
the seed and the version in about.json.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import pandas as pd

from covaria import datasets
from covaria.paper import real_page
from covaria.paper import real_tables as real
from covaria.paper import statements as real_items
from covaria.paper.kept import Stamp
from covaria.paper.published import PUBLISHED
from covaria.selection.refit import Refit

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "results" / "real"


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
            before = time.process_time()
            PARTS[part](asked)
            command = "python tools/real_data.py " + " ".join(sys.argv[1:])
            stamp = Stamp.now(command, asked.seed, seconds=time.process_time() - before)
            real_items.sign(FOLDER, part, _names(asked, part), stamp)
    if asked.part in ("page", "all"):
        path = ROOT / "docs" / "real_data.md"
        path.write_text(real_page.page(FOLDER), encoding="utf-8")
        print(path)


def _names(asked: argparse.Namespace, part: str) -> list[str]:
    """Return the tables that were asked for and that a part is about."""
    about = {"instead": [n for n, known in PUBLISHED.items() if known.instead], "networks": EPOCHS}
    names = [n.strip() for n in asked.only.split(",") if n.strip()] or list(PUBLISHED)
    return [name for name in names if name in about.get(part, names)]


def _keep(name: str, rows: pd.DataFrame) -> None:
    real_items.keep(FOLDER / f"{name}.csv", rows)


def _paper(asked: argparse.Namespace) -> None:
    """Least squares and boosting on so many draws of the folds, networks on their own number."""
    for learners, seeds in ((["lm", "GBM"], asked.seeds), (["NN"], asked.network_seeds)):
        for name in _names(asked, "paper") if seeds else ():
            settings = {"learners": learners, "seeds": seeds, "seed": asked.seed}
            found = _refitted(f"paper {name} {learners}", name, **settings)
            real_items.keep_all(FOLDER, "paper", real_items.parts(name, found))
            if datasets.groups(PUBLISHED[name].dataset):
                one = _refitted(f"paper {name}, grouped", name, grouped=True, **settings)
                _keep("paper_grouped_frequencies", real.frequencies(name, one))


def _refitted(what: str, name: str, **settings: Any) -> Refit:
    start = time.perf_counter()
    found = real.run(name, **settings)
    print(f"{what}: {time.perf_counter() - start:.0f} s", flush=True)
    return found


def _networks(asked: argparse.Namespace) -> None:
    """What the networks' unstated settings do."""
    for name in _names(asked, "networks"):
        _keep("networks_epochs", real.epochs(name, [int(mark) for mark in asked.epochs.split(",")]))
        print(f"epochs {name}", flush=True)
        settings = {"seeds": asked.raw_seeds, "seed": asked.seed}
        rows = [real.raw_networks(name, epochs=count, **settings) for count in EPOCHS[name]]
        _keep("networks_raw", pd.concat(rows, ignore_index=True))
        print(f"raw {name}", flush=True)


# Around where the error on all features of such a network is the published one: all that was tried.
EPOCHS = {"table3": [80, 100, 200], "table4": [200], "table5": [100], "table6": [40]}


def _instead(asked: argparse.Namespace) -> None:
    for name in _names(asked, "instead"):
        _keep("instead", real.instead(name, seeds=asked.seeds, seed=asked.seed))
        print(f"instead {name}", flush=True)


def _ours(asked: argparse.Namespace) -> None:
    """The paper's learners, cross-fitted and corrected; then the tests on all rows."""
    for name in _names(asked, "ours"):
        if asked.our_seeds:
            settings = {"mode": "ours", "seeds": asked.our_seeds, "seed": asked.seed}
            found = _refitted(f"ours {name}", name, **settings)
            real_items.keep_all(FOLDER, "ours", real_items.parts(name, found))
        start = time.perf_counter()
        _keep("ours_tests", real.all_verdicts(name, seed=asked.seed))
        print(f"tests {name}: {time.perf_counter() - start:.0f} s", flush=True)


PARTS = {"paper": _paper, "instead": _instead, "ours": _ours, "networks": _networks}

if __name__ == "__main__":
    main()
