"""The asynchronous schedule: label parties update without waiting for one another's steps.

Each label party runs its own loop: it asks the others for their partial predictions of its batch,
adds them up, and changes its own coefficients. Meanwhile it answers each other label party in a
thread of its own, from the coefficients as they stand. A slow party slows only itself: the others
get its answers and do not wait for its updates, unless they would leave it behind by more than
``max_staleness``.

The answers to one request are one secure sum: with three label parties or more they carry pads that
cancel among those that answer, so that the asking party learns the sum only. A request has, beside
its rows, the number of updates that its sender has made (by which the others' coefficients decay)
and the label parties that its sender found to have vanished.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from vertikal.algorithms.kernel_machine.label_sums import LabelSums
from vertikal.algorithms.kernel_machine.stochastic.learner import (
    Learner,
    direction_blocks,
    number_of_steps,
)
from vertikal.algorithms.kernel_machine.stochastic.validation_curve import ValidationCurve
from vertikal.errors import DeadlineExceeded, MeshError, PeerStopped
from vertikal.party.party import Party
from vertikal.privacy.ledger import Disclosure

Array = npt.NDArray[Any]

STEPS = Disclosure(
    "steps",
    "row numbers of a batch, and how many updates its sender has made",
    "label parties learn which rows a step uses, and each other's pace",
    masked=False,
)
_NO_ROWS = np.empty(0, np.int64)


class StalenessBound:
    """AVFKAM Assumption 5.2: no reading is older than τ updates when its reader reads again.

    A party that holds an answer of this one may be about to use it; until it asks again, this party
    makes ``limit`` updates and then waits. A party that waits has read later than the party it
    waits for, so there is no circle of waits. All is done with the lock ``changed`` held.
    """

    def __init__(self, me: str, limit: int, deadline: float) -> None:
        self.changed = threading.Condition()
        self.updates = 0
        """Updates that this party has made."""
        self._me, self._limit, self._deadline = me, limit, deadline
        self._read: dict[str, int] = {}
        """Own updates at the time of the last answer, by the party that was answered."""
        self._open: set[str] = set()
        """Parties that have an answer of this one and may still be about to use it."""

    def read(self, name: str, *, last: bool) -> int:
        """Note that ``name`` reads now, and count the updates that it had not seen before."""
        age = self.updates - self._read.get(name, self.updates)
        self._read[name] = self.updates
        self._open.discard(name) if last else self._open.add(name)
        self.changed.notify_all()
        return age

    def forget(self, name: str) -> None:
        """Wait no more for a party that has vanished."""
        self._open.discard(name)
        self.changed.notify_all()

    def wait(self, check: Callable[[], None]) -> None:
        """Wait until one more update leaves nobody behind; ``check`` raises what must end it."""
        since = time.monotonic()
        while late := [n for n in self._open if self.updates - self._read[n] >= self._limit]:
            check()
            left = since + self._deadline - time.monotonic()
            if left <= 0:
                raise DeadlineExceeded(
                    f"{self._me}: {late[0]} has taken no step for {self._deadline:g} s while "
                    f"{self._me} waited for it after {self._limit} updates of its own "
                    "(max_staleness)"
                )
            self.changed.wait(left)


class AsynchronousRun:
    """Part of one label party in an asynchronous run."""

    def __init__(self, party: Party, learner: Learner, curve: ValidationCurve) -> None:
        self._party = party
        self._learner = learner
        self._settings = learner.settings
        self._curve = curve
        self._everybody = self._settings.label_parties
        self.missing: tuple[str, ...] = ()
        self._sums: dict[tuple[str, ...], LabelSums] = {}
        limit = self._settings.stochastic.max_staleness // (len(self._everybody) - 1)
        self._bound = StalenessBound(party.name, limit, party.deadline)
        self._changed = self._bound.changed
        self._announced = dict.fromkeys(self._others(), 0)
        self._unsettled = False
        """True until the next answers tell the staleness of the last own update."""
        self._failure: BaseException | None = None

    def run(self) -> None:
        """Run AVFKAM Algorithm 1 at this label party, in parallel with the others."""
        threads = [
            threading.Thread(
                target=self._guarded_answers, args=(name,), name=f"{self._party.name} → {name}"
            )
            for name in self._others()
        ]
        for thread in threads:
            thread.daemon = True
            thread.start()
        try:
            self._keep_stepping()
            self._ask(_NO_ROWS)
            for thread in threads:
                thread.join()
            self._check()
        except BaseException as error:
            self._fail(error)
            raise

    def close(self, rows: Array) -> Array | None:
        """Return the final f of these rows at the first label party that is left, else None."""
        while True:
            leader = self._group()[0]
            if leader == self._party.name:
                f = self._ask(rows) if len(rows) else None
                self._ask(_NO_ROWS)
                return f
            if self._answers(leader):
                return None

    def _keep_stepping(self) -> None:
        """Take steps until all label parties together have taken as many as were agreed."""
        learner, steps = self._learner, number_of_steps(self._settings)
        blocks = direction_blocks(self._settings, self._party.name)
        next_point = self._curve.interval
        while learner.total < steps:
            rows = learner.pick()  # line 2: pick a seed and its pairs
            f = self._ask(rows)  # line 3: f̂ = Σ f̂^ℓ, by Algorithm 2
            columns = blocks[self._bound.updates % len(blocks)]
            batch = learner.operator.restricted(rows)
            change = learner.change(batch, rows, f, columns)  # line 4
            with self._changed:
                self._bound.wait(self._check)
                learner.decay()  # line 5; the others are told with the next request
                learner.add(columns, change)
                self._bound.updates += 1
                learner.total += 1
                self._unsettled = True
            if learner.total >= next_point:
                next_point = learner.total + self._curve.interval
                self._add_point()
            self._party.clock.advance(1, learner.note())

    def _add_point(self) -> None:
        score = None
        if len(self._curve.rows) and self._group()[0] == self._party.name:
            score = self._curve.score(self._ask(self._curve.rows))
        self._learner.mark(score)

    def _ask(self, rows: Array) -> Array:
        """Return f of these rows: all partial predictions as they stand, summed.

        A request without rows tells the others that none will follow. If a label party vanishes,
        and that is allowed, the rows are asked for again without it.
        """
        learner = self._learner
        while True:
            self._check()
            group = self._group(self._party.name)
            gone = sum(1 << self._everybody.index(name) for name in self.missing)
            request = np.concatenate(([self._bound.updates, gone], rows)).astype(np.int64)
            try:
                for name in group[1:]:
                    self._party.tell(name, request, STEPS)
                partial = learner.partial(learner.operator.restricted(rows))
                total = self._summing(group).to(self._party.name, _with_count(partial, 0))
            except PeerStopped as stopped:
                self._lose(stopped)
                continue
            assert total is not None
            if self._unsettled:
                learner.staleness[round(float(total[-1, 0]))] += 1
                self._unsettled = False
            return total[:-1].reshape(partial.shape)

    def _guarded_answers(self, name: str) -> None:
        try:
            self._answers(name)
        except BaseException as error:
            self._fail(error)

    def _answers(self, name: str) -> bool:
        """Answer one party's requests to the last; return False if it vanishes before that."""
        learner = self._learner
        while True:
            try:
                updates, gone, rows = self._request(name)
            except PeerStopped as stopped:
                self._lose(stopped)
                if name in self.missing:
                    return False
                continue
            for other in gone:
                self._confirm(other)
            self._check()
            with self._changed:
                news = updates - self._announced[name]
                self._announced[name] = updates
                learner.total += news
                learner.decay(news)
                age = self._bound.read(name, last=not len(rows))
            partial = learner.partial(learner.operator.restricted(rows))
            group = (name, *(n for n in self._everybody if n != name and n not in gone))
            try:
                self._summing(group).to(name, _with_count(partial, age))
            except PeerStopped as stopped:
                self._lose(stopped)
                continue
            if not len(rows):
                return True

    def _request(self, name: str) -> tuple[int, tuple[str, ...], Array]:
        """Receive a party's next request, checked: (its updates, parties that vanished, rows)."""
        message = self._party.hear(name, STEPS)
        if (
            not isinstance(message, np.ndarray)
            or message.dtype != np.int64
            or message.ndim != 1
            or len(message) < 2
        ):
            raise MeshError(f"{self._party.name}: {name} sent no request for a step")
        updates, mask, rows = int(message[0]), int(message[1]), message[2:]
        if rows.size and not 0 <= rows.min() <= rows.max() < self._learner.operator.rows:
            raise MeshError(f"{self._party.name}: {name} asked for rows outside the table")
        if updates < self._announced[name] or not 0 <= mask < 1 << len(self._everybody):
            raise MeshError(f"{self._party.name}: {name} sent a wrong count of updates or parties")
        gone = tuple(n for i, n in enumerate(self._everybody) if mask >> i & 1)
        return updates, gone, rows

    def _confirm(self, name: str) -> None:
        """Check that ``name``, which the asking party says has vanished, is gone here too.

        Only then may the answer go without the pads of ``name``.
        """
        while name not in self.missing:
            try:
                self._party.go_on_without(name)
            except PeerStopped as stopped:
                self._lose(stopped)
            else:
                self._lose(PeerStopped.of(name, f"{self._party.name}: {name} has stopped"))

    def _lose(self, stopped: PeerStopped) -> None:
        """Go on without a label party, if that was agreed; else end with its error."""
        name = stopped.peer
        if not self._settings.stochastic.allow_missing or name not in self._announced:
            raise stopped
        with self._changed:
            if name not in self.missing:
                self._party.excuse(name)
                self.missing = (*self.missing, name)
            self._bound.forget(name)

    def _summing(self, group: tuple[str, ...]) -> LabelSums:
        """Return the sum for an asking party; each has one, with pads and tags of its own."""
        if group not in self._sums:
            self._sums[group] = LabelSums(self._party, group)
        return self._sums[group]

    def _others(self) -> tuple[str, ...]:
        return tuple(name for name in self._everybody if name != self._party.name)

    def _group(self, first: str | None = None) -> tuple[str, ...]:
        """Return the label parties that are left, ``first`` before all others."""
        left = [name for name in self._everybody if name not in self.missing]
        return tuple(sorted(left, key=lambda name: name != first))

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _fail(self, error: BaseException) -> None:
        with self._changed:
            self._failure = self._failure or error
            self._changed.notify_all()


def _with_count(partial: Array, count: int) -> Array:
    """Put partial predictions and a count into one column, to be summed together."""
    return np.append(partial.ravel(), float(count))[:, None]
