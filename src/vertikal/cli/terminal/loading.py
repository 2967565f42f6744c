"""Ctrl-C while modules load, before there is anything to tidy up."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

INTERRUPTED = 130
"""Exit code that shells expect of a program that its user has stopped."""


@contextmanager
def loading() -> Iterator[None]:
    """End the process at once and silently if the user stops it while modules load.

    An interruption in the middle of an import may come out as any error, with its traceback. Where
    stops are switched off, or something else handles them, nothing changes.
    """
    usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not usual or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
