"""Filters as text: what they are read as, and what is refused with its place."""

from __future__ import annotations

import pytest

from vertikal.data.row_filter.grammar import (
    DEEPEST,
    MOST_CHARACTERS,
    Alternative,
    Comparison,
    Conjunction,
    Missing,
    Negation,
    OneOf,
    columns_of,
    parse_filter,
)
from vertikal.errors import InputError


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("active", Comparison("active", "=", True)),
        ("n = -2", Comparison("n", "=", -2)),
        ("n<=.5e1", Comparison("n", "<=", 5.0)),
        ("name = 'O''Hara'", Comparison("name", "=", "O'Hara")),
        ('"end of ""it""" is null', Missing('end of "it"')),
        ("größe Is Not Null", Negation(Missing("größe"))),
        ("n <> 1", Negation(Comparison("n", "=", 1))),
        ("open = FALSE", Comparison("open", "=", False)),
        ("n in (1, 'a')", OneOf("n", (1, "a"))),
        ("n not in (1)", Negation(OneOf("n", (1,)))),
        (
            "n not between 1 and 2",
            Negation(Conjunction((Comparison("n", ">=", 1), Comparison("n", "<=", 2)))),
        ),
    ],
)
def test_each_kind_of_test(text, condition):
    assert parse_filter(text) == condition


def test_and_binds_closer_than_or_and_not_closer_than_both():
    a, b, c = (Comparison(name, "=", True) for name in "abc")
    assert parse_filter("a OR b AND NOT c") == Alternative((a, Conjunction((b, Negation(c)))))
    assert parse_filter("(a or b) and not (c)") == Conjunction((Alternative((a, b)), Negation(c)))
    assert parse_filter("not a and b") == Conjunction((Negation(a), b))


def test_columns_are_named_once():
    assert columns_of(parse_filter("b = 1 OR NOT (a IS NULL AND b IN (1, 2))")) == ("b", "a")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "a column, NOT or a bracket must stand at character 1, got the end"),
        ("n =", "a number, .* must stand at character 4, got the end"),
        ("n == 1", "must stand at character 4, got '='"),
        ("n = 1 m", "AND, OR or the end must stand at character 7, got 'm'"),
        ("(n = 1", r"\) must stand at character 7, got the end"),
        ("n = 'x", 'character 5 begins nothing that a filter has, got "\'x"'),
        ("1 = n", "a column, .* must stand at character 1, got '1'"),
        ("n = 1; DROP TABLE n", "character 6 begins nothing that a filter has"),
        ("n = 1 -- all", "character 7 begins nothing that a filter has"),
        ("n = m", "must stand at character 5, got 'm'"),
        ("n IN ()", "must stand at character 7, got '\\)'"),
        ("n NOT 1", "IN or BETWEEN must stand at character 7"),
        ("__import__('os')", "AND, OR or the end must stand at character 11"),
        ("n = 1e", "character 5 begins nothing"),
        ("(" * (DEEPEST + 1) + "n" + ")" * (DEEPEST + 1), "brackets inside one another at most"),
        ("NOT " * (DEEPEST + 1) + "n", "brackets inside one another at most"),
        ("n" * (MOST_CHARACTERS + 1), "characters at most, got 4001"),
    ],
)
def test_what_is_no_filter_is_refused_with_its_place(text, words):
    with pytest.raises(InputError, match=words):
        parse_filter(text)


def test_a_long_list_of_conditions_is_no_deep_one():
    found = parse_filter(" AND ".join(["n = 1"] * 200))
    assert isinstance(found, Conjunction)
    assert len(found.parts) == 200
