"""Models whose truth is known: their laws, draws and formulas."""
