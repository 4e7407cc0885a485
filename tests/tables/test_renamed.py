"""A column that was renamed is found under its old name, wherever columns are named."""

import pickle
from typing import ClassVar

import pandas as pd
import pytest

from covaria.tables.renamed import Renamed


class Weather(Renamed):
    old_names: ClassVar = {"wet": "rain", "warm": "degrees"}


@pytest.fixture
def table():
    return Weather({"day": ["a", "b", "a"], "rain": [2.0, 0.0, 1.0], "degrees": [5, 9, 7]})


WAYS = {
    "a column": lambda t, wet, warm: t[wet],
    "columns": lambda t, wet, warm: t[[wet, warm, "day"]].iloc[:, 0],
    "an attribute": lambda t, wet, warm: getattr(t, wet),
    "get": lambda t, wet, warm: t.get(wet),
    "loc": lambda t, wet, warm: t.loc[t["day"] == "a", wet],
    "loc of several": lambda t, wet, warm: t.loc[:, [wet, warm]].sum(axis=1),
    "one place": lambda t, wet, warm: t.at[1, wet],
    "a row": lambda t, wet, warm: t.iloc[0][wet],
    "rows in turn": lambda t, wet, warm: [row[wet] for _, row in t.iterrows()],
    "a part": lambda t, wet, warm: t[t["day"] == "a"][wet],
    "a copy": lambda t, wet, warm: t.copy()[wet],
    "a pickle": lambda t, wet, warm: pickle.loads(pickle.dumps(t))[wet],
    "groups": lambda t, wet, warm: t.groupby("day")[wet].sum(),
    "groups by it": lambda t, wet, warm: t.groupby(wet)["degrees"].sum().tolist(),
    "order by a keyword": lambda t, wet, warm: t.sort_values(by=[wet, "day"])["day"],
    "order": lambda t, wet, warm: t.sort_values(wet)["day"],
    "an index": lambda t, wet, warm: t.set_index(wet)["day"].tolist(),
    "a query": lambda t, wet, warm: t.query(f"{wet} > 0 and {warm} > 5")["day"],
    "an expression": lambda t, wet, warm: t.eval(f"{wet} + {warm}"),
}


@pytest.mark.parametrize("way", WAYS)
def test_old_names_find_what_new_ones_do_and_say_so(way, table):
    with pytest.warns(DeprecationWarning, match="is now called"):
        old = WAYS[way](table, "wet", "warm")
    new = WAYS[way](table, "rain", "degrees")
    assert old.equals(new) if isinstance(old, pd.Series) else old == new


def test_an_old_name_is_in_the_table_and_other_names_are_not(table):
    with pytest.warns(DeprecationWarning, match="now called"):
        assert "wet" in table
    assert "wind" not in table
    with pytest.raises(KeyError):
        table["wind"]
    with pytest.raises(AttributeError):
        _ = table.wind


def test_a_value_set_under_an_old_name_is_set_under_the_new(table):
    with pytest.warns(DeprecationWarning, match="now called"):
        table.loc[1, "wet"] = 9.0
    assert table["rain"].tolist() == [2.0, 9.0, 1.0]


def test_new_names_warn_of_nothing_and_columns_are_plain(table, recwarn):
    assert type(table["rain"]) is pd.Series
    table.loc[:, "rain"], table.groupby("rain"), "rain" in table
    assert not [w for w in recwarn if w.category is DeprecationWarning]


def test_a_column_of_ones_own_may_have_an_old_name(table, recwarn):
    own = table.assign(wet="yes")
    assert own["wet"].tolist() == ["yes"] * 3
    assert not [w for w in recwarn if w.category is DeprecationWarning]


def test_a_stored_table_is_read_under_todays_names():
    assert Weather.of(pd.DataFrame({"wet": [1], "day": [2]})).columns.tolist() == ["rain", "day"]


def test_the_warning_points_at_the_line_that_asked(table):
    with pytest.warns(DeprecationWarning, match="now called") as caught:
        table["wet"], table.loc[0, "wet"], table.wet, table.iloc[0]["wet"]
    assert {one.filename for one in caught} == {__file__}
