"""The count of what was opened, in a list of the checkpoints."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from vertikal.party.checkpoints import CheckpointedTally


class InMemory:
    """The lists of checkpoints, and which entries were to be on disk."""

    def __init__(self):
        self.lists = defaultdict(list)
        self.durable = []

    def append(self, name, entry, *, durable=False):
        self.lists[name].append(entry)
        self.durable.append(durable)

    def entries(self, name):
        return list(self.lists[name])


def test_a_tally_is_one_durable_list_for_each_label_party():
    checkpoints = InMemory()
    bank, shop = (CheckpointedTally(checkpoints, name) for name in ("bank", "Läden"))
    bank.add(np.array([1, 2, 3]))
    shop.add(np.array([4]))
    bank.add(np.array([-5, 6]))
    again = CheckpointedTally(checkpoints, "bank")
    assert [entry.tolist() for entry in again.entries()] == [[1, 2, 3], [-5, 6]]
    assert [entry.tolist() for entry in shop.entries()] == [[4]]
    assert checkpoints.durable == [True] * 3
    # They stay when other work of the job is forgotten.
    assert all(name.startswith("opened") for name in checkpoints.lists)
