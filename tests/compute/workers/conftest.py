"""One Ray cluster of this machine for all tests of this folder."""

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


@pytest.fixture
def group(ray, notes):
    """Two workers of a party "a"; ``notes`` gets what it is told of them."""
    made = WorkerGroup(Workers(count=2, patience=120.0, retries=2), "a", tell=notes.append)
    yield made
    made.close()
