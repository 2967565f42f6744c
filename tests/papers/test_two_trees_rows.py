"""FDSKL Algorithm 3 draws its masks once per direction, so they hide no difference of two rows.

FDSKL Lemma 8 says that, T1 and T2 being totally different, no b^ℓ is disclosed. Nobody needs one: a
party that receives a subtotal in T1 subtracts two rows of it and the masks are gone. Nor does the
lemma hold: a leaf sends its b^ℓ as it is in T2, and nothing in Definition 2 forbids that it goes to
the party that has its masked number from T1. The package refuses such trees; the rest stays as
published.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any
from unittest import mock

import numpy as np
import numpy.typing as npt
import pytest

from tests.conformance.uniformity import THRESHOLD, p_value
from tests.privacy.attacks.label_view import Run, public_directions, train
from vertikal import Fourier
from vertikal.algorithms.kernel_machine.directions import draw_directions
from vertikal.algorithms.kernel_machine.settings import FdsklSettings
from vertikal.mesh.collectives import Tree
from vertikal.privacy.attacks.linear_system import Recovered, all_against, recover_differences
from vertikal.ring.integers import Ring
from vertikal.secure.sums.fdskl_algorithm3 import safe, shared_subtrees

Array = npt.NDArray[Any]

ROWS, COLUMNS, D = 300, 12, 128
RING = Ring(8)
PAIRS = all_against(0, ROWS)
NAMES = ("bank", "shop", "clinic", "phone")


def columns_of(name: str) -> Array:
    """Yes or no, for everybody."""
    generator = np.random.default_rng(NAMES.index(name))
    return generator.integers(0, 2, (ROWS, COLUMNS)).astype(float)


def federation(masking: str, directions: str, parties: int) -> Run:
    names = NAMES[:parties]
    settings = FdsklSettings(
        parties=names,
        label_parties=("bank",),
        n_components=D,
        bandwidth=3.0,
        feature_map=Fourier(directions=directions),
        seed=5,
    )
    targets = np.where(columns_of("bank")[:, 0] > 0, 1.0, -1.0)
    return train({name: columns_of(name) for name in names}, targets, settings, masking)


@cache
def run(masking: str, directions: str) -> Run:
    return federation(masking, directions, 4)


def edges(run: Run, tree: str) -> list[tuple[str, str]]:
    """(sender, receiver) of the frames that carry phases (T1) or their masks (T2)."""
    headers = [frame.header for frame in run.tape]
    return [
        (header.sender, header.receiver)
        for header in headers
        if header.tag.startswith("sum/phases/") and header.tag.endswith(tree)
    ]


def leaf_and_inner_node(run: Run) -> tuple[str, str]:
    """A party that adds nothing to its own phases in T1, and the feature party it sends them to."""
    sent = edges(run, "/t1")
    receivers = {receiver for _, receiver in sent}
    return next((a, b) for a, b in sent if b != "bank" and a not in receivers)


def seen(masking: str, directions: str) -> tuple[str, Array]:
    """A feature party's name and its frames (rows, D), as they reach whom it sends them to."""
    leaf, inner = leaf_and_inner_node(run("trees", directions))
    if masking == "pads":
        return leaf, run("pads", directions).seen("bank", leaf)
    return leaf, run("trees", directions).seen(inner, leaf, "/t1")


def projections(run: Run, name: str) -> Array:
    """This party's own ωᵀx in ring steps, without any b: what nobody else should have."""
    return RING.encode_angles(
        columns_of(name) @ draw_directions(run.shards[name], "bank").directions
    )


def differences(elements: Array) -> Array:
    return np.asarray(elements[PAIRS[:, 0]] - elements[PAIRS[:, 1]])


def solved(elements: Array, settings: FdsklSettings, name: str) -> Recovered:
    """The linear system for a party's columns, with directions drawn from the public seed."""
    directions = public_directions(settings, 3.0, "bank", {name: COLUMNS})
    return recover_differences(
        elements, np.zeros_like(elements), directions, RING, all_against(0, len(elements))
    )


@pytest.mark.parametrize("directions", ["private", "shared"])
def test_an_inner_node_of_t1_sees_exact_differences_between_rows(directions: str) -> None:
    """The inner node is a feature party, which should learn nothing from a sum for the bank."""
    leaf, frames = seen("trees", directions)
    hidden = differences(projections(run("trees", directions), leaf))
    # The leaf rounded with b in its numbers, the truth without: a step for each of two rows.
    errors = (differences(frames) - hidden).view(np.int8).astype(int)
    assert np.abs(errors).max() <= 2


@pytest.mark.parametrize("directions", ["private", "shared"])
def test_with_pads_the_same_frames_are_uniform(directions: str) -> None:
    """The same sum, the same subtraction of two rows: nothing of the columns is left."""
    leaf, frames = seen("pads", directions)
    hidden = differences(projections(run("pads", directions), leaf))
    assert p_value([frames]) > THRESHOLD
    assert p_value([differences(frames)]) > THRESHOLD
    assert p_value([differences(frames) - hidden]) > THRESHOLD


def test_the_trees_frames_fail_that_test() -> None:
    """Differences of rows are far from uniform under trees."""
    _, frames = seen("trees", "private")
    assert p_value([differences(frames)]) < 1e-100


def test_with_shared_directions_an_inner_node_solves_for_the_columns() -> None:
    leaf, frames = seen("trees", "shared")
    truth = columns_of(leaf)
    recovered = solved(frames, run("trees", "shared").shards[leaf].settings, leaf)
    assert recovered.converged.all()
    np.testing.assert_array_equal(recovered.rounded(), truth[1:] - truth[0])


