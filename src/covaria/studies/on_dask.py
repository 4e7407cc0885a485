"""`assess` on a Dask cluster, from Python."""

from __future__ import annotations

from typing import Any

from covaria.assessment import prepare
from covaria.execution.clusters import on_dask
from covaria.execution.progress import watched
from covaria.options.checks import reporter
from covaria.results.result import Result


def assess_on_dask(where: object, X: object, y: object = None, **settings: Any) -> Result:
    """Return what `assess` returns, fitted on a cluster: an address, "local", or a client."""
    progress = reporter(settings.pop("progress", None))
    job = prepare(X, y, **settings)
    with on_dask(where, max(2, job.n_jobs)) as executor, watched(progress) as reported:
        return job.run(reported, executor)
