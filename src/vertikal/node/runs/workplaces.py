"""Workplaces of a party: where a run finds its table and leaves its model.

There are two kinds, and the stages of `party_run` are the same for both. A service has a store of
its own, an audit log, a policy, and the record of an approved job; its rows are matched with those
of others by ids, and checkpoints let a broken-off job be resumed. `vertikal run` has files beside
the job, whose rows are the same people in the same order at all parties, and a folder for what
comes out.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy.typing as npt

from vertikal.compute.device.choice import DeviceName
from vertikal.compute.place import Place
from vertikal.compute.workers.cluster import Workers
from vertikal.compute.workers.sharded_table import ShardedTable
from vertikal.compute.workers.spread_place import SpreadPlace
from vertikal.compute.workers.worker_group import WorkerGroup
from vertikal.data.preparation import Preparation, Prepared
from vertikal.data.sources import Source, open_source
from vertikal.errors import InputError, PartyUnknown
from vertikal.files import write_whole
from vertikal.node.approval.differencing import check_difference
from vertikal.node.approval.disclosure_limit import book
from vertikal.node.approval.job_records import JobRecord
from vertikal.node.approval.offers import open_table, table_digest, used_columns
from vertikal.node.approval.policy import check_ids, offered
from vertikal.node.config.job_file import Job
from vertikal.node.models.job_models import JobModels
from vertikal.node.models.score_reading import flat
from vertikal.node.models.store import ModelStore
from vertikal.node.runs.checkpoint_folder import CheckpointFolder, checkpoints_of
from vertikal.node.storage.party_home import PartyHome
from vertikal.privacy.budget import BudgetFile
from vertikal.privacy.ledger import Ledger

Array = npt.NDArray[Any]

PREDICTIONS = "predictions.csv"


@dataclass(frozen=True)
class UsedTable:
    """A party's table, and what a job uses of it."""

    source: Source
    columns: tuple[str, ...]
    missing: str = "refuse"
    categories: tuple[str, ...] = ()


class Workplace:
    """One party's part in one run of a job; what is not said otherwise is that of a plain folder.

    ``run`` names the run and is the same at all parties. ``model`` is the name of what is trained;
    ``facts`` are stored with it, and the fact ``job`` says which job trained it. ``folder`` is the
    one that is written to.
    """

    checkpoints: CheckpointFolder | None = None
    """Memory of earlier runs of the job, for a party whose rows are matched with others by ids.

    Without it rows are taken as they come, and nothing is resumed.
    """
    least_rows = 1
    """Fewest common rows with which this party takes part, where ids are matched."""
    least_difference = 1
    """Fewest rows by which fits of one job must differ, if they do."""
    finished = False
    """This party has trained the job before and given up its checkpoints."""
    budget: BudgetFile | None = None
    """File that jobs with differential privacy are charged to."""
    device: DeviceName = "auto"
    """Device that this party multiplies on."""
    workers: Workers | None = None
    """Workers that this party's rows are spread over; None: it computes in this process."""
    test: Source | None = None
    """Table of other people, whose values are predicted after training."""

    def __init__(
        self, me: str, job: Job, *, run: str, model: str, folder: Path, facts: dict[str, Any]
    ) -> None:
        if me not in job.parties:
            raise PartyUnknown(f"{me!r} is not a party of this job; those are {job.names}")
        self.me = me
        self.job = job
        self.run = run
        self.model = model
        self.folder = folder
        self.facts = facts

    @property
    def table(self) -> UsedTable | None:
        """The party's table; None at a dealer without data."""
        raise NotImplementedError

    @property
    def models(self) -> ModelStore | None:
        """The store for this party's shard; None if nothing is to be kept."""
        raise NotImplementedError

    @cached_property
    def group(self) -> WorkerGroup | None:
        """The workers of this run, which start when they are first used."""
        if self.workers is None:
            return None
        return WorkerGroup(
            self.workers, self.me, self.device, log=lambda words: self.note("workers", words)
        )

    def compute_place(self) -> Place:
        """Return the place of this party's products, for one step of the run."""
        return Place(self.device) if self.group is None else SpreadPlace(self.group, self.device)

    def read_rows(self, preparation: Preparation, source: Source, rows: Array | None) -> Prepared:
        """Read and prepare rows of training, at the workers if there are any."""
        if self.group is None or rows is None:
            return preparation.apply(source, rows)
        return ShardedTable.read(self.group, preparation, source, rows)

    def end_workers(self) -> None:
        """End the workers of this run, if they were started."""
        if self.group is not None:
            self.group.close()

    @cached_property
    def secret(self) -> bytes:
        """This party's 32 bytes of the job: the same in all of its runs if it keeps checkpoints."""
        if self.checkpoints is None:
            return self.job.secret(self.me)
        return self.checkpoints.secret(lambda: self.job.secret(self.me))

    def check_table(self, source: Source, ids: list[Any] | None = None) -> None:
        """Raise InputError if the table is not the approved one; add its ids to ``ids``."""

    def ids_of_others(self, own_rows: int) -> dict[str, int]:
        """Return the ids that others may bring to an alignment; none are named without approval.

        InputError if this party's policy does not allow so many.
        """
        return {}

    def check_rows(self, rows: Mapping[bytes, int]) -> None:
        """Raise InputError if this party's policy forbids a model of just these common rows.

        ``rows`` has the row of its table by id.
        """

    def book(self, rows: int) -> None:
        """Book what training on so many rows opens, before it does; InputError if too much."""

    def note(self, event: str, words: str) -> None:
        """Write an event to the party's log, if it keeps one."""

    def note_sent(self, ledgers: list[Ledger]) -> None:
        """Write to the party's log what left it."""

    def write_predictions(self, scores: list[dict[str, Any]]) -> None:
        """Keep the scores of the rows of `test`."""


