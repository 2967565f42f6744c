"""The comparison of labels before training: label parties that hold different ones stop here.

Two label parties compare the rows that both can label. First they exchange a digest of these labels
and weights, under a key of this pair: if it is the same, neither has told the other anything. Only
if it is not do they count the rows that differ (`secure.psi.equal_count`), which shows the number,
and neither labels nor which rows these are. A single digest of each row would show more: whoever
has the key can try all classes, and so would learn the label of every row that was sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.errors import AgreementError
from vertikal.party.party import Labels, Party
from vertikal.privacy.ledger import Disclosure

Array = npt.NDArray[Any]

COMPARED = Disclosure(
    "comparison of labels",
    "a digest of the labels that two label parties both hold, under a key of theirs",
    "two label parties learn if their labels are the same, and nothing else about them",
    masked=True,
)
COUNTED = Disclosure(
    "count of differing labels",
    "labels as points of a group, multiplied by secrets of both label parties and shuffled",
    "two label parties whose labels differ learn in how many rows, and not in which",
    masked=True,
)


def compare_labels(party: Party, labels: Labels, known: Mapping[str, Array] | None = None) -> None:
    """Compare labels and weights with each other label party; AgreementError if they differ.

    ``known`` (rows,) bool are the rows that each label party can label, by default all. All label
    parties call it.
    """
    rows = len(labels.weights)
    others = [name for name in party.label_parties if name != party.name]
    differences = []
    for other in others:
        both = np.ones(rows, bool) if known is None else known[party.name] & known[other]
        # Zero has two signs in floating point, which mean the same.
        held = np.column_stack((labels.targets, labels.weights))[both] + 0.0
        if not len(held) or party.agrees_with(other, held.tobytes(), COMPARED):
            continue
        things = [row.tobytes() for row in held]
        differing = len(held) - party.count_equal(other, things, COUNTED)
        differences.append(
            f"{' and '.join(sorted((party.name, other)))} differ in {differing} of {len(held)} rows"
        )
    if differences:
        raise AgreementError(
            f"{party.name}: label parties must hold the same labels and weights of the rows that "
            f"they share: {'; '.join(differences)}; nothing was trained"
        )
