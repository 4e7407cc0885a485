"""Numbers as people write them: $1,234.50, 12.1%, 31/12/2024; and words that stand for a gap."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime

from covaria.errors import InputError, listed

# Among numbers each of these says that there is none. "none" may mean zero, so it is not here.
GAP_WORDS = frozenset(
    {
        "unknown", "unk", "n/a", "n.a.", "na", "#n/a", "nan", "null", "missing", "not available",
        "not known", "not recorded", "not reported", "no data", "undefined", "?", "-", "--", "—",
        "–", ".", "..",
    }
)  # fmt: skip
# At most this share of a column is text among its numbers; where more is, labels are meant.
FEW_TEXTS = 0.2
# Of so many texts half have to look like numbers or dates; reading all of a long column takes long.
LOOKED_AT = 50
KEEP = "a category dtype keeps the text"

_CURRENCY = (
    r"(?:US|C|A|R)?\$|[€£¥₹₩₽₺₫₴₪]|USD|EUR|GBP|CHF|JPY|CNY|CAD|AUD|INR|SEK|NOK|DKK|PLN|kr|zł"
)
_AMOUNT = re.compile(
    rf"(?P<open>\()?(?P<sign>[-+−]?)\s*(?P<before>{_CURRENCY})?\s*(?P<inner>[-+−]?)"
    rf"(?P<digits>[\d.,'\u00a0\u202f]*\d)\s*(?P<after>%|{_CURRENCY})?(?P<close>\))?"
)
# One of the marks between thousands, then the point: 1,234.5 and 1.234,5. None starts with 0.
_STYLES = {
    ".": re.compile(r"[1-9]\d{0,2}(?:[,'\u00a0\u202f]\d{3})+(?:\.\d+)?|\d*(?:\.\d+)?"),
    ",": re.compile(r"[1-9]\d{0,2}(?:[.'\u00a0\u202f]\d{3})+(?:,\d+)?|\d+(?:,\d+)?"),
}
_WITH_UNIT = re.compile(r"[-+−]?\d+(?:[.,]\d+)?\s*(?P<unit>[^\W\d_][^\d\s]{0,9})")
_ISO = re.compile(r"\d{4}-\d{2}-\d{2}(?:[ T].*)?")
_DAYS = re.compile(
    r"(?P<a>\d{1,2})(?P<mark>[/.-])(?P<b>\d{1,2})(?P=mark)(?P<year>\d{4})"
    r"(?:[ T]+(?P<time>\d{1,2}:\d{2}(?::\d{2})?))?"
)
_YEAR_FIRST = re.compile(r"(?P<year>\d{4})/(?P<b>\d{1,2})/(?P<a>\d{1,2})")
_KINDS = (_AMOUNT, _ISO, _DAYS, _YEAR_FIRST)


@dataclass(frozen=True)
class Written:
    """What the texts of a column stand for, and how they were read."""

    numbers: dict[str, float]
    how: str


def is_gap_word(text: str) -> bool:
    """Return whether a text among numbers says that there is none.

    >>> is_gap_word(" N/A"), is_gap_word("unknown"), is_gap_word("none")
    (True, True, False)
    """
    return text.strip().casefold() in GAP_WORDS


def unit_of(texts: Iterable[str]) -> str:
    """Return the unit that stands behind every number of a column, if it is one and the same.

    >>> unit_of(["12.5 kg", "9 kg", "30kg"]), unit_of(["1 room", "2 rooms"]), unit_of(["A1", "B2"])
    ('kg', '', '')
    """
    distinct = list(dict.fromkeys(text.strip() for text in texts))
    some = (_WITH_UNIT.fullmatch(text) for text in distinct)
    units = {match["unit"] if match else "" for match in some}
    return units.pop() if len(distinct) > 2 and len(units) == 1 else ""


def read_written(
    what: str, texts: Iterable[str], *, beside_numbers: bool = False
) -> Written | None:
    """Return the numbers that a column's texts stand for, None where they are labels.

    `beside_numbers` says that cells without text are among them.

    >>> read_written("Column 'x'", ["$1,234.50", "$9"]).numbers
    {'$1,234.50': 1234.5, '$9': 9.0}
    """
    distinct = list(dict.fromkeys(texts))
    some = distinct[:LOOKED_AT]
    if 2 * sum(any(kind.fullmatch(text.strip()) for kind in _KINDS) for text in some) < len(some):
        return None
    for read in (_amounts, _dates):
        found = read(what, distinct, beside_numbers)
        if found is not None:
            return found
    return None


def _amounts(what: str, texts: list[str], beside_numbers: bool) -> Written | None:
    """Return amounts of money, percentages, or numbers with marks between their thousands."""
    parts = {text: _AMOUNT.fullmatch(text.strip()) for text in texts}
    matches = [part for part in parts.values() if part is not None and _is_whole(part)]
    if len(matches) < len(texts):
        _refuse_odd(what, [text for text, part in parts.items() if part is None], matches)
        return None
    point = next((p for p in _STYLES if _all_in(p, matches)), None)
    if point is None:
        return None
    units = {_unit(match) for match in matches} | ({""} if beside_numbers else set())
    _check_units(what, units)
    values = (_value(match, point) for match in matches)
    return Written(dict(zip(texts, values, strict=True)), _how(units - {""}, point, texts))


def _is_whole(match: re.Match[str]) -> bool:
    """Return whether brackets close, and sign and unit stand once."""
    return (
        bool(match["open"]) == bool(match["close"])
        and not (match["before"] and match["after"])
        and not (match["sign"] and match["inner"])
    )


def _all_in(point: str, matches: list[re.Match[str]]) -> bool:
    return all(_STYLES[point].fullmatch(match["digits"]) for match in matches)


def _unit(match: re.Match[str]) -> str:
    return match["before"] or match["after"] or ""


def _check_units(what: str, units: set[str]) -> None:
    """Raise where numbers of one column count different things."""
    if len(units - {""}) > 1 or ("%" in units and len(units) > 1):
        named = sorted(unit or "no unit" for unit in units)
        raise InputError(f"{what} has numbers in several units ({listed(named)}). Use one unit.")


def _value(match: re.Match[str], point: str) -> float:
    digits = re.sub(r"['\u00a0\u202f]", "", match["digits"])
    digits = digits.replace("." if point == "," else ",", "").replace(",", ".")
    minus = "-" in (s := match["sign"] + match["inner"]) or "−" in s or bool(match["open"])
    return -float(digits) if minus else float(digits)


def _how(units: set[str], point: str, texts: list[str]) -> str:
    if "%" in units:
        return f"holds percentages: '{texts[0].strip()}' is read as a number of per cent; {KEEP}."
    if units:
        return f"holds amounts in {units.pop()}: they are read as numbers; {KEEP}."
    commas = "decimal commas" if point == "," else "marks between thousands"
    return f"holds numbers with {commas}, such as {listed(texts[:1])}; {KEEP}."


def _refuse_odd(what: str, odd: list[str], matches: list[re.Match[str]]) -> None:
    """Raise where a few texts are among amounts with a unit: most likely a slip."""
    if 0 < len(odd) <= FEW_TEXTS * sum(bool(_unit(match)) for match in matches):
        raise InputError(text_among_numbers(what, odd))


def text_among_numbers(what: str, odd: Iterable[str]) -> str:
    """Return the sentence that refuses a few texts among numbers."""
    return (
        f"{what} has text among its numbers ({listed(sorted(set(odd)), 3)}). "
        "Leave those cells blank or correct them; a true category needs a category dtype."
    )


def _dates(what: str, texts: list[str], beside_numbers: bool) -> Written | None:
    """Return days since 1970, of dates that are all written alike."""
    if beside_numbers:
        return None
    bare = [text.strip() for text in texts]
    if all(_ISO.fullmatch(text) for text in bare):
        return _counted(texts, [_iso(text) for text in bare], "yyyy-mm-dd")
    matches = [_DAYS.fullmatch(text) or _YEAR_FIRST.fullmatch(text) for text in bare]
    if not all(matches):
        return None
    found = [match for match in matches if match is not None]
    marks = {match.groupdict().get("mark", "year first") for match in found}
    if len(marks) > 1:
        return None
    order, doubt = _order(marks.pop(), [(int(m["a"]), int(m["b"])) for m in found])
    return _counted(texts, [_day_of(m, order) for m in found], order, doubt) if order else None


def _order(mark: str, pairs: list[tuple[int, int]]) -> tuple[str, str]:
    """Return how days and months stand, and what is said where both orders would do."""
    if mark == "year first":
        return "yyyy/mm/dd", ""
    day_first, month_first = (max(pair[at] for pair in pairs) <= 12 for at in (1, 0))
    names = (f"dd{mark}mm{mark}yyyy", f"mm{mark}dd{mark}yyyy")
    if day_first and month_first and mark != ".":
        cure = f"if they are {names[1]}, use pd.to_datetime(column, format=…)"
        return names[0], f" Every one could be {names[1]} as well: {cure}."
    return (names[0] if day_first else names[1] if month_first else ""), ""


def _counted(
    texts: list[str], days: list[float | None], order: str, doubt: str = ""
) -> Written | None:
    """Return the texts as days, None where one is no day of the calendar."""
    numbers = {text: day for text, day in zip(texts, days, strict=True) if day is not None}
    how = f"holds dates ({order}): it counts days; {KEEP}.{doubt}"
    return Written(numbers, how) if len(numbers) == len(texts) else None


def _iso(text: str) -> float | None:
    return _parsed(lambda: datetime.fromisoformat(text))


def _day_of(match: re.Match[str], order: str) -> float | None:
    day, month = (match["b"], match["a"]) if order.startswith("mm") else (match["a"], match["b"])
    hours = (match.groupdict().get("time") or "0").split(":")
    midnight = _parsed(lambda: datetime(int(match["year"]), int(month), int(day)))
    seconds = sum(int(part) * unit for part, unit in zip(hours, (3600, 60, 1), strict=False))
    return None if midnight is None else midnight + seconds / 86_400


def _parsed(make: Callable[[], datetime]) -> float | None:
    try:
        return day_number(make())
    except ValueError:
        return None


def day_number(value: date) -> float:
    """Return a date or a time of day as days since 1970, as a column of dates gives them."""
    if isinstance(value, datetime):
        start = datetime(1970, 1, 1, tzinfo=UTC if value.tzinfo else None)
        return (value - start).total_seconds() / 86_400
    return float(value.toordinal() - date(1970, 1, 1).toordinal())
