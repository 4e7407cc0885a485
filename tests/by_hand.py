"""Residuals that no model left: drawn, so that formulas can be checked in a line."""

import numpy as np

from covaria.nuisance.residuals import Residuals
from covaria.tables.dataset import Dataset
from covaria.tables.layout import Feature


def drawn(
    owned=((0,), (1,), (2,)),
    *,
    n_rows=80,
    n_classes=0,
    weighted=False,
    n_clusters=0,
    seed=0,
    **more,
):
    """Return residuals of features that own these columns, related to what is left of y."""
    rng = np.random.default_rng(seed)
    n_columns = 1 + max((column for columns in owned for column in columns), default=0)
    X = rng.normal(size=(n_rows, n_columns)) * np.arange(1.0, n_columns + 1)
    classes = tuple("abcdefg"[:n_classes])
    y = rng.integers(n_classes, size=n_rows).astype(float) if classes else rng.normal(size=n_rows)
    data = Dataset(
        X=X,
        y=y,
        features=tuple(Feature(f"f{j}", "number", tuple(own)) for j, own in enumerate(owned)),
        classes=classes,
        weights=rng.uniform(0.5, 3, n_rows) if weighted else None,
        clusters=rng.permutation(np.arange(n_rows) % n_clusters) if n_clusters else None,
    )
    left = rng.normal(size=(n_rows, n_columns)) * np.arange(1.0, n_columns + 1)
    shape = (n_rows, len(owned)) if n_classes < 3 else (n_rows, len(owned), n_classes - 1)
    of_y = rng.normal(size=shape) + 0.3 * left.mean(axis=1).reshape(n_rows, *[1] * (len(shape) - 1))
    of_f = rng.normal(size=shape if n_classes < 3 else (*shape[:2], n_classes))
    arrays = {
        "x_given_rest": left,
        "y_given_rest": of_y,
        "f_given_rest": of_f,
        "loss_given_all": rng.chisquare(2, n_rows),
        "loss_given_rest": rng.chisquare(3, (n_rows, len(owned))),
    }
    return Residuals(data, np.arange(n_rows, dtype=np.intp), arrays, **more)


def weights_of(residuals):
    """Return the weights of the rows, of mean 1."""
    own = residuals.data.weights
    return np.ones(len(residuals.rows)) if own is None else own / own.mean()


def influence(residuals, values):
    """Return mean + w (value − mean): its plain mean and sd are those of the weighted mean."""
    w = weights_of(residuals).reshape(-1, *[1] * (values.ndim - 1))
    mean = (w * values).sum(axis=0) / w.sum()
    return mean + w * (values - mean)


def further(scores, factor):
    """Return scores by a factor further from their mean."""
    return scores.mean(axis=0) + factor * (scores - scores.mean(axis=0))
