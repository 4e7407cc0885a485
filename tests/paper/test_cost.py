"""What the whole reproduction takes, by the stamps of its results."""

import pytest

from covaria.paper import kept
from covaria.paper.cost import costs, how_long, missing
from covaria.paper.kept import Stamp
from covaria.paper.statements import sign

ROWS = "scenario,setting,learner,options,repeat,method,seconds"


def write(folder, study, mode, *, tasks, seconds):
    stamp = Stamp("covaria paper", 0, {"covaria": "1"}, "abc", tasks, seconds)
    rows = [f"linear,n,boosting,paper,{at},{m},2.5" for at in range(2) for m in ("gcm", "loco")]
    text = "\n".join([stamp.line, ROWS, *rows, ""])
    kept.path_of(folder, study, mode).write_text(text, encoding="utf-8")


def test_a_stamp_tells_a_tasks_time_and_without_one_the_methods_give_a_limit(tmp_path):
    write(tmp_path, "boosting", "paper", tasks=50, seconds=100.0)
    write(tmp_path, "kernel", "ours", tasks=50, seconds=None)
    sign(tmp_path / "real", "paper", ["table1"], Stamp("covaria paper table1", 0, {}))
    sign(
        tmp_path / "real",
        "paper",
        ["table2"],
        Stamp("covaria paper table2", 0, {}, cpu_seconds=1800.0),
    )
    measured, limit, table = costs(tmp_path)
    assert (measured.seconds, measured.known, measured.full) == (2.0, 50, 400)
    assert measured.hours == pytest.approx(800 / 3600)
    assert (limit.seconds, limit.known, limit.is_limit) == (5.0, 0, True)
    assert (table.part, table.hours) == ("table2", 0.5)
    text = how_long(tmp_path)
    assert "| kernel | ours | 0 | 400 | ≤ 5 | ≤ 0.56 |" in text
    # .722 hours were measured, .556 are a limit.
    assert "In all 0.7 hours of the CPU that were measured and at most 0.6 that were not" in text
    assert "0.4 to 0.6 hours on 2 cores" in text


def test_what_has_no_run_is_named_and_panels_are_of_the_papers_mode(tmp_path):
    write(tmp_path, "boosting", "default", tasks=1, seconds=1.0)
    left = missing(tmp_path)
    assert "wide_boosting (default)" in left
    assert "boosting (default)" not in left
    assert "surrogate_beta (paper)" in left
    assert "surrogate_beta (ours)" not in left
    assert "kernel (default)" not in left  # it has the rows of boosting's
    assert how_long(tmp_path / "nowhere") == ""
