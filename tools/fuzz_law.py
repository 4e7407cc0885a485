"""What came of a case: an answer, a refusal of one sentence, or something that must not be."""

from __future__ import annotations

import signal
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from covaria.errors import visible

# So many seconds of computing a case may take.
MOST_SECONDS = 60.0


class TooLong(BaseException):
    """A case took too long; no `except Exception` stops it."""


@dataclass(frozen=True)
class Verdict:
    """An outcome; `broken` is the class of a failure, empty where the law holds."""

    outcome: str
    broken: str = ""
    said: str = ""


def judged(
    act: Callable[[], str],
    *,
    refusals: tuple[type[Exception], ...] = (),
    most_seconds: float | None = None,
) -> Verdict:
    """Return what came of an act, which returns its outcome or raises; warnings count as errors."""
    try:
        with warnings.catch_warnings(), limited(most_seconds or MOST_SECONDS):
            warnings.simplefilter("error")
            return Verdict(act())
    except refusals as error:
        said = str(error)
        is_sentence = said == visible(said) and said[-1:] in (".", "?")
        return Verdict("refusal", "" if is_sentence else "not one sentence", said)
    except TooLong:
        return Verdict("broken", "too long")
    except Exception as error:
        return Verdict("broken", _class_of(error), traceback.format_exc())


def _class_of(error: Exception) -> str:
    """Return the error and where in covaria it arose: failures of a class have one cause."""
    if isinstance(error, AssertionError):
        return str(error).splitlines()[0][:100]
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "/covaria/" in frame.filename]
    at = f"{Path(ours[-1].filename).name}:{ours[-1].name}" if ours else "outside covaria"
    return f"{type(error).__name__} in {at}"


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise TooLong after so many seconds of computing, where there are such clocks."""
    here = threading.current_thread() is threading.main_thread()
    if not hasattr(signal, "SIGPROF") or not here:
        yield
        return

    def stop(_: int, __: FrameType | None) -> Any:
        raise TooLong

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
