"""Kills a worker as the operating system does."""

from __future__ import annotations

import os
import signal

import pytest

ray = pytest.importorskip("ray", reason="Ray is not installed (extra ray)")

from tests.compute.workers.in_process_ray import Actor  # noqa: E402


def kill(group, number):
    """End a worker, at once: its process, or what stands for it here."""
    actor = group.actors()[number]
    if isinstance(actor, Actor):
        actor.end()
        return
    said = ray.get(actor.hello.remote(), timeout=60)
    os.kill(said["process"], signal.SIGKILL)
