"""Labels in parts: each label party can label some of the rows (FDSKL, section 2.1).

Label parties tell each other which rows they can label, and compare the labels of rows that several
of them have. The weight of such a row is divided among these, so that no row counts twice. What all
labels together say (their total weight, shares of classes, mean and deviation) is then a sum over
the parts. With ``label_parts=False`` every label party must hold all labels: they are compared, and
each computes such numbers for itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.algorithms.kernel_machine.label_sums import LabelSums
from vertikal.algorithms.kernel_machine.labels.comparison import compare_labels
from vertikal.errors import InputError, MeshError
from vertikal.party.party import Labels, Party
from vertikal.privacy.ledger import Disclosure

Array = npt.NDArray[Any]

KNOWN = Disclosure(
    "labelled rows",
    "which rows a label party can label",
    "label parties learn which rows each of them can label, and no label",
    masked=False,
)
TOTALS = Disclosure(
    "totals of labels",
    "weights, classes and squares of the labels of each part, summed",
    "label parties learn these totals; with two of them, each those of the other's part",
    masked=True,
)
SLOPES = Disclosure(
    "slopes",
    "slopes of the loss at all rows, each from a party that can label it, summed",
    "every label party learns the slope of the loss at each training row, which shows its label",
    masked=True,
)


@dataclass(frozen=True)
class LabelParts:
    """This label party's labels, and sums over the parts of all label parties.

    Weights are divided among the parties that can label a row. ``party`` is None where there are no
    parts: then this party's labels are all there are, and a sum is its own summand.
    """

    labels: Labels
    party: Party | None = None

    @property
    def several(self) -> bool:
        """True if each label party labels some of the rows."""
        return self.party is not None

    def total(self, partial: Array) -> Array:
        """Sum a few numbers over the parts; all label parties learn the sum."""
        return partial if self.party is None else self._sums(self.party).scalars(partial)

    def joined(self, partial: Array) -> Array:
        """Sum numbers of all rows (rows, outputs) over the parts; all label parties learn them."""
        return partial if self.party is None else self._sums(self.party).rows(partial)

    def by_party(self, mine: float) -> dict[str, float]:
        """Tell all label parties one number about this part; return that of each."""
        if self.party is None:
            return {}
        group = self.party.label_parties
        told = self.total(np.where(np.array(group) == self.party.name, mine, 0.0))
        return dict(zip(group, told.tolist(), strict=True))

    def mass(self) -> float:
        """Return the total weight of all rows, each counted once."""
        return float(self.total(np.array([self.labels.weights.sum()]))[0])

    def _sums(self, party: Party) -> LabelSums:
        return LabelSums(party, party.label_parties, SLOPES, TOTALS)

    def with_labels(self, labels: Labels) -> LabelParts:
        """Return the same with other targets or weights of this part."""
        return replace(self, labels=labels)


def share_labels(party: Party, labels: Labels, *, parts: bool) -> LabelParts:
    """Compare labels with the other label parties, and divide the weights of rows they share.

    Called by all label parties before anything else is sent. ``parts`` says that each may label
    some of the rows only.
    """
    if labels.known is not None and not parts:
        raise InputError.of(
            f"labels of {party.name}",
            "of all rows, or label_parts=True",
            f"{int((~labels.known).sum())} rows without",
        )
    if len(party.label_parties) == 1:
        return LabelParts(labels)
    with party.clock.stage("labels"):
        known = _tell_known(party, labels) if parts else None
        compare_labels(party, labels, known)
    if known is None:
        return LabelParts(labels)
    holders = np.sum(list(known.values()), axis=0)
    mine = known[party.name]
    weights = np.where(mine, labels.weights / np.maximum(holders, 1), 0.0)
    if not weights.any():
        raise InputError.of(f"labels of {party.name}", "of at least one row with a weight", "none")
    return LabelParts(Labels(labels.targets, weights, mine), party)


def _tell_known(party: Party, labels: Labels) -> dict[str, Array]:
    """Tell all label parties which rows this one can label; return the rows (rows,) of each."""
    rows = len(labels.weights)
    mine = np.ones(rows, bool) if labels.known is None else labels.known
    others = [name for name in party.label_parties if name != party.name]
    for name in others:
        party.tell(name, np.packbits(mine), KNOWN)
    known: dict[str, Array] = {party.name: mine}
    for name in others:
        told = party.hear(name, KNOWN)
        if (
            not isinstance(told, np.ndarray)
            or told.dtype != np.uint8
            or told.shape != (-(-rows // 8),)
        ):
            raise MeshError(f"{party.name}: {name} does not tell which rows it can label")
        known[name] = np.unpackbits(told, count=rows).astype(bool)
    return known


def shares_of_steps(parts: LabelParts, blocks: Mapping[str, int], mass: float) -> dict[str, float]:
    """Return the factor by which each label party's steps count, by name; none without parts.

    ``blocks`` are the steps of each in one pass, ``mass`` what this part weighs. A party that takes
    a share of the steps and has another share of the weight corrects by the quotient, so that the
    steps of one pass together follow the loss of all rows.
    """
    masses = parts.by_party(mass)
    total, steps = sum(masses.values()), sum(blocks.values())
    return {name: own / total * steps / blocks[name] for name, own in masses.items()}
