"""Pictures draw what the tables say, and the same picture is the same bytes."""

import pytest

import residua
from residua import InputError, assess, plots


@pytest.fixture(scope="module")
def result(small_data):
    return assess(*small_data, learner="linear")


@pytest.fixture(scope="module")
def pictures(result):
    model = residua.scenario("additive")
    return {
        "efficiencies": lambda: plots.efficiencies(residua.efficiency(result)),
        "power": lambda: plots.power_curves(residua.power_at(result, [50, 100, 1000]), power=0.8),
        "theory": lambda: plots.theory_bars(residua.theory.table(model)),
    }


@pytest.mark.parametrize("name", ["efficiencies", "power", "theory"])
@pytest.mark.parametrize("kind", ["svg", "png"])
def test_the_same_picture_is_the_same_bytes(name, kind, pictures, tmp_path):
    first, again = (plots.save(pictures[name](), tmp_path / f"{k}.{kind}") for k in range(2))
    assert first.read_bytes() == again.read_bytes()
    assert len(first.read_bytes()) > 1000


def test_a_point_lies_at_its_efficiency(result):
    table = residua.efficiency(result)
    ax = plots.efficiencies(table)
    known = table[table["are"].notna() & (table["are"] > 0)]
    drawn = sorted(x for line in ax.containers for x in line[0].get_xdata())
    assert drawn == pytest.approx(sorted(known["are"]))


def test_names_with_dollars_are_names(small_data, tmp_path):
    X, y = small_data
    import pandas as pd

    frame = pd.DataFrame(X, columns=["a$b$", "价格", "c_d^e", "<x>"])
    table = residua.efficiency(assess(frame, y, learner="linear"))
    plots.save(plots.efficiencies(table), tmp_path / "odd.svg")


def test_curves_are_drawn_on_the_axes_given(result):
    ax = plots.saving.new_axes()
    assert plots.power_curves(residua.power_at(result, [50, 100]), ax=ax) is ax
    with pytest.raises(InputError, match="power_at"):
        plots.power_curves(residua.efficiency(result))


def test_an_unknown_kind_of_file_gets_a_sentence(result, tmp_path):
    with pytest.raises(InputError, match=r"must end in"):
        plots.save(plots.efficiencies(residua.efficiency(result)), tmp_path / "x.bmp")
