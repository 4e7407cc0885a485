"""How do I share what I found?

One HTML file with everything in it, which asks the network for nothing; the result as JSON, which
reads back as it was; and a paragraph to paste.
"""

import os

import residua
from residua.report.words import methods_paragraph

X, y = residua.draw("additive", n_rows=400, seed=0)
result = residua.assess(X, y, learner="splines")
page = residua.write_report(result, os.devnull)
result.to_json(os.devnull)
print(methods_paragraph(result))
