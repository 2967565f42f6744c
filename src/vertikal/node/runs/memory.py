"""The memory of a service: what a job has used goes back to the system when it ends.

glibc gives each new thread an arena of its own, and keeps what was freed there; every job has
threads of its own, so that a service would seem to grow with every job. With one arena for all of
them what is free can be handed back. Elsewhere than with glibc nothing is done.
"""

from __future__ import annotations

import ctypes
import gc
from typing import Any

from vertikal.reused_memory import reused_memory

_ARENA_MAX = -8
"""M_ARENA_MAX of mallopt(3)."""


def share_one_arena() -> None:
    """Let all threads share one arena; to be called before threads begin."""
    mallopt = _of_glibc("mallopt")
    if mallopt is not None:
        mallopt(ctypes.c_int(_ARENA_MAX), ctypes.c_int(1))


def release_memory() -> None:
    """Collect what is unreachable, and hand free pages back."""
    gc.collect()
    reused_memory.let_go()
    trim = _of_glibc("malloc_trim")
    if trim is not None:
        trim(ctypes.c_size_t(0))


def _of_glibc(name: str) -> Any:
    """Find a function of the C library; None where it has none of this name."""
    return getattr(ctypes.CDLL(None), name, None)
