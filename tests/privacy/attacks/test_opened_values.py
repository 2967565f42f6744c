"""The attack works on what it can undo, and finds nothing in what `values` opens."""

from __future__ import annotations

import lzma
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from sklearn.datasets import load_svmlight_file

from tests.privacy.attacks.label_view import watching
from vertikal import FDSKLClassifier
from vertikal.algorithms.kernel_machine.values import HiddenOperator
from vertikal.errors import InputError
from vertikal.privacy.attacks.binary_columns import binary_columns
from vertikal.privacy.attacks.opened_values import separate_values
from vertikal.privacy.attacks.score import AttackScore, matched_correlations, score
from vertikal.privacy.attacks.source_separation import separate

DATA = Path(os.environ.get("VERTIKAL_DATA", Path(__file__).parents[4] / "shared" / "data"))
A9A = DATA / "a9a" / "a9a.xz"


@contextmanager
def opened() -> Iterator[list[np.ndarray]]:
    """All that forward passes opened to label parties in the runs inside."""
    values: list[np.ndarray] = []
    original = HiddenOperator.forward

    def forward(self, coefficients, rows=None, columns=slice(None)):
        found = original(self, coefficients, rows, columns)
        values.append(found)
        return found

    with mock.patch.object(HiddenOperator, "forward", forward):
        yield values


def population(rows=4000, hidden=12, seed=0):
    """Yes-or-no columns of the others, four columns of the bank's, and a label of both."""
    generator = np.random.default_rng(seed)
    columns = (generator.uniform(size=(rows, hidden)) < np.linspace(0.05, 0.5, hidden)).astype(
        float
    )
    own = generator.normal(size=(rows, 4))
    y = own[:, 0] + columns[:, 0] + columns[:, -1] - columns[:, 5] > 0.5
    return own, columns, y


def attack(X, y, own: int, hidden: np.ndarray, **settings) -> tuple[AttackScore, AttackScore]:
    """(against open, against values): columns recovered by the bank, which has the first ones."""
    parties = {"bank": list(range(own))}
    for i, part in enumerate(np.array_split(np.arange(own, X.shape[1]), 3)):
        parties[f"other{i}"] = part.tolist()
    model = FDSKLClassifier(parties, random_state=0, **settings)
    with watching() as views:
        model.fit(X, y)
    view = views["bank"]
    in_the_open = separate(view.phases, view.own_phases, view.ring, hidden_parties=3)
    with opened() as values:
        model.set_params(disclosure="values").fit(X, y)
    passes = np.concatenate(values, axis=1)
    assert passes.shape[1] == model.n_iter_ > 3
    hidden_ones = [
        separate_values(passes),
        separate_values(passes, np.asarray(X[:, :own])),
    ]
    attempts = [found.components for found in hidden_ones]
    attempts += [binary_columns(found.scores, found.components, tries=64) for found in hidden_ones]
    scores = [score(components, hidden) for components in attempts]
    best = max(scores, key=lambda s: (s.almost_exact, s.close))
    return score(in_the_open.components, hidden), best


def test_values_give_no_column_away_where_phases_give_them_all():
    own, hidden, y = population()
    in_the_open, values = attack(
        np.hstack((own, hidden)), y, 4, hidden, n_components=256, bandwidth=4.0
    )
    assert in_the_open.almost_exact >= 10
    assert values.almost_exact == 0


def test_it_undoes_a_linear_mixture():
    _, hidden, _ = population()
    mixture = hidden @ np.random.default_rng(1).normal(size=(12, 14))
    # Two columns of about one yes in five are as peaked as a Gaussian: only these stay mixed.
    assert (matched_correlations(separate_values(mixture).components, hidden) > 0.99).sum() >= 10


def test_what_is_its_own_is_no_find():
    own, hidden, _ = population()
    mixture = own @ np.random.default_rng(1).normal(size=(4, 4))
    assert separate_values(mixture).components.shape[1] == 4
    assert separate_values(mixture, own).components.shape[1] == 0
    together = mixture + hidden[:, :4]
    found = separate_values(together, own)
    assert (matched_correlations(found.components, hidden[:, :4]) > 0.99).sum() >= 2


def test_constants_show_nothing():
    found = separate_values(np.ones((50, 3)))
    assert found.components.shape == (50, 0)
    assert found.converged


@pytest.mark.parametrize("shape", [(5,), (4, 4), (3, 9)])
def test_too_few_rows_are_refused(shape):
    with pytest.raises(InputError, match="values must be two-dimensional, with more rows"):
        separate_values(np.zeros(shape))


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(not A9A.exists(), reason=f"no {A9A.name}; set VERTIKAL_DATA to the data folder")
def test_a9a_seen_by_a_bank_that_holds_the_first_36_columns() -> None:
    with lzma.open(A9A) as file:
        X, y = load_svmlight_file(file, n_features=123)
    X = X.toarray()
    in_the_open, values = attack(X, y, 36, X[:, 36:], n_components=1024, bandwidth=5.0, alpha=1e-5)
    assert in_the_open.almost_exact >= 20
    assert values.almost_exact == 0
    # Measured: 5 of 87.
    assert values.close <= 10
