"""Workers in this process, and one Ray cluster of this machine for all tests of this folder."""

from __future__ import annotations

import pytest

from vertikal.compute.workers.cluster import Workers, connect
from vertikal.compute.workers.worker_group import WorkerGroup


@pytest.fixture(scope="session")
def ray():
    pytest.importorskip("ray", reason="Ray is not installed (extra ray)")
    ray = connect(Workers())
    yield ray
    ray.shutdown()


@pytest.fixture
def notes():
    return []


@pytest.fixture(params=["in process", pytest.param("ray", marks=pytest.mark.slow)])
def group(request, notes):
    """Two workers of a party "a"; ``notes`` gets what it is told of them."""
    request.getfixturevalue("in_process" if request.param == "in process" else "ray")
    made = WorkerGroup(Workers(count=2, patience=120.0, retries=2), "a", tell=notes.append)
    yield made
    made.close()


@pytest.fixture
def in_process(monkeypatch):
    """Let all workers of fits run in this process."""
    pytest.importorskip("ray", reason="Ray is not installed (extra ray)")
    from tests.compute.workers.in_process_ray import InProcessRay

    ray = InProcessRay()
    monkeypatch.setattr("vertikal.compute.workers.worker_group.connect", lambda workers: ray)
    return ray
