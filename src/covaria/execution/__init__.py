"""Where work runs: threads, workers, compiled code, progress, interrupts."""
