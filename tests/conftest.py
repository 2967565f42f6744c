"""Settings that all tests share."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# Threads and key agreements take the time they take on a busy machine; a property is about results.
settings.register_profile(
    "vertikal",
    deadline=None,
    max_examples=50,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("vertikal")
