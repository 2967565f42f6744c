"""Kills a worker as the operating system does."""

from __future__ import annotations

import os
import signal

from tests.compute.workers.in_process_ray import Actor


def kill(group, number):
    """End a worker, at once: its process, or what stands for it here."""
    actor = group.actors()[number]
    if isinstance(actor, Actor):
        group._ray.kill(actor)
        return
    said = group._ray.get(actor.hello.remote(), timeout=60)
    os.kill(said["process"], signal.SIGKILL)
