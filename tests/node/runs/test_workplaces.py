"""Tables and models in folders, as `vertikal run` has them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tests.node.shards import shard_of
from vertikal.algorithms.kernel_machine.algorithm import FDSKL
from vertikal.errors import InputError, PartyUnknown
from vertikal.node.config.job_file import Job
from vertikal.node.runs.party_run import prepare
from vertikal.node.runs.workplaces import FolderWorkplace, model_name, models_in

GOOD = """
[settings]
n_components = 32
[parties.bank]
table = "bank.csv"
label = "y"
[parties.shop]
table = "shop.csv"
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "bank.csv").write_text("u,y\n1,0\n2.5,1\n-3,0\n")
    (tmp_path / "shop.csv").write_text("v,w\n1,2\n3,4\n5,7\n")
    (tmp_path / "job.toml").write_text(GOOD)
    return tmp_path


def columns_of(folder, name="bank", text=GOOD):
    """A party's columns as its program gets them."""
    path = folder / "job.toml"
    path.write_text(text)
    return prepare(FolderWorkplace(name, Job.load(path), path))


def values(table):
    return table.block(slice(None)).tolist()


def test_rows_are_taken_as_they_come(folder):
    bank = columns_of(folder)
    assert (bank.table.columns, values(bank.table)) == (("u",), [[1.0], [2.5], [-3.0]])
    assert bank.labels.targets.ravel().tolist() == [-1, 1, -1]
    shop = columns_of(folder, "shop")
    assert (shop.table.columns, shop.labels, shop.test) == (("v", "w"), None, None)
    chosen = columns_of(folder, "shop", GOOD + 'columns = ["w"]\n')
    assert (chosen.table.columns, values(chosen.table)) == (("w",), [[2.0], [4.0], [7.0]])


def test_numbers_of_a_file_are_pythons(folder):
    """The same doubles as Python reads, to the last bit."""
    drawn = np.random.default_rng(0)
    numbers = drawn.normal(size=200) * 10.0 ** drawn.integers(-300, 300, 200)
    words = [f"{number:.17g}" for number in numbers[:100]] + [f"{n:.6e}" for n in numbers[100:]]
    (folder / "shop.csv").write_text("\n".join(["v", *words]))
    found = columns_of(folder, "shop").table.block(slice(None))[:, 0]
    assert found.tolist() == [float(word) for word in words]


def test_other_formats_and_categories(folder):
    frame = pd.DataFrame({"v": [1.5, 2.0, 4.0], "town": ["Ulm", "Bonn", "Ulm"]})
    frame.to_parquet(folder / "shop.parquet")
    shop = columns_of(folder, "shop", GOOD.replace("shop.csv", "shop.parquet"))
    assert shop.table.columns == ("v", "town = Bonn", "town = Ulm")
    assert values(shop.table) == [[1.5, 0, 1], [2, 1, 0], [4, 0, 1]]


def test_constant_columns_are_left_out_and_noted(folder, monkeypatch):
    noted = []
    monkeypatch.setattr(FolderWorkplace, "note", lambda self, *words: noted.append(words))
    (folder / "shop.csv").write_text("v,w\n1,2\n3,2\n5,2\n")
    shop = columns_of(folder, "shop")
    assert (shop.table.columns, values(shop.table)) == (("v",), [[1.0], [3.0], [5.0]])
    assert noted == [("prepared", "column 'w' was dropped: it is the same number in each row")]


def test_a_regression_takes_any_numbers(folder):
    (folder / "bank.csv").write_text("u,y\n1,0.5\n2.5,1\n-3,7\n")
    text = GOOD.replace("n_comp", "loss = 'square'\nregression = true\nn_comp")
    assert columns_of(folder, text=text).labels.targets.ravel().tolist() == [0.5, 1, 7]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("u,y\n1,0\n2\n", r"^table of bank: 'bank\.csv', line 3 must have 2 cells, .*, got 1$"),
        ("u,y\n1,0\n\n2,1,x\n", r"'bank\.csv', line 4 must have 2 cells, .*, got 3$"),
        ("", "table of bank must be a CSV file with titles, got 'bank.csv'"),
        ("u,y\n", "table of bank must be of one row at least"),
        ("u,u,y\n1,2,3\n", "table of bank must be of columns with distinct titles"),
        ("u,v\n1,2\n3,4\n", r"label of bank must be one of the columns \['u', 'v'\], got 'y'"),
        (
            "u,y\n1,0\n2,1\n3,2\n",
            "label of bank: column 'y' must have two classes, or the job list them all, got 3",
        ),
        ("u,y\n1,0\n2,1\n3,nan\n", "label of bank: 1 of 3 are missing"),
        ("u,y\n1,0\n2,1\n3,inf\n", "label of bank must be finite numbers"),
        ("u,y\n1,0\n1,1\n", "columns of bank .*got none: 'u': it is the same number in each row"),
        ("u,y\n1,0\ninf,1\n", "column 'u' of party 'bank' must hold finite numbers"),
        ("u,y\n1,0\n1e400,1\n", "column 'u' of party 'bank' must hold finite numbers"),
        ("u,y\n1,0\nnan,1\n2,1\n", r"columns of bank: cells are missing \(1 in 'u'\)"),
        ("u,y\n1,0\n,1\n2,1\n", r"columns of bank: cells are missing \(1 in 'u'\)"),
        ("y\n0\n1\n", "table of bank must be at least one column of features"),
    ],
)
def test_tables_that_are_refused(folder, text, said):
    (folder / "bank.csv").write_text(text)
    with pytest.raises(InputError, match=said):
        columns_of(folder)


