"""What can go wrong for a user, each as one sentence with the cure in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from numbers import Integral
from typing import Any, TypeGuard, TypeVar

T = TypeVar("T")

# A longer sentence repeats what was given: its middle is left out, the cure stands at its end.
MOST_LETTERS = 2000


def sentence(message: object) -> str:
    """Return a message on one line, as it may be shown anywhere.

    >>> sentence("no\\x1b[31m\\nfile"), len(sentence("x" * 10**6))
    ('no\\\\x1b[31m file', 2000)
    """
    text = visible(str(message))
    half = MOST_LETTERS // 2
    return text if len(text) <= MOST_LETTERS else f"{text[:half]}…{text[1 - half :]}"


class InputError(ValueError):
    """What was given cannot be tested; the message says which column and what to do."""

    def __init__(self, message: str = "") -> None:
        super().__init__(sentence(message))


class Problems:
    """What is wrong with a table, collected so that all of it is said at once."""

    MOST = 10

    def __init__(self) -> None:
        self.said: list[str] = []

    def of(self, function: Callable[..., T], *given: object) -> T | None:
        """Return what a function returns, or None where it found a problem."""
        try:
            return function(*given)
        except InputError as error:
            self.said.append(str(error))
            return None

    def settle(self) -> None:
        """Raise what was found: one sentence as it is, several numbered."""
        found = list(dict.fromkeys(self.said))
        if len(found) == 1:
            raise InputError(found[0])
        if found:
            listing = " ".join(f"({at}) {text}" for at, text in enumerate(found[: self.MOST], 1))
            more = len(found) - self.MOST
            tail = f" And {more} more." if more > 0 else ""
            raise InputError(f"There are {len(found)} problems. {listing}{tail}")


class NothingFitted(InputError):
    """No regression of any test could be fitted; `result` says of each why."""

    def __init__(self, message: str, result: Any = None) -> None:
        super().__init__(message)
        self.result = result


class MissingExtra(ImportError):
    """An optional package is needed; the message says how to install it."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs an optional package: pip install 'covaria[{extra}]'.")
        self.extra = extra


def is_whole(value: object) -> TypeGuard[int]:
    """Return whether a value is a whole number, and not True or False.

    >>> is_whole(3), is_whole(3.0), is_whole(True)
    (True, False, False)
    """
    return isinstance(value, Integral) and not isinstance(value, bool)


def plural(count: int, noun: str) -> str:
    """Return "1 row" or "3 rows".

    >>> plural(1, "row"), plural(2000, "row"), plural(2, "class")
    ('1 row', '2,000 rows', '2 classes')
    """
    ending = "" if count == 1 else "es" if noun.endswith("s") else "s"
    return f"{count:,} {noun}{ending}"


def listed(names: list[str], most: int = 5) -> str:
    """Return names quoted and comma-separated, a tail of two or more counted rather than shown.

    >>> listed(["a", "b"]), listed(list("abcdefg"), most=2)
    ("'a', 'b'", "'a', 'b' and 5 more")
    """
    most = most if len(names) > most + 1 else len(names)
    shown = ", ".join(f"'{short(name)}'" for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def short(name: str, most: int = 60) -> str:
    """Return the name fit for one line: no control characters, not too long.

    >>> short("a\\nb"), short("x" * 99, 5)
    ('a b', 'xxxx…')
    """
    flat = visible(name[: 2 * most])  # the rest would not be shown
    return flat if len(flat) <= most else flat[: most - 1] + "…"


def text_of(value: object) -> str:
    """Return a value as text that every file can hold.

    Half a character (a lone surrogate, as in names of files that are not UTF-8) is shown as its
    code, and a number of more digits than Python writes in full in base 16.

    >>> text_of(3), text_of("caf\\udce9")
    ('3', 'caf\\\\udce9')
    """
    try:
        text = str(value)
    except Exception:  # of thousands of digits, or an object that has no text
        text = hex(value) if isinstance(value, int) else type(value).__name__
    return text if text.isascii() else text.encode(errors="backslashreplace").decode()


def visible(text: str) -> str:
    """Return the text with what would move a cursor, turn letters round or hide as its code.

    Joiners stay: Persian, Hindi and emoji are written with them.

    >>> visible("a\\x1b[31mb"), visible("a\\u202eb"), visible("می\\u200cخواهم")
    ('a\\\\x1b[31mb', 'a\\\\u202eb', 'می\\u200cخواهم')
    """
    return text if text.isprintable() else "".join(map(_shown, text))


def _shown(c: str) -> str:
    if c.isprintable() or c in "\u200c\u200d":
        return c
    return " " if c.isspace() and c not in "\x1c\x1d\x1e\x1f\x85" else ascii(c)[1:-1]


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """Return a hint with the nearest known names, or the known ones where none is near.

    >>> did_you_mean("prize", ["price", "area"])
    " Did you mean 'price'?"
    """
    known, name = list(known), text_of(name)[:200]
    near = [f"'{short(match)}'" for match in get_close_matches(name, known, n=2, cutoff=0.5)]
    if near:
        return f" Did you mean {' or '.join(near)}?"
    return f" There are {listed(known)}." if known else " There are none."


class StoreError(RuntimeError):
    """A store cannot be written or is in use; the message says why and how to go on."""

    def __init__(self, message: str = "") -> None:
        super().__init__(sentence(message))


class Interrupted(Exception):
    """A long run was stopped by the user; the message says what is kept and how to go on."""
