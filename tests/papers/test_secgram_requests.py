"""SecGram 3.2: a user's requests for rows of the kernel hide its items among others."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from vertikal import CFKOMDRecommender, FedCFKRecommender
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


@pytest.mark.parametrize("decoys", ["fixed", "fresh"])
def test_a_server_that_counts_finds_the_items_behind_fresh_decoys(decoys):
    """Requests as published come to the same recommendations, and show more."""
    generator = np.random.default_rng(2)
    ratings = (generator.random((60, 120)) < 0.06).astype(int)
    model = FedCFKRecommender(decoys=decoys, request_share=0.5, random_state=0).fit(ratings)
    pooled = CFKOMDRecommender().fit(ratings)
    found = []
    for user in range(12):
        np.testing.assert_array_equal(model.recommend(user, 5), pooled.recommend(user, 5))
        counts = np.bincount(np.concatenate(model.requests_[user]), minlength=120)
        covered = np.unique(np.concatenate(model.requests_[user]))
        own = np.isin(covered, np.flatnonzero(ratings[user]))
        found.append(roc_auc_score(own, counts[covered]) if 0 < own.sum() < len(own) else 0.5)
    assert (np.mean(found) > 0.7) == (decoys == "fresh"), np.mean(found)
