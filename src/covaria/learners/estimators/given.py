"""A model that was fitted elsewhere, behind the promise of `Model`: it is asked, never fitted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from covaria.errors import InputError, listed
from covaria.learners.estimators import Array
from covaria.learners.estimators.wrapped import is_classifier, is_fitted, numbers
from covaria.options.checks import shown

if TYPE_CHECKING:
    import pandas as pd


class GivenModel:
    """The user's own model, which gets the table in the form that it came in: frame or array."""

    def __init__(
        self, model: object, *, classes: Sequence[str] = (), as_array: bool = False
    ) -> None:
        self.model, self.classes, self.as_array = model, tuple(classes), as_array

    def fit(self, X: Array | pd.DataFrame, y: Array, weights: Array | None = None) -> Self:
        """Return self, as it is."""
        return self

    def predict(self, X: Array | pd.DataFrame) -> Array:
        """Return means, or class probabilities in the order of the table's classes."""
        inputs = np.asarray(X) if self.as_array else X
        if not self.classes:
            found = _asked(self.model, "predict", inputs)
            return found[:, 0] if found.shape == (len(X), 1) else found
        has_chances = hasattr(self.model, "predict_proba")
        found = _asked(self.model, "predict_proba" if has_chances else "predict", inputs)
        return self._in_order(found, len(X))

    def _in_order(self, found: Array, n_rows: int) -> Array:
        """Return a column for each class; one column alone is the chance of the second of two."""
        if found.size == n_rows and len(self.classes) == 2:
            found = np.column_stack([1 - found.ravel(), found.ravel()])
        own = [class_name(one) for one in getattr(self.model, "classes_", ())]
        if not own or found.shape != (n_rows, len(own)):
            return found
        if not set(own) & set(self.classes) or not (
            set(own) <= set(self.classes) or set(own) >= set(self.classes)
        ):
            raise InputError(
                f"The model knows the classes {listed(own)}, and the target has "
                f"{listed(list(self.classes))}. Give the target as the model learned it."
            )
        ordered = np.zeros((n_rows, len(self.classes)))
        for column, name in enumerate(own):
            if name in self.classes:  # the others do not occur here
                ordered[:, self.classes.index(name)] = found[:, column]
        if len(own) <= len(self.classes):
            return ordered
        # Of a row of which it says nothing but classes that do not occur it knows nothing.
        ordered[ordered.sum(axis=1) == 0] = 1.0
        return np.asarray(ordered / ordered.sum(axis=1, keepdims=True))


def class_name(value: object) -> str:
    """Return a class as tables name it.

    >>> class_name(np.int64(1)), class_name("yes"), class_name(True)
    ('1', 'yes', '1')
    """
    value = value.item() if isinstance(value, np.generic) else value
    return f"{value:g}" if isinstance(value, (int, float)) else str(value)


def _asked(model: Any, how: str, inputs: object) -> Array:
    """Return what a model says of rows; networks of torch get tensors."""
    if hasattr(model, "state_dict") and hasattr(model, "parameters"):
        import torch

        with torch.no_grad():
            rows = torch.as_tensor(np.asarray(inputs, dtype=np.float32))
            return numbers(model(rows).detach().cpu().numpy())
    ask = getattr(model, how, None)
    return numbers((model if ask is None else ask)(inputs))


def check_given(model: object, n_classes: int) -> None:
    """Raise a sentence where a model cannot be asked about this target."""
    kind = type(model).__name__
    if isinstance(model, type) or not (hasattr(model, "predict") or callable(model)):
        raise InputError(f"Prefit({shown(model)}) needs a model with predict, or a function.")
    ours = type(model).__module__.startswith("sklearn")
    if ours and not is_fitted(model):
        raise InputError(f"Prefit({kind}()) is not fitted yet. Fit it on other rows first.")
    if ours and is_classifier(model) and not n_classes:
        raise InputError(f"{kind} predicts classes but the target is a number. Use a regressor.")
    if ours and n_classes and not hasattr(model, "predict_proba"):
        raise InputError(
            f"{kind} gives no probabilities (predict_proba), which tests of classes need. Wrap it "
            "in sklearn.calibration.CalibratedClassifierCV, or give a function that returns them."
        )
