"""Result: the tidy table, the scores behind it, and how it was made; frozen."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from residua.errors import InputError, MissingExtra, short

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]
FORMAT = 1


@dataclass(frozen=True, eq=False)
class Result:
    """What `assess` found.

    table    method, feature, estimate, std_error, low, high, statistic, p_value, p_adjusted,
             selected, status; then df, effect, effect_low, effect_high
    scores   {method: (rows, features)}; the mean is the estimate, sd/√n its standard error
    rows     which rows of the table were tested, in the order of the scores
    about    learner, splits, seed, versions, fits and seconds per method, and more
    quality  how well each regression predicts out of fold
    alerts   sentences to read before trusting the table
    """

    table: pd.DataFrame
    scores: Mapping[str, Array]
    rows: NDArray[np.intp]
    about: Mapping[str, Any]
    quality: pd.DataFrame
    alerts: tuple[str, ...] = field(default=())

    @property
    def methods(self) -> list[str]:
        return list(self.scores)

    @property
    def features(self) -> list[str]:
        return [str(f) for f in self.table["feature"].drop_duplicates()]

    @property
    def selected(self) -> dict[str, list[str]]:
        """Return the features each method selected, in the order of the table."""
        chosen = self.table[self.table["selected"]]
        return {m: chosen.loc[chosen["method"] == m, "feature"].tolist() for m in self.methods}

    @property
    def failures(self) -> dict[str, str]:
        """Return why fits failed, by "method: feature"."""
        failed = self.table[self.table["status"].str.startswith("failed")]
        keys = failed["method"].astype(str) + ": " + failed["feature"].astype(str)
        return dict(zip(keys, failed["status"], strict=True))

    def only(self, *methods: str) -> Result:
        """Return the part of the result that belongs to `methods`."""
        for method in methods:
            if method not in self.scores:
                raise InputError(f"This result has no '{method}', only {', '.join(self.methods)}.")
        kept = self.table[self.table["method"].isin(methods)].reset_index(drop=True)
        return replace(self, table=kept, scores={m: self.scores[m] for m in methods})

    @property
    def verdicts(self) -> pd.DataFrame:
        """Return one row per feature, the clearest first: what each method says, and a verdict."""
        import pandas as pd

        by_feature: dict[str, list[dict[Any, Any]]] = {name: [] for name in self.features}
        for line in self.table.to_dict(orient="records"):
            by_feature[line["feature"]].append(line)
        lines = sorted(by_feature.values(), key=lambda lines: min(t["p_value"] for t in lines))
        return pd.DataFrame([_verdict(tests) for tests in lines])

    def __str__(self) -> str:
        names = [m for method in self.methods for m in (method, f"{method} p")]
        shown = self.verdicts[["feature", *names, "verdict"]]
        lines = [self.headline, "", plain_table(shown)]
        return "\n".join([*lines, *(f"! {alert}" for alert in self.alerts)])

    __repr__ = __str__

    @property
    def headline(self) -> str:
        """Return the answer in one sentence."""
        chosen = self.table.loc[self.table["selected"], "feature"].nunique()
        about = self.about
        correction = {"none": "unadjusted"}.get(about["correction"], about["correction"].upper())
        return (
            f"{chosen} of {len(self.features)} features matter for '{short(about['target'])}' "
            f"({', '.join(self.methods)}; {correction}, level {about['alpha']:g})."
        )

    def _repr_html_(self) -> str:
        from html import escape

        notes = "".join(f"<li>{escape(alert)}</li>" for alert in self.alerts)
        table = str(self.verdicts.to_html(index=False, escape=True, border=0))
        return f"<p><b>{escape(self.headline)}</b></p>{table}<ul>{notes}</ul>"

    def to_dict(self) -> dict[str, Any]:
        """Return everything as values that json can hold; arrays as compressed text."""
        return {
            "format": FORMAT,
            "about": dict(self.about),
            "alerts": list(self.alerts),
            "table": self.table.to_dict(orient="list"),
            "quality": self.quality.to_dict(orient="list"),
            "rows": _packed(self.rows.astype(np.int64)),
            "scores": {name: _packed(array) for name, array in self.scores.items()},
        }

    def to_json(self, path: str | Path | None = None) -> str:
        """Return the result as JSON text, and write it where a path is given."""
        text = json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False, indent=1)
        if path is not None:
            Path(path).write_text(text + "\n", encoding="utf-8")
        return text

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Result:
        """Return the result that `to_dict` described."""
        import pandas as pd

        if stored.get("format") != FORMAT:
            raise InputError("This is not a result that this version of residua wrote.")
        return cls(
            table=pd.DataFrame(stored["table"]),
            scores={name: _unpacked(array) for name, array in stored["scores"].items()},
            rows=_unpacked(stored["rows"]).astype(np.intp),
            about=stored["about"],
            quality=pd.DataFrame(stored["quality"]),
            alerts=tuple(stored["alerts"]),
        )

    @classmethod
    def from_json(cls, path: str | Path) -> Result:
        """Return the result stored in a file."""
        try:
            return cls.from_dict(json.loads(Path(path).read_text(encoding="utf-8")))
        except (json.JSONDecodeError, AttributeError, KeyError, UnicodeDecodeError):
            raise InputError(f"{path} does not hold a residua result.") from None

    def to_parquet(self, path: str | Path) -> None:
        """Write the table as Parquet."""
        try:
            self.table.to_parquet(path, index=False)
        except ImportError:
            try:
                import polars
            except ImportError:
                raise MissingExtra("Parquet", "polars") from None
            polars.DataFrame(self.table.to_dict(orient="list")).write_parquet(path)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Result) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]


def _packed(array: NDArray[Any]) -> dict[str, Any]:
    array = np.ascontiguousarray(array)
    text = base64.b64encode(zlib.compress(array.astype(array.dtype.newbyteorder("<")).tobytes(), 6))
    return {
        "shape": list(array.shape),
        "dtype": array.dtype.str.lstrip("=<>|"),
        "data": text.decode(),
    }


def _unpacked(stored: Mapping[str, Any]) -> NDArray[Any]:
    raw = zlib.decompress(base64.b64decode(stored["data"]))
    array = np.frombuffer(raw, dtype="<" + stored["dtype"]).reshape(stored["shape"])
    return array.astype(stored["dtype"])


def describe_effect(line: Any) -> str:
    """Return an effect with its interval, or a dash where there is none."""
    if line["status"] != "ok":
        return "—"
    return f"{line['effect']:.3g} [{line['effect_low']:.3g}, {line['effect_high']:.3g}]"


def describe_p(p: float) -> str:
    """Return a p-value as people write it.

    >>> describe_p(0.0314), describe_p(2e-9), describe_p(1e-40), describe_p(1.0)
    ('.031', '2e-09', '<1e-16', '1')
    """
    if p < 1e-16:
        return "<1e-16"
    if p < 0.001:
        return f"{p:.0e}"
    return "1" if p > 0.9995 else f"{p:.3f}".lstrip("0")


def _verdict(tests: list[dict[Any, Any]]) -> dict[str, Any]:
    """Return what the tests say of one feature, in a row for people."""
    row: dict[str, Any] = {"feature": tests[0]["feature"]}
    for test in tests:
        row[test["method"]] = describe_effect(test)
        row[f"{test['method']} p"] = describe_p(test["p_adjusted"])
    return {**row, "verdict": _in_words(tests)}


def _in_words(tests: list[dict[Any, Any]]) -> str:
    chosen = [str(test["method"]) for test in tests if test["selected"]]
    if len(chosen) == len(tests):
        return "matters"
    if chosen:
        return f"matters ({', '.join(chosen)} only)"
    status = [str(test["status"]) for test in tests]
    if all(s.startswith("failed") for s in status):
        return short(status[0], 60)
    for word in ("constant", "unused", "redundant"):
        if all(s == word or s.startswith("failed") for s in status):
            return word
    return "no evidence"


def plain_table(frame: pd.DataFrame, widest: int = 40) -> str:
    """Return the frame as lines of aligned text, names shown as they are."""
    cells = [[short(str(value), widest) for value in row] for row in frame.itertuples(index=False)]
    rows = [[str(name) for name in frame.columns], *cells]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ("  ".join(v.ljust(w) for v, w in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)
