"""The catalogue: what a party tells others of its tables, as far as its owner allows.

``[policy] catalog`` says how much: ``"none"``; ``"names"`` of tables and columns, which stand in
the party file and are nothing of the data, the default; or ``"summary"``, with the type of each
column and the number of rows to a power of ten. Only parties in ``who`` are told anything, since
only they can use it: a party file that names nobody tells nobody.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from vertikal.algorithms.algorithm import LEVELS
from vertikal.errors import VertikalError
from vertikal.node.approval.offers import open_offer
from vertikal.node.config.party_file import Offer, Policy
from vertikal.node.printable import printable
from vertikal.node.storage.party_home import PartyHome

NONE, NAMES, SUMMARY = "none", "names", "summary"
FEWEST = 100
"""Below this many rows their number is not told, not even to a power of ten."""
FRESH = 3600.0
"""Seconds for which types and rows that were read are told, before they are read again."""
MOST_BYTES = 128 << 10
"""Bytes of names in one answer; columns beyond them are only counted."""
MOST_NAME = 200
"""Characters of a name that are shown of another party's."""


class ColumnEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, array_like=True):
    """One column: its name, its use (feature, label, weight or split), its type if it is told."""

    name: str
    use: str
    kind: str = ""


class TableEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One table; ``rows`` are in words, and empty if they are not told."""

    name: str
    rows: str
    columns: tuple[ColumnEntry, ...]
    left_out: int = 0
    """Columns that found no room in the answer."""


class CatalogEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All that one party tells another of what it offers."""

    level: str
    tables: tuple[TableEntry, ...] = ()
    policy: tuple[str, ...] = ()
    """The policy in words, one condition each."""


@dataclass(frozen=True)
class _Survey:
    rows: int
    kinds: dict[str, str]


class OwnCatalog:
    """This party's own entry, for each who asks."""

    def __init__(self, home: PartyHome, say: Callable[[str], None]) -> None:
        self._home = home
        self._say = say
        self._lock = threading.Lock()
        self._surveys: dict[str, _Survey] = {}
        self._surveyed = float("-inf")
        self._reading = False

    def entry(self, peer: str) -> CatalogEntry:
        """Make the entry that this peer may read; it never waits for a table."""
        file = self._home.file
        if peer not in file.policy.who or file.policy.catalog == NONE:
            return CatalogEntry(NONE)
        surveys: dict[str, _Survey] = {}
        if file.policy.catalog == SUMMARY:
            self.begin_survey()
            with self._lock:
                surveys = dict(self._surveys)
        left = MOST_BYTES
        tables = []
        for name, offer in file.tables_to_train_on.items():
            one = _table(name, offer, surveys.get(name), left)
            left -= len(msgspec.msgpack.encode(one))
            tables.append(one)
        return CatalogEntry(file.policy.catalog, tuple(tables), policy_in_words(file.policy))

    def begin_survey(self) -> None:
        """Read types and rows in another thread, if they are told and what is known is old."""
        with self._lock:
            fresh = time.monotonic() - self._surveyed < FRESH
            if self._home.file.policy.catalog != SUMMARY or fresh or self._reading:
                return
            self._reading = True
        threading.Thread(target=self._survey, name="catalogue", daemon=True).start()

    def _survey(self) -> None:
        found = {}
        try:
            for name, offer in self._home.file.tables_to_train_on.items():
                try:
                    found[name] = _survey(self._home, offer)
                except VertikalError as error:
                    self._say(f"the catalogue tells no rows of table {name}: {error}")
        except Exception as error:
            self._say(f"the catalogue could not be made: {type(error).__name__}: {error}")
        finally:
            with self._lock:
                self._surveys, self._surveyed, self._reading = found, time.monotonic(), False


def _survey(home: PartyHome, offer: Offer) -> _Survey:
    """Count the rows of a table, and see what its columns hold in the first of them."""
    source = open_offer(home, offer)
    columns = [name for name, _ in _uses(offer)]
    first = next(source.blocks(columns), None)
    kinds = {} if first is None else {name: _kind(first.column(name)) for name in columns}
    kinds |= dict.fromkeys(offer.categories, "category")
    return _Survey(sum(block.num_rows for block in source.blocks([offer.id])), kinds)


def _kind(cells: Any) -> str:
    """Name the type of these cells; texts that are all numbers, as in a CSV file, are numbers."""
    from vertikal.data.cells import NUMBER, TEXT, kind_of, parsed, texts

    kind = kind_of(cells)
    return NUMBER if kind == TEXT and parsed(texts(cells)) is not None else kind


def _uses(offer: Offer) -> Iterator[tuple[str, str]]:
    for use, names in (
        ("feature", offer.features),
        ("label", offer.labels),
        ("weight", offer.weights),
        ("split", offer.splits),
    ):
        for name in names:
            yield name, use


def _table(name: str, offer: Offer, survey: _Survey | None, left: int) -> TableEntry:
    columns: list[ColumnEntry] = []
    uses = list(_uses(offer))
    for column, use in uses:
        one = ColumnEntry(column, use, survey.kinds.get(column, "") if survey else "")
        left -= len(msgspec.msgpack.encode(one))
        if left < 0:
            break
        columns.append(one)
    rows = rows_in_words(survey.rows) if survey else ""
    return TableEntry(name, rows, tuple(columns), len(uses) - len(columns))


def rows_in_words(rows: int) -> str:
    """Tell a number of rows to a power of ten: 523 is "100 to 1,000"."""
    if rows < FEWEST:
        return f"fewer than {FEWEST}"
    below = 10 ** (len(str(rows)) - 1)
    return f"{below:,} to {10 * below:,}"


def policy_in_words(policy: Policy) -> tuple[str, ...]:
    """Say under which conditions a party takes part: what a submitter has to know of them."""
    told = [f"algorithms: {', '.join(policy.algorithms) or 'none'}"]
    told += [f"level {level!r}: {LEVELS[level]}" for level in policy.disclosures]
    told += [
        f"at least {policy.least_rows:,} people whom all parties have",
        f"at most {policy.most_directions:,} directions a row",
        f"values of {policy.most_value_bits} bits and gradients of {policy.most_gradient_bits} at "
        f"most; {policy.most_row_bits:,} bits about a row to one receiver, by all jobs together",
        f"{policy.predictions_per_day:,} predictions a day, {policy.most_questions:,} of one "
        "person with one model",
    ]
    if policy.privacy is not None:
        told.append("a privacy budget is kept for jobs with differential privacy")
    if not policy.degraded_predictions:
        told.append("no scores of people whom some party lacks")
    return tuple(told)


def made_printable(entry: CatalogEntry) -> CatalogEntry:
    """Return an entry of another party whose texts cannot steer a terminal."""

    def plain(text: str) -> str:
        return printable(text[:MOST_NAME])

    return CatalogEntry(
        plain(entry.level),
        tuple(
            TableEntry(
                plain(table.name),
                plain(table.rows),
                tuple(
                    ColumnEntry(plain(one.name), plain(one.use), plain(one.kind))
                    for one in table.columns
                ),
                table.left_out,
            )
            for table in entry.tables
        ),
        tuple(printable(words) for words in entry.policy),
    )
