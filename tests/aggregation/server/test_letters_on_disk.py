"""Letters in a file are those in memory, and the file has no name."""

from __future__ import annotations

import errno
import os

import numpy as np
import pytest

from tests.secure.secagg.test_letters import PLANS, graph_of
from vertikal.aggregation.server.letters_on_disk import LettersOnDisk
from vertikal.errors import DiskFull, SecrecyError
from vertikal.secure.secagg.letters import LettersInMemory

SIZE = 5


@pytest.mark.parametrize("plan", PLANS)
def test_they_are_those_in_memory(plan, tmp_path):
    graph = graph_of(plan)
    kept, twin = LettersOnDisk(graph, SIZE, tmp_path), LettersInMemory(graph, SIZE)
    draws = np.random.default_rng(0)
    for sender in draws.permutation([*graph.clients, *graph.clients[:3]]):
        receivers = [name for name in (*graph.clients, "nobody") if draws.random() < 0.7]
        letters = {name: draws.bytes(SIZE) for name in receivers}
        # A letter of zeros has come too.
        letters |= {name: bytes(SIZE) for name in receivers[:1]}
        kept.put(str(sender), letters)
        twin.put(str(sender), letters)
    for name in graph.clients:
        assert kept.to(name) == twin.to(name)
    assert not list(tmp_path.iterdir())
    kept.close()


def test_letters_of_another_length_are_not_kept(tmp_path):
    graph = graph_of(PLANS[0])
    kept = LettersOnDisk(graph, SIZE, tmp_path)
    one, other = graph.clients[:2]
    with pytest.raises(SecrecyError, match=f"{one}: a letter of another length to {other}"):
        kept.put(one, {one: bytes(SIZE), other: bytes(SIZE + 1)})
    assert kept.to(one) == {}
    kept.close()


def test_a_full_disk(tmp_path, monkeypatch):
    kept = LettersOnDisk(graph_of(PLANS[0]), SIZE, tmp_path)

    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(DiskFull):
        kept.put("c00", {"c01": bytes(SIZE)})
    kept.close()
    monkeypatch.setattr("tempfile.TemporaryFile", full)
    with pytest.raises(DiskFull):
        LettersOnDisk(graph_of(PLANS[0]), SIZE, tmp_path)
