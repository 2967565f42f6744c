"""A party's own tables, as its party file offers them and as jobs use them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from vertikal.node.approval.policy import offered
from vertikal.node.approval.proposals import Proposal
from vertikal.node.config.party_file import Offer, PartyFile
from vertikal.node.storage.party_home import PartyHome

if TYPE_CHECKING:
    from vertikal.data.sources import Source


class OwnFolder(Protocol):
    """A party and the folder of its party file, to which the paths of tables are relative."""

    @property
    def me(self) -> str: ...

    @property
    def folder(self) -> Path: ...


@dataclass(frozen=True)
class OwnTables:
    """The tables of one party as its party file offers them, for its owner's own commands."""

    file: PartyFile
    folder: Path

    @classmethod
    def of(cls, path: Path) -> OwnTables:
        """Load the party file at this path."""
        return cls(PartyFile.load(path), path.parent)

    @property
    def me(self) -> str:
        return self.file.name

    def trained_on(self, facts: Mapping[str, Any]) -> str:
        """Return the table of this party that a model with these facts was trained on."""
        return str(facts.get("parties", {}).get(self.me, {}).get("table"))

    def open(self, table: str) -> Source:
        """Open the table of this name."""
        return open_offer(self, self.file.tables[table])


@dataclass(frozen=True)
class TableSummary:
    """The part of a table that a party approves for a job: its rows, columns and their digest."""

    rows: int
    digest: str
    columns: tuple[str, ...]

    @property
    def ids(self) -> int:
        """Number of ids, rounded up as the alignment will tell it to the others."""
        from vertikal.secure.psi.intersection import capacity_of

        return capacity_of(self.rows) if self.rows else 0


def summarise_table(home: PartyHome, proposal: Proposal) -> TableSummary:
    """Read the table that a job uses here, if it uses one; no job reads it before this.

    A table that the job cannot use is refused now, and not when others have aligned their rows with
    it: labels, classes, missing cells, columns without use, and a column that rows are to be held
    out by are looked at in all rows.
    """
    if proposal.job.parties[home.me].table is None:
        return TableSummary(0, "", ())
    from vertikal.data.ids import normalise
    from vertikal.data.labels import read_labels
    from vertikal.data.preparation import learn_preparation

    offer, columns = offered(home.file, proposal)
    source = open_table(home, proposal)
    ids: list[Any] = []
    digest = table_digest(home, proposal, source, ids)
    rows = len(normalise(home.me, ids))
    plan = proposal.job.label_plan(home.me)
    if plan is not None:
        read_labels(source, plan)
    learn_preparation(source, columns, missing=offer.missing, categories=offer.categories)
    if proposal.job.split_column(home.me) is not None:
        _check_split(source, proposal, rows)
    return TableSummary(rows, digest, columns)


def _check_split(source: Source, proposal: Proposal, rows: int) -> None:
    """Raise InputError if no rows can be held out by the column of a job's evaluation."""
    import numpy as np

    from vertikal.data.row_split import hold_out

    plan = proposal.job.evaluation
    if plan is not None:
        draw = np.random.default_rng(0)
        hold_out(source, np.arange(rows), plan.holdout, draw, group=plan.group, time=plan.time)


def open_table(home: PartyHome, proposal: Proposal) -> Source:
    """Open the table that a job uses here."""
    return open_offer(home, offered(home.file, proposal)[0])


def open_offer(home: OwnFolder, offer: Offer) -> Source:
    """Open an offered table, whatever job uses it."""
    from vertikal.data.sources import open_source

    return open_source(
        home.me,
        offer.source,
        id=offer.id,
        query=offer.query,
        folder=home.folder,
        dialect=offer.dialect,
        rows=offer.rows,
    )


def table_digest(
    home: PartyHome, proposal: Proposal, source: Source, ids: list[Any] | None = None
) -> str:
    """Compute the digest of the ids and columns that a job uses here; fills ``ids`` on the way."""
    return source.digest(used_columns(home, proposal), ids)


def used_columns(home: PartyHome, proposal: Proposal) -> list[str]:
    """List all columns that a job reads here, beside the ids."""
    columns = offered(home.file, proposal)[1]
    plan, split = proposal.job.label_plan(home.me), proposal.job.split_column(home.me)
    labels = plan.columns if plan else ()
    apart = [split] if split is not None and split not in (*columns, *labels) else []
    return [*columns, *labels, *apart]
