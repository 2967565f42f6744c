"""Escaping, and the estimates of width that the layout trusts."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vertikal.reporting.markup import escape, fit, number, svg_root, text, text_width, wrap


@given(st.text())
def test_escaped_text_survives_an_xml_parser(value: str) -> None:
    element = ET.fromstring(f'<a b="{escape(value)}">{escape(value)}</a>')
    assert not list(element)


def test_escape_keeps_ordinary_text_and_replaces_what_xml_cannot_hold() -> None:
    assert escape("a < b & \"c\" 'd'") == "a &lt; b &amp; &quot;c&quot; &#x27;d&#x27;"
    assert escape("x\x00y\ud800z") == "x\ufffdy\ufffdz"
    assert escape("Zürich → 東京\n") == "Zürich → 東京\n"


@given(st.text(), st.floats(min_value=20, max_value=500))
def test_fitted_text_fits(value: str, width: float) -> None:
    assert text_width(fit(value, 12, width), 12) <= width + 1e-6


def test_fit_leaves_what_fits_and_marks_what_it_cuts() -> None:
    assert fit("bank", 12, 100) == "bank"
    assert fit("a bank with a long name", 12, 80).endswith("…")


@given(st.text(max_size=80), st.integers(1, 3))
def test_wrapped_lines_fit_and_are_few(value: str, max_lines: int) -> None:
    lines = wrap(value, 12, 120, max_lines)
    assert len(lines) <= max_lines
    assert all(text_width(line, 12) <= 120 + 1e-6 for line in lines)


def test_wrap_loses_no_word_that_has_room() -> None:
    assert wrap("one two three", 12, 60, 3) == ("one two", "three")
    assert wrap("one two three four five six", 12, 60, 2) == ("one two", "three f…")
    assert wrap("", 12, 60, 2) == ()


@pytest.mark.parametrize(
    ("value", "expected"), [(3.0, "3"), (3.14159, "3.1"), (-0.01, "0"), (-2.5, "-2.5"), (10, "10")]
)
def test_coordinates_are_short(value: float, expected: str) -> None:
    assert number(value) == expected


def test_wide_characters_are_counted_wide_and_marks_not_at_all() -> None:
    assert text_width("東京", 10) > text_width("ab", 10)
    assert text_width("e\u0301", 10) == text_width("e", 10)


def test_root_and_text_escape_what_they_are_given() -> None:
    root = ET.fromstring(svg_root(10, 20, 'a "b" <c>', [text(1, 2, "<d>", "k", "end")]))
    assert root.get("aria-label") == 'a "b" <c>'
    assert root[0].text == "<d>"
    assert root[0].get("text-anchor") == "end"
