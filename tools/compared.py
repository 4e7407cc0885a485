"""One table, and what people use today beside covaria: which feature does each call important?

    python tools/compared.py [--tables 20]     writes docs/compared.md; needs shap beside covaria

y = size + age² / 2 + noise. `copy` is size measured with error, so given size it says nothing;
`useless` and `random` are noise. Every table is drawn anew.
"""

from __future__ import annotations

import argparse
import datetime as dt
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

import covaria

PAGE = Path(__file__).resolve().parent.parent / "docs" / "compared.md"
BEGIN, END = "<!-- tools/compared.py writes below -->", "<!-- and to here -->"
TRUTH = {"size": True, "age": True, "copy": False, "useless": False, "random": False}


def table(seed: int, n_rows: int = 500) -> tuple[pd.DataFrame, pd.Series]:
    """Return features of which two matter, and the target."""
    rng = np.random.default_rng(seed)
    size, age, error, useless, noise = rng.standard_normal((5, n_rows))
    X = pd.DataFrame({"size": size, "age": age, "copy": size + 0.5 * error, "useless": useless})
    X["random"] = rng.integers(0, 1000, n_rows).astype(float)
    return X, pd.Series(size + age**2 / 2 + noise, name="y")


def today(X: pd.DataFrame, y: pd.Series, seed: int) -> dict[str, np.ndarray]:
    """Return the importances that people read off one fitted model, as shares of their sum."""
    import shap
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.inspection import permutation_importance

    half = len(y) // 2
    model = RandomForestRegressor(300, random_state=seed).fit(X[:half], y[:half])
    shuffled = permutation_importance(model, X[half:], y[half:], n_repeats=10, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        values = shap.TreeExplainer(model).shap_values(X[half:])
    found = {
        "mean absolute SHAP": np.abs(values).mean(axis=0),
        "permutation importance": shuffled.importances_mean,
        "forest's own importance": model.feature_importances_,
    }
    return {name: value / value.sum() for name, value in found.items()}


def measured(n_tables: int) -> pd.DataFrame:
    """Return a row for each feature: mean shares, and how often covaria says it matters."""
    shares: dict[str, list[np.ndarray]] = {}
    verdicts = []
    for seed in range(n_tables):
        X, y = table(seed)
        for name, value in today(X, y, seed).items():
            shares.setdefault(name, []).append(value)
        found = covaria.assess(X, y, seed=seed, progress=False).selected["gcm+pcm"]
        verdicts.append([name in found for name in X])
        print(seed, found, flush=True)
    frame = pd.DataFrame({name: np.mean(value, axis=0) for name, value in shares.items()})
    frame.insert(0, "matters", ["yes" if TRUTH[name] else "no" for name in X])
    frame["covaria: tables in which it matters"] = np.sum(verdicts, axis=0)
    return frame.set_axis(list(X), axis=0)


def written(frame: pd.DataFrame, n_tables: int) -> str:
    import shap

    head = ["feature", *frame.columns]
    lines = ["| " + " | ".join(head) + " |", "| --- " * len(head) + "|"]
    for name, row in frame.iterrows():
        cells = [f"{value:.3f}" if isinstance(value, float) else str(value) for value in row]
        lines.append(f"| `{name}` | " + " | ".join(cells) + " |")
    about = (
        f"{n_tables} tables of 500 rows; shares of the sum, means over tables; forest of 300 trees "
        f"fitted to half of the rows and explained on the others, shap {shap.__version__}; "
        f"covaria {covaria.__version__} with all its defaults, {dt.datetime.now(dt.UTC).date()}."
    )
    return "\n".join([*lines, "", about])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=int, default=20)
    asked = parser.parse_args()
    text = written(measured(asked.tables), asked.tables)
    head, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    PAGE.write_text(f"{head}{BEGIN}\n\n{text}\n\n{END}{rest.partition(END)[2]}", encoding="utf-8")


if __name__ == "__main__":
    main()
