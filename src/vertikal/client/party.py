"""A party from Python: its jobs, models, peers and predictions.

from vertikal.client import Party
party = Party("party.toml")
party.submit("credit.toml").wait().evaluation
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from vertikal.client import displays
from vertikal.client.connection import Connection
from vertikal.client.jobs import JobHandle, Jobs
from vertikal.client.models import Models, ScoreRecords, StoredModel, predict
from vertikal.errors import InputError
from vertikal.node.config.job_file import Job


class Party:
    """The owner's side of one party; its service must run for all but the models.

    ``path`` is the party file; without it VERTIKAL_PARTY, or the only one in the folder.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self._connection = Connection.to(path)

    @property
    def name(self) -> str:
        return self._connection.name

    # Jobs.

    def submit(
        self, job: str | os.PathLike[str] | Mapping[str, Any] | Job, name: str | None = None
    ) -> JobHandle:
        """Submit a job to all its parties, as `vertikal job submit` does.

        ``job`` is a job file, or its content. ``name`` is that of the model; by default the name of
        the file.
        """
        content, title = _content(job)
        if name is None and not title:
            raise InputError("name: a job that is no file needs the name of its model")
        answer = self._connection.ask("submit", name=name or title, job=content)
        return JobHandle(self._connection, answer)

    def plan(self, job: str | os.PathLike[str] | Mapping[str, Any] | Job) -> dict[str, Any]:
        """Estimate rows, bytes, memory and minutes of a job, as `vertikal job plan` does."""
        return dict(self._connection.ask("plan", job=_content(job)[0]))

    @property
    def jobs(self) -> Jobs:
        """All jobs that this party knows."""
        return Jobs(JobHandle(self._connection, one) for one in self._connection.ask("list"))

    @property
    def waiting(self) -> Jobs:
        """The jobs that wait for the decision of this party's owner."""
        return Jobs(one for one in self.jobs if one.state == "asks for your approval")

    def job(self, job: str) -> JobHandle:
        """Find one job by its id, such as ``credit-7f3a``, or the beginning of its digest."""
        return JobHandle(self._connection, self._connection.ask("show", job=job))

    # Models, which are read without the service, and predictions.

    @property
    def models(self) -> Models:
        """All versions of all models of which this party has a shard."""
        found = self._connection.models.versions([])
        return Models(StoredModel(self._connection, one) for one in found)

    def model(self, name: str, version: int | None = None) -> StoredModel:
        """Find one version of a model, the newest by default."""
        return StoredModel(self._connection, self._connection.models.show(name, version))

    def predict(
        self, model: str, ids: Any, *, version: int | None = None, unknown: str | None = None
    ) -> ScoreRecords:
        """Score ids with a model that this party leads.

        ``unknown`` says what to do with an id that a party lacks: "reject" or "degraded"; by
        default as the policy says.
        """
        return predict(self._connection, model, ids, version=version, unknown=unknown)

    # The other parties.

    @property
    def peers(self) -> PeerList:
        """The other parties, and what does not fit about each."""
        return PeerList(self._connection.ask("peers"))

    def catalog(self, *names: str) -> Catalog:
        """Ask what other parties, or these, offer to this one, as far as they allow."""
        return Catalog(self._connection.ask("catalog", names=list(names)))

    def __repr__(self) -> str:
        return f"<party {self.name}, {self._connection.file.name}>"

    def _repr_html_(self) -> str:
        shown = displays.heading(f"party {self.name}", self._connection.file.name)
        try:
            return shown + self.peers._repr_html_() + self.jobs._repr_html_()
        except InputError as error:
            return f"{shown}<div>{displays.text(error)}</div>"


class PeerList(tuple[Mapping[str, Any], ...]):
    """The other parties, as `vertikal federation check --json` has them."""

    def _repr_html_(self) -> str:
        rows = [
            (
                one["name"],
                "; ".join(one["faults"]) or "ok",
                one["address"],
                one["version"] or "?",
                one["clock"],
            )
            for one in self
        ]
        return displays.table(("party", "state", "address", "version", "clock"), rows)


class Catalog(tuple[Mapping[str, Any], ...]):
    """Offers of parties, as `vertikal catalog --json` has them."""

    def _repr_html_(self) -> str:
        rows = [
            (one["party"], table["name"], table["rows"] or "?", *column[:2], column[2] or "?")
            for one in self
            for table in one["tables"]
            for column in table["columns"]
        ]
        silent = [f"{one['party']}: {one['fault']}" for one in self if one["fault"]]
        return displays.table(("party", "table", "rows", "column", "use", "type"), rows) + "".join(
            f"<div>{displays.text(words)}</div>" for words in silent
        )


def _content(job: str | os.PathLike[str] | Mapping[str, Any] | Job) -> tuple[Any, str]:
    """Read a job as the service takes it, with the name of its file; the service checks it."""
    if isinstance(job, Job):
        return msgspec.to_builtins(job), ""
    if isinstance(job, Mapping):
        return msgspec.to_builtins(dict(job)), ""
    if not isinstance(job, str | os.PathLike):
        raise InputError.of("job", "a job file, or its content as a mapping", job)
    path = Path(job)
    return msgspec.to_builtins(Job.read_unchecked(path)), path.stem
