"""Processor time of one repeat of each of the paper's simulations, and of the whole study."""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import sys
import time

from residua.study.grid import read_grid
from residua.study.paper.studies import MODES, STUDIES
from residua.study.task import Work, run_task


def main(modes: tuple[str, ...]) -> None:
    """Print a row per simulation, and the hours of the study on two cores."""
    totals = dict.fromkeys(modes, 0.0)
    heads = " | ".join(f"s a repeat, {mode} mode" for mode in modes)
    print(f"| simulation | repeats | {heads} |\n| --- | --- |{' --- |' * len(modes)}")
    for name, simulation in STUDIES.items():
        spent = {mode: _one_repeat(name, mode) for mode in modes}
        for mode, seconds in spent.items():
            totals[mode] += simulation.repeats * seconds
        shown = " | ".join(f"{spent[mode]:.2g}" for mode in modes)
        print(f"| {name} | {simulation.repeats} | {shown} |", flush=True)
    hours = ", ".join(f"{mode} {total / 7200:.2f} h" for mode, total in totals.items())
    print(f"\nThe whole study on two cores: {hours}.")


def _one_repeat(name: str, mode: str) -> float:
    grid = read_grid(STUDIES[name].grid(mode))
    total = 0.0
    for cell in range(len(grid.cells)):
        work = Work.of(grid, cell)
        run_task(work, 1) if cell == 0 else None  # compiles
        start = time.process_time()
        done = run_task(work, 0)
        total += time.process_time() - start
        if done.failure:
            sys.exit(f"{name}: {done.failure}")
    return total


if __name__ == "__main__":
    main(tuple(sys.argv[1:]) or MODES)
