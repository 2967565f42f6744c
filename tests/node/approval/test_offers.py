"""Labels of an offered table, in whatever form it keeps them."""

from __future__ import annotations

import numpy as np
import pytest

from vertikal.data.sources import open_source
from vertikal.errors import InputError
from vertikal.node.approval.offers import label_column

ROWS = np.array([3, 0, 2])


def source(folder, cells):
    lines = [f"{number},{cell}" for number, cell in enumerate(cells)]
    (folder / "table.csv").write_text("\n".join(["customer,y", *lines]))
    return open_source("bank", "table.csv", id="customer", folder=folder)


def test_numbers_texts_and_other_sources(tmp_path):
    import pyarrow

    assert label_column(source(tmp_path, "0110"), "y", ROWS).tolist() == [0, 0, 1]
    words = source(tmp_path, ["good", "bad", "good", "bad"])
    assert label_column(words, "y", ROWS).tolist() == [0, 1, 1]
    table = pyarrow.table({"customer": [5, 6, 7, 8], "y": [1.5, 2.5, 3.5, 4.5]})
    assert label_column(open_source("bank", table, id="customer"), "y", ROWS).tolist() == [
        4.5,
        1.5,
        3.5,
    ]


def test_missing_labels_count_only_where_they_are_used(tmp_path):
    one = source(tmp_path, ["0", "", "1", "1"])
    assert label_column(one, "y", ROWS).tolist() == [1, 0, 1]
    with pytest.raises(InputError, match="label of bank: 1 of 2 are missing"):
        label_column(one, "y", np.array([0, 1]))
