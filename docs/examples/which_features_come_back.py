"""Which features come back?

Select on each of five training parts, and keep what is selected in at least four of them.
"""

import covaria
from covaria import plots

X, y = covaria.draw("linear", n_rows=400, seed=0, noise=2.0)
found = covaria.stability(X, y, method=["gcm", "loco"], learner="linear")
print(found)
plots.save(plots.stability(found), "stability.svg")
