"""Rows over workers: each row has one place, and stripes are whole chunks."""

from __future__ import annotations

import numpy as np
import pytest

from vertikal.compute.open_operator import CHUNK
from vertikal.compute.workers.row_layout import WIDEST, RowLayout

SIZES = [(0, 2), (1, 3), (CHUNK + 1, 2), (5 * CHUNK + 7, 3), (7 * WIDEST + 5, 3)]


@pytest.mark.parametrize(("rows", "workers"), SIZES)
def test_each_row_has_one_place(rows, workers):
    layout = RowLayout(rows, workers)
    assert layout.stripe % CHUNK == 0
    numbers = [layout.numbers(worker) for worker in range(workers)]
    assert [len(one) for one in numbers] == [layout.count(worker) for worker in range(workers)]
    np.testing.assert_array_equal(np.sort(np.concatenate(numbers)), np.arange(rows))
    wanted = np.random.default_rng(0).integers(0, max(1, rows), min(rows, 50))
    found = np.full(len(wanted), -1)
    for worker, places, local in layout.parts(wanted):
        found[places] = numbers[worker][local]
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(("rows", "workers"), SIZES)
def test_values_go_there_and_back(rows, workers):
    layout = RowLayout(rows, workers)
    values = np.random.default_rng(1).normal(size=(rows, 2))
    back = np.zeros_like(values)
    for worker in range(workers):
        part = layout.of(values, worker)
        np.testing.assert_array_equal(part, values[layout.numbers(worker)])
        layout.put_back(back, worker, part)
    np.testing.assert_array_equal(back, values)


@pytest.mark.parametrize(("rows", "workers"), SIZES)
def test_runs_lie_at_one_worker_of_each_layout(rows, workers):
    layouts = [RowLayout(rows, count) for count in (workers, workers + 1, 1)]
    part = slice(rows // 5, rows - rows // 7)
    runs = list(layouts[0].runs(part, *layouts[1:]))
    covered = [np.arange(run.start, run.stop) for run in runs]
    np.testing.assert_array_equal(
        np.concatenate([np.empty(0, np.int64), *covered]), np.arange(part.start, part.stop)
    )
    for layout in layouts:
        places = {worker: layout.numbers(worker) for worker in range(layout.workers)}
        for run in runs:
            start = layout.place(run.start)
            there = places[layout.owner(run.start)][start : start + run.stop - run.start]
            np.testing.assert_array_equal(there, np.arange(run.start, run.stop))


def test_neighbouring_stripes_lie_at_different_workers():
    layout = RowLayout(6 * WIDEST, 3)
    owners = [
        worker for start in range(0, layout.rows, WIDEST) for worker, _, _ in layout.parts([start])
    ]
    assert owners == [0, 1, 2, 0, 1, 2]
