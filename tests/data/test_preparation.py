"""Preparation: learned once, the same at prediction, and what it says about odd columns."""

from __future__ import annotations

import datetime as dt

import msgspec
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from vertikal.data import sources
from vertikal.data.column_survey import FEW_TEXTS, MOST_CATEGORIES, MOST_TEXTS
from vertikal.data.preparation import Preparation, learn_preparation
from vertikal.data.sources import open_source
from vertikal.errors import InputError
from vertikal.records import from_json

N = 240
_DRAW = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "age": _DRAW.integers(20, 70, N),
        "income": _DRAW.normal(3000, 400, N),
        "region": _DRAW.choice(["north", "south", "west"], N),
        "code": _DRAW.choice([1, 2, 7], N),
        "member": _DRAW.random(N) < 0.5,
    }
)
HOLES = FRAME.copy()
HOLES.loc[[3, 9], "income"] = np.nan
HOLES.loc[[4], "region"] = None


def source_of(frame):
    return open_source("bank", frame)


def plain(frame, plan_missing, categories=("region",), training=None):
    """The slow, obvious way, one cell after the other."""
    training = frame if training is None else training
    columns = {}
    for name in frame:
        known = training[name].dropna()
        hole = frame[name].isna().to_numpy()
        if name in categories:
            for category in sorted(known.astype(str).unique()):
                columns[f"{name} = {category}"] = [
                    float(not h and str(v) == category)
                    for v, h in zip(frame[name], hole, strict=True)
                ]
        else:
            mean = known.astype(float).mean()
            columns[name] = [
                mean if h else float(v) for v, h in zip(frame[name], hole, strict=True)
            ]
        if plan_missing == "indicator" and training[name].isna().any():
            columns[f"{name} is missing"] = hole.astype(float).tolist()
    return columns


def check(prepared, expected):
    assert prepared.table.columns == tuple(expected)
    values = prepared.table.block(slice(None))
    np.testing.assert_allclose(values, np.column_stack(list(expected.values())), rtol=1e-12)


@pytest.mark.parametrize("missing", ["mean", "indicator"])
@pytest.mark.parametrize("height", [17, 1 << 16])
def test_it_is_the_plain_way(monkeypatch, missing, height):
    monkeypatch.setattr(sources, "HEIGHT", height)
    preparation, prepared = learn_preparation(source_of(HOLES), list(HOLES), missing=missing)
    check(prepared, plain(HOLES, missing))
    assert prepared.filled == {"income": 2, "region": 1}
    assert prepared.unseen == {}
    check(preparation.apply(source_of(HOLES)), plain(HOLES, missing))


def test_numbers_that_name_things_become_categories():
    _, prepared = learn_preparation(source_of(FRAME), ["code", "age"], categories=["code"])
    check(prepared, plain(FRAME[["code", "age"]], "refuse", ["code"]))


def test_a_csv_file_gives_the_same_numbers(tmp_path):
    HOLES.drop(columns="member").to_csv(tmp_path / "t.csv", index=False)
    source = open_source("bank", "t.csv", folder=tmp_path)
    _, prepared = learn_preparation(source, list(source.columns), missing="indicator")
    check(prepared, plain(HOLES.drop(columns="member"), "indicator"))


def test_chosen_rows_in_their_order(monkeypatch):
    monkeypatch.setattr(sources, "HEIGHT", 50)
    rows = np.random.default_rng(1).permutation(N)[:100]
    preparation, prepared = learn_preparation(
        source_of(HOLES), list(HOLES), rows=rows, missing="mean"
    )
    chosen = HOLES.iloc[rows].reset_index(drop=True)
    check(prepared, plain(chosen, "mean"))
    again = preparation.apply(source_of(HOLES), rows[::-1])
    expected = prepared.table.block(slice(None))[::-1]
    assert (again.table.block(slice(None)) == expected).all()
    with pytest.raises(InputError, match="has 240 rows, others were asked for; it has changed"):
        preparation.apply(source_of(HOLES), np.array([0, N]))


def test_it_survives_as_json_and_replays_on_new_rows():
    learned, _ = learn_preparation(
        source_of(HOLES), list(HOLES), missing="indicator", scale="standard"
    )
    kept = msgspec.json.decode(msgspec.json.encode(learned), type=Preparation)
    assert kept == learned
    new = FRAME.head(5).copy()
    new["region"] = ["north", "east", "east", None, "west"]
    prepared = kept.apply(source_of(new))
    assert prepared.unseen == {"region": 2}
    assert prepared.filled == {"region": 1}
    centre, factor = kept.scaling.arrays()
    raw = prepared.table.block(slice(None)) / factor + centre
    expected = plain(new, "indicator", training=HOLES)
    np.testing.assert_allclose(raw, np.column_stack(list(expected.values())), atol=1e-9)
    # Categories that training did not have are all zeros.
    assert raw[1, 3:6] == pytest.approx([0, 0, 0])


