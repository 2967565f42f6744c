"""The limit to one BLAS thread.

Parties, or blocks of rows, are what runs in parallel (`side_by_side`). The last bits of a product
depend on how many BLAS threads shared it, so the limit to one also makes a model the same on every
machine; it must not end while another run of this process still works.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


class SharedLimit:
    """A limit that holds until the last thread that asked for it is done."""

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
                # threadpoolctl lets no thread change a limit but the one that set it last. Entering
                # and leaving an empty limit frees it, so that any thread may lift this one.
                with _controller().limit():
                    pass


one_blas_thread = SharedLimit()


@cache
def _controller() -> ThreadpoolController:
    """Controller of the BLAS libraries, made once: finding them takes a while.

    They must be loaded to be found.
    """
    import scipy.linalg  # noqa: F401

    return ThreadpoolController()