@pytest.mark.parametrize("column", ["z", "y"])
def test_columns_that_are_no_features(folder, column):
    text = GOOD.replace('label = "y"', f'label = "y"\ncolumns = ["u", "{column}"]')
    with pytest.raises(InputError, match=rf"columns of bank must be some of \['u'\], .*'{column}'"):
        columns_of(folder, text=text)


def test_missing_cells_and_categories_are_read_as_the_job_says(folder):
    (folder / "shop.csv").write_text("v,w\n1,2\n,4\n5,2\n")
    with pytest.raises(InputError, match=r"columns of shop: cells are missing \(1 in 'v'\)"):
        columns_of(folder, "shop")
    filled = columns_of(folder, "shop", GOOD + 'missing = "mean"\n').table
    assert values(filled) == [[1.0, 2.0], [3.0, 4.0], [5.0, 2.0]]
    text = GOOD + 'missing = "indicator"\ncategories = ["w"]\n'
    marked = columns_of(folder, "shop", text).table
    assert marked.columns == ("v", "v is missing", "w = 2", "w = 4")
    assert values(marked)[1] == [3.0, 1.0, 0.0, 1.0]
    with pytest.raises(InputError, match=r"categories of shop must be some of \['v', 'w'\]"):
        columns_of(folder, "shop", GOOD + 'categories = ["z"]\n')
    with pytest.raises(InputError, match="left out between services: its party file says"):
        Job.load(folder / "job.toml").check_for_services()


def test_a_table_that_is_not_there_and_a_party_that_is_not(folder):
    (folder / "shop.csv").unlink()
    with pytest.raises(InputError, match=r"table of shop: 'shop\.csv' cannot be read: No such"):
        columns_of(folder, "shop")
    with pytest.raises(PartyUnknown, match="'zoe' is not a party of this job"):
        columns_of(folder, "zoe")


def test_a_private_job_takes_only_numbers(folder):
    private = GOOD.replace("n_components = 32", "[settings.privacy]\nepsilon = 1.0\ndelta = 1e-5")
    private = 'algorithm = "admm"\n' + private.replace("[settings]\n", "[settings]\nmax_iter = 2\n")
    assert columns_of(folder, "shop", private).table.columns == ("v", "w")
    for text in ("v,w\n1,a\n3,b\n5,a\n", "v,w\n1,2\n3,2\n5,2\n"):
        (folder / "shop.csv").write_text(text)
        with pytest.raises(
            InputError, match=r"columns of shop must be numbers that vary, .* privacy"
        ):
            columns_of(folder, "shop", private)


PREDICTING = GOOD.replace('"bank.csv"', '"bank.csv"\ntest = "bank-test.csv"').replace(
    '"shop.csv"', '"shop.csv"\ntest = "shop-test.csv"'
)


def test_rows_to_predict_are_prepared_as_the_table_was(folder):
    for text in ("u,y\n7,0\n", "y,u\n0,7\n", "u\n7\n"):
        (folder / "bank-test.csv").write_text(text)
        test = columns_of(folder, text=PREDICTING).test
        assert (test.columns, values(test)) == (("u",), [[7.0]])
    for text, said in (
        ("v\n7\n", r"test of bank must be a table with the columns \['u'\], got \['v'\]"),
        ("u\nx\n", "column 'u' of party 'bank' must be of numbers, as in training, got text"),
        ("u\nnan\n", r"columns of bank: cells are missing \(1 in 'u'\)"),
        ("u\ninf\n", "column 'u' of party 'bank' must hold finite numbers"),
        ("u,y\n1\n", r"'bank-test\.csv', line 2 must have 2 cells"),
    ):
        (folder / "bank-test.csv").write_text(text)
        with pytest.raises(InputError, match=said):
            columns_of(folder, text=PREDICTING)


def test_names_of_models_and_parties(tmp_path):
    names = {"job.toml": "job", "Crédit 2.toml": "Cr-dit-2", "a.b.toml": "a.b", "-.toml": "model"}
    assert {file: model_name(tmp_path / file) for file in names} == names
    for name in names.values():
        models_in(tmp_path, "bank").save(name, shard_of(), FDSKL)
    for party in ("..", ".", "a/b", "/etc"):
        with pytest.raises(InputError, match="name of a party must be one that a folder can have"):
            models_in(tmp_path, party)
