"""Tables: one number of decimals per column, figures flush right, mistakes named."""

from __future__ import annotations

import math
import re
from xml.etree import ElementTree as ET

import pytest

from tests.reporting.reading import HOSTILE
from vertikal.reporting.tables import Cell, table_html


def column(cells: list[Cell]) -> list[str]:
    """Texts of a one-column table."""
    html = table_html(["h"], [[cell] for cell in cells], "", None)
    return re.findall(r"<td[^>]*>([^<]*)</td>", html)


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ([0.9041, 0.889, 0.5], ["0.9041", "0.8890", "0.5000"]),
        ([1.5, 20.25, -3.0], ["1.50", "20.25", "−3.00"]),
        ([32561, None, -7], ["32,561", "–", "−7"]),
        ([1e-9, 2.5, 0.0], ["1e−09", "2.5", "0"]),
        ([math.nan, math.inf, -math.inf, 1.0], ["–", "∞", "−∞", "1"]),
        ([True, False], ["yes", "no"]),
        (["12 ms", "3.4 s"], ["12 ms", "3.4 s"]),
    ],
)
def test_cells(cells: list[Cell], expected: list[str]) -> None:
    assert column(cells) == expected


@pytest.mark.parametrize(
    ("cells", "right", "sortable"),
    [
        ([0.1, 2, None], True, True),
        (["33.3 MB", "< 1 µs", ""], True, False),
        (["0.904 ± 0.003", "−1"], True, False),
        (["bank", "shop"], False, True),
        (["bank", "3 shops"], False, True),
        ([True, False], False, False),
        ([None, None], False, True),
    ],
)
def test_alignment_and_sorting(cells: list[Cell], right: bool, sortable: bool) -> None:
    head = table_html(["h"], [[cell] for cell in cells], "", None).partition("</th>")[0]
    assert ('class="r"' in head) is right
    assert ("data-sort" in head) is sortable


def test_unrounded_numbers_are_kept_for_sorting() -> None:
    assert 'data-v="0.123456789"' in table_html(["h"], [[0.123456789], [1.0]], "", None)


def test_one_row_stands_out_and_the_caption_is_there() -> None:
    html = table_html(["a", "b"], [[1, 2], [3, 4]], "Two rows.", 1)
    assert html.count('class="best"') == 1
    assert html.index('class="best"') > html.index(">2<")
    assert "<caption>Two rows.</caption>" in html


def test_an_empty_table_says_so() -> None:
    assert "no rows" in table_html(["a", "b"], [], "", None)


def test_mistakes_are_named() -> None:
    with pytest.raises(ValueError, match="row 1 must have 2 cells, one per header, got 1"):
        table_html(["a", "b"], [[1, 2], [3]], "", None)
    with pytest.raises(ValueError, match="highlight_row must lie between 0 and 0, got 5"):
        table_html(["a"], [[1]], "", 5)


def test_hostile_text_stays_text() -> None:
    html = table_html([HOSTILE], [[HOSTILE]], HOSTILE, None)
    assert "<script" not in html
    ET.fromstring(html)
