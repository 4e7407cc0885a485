"""Which features drive diabetes a year on?

442 patients, ten measurements, and how far the disease had progressed a year later. Which of the
ten matter given the other nine?
"""

from sklearn.datasets import load_diabetes

import covaria
from covaria import plots

frame = load_diabetes(as_frame=True, scaled=False).frame.rename(columns={"target": "progression"})
result = covaria.assess(frame, "progression")
print(result)
plots.save(plots.forest(result, "gcm"), "diabetes_effects.svg")
plots.save(plots.residuals(result, "bmi"), "diabetes_bmi.svg")
