"""The generated credit population: its form, and the relations it was made to have."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from vertikal import FDSKLClassifier
from vertikal.baselines import PooledKernelClassifier
from vertikal.demo.credit import LABEL_PARTY, credit_population
from vertikal.demo.data_sets import DataSet
from vertikal.errors import InputError

ROWS = 6000
TRAIN, TEST = slice(0, 4500), slice(4500, ROWS)


@pytest.fixture(scope="module")
def population() -> DataSet:
    return credit_population(ROWS, 0)


def auc(model: Any, population: DataSet, columns: list[int]) -> float:
    X = population.X[:, columns]
    model.fit(X[TRAIN], population.y[TRAIN])
    return float(roc_auc_score(population.y[TEST], model.decision_function(X[TEST])))


def test_form(population: DataSet) -> None:
    assert list(population.columns) == ["lender", "bank", "shop"]
    assert all(5 <= len(names) <= 7 for names in population.columns.values())
    assert population.X.shape == (ROWS, len(population.names))
    assert population.X.dtype == np.float64
    assert np.isfinite(population.X).all()
    assert (population.X.std(axis=0) > 0).all()
    assert set(np.unique(population.y)) == {0, 1}
    listed = [name for names in population.columns.values() for name in names]
    assert tuple(listed) == population.names
    assert len(set(listed)) == len(listed)


def test_numbers_are_the_places_of_the_names(population: DataSet) -> None:
    numbers = population.numbers()
    assert sorted(n for own in numbers.values() for n in own) == list(range(len(population.names)))
    for party, names in population.columns.items():
        assert [population.names[n] for n in numbers[party]] == names


def test_plausible_scales_and_skew(population: DataSet) -> None:
    column = dict(zip(population.names, population.X.T, strict=True))
    for name in ("loan_amount", "stated_income", "balance", "basket_value", "overdrafts"):
        assert column[name].min() >= 0
        assert column[name].mean() > np.median(column[name])
    for name in ("deposit_regularity", "returned_share", "night_share", "instalment_share"):
        assert 0 <= column[name].min() < column[name].max() <= 1
    for name in ("earlier_loans", "overdrafts", "standing_orders", "term_months", "age"):
        assert (column[name] % 1 == 0).all()
    assert column["age"].min() >= 18


def test_the_seed_decides() -> None:
    first, again, other = (credit_population(300, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.X, again.X)
    np.testing.assert_array_equal(first.y, again.y)
    assert not np.array_equal(first.X, other.X)


@pytest.mark.parametrize("seed", range(5))
def test_a_fifth_to_a_quarter_defaults(seed: int) -> None:
    assert 0.19 <= credit_population(ROWS, seed).y.mean() <= 0.25


@pytest.mark.parametrize("rows", [1, 0, -3, 2.5, "9", True])
def test_bad_numbers_of_rows_are_refused(rows: Any) -> None:
    with pytest.raises(InputError, match=r"^rows must be a whole number"):
        credit_population(rows, 0)


def test_all_columns_by_a_kernel_beat_a_line_and_a_line_beats_the_lender(
    population: DataSet,
) -> None:
    everything = list(range(len(population.names)))
    own = population.numbers()[LABEL_PARTY]
    kernel = {"scale": "standard", "n_components": 1024, "random_state": 0}
    federated = auc(FDSKLClassifier(population.numbers(), **kernel), population, everything)
    alone = auc(PooledKernelClassifier(**kernel), population, own)
    line = auc(make_pipeline(StandardScaler(), LogisticRegression()), population, everything)
    assert 0.78 <= federated <= 0.87
    assert 0.68 <= line <= 0.77
    assert 0.60 <= alone <= 0.70
    assert federated > line + 0.05
    assert line > alone + 0.03


def test_the_risk_lies_between_parties(population: DataSet) -> None:
    """No two of the three parties come near what all three reach."""
    numbers = population.numbers()
    everybody = list(range(len(population.names)))
    kernel = {"scale": "standard", "n_components": 1024, "random_state": 0}
    everything = auc(PooledKernelClassifier(**kernel), population, everybody)
    for missing in numbers:
        rest = [column for column in everybody if column not in numbers[missing]]
        assert auc(PooledKernelClassifier(**kernel), population, rest) < everything - 0.02