@pytest.mark.parametrize("scale", ["standard", "minmax", "max"])
def test_scaling(scale):
    _, prepared = learn_preparation(source_of(FRAME), ["age", "income"], scale=scale)
    values = prepared.table.block(slice(None))
    if scale == "standard":
        assert values.mean(axis=0) == pytest.approx([0, 0], abs=1e-9)
        assert values.std(axis=0) == pytest.approx([1, 1])
    else:
        assert values.max(axis=0) == pytest.approx([1, 1])


def test_a_person_of_whom_nothing_is_known():
    preparation, prepared = learn_preparation(source_of(HOLES), list(HOLES), missing="indicator")
    blank = preparation.blank(2)
    assert blank.columns == prepared.table.columns
    row = dict(zip(blank.columns, blank.block(slice(None))[1], strict=True))
    assert row["age"] == pytest.approx(HOLES["age"].mean())
    assert row["income"] == pytest.approx(HOLES["income"].mean())
    assert (row["income is missing"], row["region = north"]) == (1, 0)


def test_missing_cells_are_refused_with_counts():
    with pytest.raises(InputError, match=r"missing \(2 in 'income', 1 in 'region'\); choose"):
        learn_preparation(source_of(HOLES), list(HOLES))
    preparation, _ = learn_preparation(source_of(FRAME), list(FRAME))
    with pytest.raises(InputError, match=r"cells are missing \(2 in 'income', 1 in 'region'\)"):
        preparation.apply(source_of(HOLES))


USELESS = {
    "constant": (np.full(N, 3.5), "it is the same number in each row"),
    "word": (["x"] * N, "it is the same text in each row"),
    "nothing": ([None] * N, "no cell is there"),
    "name": ([f"person {number}" for number in range(N)], "most of them in fewer than 10 rows"),
    "number": (_DRAW.permutation(N) + 1000, "it numbers the rows, as an id does"),
}


@pytest.mark.parametrize("name", USELESS)
def test_columns_of_no_use(name):
    values, why = USELESS[name]
    frame = FRAME.assign(**{name: values})
    missing = "mean" if name == "nothing" else "refuse"
    if name in ("name", "number"):
        with pytest.raises(InputError, match=f"of no use: '{name}': .*{why}.*Leave them out"):
            learn_preparation(source_of(frame), list(frame), missing=missing)
    else:
        told = learn_preparation(source_of(frame), list(frame), missing=missing)[0].remarks
        assert told == (f"column '{name}' was dropped: {why}",)
    preparation, prepared = learn_preparation(
        source_of(frame), list(frame), missing=missing, unusable="drop"
    )
    check(prepared, plain(FRAME, "refuse"))
    assert len(preparation.remarks) == 1
    assert preparation.remarks[0].startswith(f"column '{name}' was dropped: ")
    assert name not in preparation.names
    with pytest.raises(InputError, match="at least one that is of use"):
        learn_preparation(source_of(frame), [name], missing=missing, unusable="drop")


def test_rare_categories_share_a_column():
    """With fewer rows than 10 and than 1 % of all; a lone one keeps its own column."""
    counts = {"north": 900, "south": 700, "isle": 9, "rock": 1, "reef": 10}
    words = np.repeat(list(counts), list(counts.values()))
    frame = pd.DataFrame({"region": words, "size": _DRAW.normal(size=len(words))})
    preparation, prepared = learn_preparation(source_of(frame), list(frame))
    titles = ("region = north", "region = reef", "region = south", "region is rare", "size")
    assert prepared.table.columns == titles
    rare = prepared.table.block(slice(None))[:, 3]
    np.testing.assert_array_equal(rare, np.isin(words, ["isle", "rock"]))
    new = pd.DataFrame({"region": ["rock", "moon", "reef"], "size": [0.0, 1.0, 2.0]})
    again = from_json(msgspec.json.encode(preparation), Preparation).apply(source_of(new))
    np.testing.assert_array_equal(
        again.table.block(slice(None))[:, :4], [[0, 0, 0, 1], [0, 0, 0, 0], [0, 1, 0, 0]]
    )
    assert again.unseen == {"region": 1}
    assert preparation.blank(1).columns == titles
    few = frame[frame["region"] != "rock"]
    assert learn_preparation(source_of(few), ["region"])[0].titles[0] == "region = isle"


def test_categories_of_few_rows_are_not_rare_in_a_small_table():
    frame = pd.DataFrame({"region": ["a", "b", "c"] * 20})
    assert learn_preparation(source_of(frame), ["region"])[0].titles == (
        "region = a",
        "region = b",
        "region = c",
    )


def test_two_columns_of_one_title():
    frame = HOLES.assign(**{"income is missing": FRAME["age"]})
    with pytest.raises(InputError, match="columns of bank: two would become columns of one title"):
        learn_preparation(source_of(frame), list(frame), missing="indicator")


def test_few_texts_of_which_no_two_are_equal():
    frame = FRAME.head(30).assign(name=[f"person {number}" for number in range(30)])
    with pytest.raises(InputError, match="no two texts are equal, as with an id"):
        learn_preparation(source_of(frame), list(frame))
    assert FEW_TEXTS > 30


