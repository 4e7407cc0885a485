"""Ctrl-C at any time ends the command `covaria` with code 130, also while it is being imported.

Imported before all else by the package; in a program that merely imports covaria it does nothing.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from contextlib import suppress
from typing import NoReturn

INTERRUPTED = 130
STOPPED = "Interrupted. No results were written; the same command starts over."


def _is_command() -> bool:
    """Return whether this process is the command, by either of its names."""
    if sys.argv[:1] == ["-m"]:  # so it stands while `python -m covaria` imports the package
        at = len(sys.orig_argv) - len(sys.argv)
        return sys.orig_argv[at].removeprefix("-m") == "covaria"
    name = os.path.basename(sys.argv[0]) if sys.argv else ""
    return name in ("covaria", "covaria.exe", "covaria-script.py")


def leave(*_: object) -> NoReturn:
    """End at once: nothing has been begun yet, or all is done."""
    os.write(2, f"covaria: {STOPPED}\n".encode())
    os._exit(INTERRUPTED)


def end() -> None:
    """End the command with 130, whatever Python remembers of the interrupt.

    One that strikes inside of exec("…") makes Python end by the signal itself, caught or not.
    """
    if IS_COMMAND:
        with suppress(BaseException):
            atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            with suppress(BaseException):
                stream.flush()
        os._exit(INTERRUPTED)


IS_COMMAND = _is_command()
if (
    IS_COMMAND
    and threading.current_thread() is threading.main_thread()
    and signal.getsignal(signal.SIGINT) is signal.default_int_handler
):
    signal.signal(signal.SIGINT, leave)
