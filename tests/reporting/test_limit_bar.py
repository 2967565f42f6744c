"""Bars against a limit: their lengths, and what stands beside them."""

from __future__ import annotations

import re

import pytest

from vertikal.reporting.limit_bar import limit_bar


def widths(chart):
    return [
        float(one) for one in re.findall(r'class="bar" x="[\d.]+" y="22" width="([\d.]+)"', chart)
    ]


@pytest.mark.parametrize(
    ("value", "added", "expected"),
    [(0, 0, []), (500, 0, [240]), (250, 250, [120, 120]), (0, 1000, [480])],
)
def test_lengths_are_shares_of_the_limit(value, added, expected):
    chart = limit_bar(value, 1000, unit="bits", title="lender", added=added)
    assert widths(chart) == expected


def test_more_than_the_limit_stands_out():
    chart = limit_bar(900, 1000, unit="bits", title="lender <b>", added=300)
    assert "900 + 300 = 1,200 of 1,000 bits" in chart
    assert "more than the limit" in chart
    assert 'class="c7"' in chart
    assert widths(chart) == [360, 120]
    assert "<b>" not in chart


def test_shares_of_one_are_written_out():
    assert "0.25 of 1.5 epsilon" in limit_bar(0.25, 1.5, unit="epsilon", title="all")
