"""Settings that all tests share."""

from __future__ import annotations

import gc

from hypothesis import HealthCheck, settings

# Before any test loads gRPC, which would then also speak TLS 1.2, and be refused.
import vertikal.mesh.network_links  # noqa: F401

# Threads and key agreements take the time they take on a busy machine; a property is about results.
settings.register_profile(
    "vertikal",
    deadline=None,
    max_examples=50,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("vertikal")


def pytest_collection_finish() -> None:
    """Set aside what imports and collection made: else each full collection would walk through it.

    Services collect their garbage after every job, and a process that knows all tests holds a
    million objects.
    """
    gc.collect()
    gc.freeze()
