"""A check of the tables that a party offers, before any job asks for them.

Nothing of it leaves the party: it is for the owner, who reads it in a terminal.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from vertikal.errors import InputError
from vertikal.node.approval.offers import OwnTables, open_offer
from vertikal.node.config.party_file import Offer, PartyFile


@dataclass(frozen=True)
class TableFinding:
    """One table as it is now: its rows, reasons why jobs cannot use it, and possible mistakes."""

    table: str
    rows: int = 0
    problems: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


@dataclass
class _Notes:
    """Problems and remarks, as they are found."""

    problems: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)


def check_tables(file: PartyFile, folder: Path, *, cells: bool = True) -> list[TableFinding]:
    """Look at every table that the party file offers: is it there, with its columns and ids?

    With ``cells`` its columns are read too, as a job would read them.
    """
    owner = OwnTables(file, folder)
    return [_check(owner, name, cells) for name in file.tables]


def _check(owner: OwnTables, name: str, cells: bool) -> TableFinding:
    notes = _Notes()
    rows, offer = 0, owner.file.tables[name]
    try:
        source = owner.open(name)
        wanted = [*offer.features, *offer.labels, *offer.weights, *offer.splits]
        for trained_on in offer.scores_for:
            wanted += [one for one in owner.file.tables[trained_on].features if one not in wanted]
        absent = [column for column in wanted if column not in source.columns]
        if absent:
            there = ", ".join(map(repr, source.columns)) or "none"
            notes.problems.append(
                f"no column {', '.join(map(repr, absent))}; the columns are {there}"
            )
        ids = source.ids()
        rows = len(ids)
        notes.remarks += ids.report.remarks()
        if cells and not absent:
            _check_cells(owner, offer, notes)
    except InputError as error:
        notes.problems.append(str(error))
    return TableFinding(name, rows, tuple(notes.problems), tuple(notes.remarks))


def _check_cells(owner: OwnTables, offer: Offer, notes: _Notes) -> None:
    """Read features, labels and weights, each on its own, so that all problems are found."""
    from vertikal.data.labels import LabelPlan, count_classes, count_unlabelled, read_labels
    from vertikal.data.preparation import learn_preparation

    source = open_offer(owner, offer)
    if offer.features:
        try:
            preparation, _ = learn_preparation(
                source, offer.features, missing=offer.missing, categories=offer.categories
            )
            notes.remarks += preparation.remarks
        except InputError as error:
            notes.problems.append(str(error))
    for label in offer.labels:
        try:
            classes, empty = count_classes(source, label), count_unlabelled(source, label)
            if not classes:
                notes.problems.append(f"label {label!r} has no cell that is not empty")
            elif empty:
                # A part may have one class only: another label party has the rest.
                notes.remarks.append(
                    f"label {label!r}: {empty} cells are empty; only jobs with label_parts, whose "
                    "label parties label some rows each, and predictions take such a table"
                )
            elif classes < 2:
                notes.problems.append(f"label {label!r} is the same in each row")
        except InputError as error:
            notes.problems.append(str(error))
    for weight in offer.weights:
        try:
            read_labels(source, LabelPlan(weight, regression=True))
        except InputError as error:
            notes.problems.append(str(error))
