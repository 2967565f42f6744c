"""ADMM without noise: the rounds' joint predictions tell columns; with noise they do not."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest

from vertikal import ADMMClassifier, Privacy
from vertikal.algorithms.admm.sharing import CONTRIBUTIONS, FRACTION
from vertikal.party.party import Party
from vertikal.ring.integers import Ring

ROWS, HIDDEN, KNOWN = 500, 8, 15


def opened(X, y, **settings):
    """Joint predictions of all rows in each round, (rows, rounds), as the label party gets them."""
    seen = []
    original = Party.secure_sum

    def secure_sum(self, elements, receiver, disclosure, *others, **options):
        total = original(self, elements, receiver, disclosure, *others, **options)
        if total is not None and disclosure.name == CONTRIBUTIONS.name:
            seen.append(Ring(64).decode_reals(np.array(total), FRACTION).ravel()[:ROWS])
        return total

    parties = {"bank": [0, 1], "shop": [2, 3, 4, 5], "clinic": [6, 7, 8, 9]}
    with mock.patch.object(Party, "secure_sum", secure_sum):
        ADMMClassifier(parties, random_state=0, **settings).fit(X, y)
    return np.stack(seen, axis=1)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("private", [False, True])
def test_a_column_known_of_a_few_rows_follows_for_all_without_noise_only(private):
    generator = np.random.default_rng(0)
    X = generator.normal(size=(ROWS, 2 + HIDDEN))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = (X @ generator.normal(size=2 + HIDDEN) + 0.3 * generator.normal(size=ROWS) > 0).astype(int)
    settings = {"privacy": Privacy(epsilon=5.0, delta=1e-4)} if private else {"tol": 1e-9}
    rounds = opened(X, y, max_iter=42, **settings)
    # The label party's own columns and a constant are in the sums too, and known to it.
    whole = np.hstack([rounds, X[:, :2], np.ones((ROWS, 1))])
    axes = np.linalg.svd(whole, full_matrices=False)[0][:, : 3 + HIDDEN]
    found = axes @ np.linalg.lstsq(axes[:KNOWN], X[:KNOWN, 2], rcond=None)[0]
    right = np.corrcoef(found[KNOWN:], X[KNOWN:, 2])[0, 1]
    assert abs(right) < 0.5 if private else right > 0.999
