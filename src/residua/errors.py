"""What can go wrong for a user, each as one sentence with the cure in it."""

from __future__ import annotations


class InputError(ValueError):
    """What was given cannot be tested; the message says which column and what to do."""


class MissingExtra(ImportError):
    """An optional package is needed; the message says how to install it."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs an optional package: pip install 'residua[{extra}]'.")
        self.extra = extra


def plural(count: int, noun: str) -> str:
    """Return "1 row" or "3 rows".

    >>> plural(1, "row"), plural(2000, "row"), plural(2, "class")
    ('1 row', '2,000 rows', '2 classes')
    """
    ending = "" if count == 1 else "es" if noun.endswith("s") else "s"
    return f"{count:,} {noun}{ending}"


def listed(names: list[str], most: int = 5) -> str:
    """Return names quoted and comma-separated, the tail counted rather than shown.

    >>> listed(["a", "b"]), listed(list("abcdefg"), most=2)
    ("'a', 'b'", "'a', 'b' and 5 more")
    """
    shown = ", ".join(f"'{short(name)}'" for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def short(name: str, most: int = 60) -> str:
    """Return the name fit for one line: no control characters, not too long.

    >>> short("a\\nb"), short("x" * 99, 5)
    ('a b', 'xxxx…')
    """
    flat = "".join(c if c.isprintable() else " " for c in name)
    return flat if len(flat) <= most else flat[: most - 1] + "…"
