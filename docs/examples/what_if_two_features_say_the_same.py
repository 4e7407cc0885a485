"""What if two features say the same?

`metres` and `feet` are nearly copies. Given the other, neither adds anything, so each alone seems
useless. Tested as one, they are what matters.
"""

import numpy as np
import pandas as pd

import covaria
from covaria import plots

rng = np.random.default_rng(0)
X = pd.DataFrame({"metres": rng.normal(size=500), "rooms": rng.normal(size=500)})
X["feet"] = 3.28 * X["metres"] + 0.02 * rng.normal(size=500)
y = X["metres"] + rng.normal(size=500)
print(covaria.assess(X, y, learner="linear"))
print()
size = {"size": ["metres", "feet"]}
together = covaria.assess(X, y, learner="linear", groups=size)
print(together)
plots.save(plots.forest(together, "gcm"), "size.svg")
