"""From scores to estimates, p-values and intervals; from p-values to chosen features."""
