"""How people write a thing with its settings: boosting(trees=200), knockoffs(fdr=0.1)."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import fields
from itertools import pairwise
from typing import TypeVar

from covaria.errors import InputError, did_you_mean, short

Kind = TypeVar("Kind")


def split_names(text: str) -> list[str]:
    """Return the names between commas; commas inside brackets belong to a name.

    >>> split_names("gcm, knockoffs(fdr=0.1, repeats=5)")
    ['gcm', 'knockoffs(fdr=0.1, repeats=5)']
    >>> split_names("network(lr=0.001, hidden=(32, 16)), linear")
    ['network(lr=0.001, hidden=(32, 16))', 'linear']
    """
    commas, depth = [-1], 0
    for at, letter in enumerate(text):
        depth = max(0, depth + (letter == "(") - (letter == ")"))
        if letter == "," and not depth:
            commas.append(at)
    return [text[a + 1 : b].strip() for a, b in pairwise([*commas, len(text)])]


def read_call(
    text: str, *, what: str, known: Mapping[str, object]
) -> tuple[str, dict[str, object]]:
    """Return the name and the settings in "name" or "name(setting=value)".

    >>> read_call("boosting(trees=200)", what="learner", known={"boosting": None})
    ('boosting', {'trees': 200})
    """
    match = re.fullmatch(r"\s*([\w+-]+)\s*(?:\((.*)\))?\s*", text, re.DOTALL)
    name = match[1].lower() if match else text
    if match is None or name not in known:
        raise InputError(f"There is no {what} '{short(name)}'.{did_you_mean(name, known)}")
    return name, _arguments(text, match[2] or "", what)


def _arguments(text: str, inside: str, what: str) -> dict[str, object]:
    try:
        call = ast.parse(f"f({inside})", mode="eval").body
        assert isinstance(call, ast.Call)
        assert not call.args
        return {str(word.arg): ast.literal_eval(word.value) for word in call.keywords}
    except (AssertionError, SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        raise InputError(
            f"The {what} '{short(text)}' cannot be read. Write it as name(setting=value), "
            "such as boosting(trees=200, splits=2)."
        ) from None


def with_settings(kind: type[Kind], name: str, given: Mapping[str, object]) -> Kind:
    """Return the value of a kind that has these settings."""
    known = [f.name for f in fields(kind)]  # type: ignore[arg-type]
    for setting in given:
        if setting not in known:
            hint = did_you_mean(setting, known) if known else " It has none."
            raise InputError(f"'{name}' has no setting '{setting}'.{hint}")
    return kind(**given)
