"""One BLAS thread while programs run: parties, or blocks of rows, are what runs in parallel.

The last bits of a product depend on how many threads shared it. So the limit is also what makes a
model the same on every machine, and it must not end while another run of this process still works.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


class SharedLimit:
    """A limit that holds until the last of those who asked for it, in any thread, is done."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._limit: Any = None

    @contextmanager
    def __call__(self) -> Iterator[None]:
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._limit = _controller().limit(limits=1, user_api="blas")
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if not self._users:
                    self._limit.restore_original_limits()
                # threadpoolctl lets one thread at a time set a limit. An empty one, entered and
                # left, changes nothing but who that is: nobody, so that any thread may lift this.
                with _controller().limit():
                    pass


one_blas_thread = SharedLimit()


@cache
def _controller() -> ThreadpoolController:
    """Finding the libraries takes a while, and they must be loaded to be found."""
    import scipy.linalg  # noqa: F401

    return ThreadpoolController()