def test_with_pads_there_is_no_solution() -> None:
    leaf, frames = seen("pads", "shared")
    recovered = solved(frames, run("pads", "shared").shards[leaf].settings, leaf)
    assert not recovered.converged.any()
    assert recovered.residuals.min() > 1.0


def test_definition_2_by_hand() -> None:
    """The trees of the paper's Figure 2 and of AVFKAM's Figure 7; pairs that share a subtree."""
    # FDSKL Figure 2: T1 on workers 1 to 4 pairs neighbours, T2 leaves worker 4 out.
    t1: Tree = (("1", "2"), ("3", "4"))
    assert shared_subtrees(t1, (("1", "3"), "2")) == set()
    # AVFKAM Figure 7: both on all workers, paired otherwise.
    assert shared_subtrees(t1, (("1", "3"), ("2", "4"))) == set()
    # The same pair in both, whatever its order, and a pair within a larger subtree.
    assert shared_subtrees(t1, (("2", "1"), "3")) == {frozenset("12")}
    assert shared_subtrees(t1, (("1", "3"), ("4", "2"))) == set()
    assert shared_subtrees(((t1, "5"), "6"), (("5", "6"), t1)) == {
        frozenset("12"),
        frozenset("34"),
        frozenset("1234"),
    }
    # A tree of some of the parties only may not be a subtree of the other.
    assert shared_subtrees((t1, "5"), t1) == {
        frozenset("12"),
        frozenset("34"),
        frozenset("1234"),
    }
    # Two parties have one tree, and it is shared.
    assert shared_subtrees(("1", "2"), ("2", "1")) == {frozenset("12")}


def test_lemma_8_by_hand() -> None:
    """Trees that Definition 2 allows and that show a number; and trees that show none."""
    first: Tree = (("a", "k"), "c")
    assert shared_subtrees(first, ("a", "c")) == set()
    # c's masked number comes to a in T1, its mask in T2.
    assert not safe(first, ("a", "c"))
    assert not safe((("1", "2"), ("3", "4")), (("2", "1"), "3"))
    # In T2 worker 1 receives 3's mask alone, and of T1 the sums of 2, and of 3 and 4.
    assert safe((("1", "2"), ("3", "4")), ("1", ("2", "3")))


def as_defined(parties: Sequence[str], without: str) -> tuple[Tree, Tree]:
    """Three parties: a T1 and a T2 that are totally different by Definition 2."""
    (root,) = set(parties[:1])
    (other,) = set(parties) - {root, without}
    return ((root, without), other), (root, other)


@cache
def run_as_defined(directions: str) -> tuple[Run, str]:
    """A run over these trees, and the party that sends to the bank in both."""
    with mock.patch("vertikal.secure.sums.fdskl_algorithm3.masking_trees", as_defined):
        done = federation("trees", directions, 3)
    ((victim, receiver),) = edges(done, "/t2")
    assert (victim, receiver) in edges(done, "/t1")
    return done, victim


def unmasked(done: Run, victim: str) -> Array:
    """Subtract what the victim sent the bank in T2 from what it sent the bank in T1."""
    masks = done.seen("bank", victim, "/t2")
    assert masks.shape == (D,)
    return np.asarray(done.seen("bank", victim, "/t1") - masks)


def test_definition_2_allows_what_the_package_refuses() -> None:
    first, second = as_defined(("bank", "shop", "clinic"), "shop")
    assert shared_subtrees(first, second) == set()
    assert not safe(first, second)


@pytest.mark.parametrize("directions", ["private", "shared"])
def test_over_such_trees_the_label_party_takes_the_masks_off(directions: str) -> None:
    done, victim = run_as_defined(directions)
    errors = unmasked(done, victim) - projections(done, victim)
    assert np.abs(errors.view(np.int8).astype(int)).max() <= 1


def test_and_with_shared_directions_has_the_records_themselves() -> None:
    """Not differences: a row of zeros has the phase zero, so each row is compared with that."""
    done, victim = run_as_defined("shared")
    bare = np.concatenate((np.zeros((1, D), np.uint8), unmasked(done, victim)))
    recovered = solved(bare, done.shards[victim].settings, victim)
    assert recovered.converged.all()
    np.testing.assert_array_equal(recovered.rounded(), columns_of(victim))


def near(elements: Array, truth: Array) -> float:
    """Share of elements within one step of the truth: 3 / 256 where they are unrelated."""
    return float((np.abs((elements - truth).view(np.int8).astype(int)) <= 1).mean())


@pytest.mark.parametrize("parties", [3, 4])
def test_over_its_own_trees_nobody_gets_a_number_and_its_mask(parties: int) -> None:
    """The numbers of T2, taken off those of T1, are nobody's bare projections at any party."""
    done = federation("trees", "private", parties)
    others = [name for name in NAMES[:parties] if name != "bank"]
    tried = 0
    for sender, receiver in edges(done, "/t1"):
        for mask_sender, mask_receiver in edges(done, "/t2"):
            if receiver == mask_receiver:
                tried += 1
                masks = done.seen(receiver, mask_sender, "/t2")
                bare = done.seen(receiver, sender, "/t1") - masks
                assert max(near(bare, projections(done, name)) for name in others) < 0.1
    assert tried


def test_that_comparison_finds_the_bare_projections() -> None:
    done, victim = run_as_defined("private")
    assert near(unmasked(done, victim), projections(done, victim)) == 1
