"""The verdicts on theorems and examples, and the limits that two of them are."""

import pandas as pd
import pytest

from covaria.paper.registry import Verdict
from covaria.paper.theory import SIZES, claims, lazy_spreads, spreads

# By the order of the paper: which of its statements hold (shared/spec.md, B1 and B2).
HOLD = {1, 2, 5, 6, 7, 8}
DRAWS, SOME = 25, (50, 800)


@pytest.fixture(scope="module")
def table():
    return spreads(400)


@pytest.fixture(scope="module")
def lazy():
    return lazy_spreads(DRAWS, sizes=SOME)


def test_each_statement_has_the_verdict_that_exact_moments_give_it(table, lazy):
    found = claims(pd.concat([table, lazy]))
    assert [claim.id for claim in found] == [f"theory-{k}" for k in range(1, 19)]
    verdicts = {int(claim.id.split("-")[1]): claim.verdict for claim in found[2:-1]}
    assert verdicts == {k: Verdict.HELD if k in HOLD else Verdict.NOT_HELD for k in range(3, 18)}
    assert all(claim.quote and claim.section for claim in found)
    assert len({claim.text for claim in found}) == len(found)


def test_spreads_come_to_their_limits_but_locos_at_the_null_to_zero(table):
    last = table[table["n_rows"] == SIZES[-1]].set_index(["method", "feature"])["ratio"]
    near = [last["GCM", "x1"], last["LOCO", "x1"], last["GCM", "x2"]]
    assert near == pytest.approx([1, 1, 1], abs=5 / (2 * 400) ** 0.5)
    falling = table[(table["method"] == "LOCO") & (table["feature"] == "x2")]["ratio"]
    assert falling.is_monotonic_decreasing
    assert falling.iloc[-1] < 0.05


def test_lazy_vis_spread_is_that_of_its_limit_and_falls_at_the_null(lazy):
    last = lazy[lazy["n_rows"] == SOME[-1]].set_index("feature")["ratio"]
    assert last["x1"] == pytest.approx(1, abs=4 / (2 * DRAWS) ** 0.5)
    null = lazy[lazy["feature"] == "x2"]["ratio"]
    assert null.iloc[-1] < 0.3 < null.iloc[0]
