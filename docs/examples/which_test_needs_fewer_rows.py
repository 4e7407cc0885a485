"""Which test needs fewer rows?

The scores of a result carry their own efficiency: an ARE of 3 says that LOCO needs three rows for
each row of GCM.
"""

import covaria
from covaria import plots

X, y = covaria.draw("linear", n_rows=800, seed=0, noise=1.0)
result = covaria.assess(X, y, learner="linear", methods=["gcm", "loco"])
table = covaria.efficiency(result)
seen = table[table["are"].notna()]
print(seen[["feature", "are", "low", "high", "assumption_a", "advice"]].to_string(index=False))
plots.save(plots.efficiencies(table), "rows.svg")
