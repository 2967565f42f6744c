"""Estimates of width that the layout of charts trusts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from vertikal.reporting.text_width import fit, text_width, wrap


@given(st.text(), st.floats(min_value=20, max_value=500))
def test_fitted_text_fits(value: str, width: float) -> None:
    assert text_width(fit(value, 12, width), 12) <= width + 1e-6


def test_fit_leaves_what_fits_and_marks_what_it_cuts() -> None:
    assert fit("bank", 12, 100) == "bank"
    assert fit("a bank with a long name", 12, 80) == "a bank wit…"


@given(st.text(max_size=80), st.integers(1, 3))
def test_wrapped_lines_fit_and_are_few(value: str, lines: int) -> None:
    wrapped = wrap(value, 12, 120, lines)
    assert len(wrapped) <= lines
    assert all(text_width(line, 12) <= 120 + 1e-6 for line in wrapped)


def test_wrap_breaks_at_spaces_and_marks_what_it_cuts() -> None:
    assert wrap("one two three", 12, 60, 3) == ["one two", "three"]
    assert wrap("one two three four five six", 12, 60, 2) == ["one two", "three…"]
    assert wrap("", 12, 60, 2) == []


def test_wide_characters_are_counted_wide_and_marks_not_at_all() -> None:
    assert text_width("東京", 10) > text_width("ab", 10)
    assert text_width("e\u0301", 10) == text_width("e", 10)
