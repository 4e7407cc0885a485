"""What is needed to repeat a run: its table's fingerprint, its options, its versions."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from covaria.learners import Learner
from covaria.methods import AnyMethod, Method
from covaria.nuisance.residuals import Residuals
from covaria.nuisance.splits import describe
from covaria.results.choices import Chosen
from covaria.results.options import EFFECTS, Options, alternative_of
from covaria.tables.dataset import Dataset


def tested_rows(fitted: Sequence[Residuals]) -> NDArray[np.intp]:
    return np.unique(np.concatenate([residuals.rows for residuals in fitted]))


def row_numbers(fitted: Sequence[Residuals]) -> NDArray[np.intp]:
    """Return which rows of the table were tested, counting those that were left out."""
    rows, kept = tested_rows(fitted), fitted[0].data.kept
    return rows if kept is None else kept[rows]


def about_run(
    fitted: Sequence[Residuals],
    learner: Learner,
    methods: Sequence[AnyMethod],
    options: Options,
    chosen: Mapping[str, Chosen],
) -> dict[str, object]:
    """Return what is needed to repeat the run, and what it cost."""
    data = fitted[0].data
    fits = {need: sum(r.fits[need] for r in fitted) for need in fitted[0].fits}
    seconds = {need: sum(r.seconds[need] for r in fitted) for need in fitted[0].seconds}
    return {
        "target": data.target,
        "task": data.task,
        "classes": list(data.classes),
        "n_rows": data.n_rows,
        "n_tested": len(tested_rows(fitted)),
        "n_features": data.n_features,
        "n_columns": int(data.X.shape[1]),
        "columns": [list(feature.tested) for feature in data.features],
        "groups": {f.name: len(f.columns) for f in data.features if f.kind == "group"},
        "weighted": data.weights is not None,
        "clusters": 0 if data.clusters is None else int(data.clusters.max()) + 1,
        "fingerprint": fingerprint(data),
        "learner": learner.settings(),
        "learner_text": str(learner),
        "engine": fitted[0].engine,
        "methods": {m.name: alternative_of(m, options) for m in methods},
        "effects": {m.name: _effect_of(m, options, data) for m in methods},
        "splits": describe(options.splits),
        "folds": fitted[0].n_folds,
        "paper": options.paper,
        "validity": options.validity,
        "correction": options.correction,
        "alpha": options.alpha,
        "top": options.top,
        "confidence": options.confidence,
        "repeats": options.repeats,
        "permutations": options.permutations,
        "seed": int(options.seed),
        "models": sum(fits.values()),
        "fits": {m.name: sum(fits[need] for need in m.needs) for m in methods},
        "seconds": {
            m.name: chosen[m.name].seconds
            if m.name in chosen
            else sum(seconds[need] for need in m.needs)
            for m in methods
        },
        "versions": dict(_versions()),
        "variance": data.target_variance,
        "n_others": len(data.others),
        "targets": list(data.targets),
        "loss": "" if data.rule is None else data.rule.words,
    }


def _effect_of(method: AnyMethod, options: Options, data: Dataset) -> str:
    if data.rule is not None and isinstance(method, Method) and method.losses is not None:
        return f"share of the {data.rule.words} explained"
    has_own = isinstance(method, Method) and method.coefficient
    return EFFECTS[options.effect] if options.effect and has_own else method.effect


def fingerprint(data: Dataset) -> str:
    """Return a short digest of the numbers that were tested."""
    every = (*data.features, *data.others)
    tested = sorted(column for feature in every for column in feature.tested)
    X = data.X if len(tested) == data.X.shape[1] else data.X[:, tested]
    digest = hashlib.blake2b(np.ascontiguousarray(X).data, digest_size=8)
    digest.update(np.ascontiguousarray(data.y if data.outputs is None else data.outputs).data)
    return digest.hexdigest()


@cache
def _versions() -> dict[str, str]:
    """Return the versions that the numbers depend on."""
    from importlib.metadata import PackageNotFoundError, version

    import covaria

    found = {"python": platform.python_version(), "covaria": covaria.__version__}
    for name in ("numpy", "scipy", "pandas", "scikit-learn", "torch"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
