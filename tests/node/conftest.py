"""Shared by the tests of services: beats that do not keep a test waiting, and three services."""

from __future__ import annotations

import pytest

from tests.node.services import trio
from tests.organisations import DEGRADED, RULE, lay_out, write_job
from vertikal.node import service


@pytest.fixture
def quick_beats(monkeypatch):
    monkeypatch.setattr(service, "BEAT", 0.2)


@pytest.fixture
def world(tmp_path, quick_beats):
    """Lender, bank and shop, who approve by rule, and a small open job at the lender."""
    lay_out(tmp_path, rows=60, policy={"bank": RULE, "shop": RULE})
    write_job(tmp_path, directions=16, settings='disclosure = "open"')
    with trio(tmp_path) as three:
        yield three


@pytest.fixture
def trained(tmp_path, quick_beats):
    """Three services with a model, who also take part in degraded scores."""
    lay_out(tmp_path, rows=60, policy={"bank": DEGRADED + RULE, "shop": DEGRADED + RULE})
    write_job(tmp_path, directions=16, settings='disclosure = "open"')
    with trio(tmp_path) as three:
        three.done(three.submit().digest)
        yield three
