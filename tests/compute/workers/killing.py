"""Kills a worker as the operating system does."""

from __future__ import annotations

import os
import signal


def kill(group, number):
    """End the process of a worker of this machine, at once."""
    import ray

    said = ray.get(group.actors()[number].hello.remote(), timeout=60)
    os.kill(said["process"], signal.SIGKILL)