def test_many_categories_are_kept_if_most_rows_have_a_frequent_one():
    """Towns of ten rows each are categories, towns of nine rows are as good as ids."""
    for rows, kept in ((10, True), (9, False)):
        towns = np.repeat([f"town {number:03}" for number in range(100)], rows)
        frame = pd.DataFrame({"town": towns, "size": _DRAW.normal(size=len(towns))})
        titles = learn_preparation(source_of(frame), list(frame), unusable="drop")[0].titles
        assert titles[-1] == "size"
        assert len(titles) == (101 if kept else 1)


def test_the_most_frequent_categories_have_columns():
    names = [f"town {number:03}" for number in range(MOST_CATEGORIES + 2)]
    counts = [10] * 2 + [11] * MOST_CATEGORIES
    frame = pd.DataFrame({"town": np.repeat(names, counts)})
    preparation, prepared = learn_preparation(source_of(frame), ["town"])
    assert preparation.titles == (*(f"town = {name}" for name in names[2:]), "town is rare")
    rare = prepared.table.block(slice(None))[:, -1]
    np.testing.assert_array_equal(rare, frame["town"].isin(names[:2]))


def test_texts_beyond_all_counting():
    words = [f"word {number}" for number in range(MOST_TEXTS + 1)]
    frame = pd.DataFrame({"text": [*words, *["common"] * 3 * MOST_TEXTS]})
    with pytest.raises(InputError, match="more than 10,000 different texts"):
        learn_preparation(source_of(frame), ["text"])


def test_numbers_that_only_look_like_ids_are_kept():
    frame = pd.DataFrame(
        {
            "spread": _DRAW.permutation(N * 50)[:N],
            "repeated": np.arange(N) // 2,
            "fractions": np.arange(N) + 0.5,
        }
    )
    preparation, _ = learn_preparation(source_of(frame), list(frame))
    assert preparation.names == ("spread", "repeated", "fractions")


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ([dt.date(2020, 1, 1)] * N, "must be of numbers or text, got date32"),
        ([[1]] * N, "must be of numbers or text, got list"),
        ([*range(N - 1), float("inf")], "must hold finite numbers"),
        ([*map(str, range(N - 1)), "inf"], "must hold finite numbers"),
    ],
)
def test_cells_that_are_neither(cells, said):
    table = pa.table({"x": cells})
    with pytest.raises(InputError, match=f"column 'x' of party 'bank' {said}"):
        learn_preparation(source_of(table), ["x"])


def test_a_column_whose_kind_changes_between_blocks(tmp_path, monkeypatch):
    import sqlite3

    with sqlite3.connect(tmp_path / "t.db") as connection:
        connection.execute("CREATE TABLE t (x)")
        connection.executemany("INSERT INTO t VALUES (?)", [(1,), (2,), ("a",), ("b",)])
    connection.close()
    monkeypatch.setattr(sources, "HEIGHT", 2)
    source = open_source("bank", "sqlite:t.db", query="SELECT x FROM t", folder=tmp_path)
    with pytest.raises(InputError, match="'x' of party 'bank' must be all numbers or all text"):
        learn_preparation(source, ["x"])


def test_text_that_is_numbers_until_the_last_block(monkeypatch):
    monkeypatch.setattr(sources, "HEIGHT", 4)
    words = ["1", "2", " 2 ", "1", "two", "1"]
    _, prepared = learn_preparation(source_of(pa.table({"x": words})), ["x"])
    assert prepared.table.columns == ("x = 1", "x = 2", "x = two")
    assert prepared.table.block(slice(None)).argmax(axis=1).tolist() == [0, 1, 1, 0, 2, 0]


def test_what_was_numbers_must_stay_numbers():
    preparation, _ = learn_preparation(source_of(pa.table({"x": ["1", "2", "3"]})), ["x"])
    for cells, said in (
        (["1", "two"], "must be of numbers, as in training, got text"),
        ([1.0, float("inf")], "must hold finite numbers"),
    ):
        with pytest.raises(InputError, match=said):
            preparation.apply(source_of(pa.table({"x": cells})))
    same = preparation.apply(source_of(pa.table({"x": [4, 5]})))
    assert same.table.block(slice(None)).ravel().tolist() == [4, 5]


def test_no_rows_and_no_such_setting():
    with pytest.raises(InputError, match="of one row at least"):
        learn_preparation(source_of(FRAME.head(0)), ["age"])
    for name in ("missing", "unusable", "scale"):
        with pytest.raises(InputError, match=f"{name} must be one of"):
            learn_preparation(source_of(FRAME), ["age"], **{name: "hope"})


def test_numbers_with_a_decimal_comma_are_no_categories():
    frame = pd.DataFrame({"x": ["1,5", "2,5", "3,25", "1,5"]})
    with pytest.raises(InputError, match='decimal comma: set decimal = "," for its table'):
        learn_preparation(open_source("bank", frame), ["x"])
