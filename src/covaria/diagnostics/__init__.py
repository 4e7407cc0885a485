"""What puts a verdict in doubt: poor regressions, residuals that still hold something."""
