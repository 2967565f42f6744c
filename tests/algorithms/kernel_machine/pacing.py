"""Observers that set the pace of parties by events, so that no test depends on how fast it runs."""

from __future__ import annotations

import threading
from collections import Counter

PATIENCE = 60.0


class Pace:
    """Counts everybody's steps, and lets `at_step` act in the thread of the party that made one."""

    def __init__(self):
        self.steps: Counter[str] = Counter()
        self.notes: list[str] = []
        self.changed = threading.Condition()

    def begin(self, party, stage, total): ...

    def end(self, party, stage, seconds): ...

    def advance(self, party, stage, amount, note):
        if stage != "solve":
            return
        with self.changed:
            self.steps[party] += amount
            self.notes.append(note)
            self.changed.notify_all()
        self.at_step(party, self.steps[party])

    def at_step(self, party, number): ...

    def wait_for(self, condition):
        """Return True if it came true before patience ran out."""
        with self.changed:
            return self.changed.wait_for(condition, PATIENCE)


class Straggler(Pace):
    """One party stays in its first step until the others have made so many of theirs.

    The others wait for that step to begin, so that it does, however busy the machine is.
    """

    def __init__(self, party, others_steps):
        super().__init__()
        self.party = party
        self.left_behind = False
        self._wanted = others_steps

    def at_step(self, party, number):
        if (party, number) == (self.party, 1):
            self.left_behind = self.wait_for(
                lambda: sum(c for p, c in self.steps.items() if p != party) >= self._wanted
            )
        elif number == 1:
            self.wait_for(lambda: self.steps[self.party] > 0)


class Vanishing(Pace):
    """Some parties fail in their first step; the others wait for that in theirs."""

    def __init__(self, *gone):
        super().__init__()
        self._gone = gone

    def at_step(self, party, number):
        if party in self._gone:
            raise RuntimeError("the power went out")
        if number == 1:
            self.wait_for(lambda: all(self.steps[name] for name in self._gone))


class Balanced(Pace):
    """No party gets more than three steps ahead of another, however busy the machine is."""

    def __init__(self, parties, steps):
        super().__init__()
        self._parties = parties
        self._total = steps

    def at_step(self, party, number):
        self.wait_for(
            lambda: (
                min(self.steps[name] for name in self._parties) >= number - 3
                or sum(self.steps.values()) >= self._total
            )
        )
