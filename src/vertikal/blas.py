"""One BLAS thread while programs run: parties, or blocks of rows, are what runs in parallel.

The last bits of a product depend on how many threads shared it. So the limit is also what makes a
model the same on every machine, and it must not end while another run of this process still works.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController


class SharedLimit:
    """A limit that holds until the last of those who asked for it, in any thread, is done."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._held = ExitStack()

    @contextmanager
    def __call__(self) -> Iterator[None]:
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._held.enter_context(_controller().limit(limits=1, user_api="blas"))
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if not self._users:
                    self._held.close()


one_blas_thread = SharedLimit()


@cache
def _controller() -> ThreadpoolController:
    """Finding the libraries takes a while, and they must be loaded to be found."""
    import scipy.linalg  # noqa: F401

    return ThreadpoolController()
