"""The nuisance regressions behind the tests: planned, chosen, fitted once, their residuals."""
