from __future__ import annotations

import numpy as np
import pytest

from vertikal.errors import InputError
from vertikal.privacy.attacks.score import (
    AttackScore,
    exact_rows,
    matched_correlations,
    score,
    snapped,
)

GENERATOR = np.random.default_rng(0)
TRUTH = (GENERATOR.uniform(size=(500, 4)) < [0.1, 0.3, 0.5, 0.7]).astype(float)


def test_order_sign_and_scale_do_not_matter() -> None:
    components = TRUTH[:, [2, 0, 3, 1]] * [1, -3, 0.5, -1] + [0, 1, 2, 3]
    np.testing.assert_allclose(matched_correlations(components, TRUTH), 1)
    np.testing.assert_array_equal(snapped(components, TRUTH), TRUTH)
    assert score(components, TRUTH) == AttackScore(columns=4, almost_exact=4, close=4, rows=1.0)


def test_noise_lowers_the_correlation_by_the_textbook_amount() -> None:
    noise = GENERATOR.normal(size=(500, 1))
    column = TRUTH[:, [2]]
    expected = abs(np.corrcoef(column[:, 0], (column + 0.3 * noise)[:, 0])[0, 1])
    found = matched_correlations(column + 0.3 * noise, column)
    np.testing.assert_allclose(found, expected)
    assert 0.8 < expected < 0.9
    assert score(column + 0.3 * noise, column) == AttackScore(1, 0, 0, 0.0)


def test_one_component_counts_for_one_column() -> None:
    twins = np.stack((TRUTH[:, 0], 1 - TRUTH[:, 0]), axis=1)
    assert sorted(matched_correlations(TRUTH[:, [0]], twins)) == [0, pytest.approx(1)]


def test_the_assignment_is_the_best_for_all_columns_together() -> None:
    """The first component suits both columns best, but the second column has no other."""
    first, second = TRUTH[:, 0], TRUTH[:, 0] + 0.2 * TRUTH[:, 1]
    components = np.stack((second, first + 0.1 * TRUTH[:, 2]), axis=1)
    correlations = matched_correlations(components, np.stack((first, second), axis=1))
    assert correlations[1] == pytest.approx(1)
    assert 0.9 < correlations[0] < 1


def test_unrelated_components_score_nothing() -> None:
    noise = GENERATOR.normal(size=(500, 4))
    assert matched_correlations(noise, TRUTH).max() < 0.2
    assert score(noise, TRUTH) == AttackScore(4, 0, 0, 0.0)


def test_no_components_score_nothing() -> None:
    assert score(np.empty((500, 0)), TRUTH) == AttackScore(4, 0, 0, 0.0)


def test_a_constant_column_matches_nothing() -> None:
    truth = np.stack((np.full(500, 0.1), TRUTH[:, 0]), axis=1)
    assert matched_correlations(TRUTH[:, :2], truth).tolist() == [0, pytest.approx(1)]


def test_snapping_a_column_without_a_component_guesses_its_commonest_value() -> None:
    estimate = snapped(TRUTH[:, [3]], TRUTH)
    np.testing.assert_array_equal(estimate[:, 3], TRUTH[:, 3])
    np.testing.assert_array_equal(estimate[:, 0], np.zeros(500))


def test_snapping_to_several_levels() -> None:
    levels = GENERATOR.integers(0, 4, (500, 1)) * 2.5
    estimate = snapped(-levels + GENERATOR.normal(size=(500, 1)) * 0.1, levels)
    np.testing.assert_array_equal(estimate, levels)


def test_a_row_is_exact_in_all_columns_or_not() -> None:
    estimate = TRUTH.copy()
    estimate[3, 1] += 1
    wrong = np.flatnonzero(~exact_rows(estimate, TRUTH))
    assert wrong.tolist() == [3]


def test_the_score_counts_wrong_rows() -> None:
    components = TRUTH.copy()
    components[0, 2] = 1 - components[0, 2]
    assert score(components, TRUTH) == AttackScore(4, 4, 4, 499 / 500)


def test_lengths_must_agree() -> None:
    with pytest.raises(InputError, match="components must be 500 rows long, got 499"):
        matched_correlations(TRUTH[1:], TRUTH)
    with pytest.raises(InputError, match="estimate must be of shape"):
        exact_rows(TRUTH[:, 1:], TRUTH)
