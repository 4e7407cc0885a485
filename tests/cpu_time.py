"""Processor time, for tests of what is faster: waiting for others' work is not counted."""

import time


def least_seconds(act, runs=3):
    """Return the least processor time of several runs, which a busy machine changes little."""
    took = []
    for _ in range(runs):
        start = time.process_time()
        act()
        took.append(time.process_time() - start)
    return min(took)
