"""FDSKL Algorithm 3 draws its masks once per direction, so they hide no difference between two rows.

FDSKL Lemma 8 says that, T1 and T2 being totally different, no b^ℓ is disclosed. Nobody needs one: a
party that receives a subtotal in T1 subtracts two rows of it and the masks are gone. Nor does the
lemma hold: a leaf sends its b^ℓ as it is in T2, and where it sends to the same party in T1, as some leaf
must with three parties, that party has the bare ωᵀx, which Definition 2 does not rule out.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest


from tests.conformance.uniformity import THRESHOLD, p_value
from tests.privacy.attacks.label_view import Run, public_directions, train
from vertikal.algorithms.directions import draw
from vertikal.algorithms.settings import FdsklSettings
from vertikal.privacy.attacks.linear_system import Recovered, all_against, recover_differences
from vertikal.secure.ring import Ring

Array = npt.NDArray[Any]

ROWS, COLUMNS, D = 300, 12, 128
RING = Ring(8)
PAIRS = all_against(0, ROWS)
NAMES = ("bank", "shop", "clinic", "phone")


def columns_of(name: str) -> Array:
    """Yes or no, for everybody."""
    generator = np.random.default_rng(NAMES.index(name))
    return generator.integers(0, 2, (ROWS, COLUMNS)).astype(float)


@cache
def run(masking: str, directions: str, parties: int) -> Run:
    names = NAMES[:parties]
    settings = FdsklSettings(
        parties=names,
        label_parties=("bank",),
        n_directions=D,
        bandwidth=3.0,
        directions=directions,
        seed=5,
    )
    targets = np.where(columns_of("bank")[:, 0] > 0, 1.0, -1.0)
    return train({name: columns_of(name) for name in names}, targets, settings, masking)


def seen_of_clinic(masking: str, directions: str, parties: int) -> Array:
    """The clinic's frames (rows, D), as they reach the party that the clinic sends its phases to."""
    if masking == "pads":
        return run(masking, directions, parties).seen("bank", "clinic")
    inner = "shop" if parties == 4 else "bank"
    return run(masking, directions, parties).seen(inner, "clinic", "/t1")


def projections_of_clinic(directions: str, masking: str, parties: int) -> Array:
    """The clinic's own ωᵀx in ring steps, without any b: what nobody else should have."""
    drawn = draw(run(masking, directions, parties).shards["clinic"], "bank")
    return RING.encode_angles(columns_of("clinic") @ drawn.directions)


def differences(elements: Array) -> Array:
    return np.asarray(elements[PAIRS[:, 0]] - elements[PAIRS[:, 1]])


def solved(elements: Array) -> Recovered:
    """The linear system for the clinic's columns, with the directions that the public seed gives."""
    settings = run("trees", "shared", 4).shards["shop"].settings
    directions = public_directions(settings, 3.0, "bank", {"clinic": COLUMNS})
    return recover_differences(
        elements, np.zeros_like(elements), directions, RING, all_against(0, len(elements))
    )


@pytest.mark.parametrize("directions", ["private", "shared"])
def test_an_inner_node_of_t1_sees_exact_differences_between_rows(directions: str) -> None:
    """Four parties: the shop is an inner node, and has nothing to do with the clinic's columns."""
    seen = differences(seen_of_clinic("trees", directions, 4))
    hidden = differences(projections_of_clinic(directions, "trees", 4))
    # Two roundings, of each row with b and of each row without, differ by a step at most.
    errors = (seen - hidden).view(np.int8)
    assert np.abs(errors.astype(int)).max() <= 2
    assert np.abs(errors).mean() < 0.8


@pytest.mark.parametrize("directions", ["private", "shared"])
def test_with_pads_the_same_frames_are_uniform(directions: str) -> None:
    """The same sum, the same subtraction of two rows: nothing of the clinic's columns is left."""
    seen = seen_of_clinic("pads", directions, 4)
    hidden = differences(projections_of_clinic(directions, "pads", 4))
    assert p_value([seen]) > THRESHOLD
    assert p_value([differences(seen)[::2]]) > THRESHOLD
    assert p_value([differences(seen) - hidden]) > THRESHOLD


def test_uniformity_would_fail_on_the_trees() -> None:
    """The test above can fail: under trees, differences of rows are far from uniform."""
    seen = differences(seen_of_clinic("trees", "private", 4))
    assert p_value([seen]) < 1e-100


def test_with_shared_directions_an_inner_node_solves_for_the_columns() -> None:
    truth = columns_of("clinic")[1:] - columns_of("clinic")[0]
    recovered = solved(seen_of_clinic("trees", "shared", 4))
    assert recovered.converged.all()
    np.testing.assert_array_equal(recovered.rounded(), truth)


@pytest.mark.parametrize("parties", [3, 4])
def test_with_pads_there_is_no_solution(parties: int) -> None:
    recovered = solved(seen_of_clinic("pads", "shared", parties))
    assert not recovered.converged.any()
    assert recovered.residuals.min() > 1.0


def unmasked_by_the_bank(directions: str) -> Array:
    """Three parties: what the clinic sent the bank in T1 minus what it sent the bank in T2."""
    federation = run("trees", directions, 3)
    (masks,) = federation.tape.arrays("sum/phases/0/t2", "clinic", "bank")
    assert masks.shape == (D,)
    return np.asarray(seen_of_clinic("trees", directions, 3) - masks)


@pytest.mark.parametrize("directions", ["private", "shared"])
def test_with_three_parties_the_label_party_takes_the_masks_off(directions: str) -> None:
    """T1 is ((bank, shop), clinic) and T2 (bank, clinic): totally different, and of no use."""
    errors = unmasked_by_the_bank(directions) - projections_of_clinic(directions, "trees", 3)
    assert np.abs(errors.view(np.int8).astype(int)).max() <= 1


def test_and_with_shared_directions_has_the_records_themselves() -> None:
    """Not differences: a row of zeros has the phase zero, so each row is compared with that."""
    bare = unmasked_by_the_bank("shared")
    recovered = solved(np.concatenate((np.zeros((1, D), np.uint8), bare)))
    assert recovered.converged.all()
    np.testing.assert_array_equal(recovered.rounded(), columns_of("clinic"))
