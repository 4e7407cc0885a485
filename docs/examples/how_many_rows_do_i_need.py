"""How many rows do I need?

A pilot of 300 rows tells how many a test needs to find each feature with a chance of 80%.
"""

import covaria
from covaria import plots

X, y = covaria.draw("linear", n_rows=300, seed=1, noise=3.0)
pilot = covaria.assess(X, y, learner="linear", methods=["gcm", "loco"])
needed = covaria.plan(pilot, power=0.8)
print(needed[needed["feature"].isin(["x5", "x6", "x7", "x8"])].to_string(index=False))
sizes = [20, 30, 50, 80, 120, 200, 300, 500, 800, 1200, 2000, 5000]
curves = covaria.power_at(pilot.only("gcm", "loco"), sizes)
chosen = curves[curves["feature"].isin(["x5", "x6", "x7", "x8"])]
plots.save(plots.power_curves(chosen, power=0.8), "power.svg")
