"""The grammar of filters, and what a filter becomes when it is read.

    condition   = conjunction { OR conjunction }
    conjunction = negation { AND negation }
    negation    = NOT negation | "(" condition ")" | test
    test        = column                                      of true and false, or 1 and 0
                | column ( = | != | <> | < | <= | > | >= ) value
                | column [NOT] IN "(" value { "," value } ")"
                | column [NOT] BETWEEN value AND value
                | column IS [NOT] NULL
    column      = name | "name with spaces"
    value       = 'text' | number | TRUE | FALSE

Words such as AND may be written in any case. A quote inside quotes is doubled, as in SQL.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from vertikal.errors import InputError

MOST_CHARACTERS = 4000
DEEPEST = 40
"""Brackets and NOTs inside one another, so that no text can exhaust the stack."""

Value: TypeAlias = str | int | float | bool
Sign = Literal["=", "<", "<=", ">", ">="]


@dataclass(frozen=True)
class Comparison:
    """A column compared with one value."""

    column: str
    sign: Sign
    value: Value


@dataclass(frozen=True)
class OneOf:
    """A column that has one of several values."""

    column: str
    values: tuple[Value, ...]


@dataclass(frozen=True)
class Missing:
    """A column without a cell."""

    column: str


@dataclass(frozen=True)
class Negation:
    """The opposite of a condition."""

    of: Condition


@dataclass(frozen=True)
class Conjunction:
    """Conditions of which all must hold."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True)
class Alternative:
    """Conditions of which one must hold."""

    parts: tuple[Condition, ...]


Condition: TypeAlias = Comparison | OneOf | Missing | Negation | Conjunction | Alternative

_WORDS = {"AND", "OR", "NOT", "IN", "BETWEEN", "IS", "NULL", "TRUE", "FALSE"}
_TOKEN = re.compile(
    r"""\s*(?:
        (?P<text>'(?:[^']|'')*')
      | (?P<quoted>"(?:[^"]|"")+")
      | (?P<number>[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)(?![\w.])
      | (?P<name>[^\W\d]\w*)
      | (?P<sign><=|>=|<>|!=|=|<|>|\(|\)|,)
    )""",
    re.VERBOSE,
)


class _Token(NamedTuple):
    kind: str  # "text", "column", "number", "word", "sign", or "end"
    text: str
    place: int

    def shown(self) -> str:
        return "the end" if self.kind == "end" else f"{self.text[:40]!r}"


def parse_filter(text: str) -> Condition:
    """Read a filter; InputError names the place where it is none.

    >>> parse_filter("age >= 18 AND region IN ('north', 'south')").parts[0]
    Comparison(column='age', sign='>=', value=18)
    """
    if len(text) > MOST_CHARACTERS:
        raise InputError.of("rows", f"of {MOST_CHARACTERS} characters at most", len(text))
    return _Parser(_tokens(text)).whole()


def columns_of(condition: Condition) -> tuple[str, ...]:
    """List the columns that a filter looks at, each once."""
    if isinstance(condition, Negation):
        return columns_of(condition.of)
    if isinstance(condition, Conjunction | Alternative):
        named = [name for part in condition.parts for name in columns_of(part)]
        return tuple(dict.fromkeys(named))
    return (condition.column,)


def _tokens(text: str) -> list[_Token]:
    found, place = [], 0
    while text[place:].strip():
        match = _TOKEN.match(text, place)
        if match is None:
            start = place + len(text[place:]) - len(text[place:].lstrip())
            raise InputError(
                f"rows: character {start + 1} begins nothing that a filter has, got "
                f"{text[start : start + 20]!r}"
            )
        kind = str(match.lastgroup)
        word, start = match[kind], match.start(kind)
        if kind == "name":
            is_word = word.upper() in _WORDS
            kind, word = ("word", word.upper()) if is_word else ("column", word)
        elif kind == "quoted":
            kind, word = "column", word[1:-1].replace('""', '"')
        elif kind == "text":
            word = word[1:-1].replace("''", "'")
        found.append(_Token(kind, word, start))
        place = match.end()
    return [*found, _Token("end", "", len(text))]


class _Parser:
    """Reads tokens from left to right; each method reads the rule of the grammar that it names."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._next = 0
        self._depth = 0

    def whole(self) -> Condition:
        found = self._condition()
        if self._token.kind != "end":
            raise self._expected("AND, OR or the end")
        return found

    @property
    def _token(self) -> _Token:
        return self._tokens[self._next]

    def _take(self, *texts: str) -> str | None:
        """Take the next token if it is one of these words or signs."""
        token = self._token
        if token.kind in ("word", "sign") and token.text in texts:
            self._next += 1
            return token.text
        return None

    def _need(self, text: str) -> None:
        if self._take(text) is None:
            raise self._expected(text)

    def _expected(self, what: str) -> InputError:
        return InputError(
            f"rows: {what} must stand at character {self._token.place + 1}, got "
            f"{self._token.shown()}"
        )

    def _condition(self) -> Condition:
        parts = [self._conjunction()]
        while self._take("OR"):
            parts.append(self._conjunction())
        return parts[0] if len(parts) == 1 else Alternative(tuple(parts))

    def _conjunction(self) -> Condition:
        parts = [self._negation()]
        while self._take("AND"):
            parts.append(self._negation())
        return parts[0] if len(parts) == 1 else Conjunction(tuple(parts))

    def _negation(self) -> Condition:
        self._depth += 1
        if self._depth > DEEPEST:
            raise InputError.of("rows", f"of {DEEPEST} brackets inside one another at most", "more")
        found: Condition
        if self._take("NOT"):
            found = Negation(self._negation())
        elif self._take("("):
            found = self._condition()
            self._need(")")
        else:
            found = self._test()
        self._depth -= 1
        return found

    def _test(self) -> Condition:
        if self._token.kind != "column":
            raise self._expected("a column, NOT or a bracket")
        column = self._token.text
        self._next += 1
        if sign := self._take("=", "<", "<=", ">", ">="):
            return Comparison(column, sign, self._value())  # type: ignore[arg-type]
        if self._take("!=", "<>"):
            return Negation(Comparison(column, "=", self._value()))
        if self._take("IS"):
            opposite = self._take("NOT")
            self._need("NULL")
            return Negation(Missing(column)) if opposite else Missing(column)
        opposite = self._take("NOT")
        found: Condition
        if self._take("IN"):
            found = OneOf(column, self._values())
        elif self._take("BETWEEN"):
            low = self._value()
            self._need("AND")
            high = self._value()
            found = Conjunction((Comparison(column, ">=", low), Comparison(column, "<=", high)))
        elif opposite:
            raise self._expected("IN or BETWEEN")
        else:
            found = Comparison(column, "=", True)
        return Negation(found) if opposite else found

    def _values(self) -> tuple[Value, ...]:
        self._need("(")
        found = [self._value()]
        while self._take(","):
            found.append(self._value())
        self._need(")")
        return tuple(found)

    def _value(self) -> Value:
        token = self._token
        if word := self._take("TRUE", "FALSE"):
            return word == "TRUE"
        if token.kind not in ("text", "number"):
            raise self._expected("a number, TRUE, FALSE or a text in single quotes")
        self._next += 1
        if token.kind == "text":
            return token.text
        return float(token.text) if set(token.text) & set(".eE") else int(token.text)
