"""The search of a job: tries on a part of rows and directions, in rounds that keep the best third.

All parties know which settings a job tries and on how many rows; the leader judges each try on rows
that it chose, and tells after each round which tries go on. At the end all know the best settings,
with which the model is trained on all rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from vertikal.algorithms.algorithm import Fit
from vertikal.algorithms.catalogue import algorithm_named
from vertikal.data.tables import Table
from vertikal.errors import AgreementError, PeerVisibleError
from vertikal.node.config.search_plan import CHOICE, SearchRound
from vertikal.node.models.evaluation import measure
from vertikal.node.models.search_table import SearchTable, Try
from vertikal.node.runs.measuring.fits import (
    FitRows,
    Judged,
    Steps,
    judge_fits,
    some_rows,
)
from vertikal.node.runs.workplaces import Workplace
from vertikal.party.checkpoints import OPENED
from vertikal.party.party import Labels, Party

Array = npt.NDArray[Any]

FEWEST_ROWS = 200
"""Rows of a try at least, if there are as many."""


def search(
    place: Workplace,
    steps: Steps,
    table: Table,
    labels: Labels | None,
    judging: Array,
    classes: Sequence[str],
) -> tuple[int, SearchTable | None]:
    """Try the settings of a job; return the number of the best, and the table at the leader.

    ``judging`` (rows,) are the rows of training that tries are judged on.
    """
    job = place.job
    if job.search is None:
        return 0, None
    algorithm, candidates = algorithm_named(job.algorithm), job.candidates
    left, tries, main = list(range(len(candidates))), [], ""
    order = _order(~judging, job.algorithm_settings().seed)
    for number, one in enumerate(job.search.rounds(len(candidates))):
        trained = _rows_of_round(order, one)
        used = np.sort(np.concatenate([trained, np.flatnonzero(judging)]))
        fits = [
            Fit(algorithm.smaller(job.algorithm_settings(candidate), one.share), ~judging[used])
            for candidate in left
        ]
        rows = FitRows(some_rows(table, used), None if labels is None else labels.some(used))
        judged = judge_fits(place, steps, f"round-{number}", algorithm, fits, rows)
        values: list[float] = []
        if judged is not None and rows.labels is not None:
            targets = rows.labels.targets[judging[used]]
            for candidate, got in zip(left, judged, strict=True):
                main, value = _value(got, algorithm, classes, targets)
                values.append(-math.inf if value is None else value)
                tries.append(Try(candidates[candidate], number, one.share, len(trained), value))
        kept = _kept_by(job.search.rounds(len(candidates)), number)
        party = steps(rows.table, f"choice-{number}", settings=fits[0].settings)
        left = _agree(place, party, left, values, kept, f"round-{number}")
    (best,) = left
    if not tries:
        return best, None
    return best, SearchTable(main, int(judging.sum()), tuple(tries), candidates[best])


def _order(usable: Array, seed: int) -> Array:
    """Put the rows that tries may be trained on in a public order at random."""
    return np.random.default_rng((seed, 2)).permutation(np.flatnonzero(usable))


def _rows_of_round(order: Array, one: SearchRound) -> Array:
    """Return the rows of a round: those of the round before are among them."""
    count = max(min(FEWEST_ROWS, len(order)), round(one.share * len(order)))
    return order[:count]


def _kept_by(rounds: Sequence[SearchRound], number: int) -> int:
    """Count the tries that go on after a round: at the end, one."""
    return rounds[number + 1].tries if number + 1 < len(rounds) else 1


def _value(
    judged: Judged, algorithm: Any, classes: Sequence[str], targets: Array
) -> tuple[str, float | None]:
    """Return the name and the value of the first measure of a try."""
    found = measure(judged.reading(algorithm, classes), judged.f, targets, draws=0)
    return found.main, found.numbers[found.main].value


def _agree(
    place: Workplace, party: Party, left: list[int], values: list[float], count: int, name: str
) -> list[int]:
    """Tell everybody, at the leader, which tries go on; return their numbers in order.

    Later runs of the job must go on with the same: other ones would open more than was booked.
    """
    group = (party.leader, *(one for one in party.parties if one != party.leader))
    mine: Any = None
    if party.leads:
        # Of equal tries the first.
        ranked = sorted(range(len(left)), key=lambda place: -values[place])
        mine = np.array(sorted(left[place] for place in ranked[:count]), np.int64)
    told = np.asarray(party.broadcast(mine, group, CHOICE))
    kept = told.tolist() if told.dtype == np.int64 and told.ndim == 1 else []
    if len(kept) != count or len(set(kept)) < count or not set(kept) <= set(left):
        raise AgreementError(
            f"{party.name}: {party.leader} goes on with the tries {told!r:.60}, expected {count} "
            "of those that were left"
        )
    checkpoints, now = place.checkpoints, msgspec.json.encode(kept)
    if checkpoints is not None:
        known = checkpoints.read(f"{OPENED}-search-{name}")
        if known is not None and known != now:
            raise PeerVisibleError(
                "the search goes on with other tries than in an earlier run of this job; submit "
                "the job again"
            )
        checkpoints.write(f"{OPENED}-search-{name}", now)
    return list(kept)
