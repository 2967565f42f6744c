"""Alignment: the rows that the parties have in common, in one order, by private set intersection.

Each party learns which of its own rows all the others have too. Of anybody else's ids it learns
only their number, rounded up to within a sixteenth. The steps are those of
`vertikal.secure.psi.intersection`; docs/explanation-alignment.md says what they keep secret, and
under which assumptions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.data.ids import Ids, normalise
from vertikal.errors import InputError
from vertikal.party.party import Party
from vertikal.privacy.ledger import Disclosure

Array = npt.NDArray[Any]

DISCLOSURES = {
    "sizes": Disclosure(
        "id counts",
        "how many ids there are, rounded up, and the least number that must be common",
        "how many rows the sender has, to within a sixteenth",
        masked=False,
    ),
    "blinded": Disclosure(
        "blinded ids",
        "the leader's ids as points of the group under a secret of its own, shuffled and padded",
        "nothing: points that only the leader can tell apart",
        masked=True,
    ),
    "evaluated": Disclosure(
        "evaluated ids",
        "the same points under a secret of the sender",
        "the sender's secret function at the leader's own ids; nothing about the sender's ids",
        masked=True,
    ),
    "tables": Disclosure(
        "id tables",
        "a table of random-looking numbers, summed over the parties",
        "which of the leader's ids all parties have; nothing about ids that one party lacks",
        masked=True,
    ),
    "matches": Disclosure(
        "common ids",
        "the common ids in the leader's order, each written so that only its receiver knows it",
        "which of its own rows are common to all parties, and their common order",
        masked=False,
    ),
    "check": Disclosure(
        "alignment check",
        "the number of common ids and a digest of them",
        "whether all parties have found the same ids in the same order",
        masked=False,
    ),
}


@dataclass(frozen=True)
class Alignment:
    """Own rows that all parties have, in an order that all parties share."""

    rows: Array  # (matched,) int64, numbers of own rows
    own: int
    """Number of ids that this party brought."""
    digest: str
    """Digest of the common ids in their order: the same at all parties, another in each run."""

    @property
    def matched(self) -> int:
        return len(self.rows)


def align(
    party: Party,
    ids: Ids | Iterable[Any],
    *,
    least: int = 1,
    most: Mapping[str, int] | None = None,
    group: tuple[str, ...] | None = None,
) -> Alignment:
    """Align ``ids``, one per row of the own table, with those of all parties of ``group``.

    With fewer than ``least`` common ids it ends with an error before anybody but the leader knows
    them; the leader has to know them to count them. ``most`` are the ids that each other party may
    bring: whoever announces more, in rounded numbers, ends it before this party has answered
    anything about its ids. ``group`` are the parties that have ids, all by default; the leading
    label party is among them.
    """
    own = ids if isinstance(ids, Ids) else normalise(party.name, ids)
    if isinstance(least, bool) or not isinstance(least, int) or least < 1:
        raise InputError.of("least", "a whole number from 1 on", least)
    members = group or party.parties
    order = (party.leader, *(name for name in members if name != party.leader))
    meeting = party.intersection(order, own.values, DISCLOSURES)
    with party.clock.stage("alignment: sizes"):
        meeting.compare_sizes(least, most)
    with party.clock.stage("alignment: ids", meeting.largest):
        meeting.pass_round()
    with party.clock.stage("alignment: tables"):
        meeting.gather()
        rows = meeting.spread()
        digest = meeting.check(rows)
    return Alignment(np.asarray(rows, np.int64), len(own), digest.hex())
