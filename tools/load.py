"""Call `assess` many times in one process, and see whether its memory grows.

    python tools/load.py [--calls 500] [--rows 300] [--columns 10]

The first fifth of the calls warms up. After it the process may grow by MOST_MEGABYTES in all.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import covaria

MOST_MEGABYTES = 20.0


def megabytes() -> float:
    """Return the memory of this process; the largest so far where the system tells no other."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmRSS"))
        return int(line.split()[1]) / 1024
    import resource

    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=500)
    parser.add_argument("--rows", type=int, default=300)
    asked = parser.parse_args()
    X, y = covaria.draw("additive", n_rows=asked.rows, seed=0)
    sizes, times = [], []
    for seed in range(asked.calls):
        began = time.process_time()
        covaria.assess(X, y, learner="linear", seed=seed, progress=False)
        times.append(time.process_time() - began)
        sizes.append(megabytes())
    warm = asked.calls // 5
    grown = max(sizes[warm:]) - sizes[warm]
    half = (len(times) + warm) // 2
    slower = sum(times[half:]) / (len(times) - half) / (sum(times[warm:half]) / (half - warm))
    word = "flat" if grown <= MOST_MEGABYTES else "grows"
    print(f"{word}: {asked.calls} calls, {grown:+.1f} MB after the first {warm}, ", end="")
    print(f"later ones take {slower:.2f} times as long as earlier ones")
    return 0 if word == "flat" else 1


if __name__ == "__main__":
    raise SystemExit(main())
