"""Pages, files and extensions of results of other targets."""

import numpy as np
import pandas as pd
import pytest

import covaria
from covaria.report.words import methods_paragraph

rng = np.random.default_rng(4)
X = pd.DataFrame(rng.normal(size=(120, 3)), columns=["a", "b", "c"])
Y = np.exp(X["a"] + rng.normal(size=120))
ASKED = {
    "counts": (np.round(Y), {"loss": "poisson"}, "Poisson deviance"),
    "quantile": (Y, {"loss": "pinball(0.7)"}, "pinball loss of quantile 0.7"),
    "times": (Y, {"event": rng.random(120) < 0.7}, "partial likelihood"),
    "several": (pd.DataFrame({"u": Y, "v": X["b"] + Y}), {}, "u and v"),
    "ordered": (np.digitize(Y, [0.5, 1, 2]), {"task": "ordinal"}, "help"),
}


@pytest.mark.parametrize("kind", ASKED)
def test_a_result_has_its_page_its_paragraph_its_file_and_more_methods(kind, tmp_path):
    y, asked, said = ASKED[kind]
    result = covaria.assess(X, y, learner="linear", **asked)
    assert said in methods_paragraph(result)
    assert covaria.write_report(result, tmp_path / "page.html").exists()
    result.to_json(tmp_path / "result.json")
    assert covaria.Result.from_json(tmp_path / "result.json") == result
    more = result.extend(methods=["permutation"])
    at_once = covaria.assess(X, y, learner="linear", methods=list(more.about.methods), **asked)
    pd.testing.assert_frame_equal(more.table, at_once.table)
