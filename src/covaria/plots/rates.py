"""A picture of stability: how often each feature is selected, learner by learner."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from covaria.plots.axes import new_panels
from covaria.plots.saving import COLOURS

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


def selection_rates(table: pd.DataFrame, *, threshold: float = 0.8) -> Axes:
    """Return bars of `Refit.frequencies`: a panel a learner, a colour a method, side by side."""
    learners = list(table["learner"].drop_duplicates())
    features = list(table["feature"].drop_duplicates())
    methods = list(table["method"].drop_duplicates())
    size = (2.5 + 2.6 * len(learners), 1.4 + 0.3 * len(features))
    panels = new_panels(1, len(learners), size, sharey=True)[0]
    height = 0.8 / len(methods)
    for panel, learner in zip(panels, learners, strict=True):
        for k, method in enumerate(methods):
            own = table[(table["learner"] == learner) & (table["method"] == method)]
            rates = own.set_index("feature")["frequency"].reindex(features)
            at = np.arange(len(features)) + (k + 0.5) * height - 0.4
            panel.barh(at, rates, height=height, color=COLOURS[k % len(COLOURS)], label=method)
        panel.axvline(threshold, color="#B00020", lw=1, ls="--")
        panel.set_xlim(0, 1.02)
        panel.set_xticks([0, 0.2, 0.4, 0.6, 0.8, 1])
        panel.set_title(str(learner), fontsize=10)
        panel.set_xlabel("share of training parts")
    names = [str(name).replace("$", r"\$") for name in features]
    panels[0].set_yticks(np.arange(len(features)), names)
    panels[0].invert_yaxis()
    panels[0].legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1.05), ncols=len(methods))
    first: Axes = panels[0]
    return first
