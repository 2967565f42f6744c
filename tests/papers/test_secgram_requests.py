"""SecGram 3.2: a user's requests for rows of the kernel hide its items among others."""

from __future__ import annotations

import numpy as np
import pytest

from vertikal.algorithms.fedcfk.fedcfk import Requests

ITEMS, SHARE = 400, 0.3


def test_a_request_is_a_random_part_of_a_fixed_cover():
    """Item and decoy come equally often, a share of the cover each time, and never all of it."""
    generator = np.random.default_rng(0)
    positives = np.arange(0, 60, 2)
    popularity = np.ones(ITEMS)
    requests = Requests.draw(positives, popularity, 4.0, SHARE, generator.random(ITEMS))
    assert len(requests.cover) == 4 * len(positives)
    assert set(positives) <= set(requests.cover)
    drawn = [requests.next(generator.random(len(requests.cover))) for _ in range(300)]
    assert all(set(one) <= set(requests.cover) for one in drawn)
    assert max(map(len, drawn)) < len(requests.cover)
    counts = np.bincount(np.concatenate(drawn), minlength=ITEMS) / len(drawn)
    decoys = np.setdiff1d(requests.cover, positives)
    assert counts[positives].mean() == pytest.approx(SHARE, abs=0.02)
    assert counts[decoys].mean() == pytest.approx(SHARE, abs=0.02)
    assert counts[requests.cover].min() > 0.15
