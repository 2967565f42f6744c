"""FedCFK: a kernel that only improves, requests that hide, and scores on device."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from vertikal.algorithms.fedcfk.fedcfk import (
    Requests,
    ServerKernel,
    UserRows,
    ask_until_complete,
    scores,
)
from vertikal.errors import InputError

generator = np.random.default_rng(0)
TASTES = (np.arange(300)[:, None] % 3 == np.arange(60)[None, :] % 3) * 0.25 + 0.03
RATINGS = (generator.random((300, 60)) < TASTES).astype(np.int64)


def test_the_kernel_only_improves_and_ends_at_the_true_one():
    server, truth = ServerKernel(60), RATINGS.T @ RATINGS
    errors = []
    for _ in range(40):
        some = RATINGS[generator.random(300) < 0.5]
        server.improve(some.T @ some)
        errors.append(np.square(server.counts - truth).mean())
        assert (server.counts <= truth).all()
    assert all(b <= a for a, b in itertools.pairwise(errors))
    assert errors[-1] < 0.5 * errors[0]
    server.improve(truth)
    assert np.array_equal(server.counts, truth)
    assert server.normalised().diagonal() == pytest.approx(np.ones(60))


@pytest.mark.parametrize(
    "counts",
    [
        np.array([[1, -1], [-1, 1]]),  # negative
        np.array([[1, 2], [2, 4]]),  # of ratings 1 and 2, not of bits
        np.array([[1.0, 0.5], [0.5, 1.0]]),  # real
        np.ones((3, 3), int),  # of other items
    ],
)
def test_kernels_of_other_numbers_than_bits_are_refused(counts):
    server = ServerKernel(2)
    with pytest.raises(InputError, match="counts must be"):
        server.improve(counts)
    assert not server.counts.any()


def requests_of(user: int, ratio: float = 4.0) -> tuple[np.ndarray, Requests]:
    positives = np.flatnonzero(RATINGS[user])
    popularity = RATINGS.sum(axis=0)
    return positives, Requests.draw(positives, popularity, ratio, 0.6, generator.random(60))


def test_a_cover_holds_all_items_and_decoys_and_requests_are_parts_of_it():
    positives, requests = requests_of(0, 3.0)
    assert set(positives) <= set(requests.cover)
    assert len(requests.cover) == min(60, 3 * len(positives))
    drawn = [requests.next(generator.random(len(requests.cover))) for _ in range(20)]
    assert all(set(asked) <= set(requests.cover) for asked in drawn)
    assert len({tuple(asked) for asked in drawn}) > 10


def test_some_requests_name_no_item_of_the_user():
    requests = Requests.draw(np.array([4]), np.ones(60), 6.0, 0.5, generator.random(60))
    drawn = [requests.next(generator.random(6)) for _ in range(60)]
    without = sum(4 not in asked for asked in drawn)
    assert 10 < without < 50


def test_how_well_the_server_guesses_the_positives():
    """The server ranks the cover by how often items were asked for, and by popularity: neither
    tells a user's items from its decoys; with fresh decoys, as published, the first does. How alike
    the items of the cover are does tell something."""
    popularity = RATINGS.sum(axis=0)
    server = ServerKernel(60)
    server.improve(RATINGS.T @ RATINGS)
    kernel = server.normalised()
    by_count, by_popularity, by_likeness, published, hits, size = [], [], [], [], 0, 0
    for user in range(120):
        positives, requests = requests_of(user)
        if not 0 < len(positives) < len(requests.cover):
            continue
        counted = np.zeros(60)
        fresh = np.zeros(60)
        for _ in range(15):
            counted[requests.next(generator.random(len(requests.cover)))] += 1
            again = Requests.draw(positives, popularity, 4.0, 0.6, generator.random(60))
            fresh[again.next(generator.random(len(again.cover)))] += 1
        truth = np.isin(requests.cover, positives)
        by_count.append(roc_auc_score(truth, counted[requests.cover]))
        by_popularity.append(roc_auc_score(truth, popularity[requests.cover]))
        likeness = kernel[np.ix_(requests.cover, requests.cover)].mean(axis=1)
        by_likeness.append(roc_auc_score(truth, likeness))
        published.append(roc_auc_score(np.isin(np.arange(60), positives), fresh))
        guessed = requests.cover[np.argsort(-counted[requests.cover])[: len(positives)]]
        hits += np.isin(guessed, positives).sum()
        size += len(positives)
    assert np.mean(by_count) == pytest.approx(0.5, abs=0.05)
    assert np.mean(by_popularity) == pytest.approx(0.5, abs=0.1)
    # What a cover cannot hide: a user's items are like one another, its decoys less so.
    print(f"by count {np.mean(by_count):.3f}, by likeness {np.mean(by_likeness):.3f}")
    assert 0.5 < np.mean(by_likeness) < 0.85
    assert np.mean(published) > 0.9
    # A quarter of the cover is true, and that is how often a guess is right.
    assert hits / size == pytest.approx(0.25, abs=0.07)


def test_scores_on_device_are_those_of_the_pooled_kernel():
    server = ServerKernel(60)
    server.improve(RATINGS.T @ RATINGS)
    kernel = server.normalised()
    means = kernel.mean(axis=1)
    pooled = scores(kernel, means, [np.flatnonzero(row) for row in RATINGS[:8]], 0.1, 1e-10)
    for user in range(8):
        positives, requests = requests_of(user)
        device = UserRows(positives, {})
        seen = ask_until_complete(device, requests, lambda asked: kernel[asked], generator.random)
        assert len(seen) > 1
        assert np.array_equal(device.usable, positives)
        assert device.scores(means, 0.1, 1e-10) == pytest.approx(pooled[user], abs=1e-4)


def test_without_rows_there_are_no_scores():
    assert not UserRows(np.array([1]), {}).scores(np.ones(5), 0.1).any()
    assert not scores(np.eye(5), np.ones(5), [np.zeros(0, int)], 0.1).any()


@pytest.mark.parametrize(("ratio", "share"), [(0.5, 0.5), (2.0, 0.0), (2.0, 1.5)])
def test_bad_covers_are_refused(ratio, share):
    with pytest.raises(InputError, match="ratio and share must be"):
        Requests.draw(np.array([1]), np.ones(5), ratio, share, np.full(5, 0.5))
