"""FDSKL Theorem 7: "the FDSKL algorithm can prevent inference attack" by semi-honest parties.

The theorem does not survive. With directions that everybody can draw, as published, the label party
of a real run recovers the difference between any two people's records from the phases it is given.
It uses its own columns and shard, the public settings and the phases, and follows the protocol
throughout.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.privacy.attacks.label_view import (
    LabelView,
    drawn_directions,
    public_directions,
    watching,
)
from vertikal import FDSKLClassifier, Fourier
from vertikal.privacy.attacks.linear_system import (
    Recovered,
    all_against,
    recover_differences,
    recover_differences_exact,
)
from vertikal.privacy.attacks.score import exact_rows

Array = npt.NDArray[Any]

ROWS, OWN, SHOP, CLINIC, D = 150, 6, 14, 10, 256
HIDDEN = {"shop": SHOP, "clinic": CLINIC}
PARTIES = {
    "bank": list(range(OWN)),
    "shop": list(range(OWN, OWN + SHOP)),
    "clinic": list(range(OWN + SHOP, OWN + SHOP + CLINIC)),
}
PAIRS = all_against(0, ROWS)
APART = np.arange(ROWS).reshape(-1, 2)
"""Pairs that share no row, so that chance correlations between them do not add up."""


def population() -> tuple[Array, Array]:
    """The bank's columns and the shop's are yes or no, the clinic's are measurements."""
    generator = np.random.default_rng(7)
    answers = generator.integers(0, 2, (ROWS, OWN + SHOP)).astype(float)
    X = np.concatenate((answers, generator.normal(size=(ROWS, CLINIC))), axis=1)
    return X, np.where(X[:, 0] + X[:, 8] + X[:, -1] > 1, 1, 0)


def trained(directions: str, ring_bits: int) -> tuple[FDSKLClassifier, LabelView]:
    model = FDSKLClassifier(
        PARTIES,
        n_components=D,
        feature_map=Fourier(bits=ring_bits, directions=directions),
        random_state=3,
    )
    with watching() as views:
        if directions == "shared":
            with pytest.warns(UserWarning, match="recover the differences between any two rows"):
                model.fit(*population())
        else:
            model.fit(*population())
    assert set(views) == {"bank"}
    return model, views["bank"]


def attacked(view: LabelView, directions: Array, pairs: Array = PAIRS) -> Recovered:
    return recover_differences(
        view.phases, view.own_phases, directions, view.ring, pairs, hidden_parties=2
    )


def truth(pairs: Array = PAIRS) -> Array:
    X, _ = population()
    hidden = X[:, OWN:]
    return np.asarray(hidden[pairs[:, 0]] - hidden[pairs[:, 1]])


# One rounding per party and row moves a solution by about a step over √D, times the bandwidth.
@pytest.mark.parametrize(("ring_bits", "error"), [(8, 0.05), (16, 2e-4), (32, 3e-9)])
def test_shared_directions_give_every_difference_between_rows(ring_bits: int, error: float) -> None:
    model, view = trained("shared", ring_bits)
    directions = public_directions(model.settings_, model.bandwidth_, "bank", HIDDEN)
    recovered = attacked(view, directions)
    assert recovered.converged.mean() > 0.95
    right = recovered.converged
    assert np.abs(recovered.differences - truth())[right].max() < error
    answers = exact_rows(recovered.rounded()[right, :SHOP], truth()[right, :SHOP])
    assert answers.all()


def test_the_attacker_need_not_know_the_number_of_hidden_columns() -> None:
    """Too few columns do not explain the phases; columns that nobody holds come out as zero."""
    model, view = trained("shared", 8)

    def guessed(more: int) -> Recovered:
        widths = {"shop": SHOP + more, "clinic": CLINIC + more}
        return attacked(view, public_directions(model.settings_, model.bandwidth_, "bank", widths))

    assert guessed(-1).converged.mean() < 0.1
    generous = guessed(3)
    assert generous.converged.mean() > 0.95
    shop, nobody, clinic, nobody_else = np.split(
        generous.differences[generous.converged], [SHOP, SHOP + 3, SHOP + 3 + CLINIC], axis=1
    )
    assert np.abs(nobody).max() < 0.05
    assert np.abs(nobody_else).max() < 0.05
    found = np.concatenate((shop, clinic), axis=1)
    assert np.abs(found - truth()[generous.converged]).max() < 0.05


@pytest.mark.parametrize("guess", ["public seed", "own seed"])
@pytest.mark.parametrize("ring_bits", [8, 16, 32])
def test_private_directions_give_the_linear_system_nothing(ring_bits: int, guess: str) -> None:
    """All that is left to the attacker is to draw from the same measure with a seed that it has."""
    model, view = trained("private", ring_bits)
    if guess == "public seed":
        directions = public_directions(model.settings_, model.bandwidth_, "bank", HIDDEN)
    else:
        seed = model.shards_["bank"].seed
        purpose = ("directions", "bank")
        directions = drawn_directions(seed, purpose, "gaussian", model.bandwidth_, SHOP + CLINIC, D)
    recovered = attacked(view, directions, APART)
    assert not recovered.converged.any()
    # A right solution leaves 0.014 at 8 bits; one that explains nothing leaves about a radian.
    assert recovered.residuals.min() > 0.5
    correlation = np.corrcoef(recovered.differences.ravel(), truth(APART).ravel())[0, 1]
    assert abs(correlation) < 0.1


def test_in_floating_point_as_published_the_attack_is_exact() -> None:
    """ωᵀx + b as the paper's Algorithm 3 hands it over, never reduced mod 2π: 40 hidden columns."""
    generator = np.random.default_rng(1)
    own, hidden = generator.normal(size=(60, 8)), generator.normal(size=(60, 40))
    own_directions, hidden_directions = np.split(generator.normal(size=(48, D)), [8])
    b = generator.uniform(0, 2 * np.pi, D)
    own_part = own @ own_directions
    pairs = all_against(0, 60)
    recovered = recover_differences_exact(
        own_part + hidden @ hidden_directions + b, own_part, hidden_directions, pairs
    )
    assert recovered.converged.all()
    assert np.abs(recovered.differences - (hidden[1:] - hidden[0])).max() < 1e-12
