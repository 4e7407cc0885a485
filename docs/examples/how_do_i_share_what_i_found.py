"""How do I share what I found?

One HTML file with everything in it, which asks the network for nothing; the result as JSON, which
reads back as it was; and a paragraph to paste.
"""

import os

import covaria
from covaria.report.words import methods_paragraph

X, y = covaria.draw("additive", n_rows=400, seed=0)
result = covaria.assess(X, y, learner="splines")
page = covaria.write_report(result, os.devnull)
result.to_json(os.devnull)
print(methods_paragraph(result))
