"""What if the effect is a square?

y grows at both ends of x1. GCM asks whether the residuals of x1 and y are correlated, and they are
not: it is blind to even effects. PCM learns a function of x1 first and sees them, so the default,
gcm+pcm, does too. The picture shows the residuals.
"""

import numpy as np
import pandas as pd

import covaria
from covaria import plots

rng = np.random.default_rng(0)
X = pd.DataFrame(rng.normal(size=(600, 3)), columns=["x1", "x2", "x3"])
y = X["x1"] ** 2 + X["x2"] + rng.normal(size=600)
result = covaria.assess(X, y, learner="splines")
print(result)
plots.save(plots.residuals(result, "x1"), "square.svg")