class ServiceWorkplace(Workplace):
    """A service's own table and store, and the record of a job that its owner approved."""

    def __init__(self, home: PartyHome, record: JobRecord) -> None:
        super().__init__(
            home.me,
            record.proposal.job,
            run=f"{record.digest}/{record.attempt}",
            model=record.proposal.name,
            folder=home.store,
            facts={"job": record.digest, "attempt": record.attempt},
        )
        self.record = record
        self.least_rows = home.policy.least_rows
        self.least_difference = home.policy.least_difference
        self.finished = record.done
        self.device = cast(DeviceName, home.file.compute.device)
        self.workers = home.file.compute.spread()
        self._home = home

    @cached_property
    def checkpoints(self) -> CheckpointFolder:  # type: ignore[override]
        return checkpoints_of(self._home.store, self.record.digest)

    @property
    def budget(self) -> BudgetFile | None:  # type: ignore[override]
        return self._home.budget

    @cached_property
    def table(self) -> UsedTable | None:
        proposal = self.record.proposal
        if self.job.parties[self.me].table is None:
            return None
        offer = offered(self._home.file, proposal)[0]
        source = open_table(self._home, proposal)
        return UsedTable(source, tuple(self.record.columns), offer.missing, offer.categories)

    @cached_property
    def models(self) -> ModelStore:
        return JobModels(self._home)

    def check_table(self, source: Source, ids: list[Any] | None = None) -> None:
        if table_digest(self._home, self.record.proposal, source, ids) != self.record.table:
            raise InputError(
                f"table {self.job.parties[self.me].table!r} has changed since {self.me} approved; "
                "submit the job again, so that it is approved for what the table holds now"
            )

    def ids_of_others(self, own_rows: int) -> dict[str, int]:
        return check_ids(self._home.file, self.record, own_rows)

    def check_rows(self, rows: Mapping[bytes, int]) -> None:
        if self.table is not None:
            columns = used_columns(self._home, self.record.proposal)
            digests = self.table.source.row_digests(columns)
            if max(rows.values(), default=0) >= len(digests):
                raise InputError(f"the table of {self.me} has changed since its ids were read")
            check_difference(
                self._home, self.record, {one: digests[row] for one, row in rows.items()}
            )

    def book(self, rows: int) -> None:
        book(self._home, self.record, rows)

    def note(self, event: str, words: str) -> None:
        self._home.note(event, self.record.facts, words)

    def note_sent(self, ledgers: list[Ledger]) -> None:
        self._home.note_ledgers(f"job {self.record.id}", self.record.digest, ledgers)


class FolderWorkplace(Workplace):
    """Files beside the job, and a folder ``out`` for the model, if there is one.

    The model lies in ``out/NAME/models``, NAME being the party, under the name of the job's file;
    predictions go to ``out/predictions.csv``.
    """

    def __init__(self, me: str, job: Job, path: Path, out: Path | None = None) -> None:
        super().__init__(
            me,
            job,
            run=job.digest,
            model=model_name(path),
            folder=out or path.parent,
            facts={"job": job.digest},
        )
        self._tables = path.parent
        self._out = out

    @cached_property
    def table(self) -> UsedTable | None:
        part = self.job.parties[self.me]
        if part.table is None:
            return None
        source = open_source(self.me, part.table, folder=self._tables)
        features = tuple(name for name in source.columns if name not in (part.label, part.weight))
        split = self.job.split_column(self.me)
        unasked = tuple(name for name in features if name != split)
        columns = unasked if part.columns is None else part.columns
        unknown = [name for name in columns if name not in features]
        if unknown:
            raise InputError.of(f"columns of {self.me}", f"some of {list(features)}", unknown[0])
        if not columns:
            raise InputError.of(f"table of {self.me}", "at least one column of features", "none")
        others = set(part.categories) - set(columns)
        if others:
            raise InputError.of(
                f"categories of {self.me}", f"some of {list(columns)}", sorted(others)[0]
            )
        return UsedTable(source, columns, part.missing or "refuse", part.categories)

    @cached_property
    def test(self) -> Source | None:  # type: ignore[override]
        part = self.job.parties[self.me]
        if part.test is None:
            return None
        return open_source(self.me, part.test, folder=self._tables)

    @cached_property
    def models(self) -> ModelStore | None:
        return None if self._out is None else models_in(self._out, self.me)

    def write_predictions(self, scores: list[dict[str, Any]]) -> None:
        if self._out is not None:
            rows = [flat(one) for one in scores]
            text = io.StringIO()
            writer = csv.DictWriter(text, rows[0] if rows else ["value"], lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
            write_whole(self._out / PREDICTIONS, text.getvalue().encode())


def models_in(out: Path, party: str) -> ModelStore:
    """The model store of one party in the folder that `vertikal run` was given."""
    if Path(party).name != party or party in (".", ".."):
        raise InputError.of("name of a party", "one that a folder can have", party)
    return ModelStore(out / party / "models")


def model_name(path: Path) -> str:
    """The name of the model that the job in this file trains: that of the file, made plain."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", path.stem).strip("._-")[:64] or "model"
