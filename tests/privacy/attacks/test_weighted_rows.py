"""Rows read from gradients that have all their weight on them; see also secure/hidden."""

from __future__ import annotations

import numpy as np
import pytest

from vertikal.privacy.attacks.weighted_rows import read_rows, residuals_on, weights_of


@pytest.mark.parametrize("count", [1, 2])
def test_rows_are_read_from_an_exact_gradient(count):
    phases = np.random.default_rng(count).integers(0, 256, (20, 300))
    features, weights = np.cos(phases * 2 * np.pi / 256), weights_of(count)
    assert weights.tolist() == [1, 129][:count]
    chosen = [3, 11][:count]
    gradient = features.T @ residuals_on(20, chosen, weights)
    found = read_rows(gradient[:, 0], weights)
    np.testing.assert_allclose(found, features[chosen], atol=1e-12)


def test_a_coarse_gradient_leaves_the_lighter_row_to_chance():
    generator = np.random.default_rng(0)
    features = np.cos(generator.integers(0, 256, (2, 4000)) * 2 * np.pi / 256)
    weights = weights_of(2)
    noise = generator.uniform(-1, 1, 4000) * weights.sum() * 2.0**-12
    found = read_rows(weights @ features + noise, weights)
    assert np.mean(np.abs(found[0] - features[0]) < 1e-9) < 0.2
    assert np.mean(np.abs(found[1] - features[1]) < 1e-9) > 0.7
