"""Labels of a table, in whatever form it keeps them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow
import pytest
from sklearn.utils import compute_class_weight

from vertikal.data import sources
from vertikal.data.labels import LabelPlan, class_name, read_labels
from vertikal.data.sources import open_source
from vertikal.errors import InputError

ROWS = np.array([3, 0, 2])


def source(folder, cells):
    lines = [f"{number},{cell}" for number, cell in enumerate(cells)]
    (folder / "table.csv").write_text("\n".join(["customer,y", *lines]))
    return open_source("bank", "table.csv", id="customer", folder=folder)


def targets(one, rows=ROWS, regression=False):
    found = read_labels(one, LabelPlan("y", regression), rows)
    assert found.targets.shape == (len(found.targets), 1)
    assert found.weights.tolist() == [1.0] * len(found.targets)
    assert bool(found.classes) is not regression
    return found.targets[:, 0].tolist()


def labelled(one, **plan):
    found = read_labels(one, LabelPlan("y", **plan))
    return found.targets.tolist(), found.classes


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
    with pytest.raises(InputError, match=r'got 3: classes = \["10", "9", "x"\]'):
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
        ("0121", r'column \'y\' must have two classes, .* got 3: classes = \["0", "1", "2"\]'),
        ("1111", "column 'y' must have two classes, or the job list them all, got one: '1'"),
        (range(40), "got 40; for a regression set regression = true"),
        (["0", "1", "inf", "1"], "label of bank must be finite numbers, got 'infinity'"),
    ):
        with pytest.raises(InputError, match=said):
            targets(source(tmp_path, cells), None)
    with pytest.raises(InputError, match=r"label of bank must be one of the columns \['y'\], got"):
        read_labels(source(tmp_path, "01"), LabelPlan("z"))


def test_the_positive_class_is_plus_one_and_the_second_name(tmp_path):
    cells = ["refuse", "accept", "accept", "refuse"]
    one = source(tmp_path, cells)
    assert labelled(one) == ([[1], [-1], [-1], [1]], ("accept", "refuse"))
    accepted = ([[-1], [1], [1], [-1]], ("refuse", "accept"))
    assert labelled(one, positive="accept") == accepted
    assert labelled(one, classes=("refuse", "accept")) == accepted
    assert labelled(one, classes=("accept", "refuse"), positive="accept") == accepted
    assert labelled(source(tmp_path, "0110"), positive="0.0") == (
        [[1], [-1], [-1], [1]],
        ("1", "0"),
    )
    with pytest.raises(InputError, match=r"positive of bank must be one of two classes .* 'yes'"):
        labelled(one, positive="yes")


def test_several_classes_in_the_order_of_the_job(tmp_path):
    one = source(tmp_path, ["b", "a", "c", "a"])
    assert labelled(one, classes=("c", "a", "b")) == (
        [[-1, -1, 1], [-1, 1, -1], [1, -1, -1], [-1, 1, -1]],
        ("c", "a", "b"),
    )
    with pytest.raises(InputError, match="has classes that the job does not list: 'c'"):
        labelled(one, classes=("a", "b"))
    with pytest.raises(InputError, match="no row is of class 'd'"):
        labelled(one, classes=("a", "b", "c", "d"))
    one = source(tmp_path, ["1", "2.0", "03", "1.00"])
    found, classes = labelled(one, classes=("1", "2", "3"))
    assert (np.argmax(found, axis=1).tolist(), classes) == ([0, 1, 2, 0], ("1", "2", "3"))
    with pytest.raises(InputError, match="no row is of class 'x'"):
        labelled(one, classes=("1", "2", "3", "x"))


def test_names_of_classes_are_those_of_the_cells():
    assert [class_name(one) for one in (1, 1.0, -2.0, 0.25, "01")] == ["1", "1", "-2", "0.25", "01"]


@pytest.mark.parametrize("weighed", [False, True])
def test_balanced_classes_weigh_as_in_scikit_learn(tmp_path, weighed):
    cells = ["a,1", "b,2", "a,0.5", "a,3", "c,1"]
    (tmp_path / "t.csv").write_text("\n".join(["y,w", *cells]))
    one = open_source("bank", "t.csv", folder=tmp_path)
    weights = np.array([1, 2, 0.5, 3, 1]) if weighed else np.ones(5)
    plan = LabelPlan("y", classes=("a", "b", "c"), weight="w" if weighed else None)
    y = np.array(["a", "b", "a", "a", "c"])
    for rule in ("balanced", {"a": 2.0, "c": 0.5}):
        factors = compute_class_weight(
            rule, classes=np.array(["a", "b", "c"]), y=y, sample_weight=weights
        )
        found = read_labels(one, replace(plan, class_weight=rule)).weights
        np.testing.assert_allclose(found, weights * factors[np.searchsorted(["a", "b", "c"], y)])


def test_weights_that_are_refused(tmp_path):
    for cells, said in (
        (["0,1", "1,-1"], "weight of bank: column 'w' must have finite numbers, none negative"),
        (["0,1", "1,x"], "must have finite numbers"),
        (["0,0", "1,0"], "must not be zero everywhere"),
        (["0,1", "1,"], "weight of bank: 1 of 2 are missing"),
    ):
        (tmp_path / "t.csv").write_text("\n".join(["y,w", *cells]))
        with pytest.raises(InputError, match=said):
            read_labels(open_source("bank", "t.csv", folder=tmp_path), LabelPlan("y", weight="w"))
    (tmp_path / "t.csv").write_text("y,w\n0,1\n1,0")
    one = open_source("bank", "t.csv", folder=tmp_path)
    with pytest.raises(InputError, match="the rows of class '1' have no weight"):
        read_labels(one, LabelPlan("y", weight="w", class_weight="balanced"))
    with pytest.raises(
        InputError, match=r"class_weight of bank must be of the classes .*, got '2'"
    ):
        read_labels(one, LabelPlan("y", class_weight={"2": 1.0}))
    with pytest.raises(InputError, match="class_weight of bank must be not zero for all classes"):
        read_labels(one, LabelPlan("y", class_weight={"0": 0.0, "1": 0.0}))


@pytest.mark.parametrize("cells", [["yes", "", "no", "yes"], ["1", "", "0", "1"]])
def test_rows_without_a_label_where_others_label_them(tmp_path, cells):
    classes = ("no", "yes") if cells[0] == "yes" else ("0", "1")
    table = source(tmp_path, cells)
    found = read_labels(table, LabelPlan("y", classes=classes, partial=True))
    assert found.targets.tolist() == [[1], [0], [-1], [1]]
    assert found.weights.tolist() == [1, 0, 1, 1]
    assert found.known.tolist() == [True, False, True, True]
    some = read_labels(table, LabelPlan("y", classes=classes, partial=True), np.array([1, 3]))
    assert (some.targets.tolist(), some.known.tolist()) == ([[0], [1]], [False, True])
    with pytest.raises(InputError, match="label of bank: column 'y' labels no row"):
        read_labels(table, LabelPlan("y", classes=classes, partial=True), np.array([1]))
    with pytest.raises(InputError, match="label of bank: 1 of 4 are missing"):
        read_labels(table, LabelPlan("y", classes=classes))


def test_a_part_may_lack_a_class_that_the_job_lists(tmp_path):
    table = source(tmp_path, ["1", "", "1"])
    found = read_labels(table, LabelPlan("y", classes=("0", "1"), partial=True))
    assert found.targets[:, 0].tolist() == [1, 0, 1]
    numbers = read_labels(table, LabelPlan("y", regression=True, partial=True))
    assert numbers.targets[:, 0].tolist() == [1, 0, 1]
    assert numbers.known.tolist() == [True, False, True]
