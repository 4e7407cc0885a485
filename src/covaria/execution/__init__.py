"""Where work runs: here, in processes, on a cluster; compiled code, progress, interrupts."""
