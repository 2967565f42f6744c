"""Labels of a table, in whatever form it keeps them."""

from __future__ import annotations

import numpy as np
import pyarrow
import pytest

from vertikal.data import sources
from vertikal.data.labels import read_targets
from vertikal.data.sources import open_source
from vertikal.errors import InputError

ROWS = np.array([3, 0, 2])


def source(folder, cells):
    lines = [f"{number},{cell}" for number, cell in enumerate(cells)]
    (folder / "table.csv").write_text("\n".join(["customer,y", *lines]))
    return open_source("bank", "table.csv", id="customer", folder=folder)


def targets(one, rows=ROWS, regression=False):
    found = read_targets(one, "y", rows, regression=regression)
    assert found.shape == (len(found), 1)
    return found[:, 0].tolist()


@pytest.mark.parametrize("height", [2, 100])
def test_two_classes_as_numbers_and_as_text(tmp_path, monkeypatch, height):
    monkeypatch.setattr(sources, "HEIGHT", height)
    assert targets(source(tmp_path, "0110")) == [-1, -1, 1]
    assert targets(source(tmp_path, "0110"), None) == [-1, 1, 1, -1]
    assert targets(source(tmp_path, ["+1", "-1", "+1", "-1"])) == [-1, 1, 1]
    assert targets(source(tmp_path, ["good", "bad", "good", "bad"])) == [-1, 1, 1]
    # Numbers as long as all cells that are used are numbers; as text 10 comes before 9.
    mixed = source(tmp_path, ["9", "10", "x", "10"])
    assert targets(mixed, np.array([1, 0])) == [1, -1]
    with pytest.raises(InputError, match="3 classes"):
        targets(mixed)


def test_numbers_of_a_regression(tmp_path):
    table = pyarrow.table({"customer": [5, 6, 7, 8], "y": [1.5, 2.5, 3.5, 4.5]})
    assert targets(open_source("bank", table), regression=True) == [4.5, 1.5, 3.5]
    assert targets(source(tmp_path, ["0.5", "1", "7", "2"]), None, True) == [0.5, 1, 7, 2]
    with pytest.raises(InputError, match="label of bank must be numbers, for a regression, got"):
        targets(source(tmp_path, ["good", "bad", "good", "bad"]), regression=True)


def test_missing_labels_count_only_where_they_are_used(tmp_path):
    one = source(tmp_path, ["0", "", "1", "1"])
    assert targets(one) == [1, -1, 1]
    with pytest.raises(InputError, match="label of bank: 1 of 2 are missing"):
        targets(one, np.array([0, 1]))
    holes = pyarrow.table({"y": [1.0, None, float("nan"), 0.0]})
    assert targets(open_source("bank", holes), np.array([0, 3])) == [1, -1]
    with pytest.raises(InputError, match="label of bank: 2 of 4 are missing"):
        targets(open_source("bank", holes), None)


def test_labels_that_are_refused(tmp_path):
    for cells, said in (
        ("0121", "label of bank must be of two classes, got 3 classes"),
        ("1111", "label of bank must be of two classes, got 1 classes"),
        (["0", "1", "inf", "1"], "label of bank must be finite numbers, got 'infinity'"),
    ):
        with pytest.raises(InputError, match=said):
            targets(source(tmp_path, cells), None)
    with pytest.raises(InputError, match=r"label of bank must be one of the columns \['y'\], got"):
        read_targets(source(tmp_path, "01"), "z", regression=False)
