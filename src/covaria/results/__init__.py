"""What came of a run: one frozen, tidy `Result`."""
