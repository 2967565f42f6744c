"""Stored models from Python: what one is, how good it is, and its page."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vertikal.client import displays
from vertikal.client.connection import Connection
from vertikal.errors import InputError
from vertikal.files import write_whole

if TYPE_CHECKING:
    from vertikal.node.models.evaluation import Evaluation
    from vertikal.node.models.store import Manifest

BATCH = 10_000
"""Ids in one question to the service."""


@dataclass(frozen=True)
class EvaluationDisplay:
    """The evaluation of a model: ``record`` has all of it, curves included."""

    record: Evaluation

    @property
    def measures(self) -> dict[str, float | None]:
        """Each measure of the model on the rows held out, the first one first."""
        return {name: one.value for name, one in self.record.together.numbers.items()}

    @property
    def alone(self) -> dict[str, float | None]:
        """The same measures of a model of the label party's columns alone."""
        return {name: one.value for name, one in self.record.alone.numbers.items()}

    @property
    def linear(self) -> dict[str, float | None]:
        """The same measures of a linear model of all columns; empty if none was fitted."""
        found = self.record.linear
        return {} if found is None else {name: one.value for name, one in found.numbers.items()}

    @property
    def contributions(self) -> dict[str, float | None]:
        """Loss of the first measure without a party, by party, if the job asked for it."""
        return dict(self.record.contributions)

    def __repr__(self) -> str:
        return f"<evaluation: {self.record.first_line}; {self.record.rows_line}>"

    def _repr_html_(self) -> str:
        return displays.heading(self.record.first_line, self.record.rows_line) + displays.table(
            self.record.compared, self.record.table
        )


@dataclass(frozen=True)
class StoredModel:
    """One version of a model, of which this party has a shard."""

    connection: Connection
    manifest: Manifest

    @property
    def name(self) -> str:
        return self.manifest.name

    @property
    def version(self) -> int:
        return self.manifest.version

    @property
    def facts(self) -> dict[str, Any]:
        """Settings, columns, rows, classes and who holds the other shards."""
        return dict(self.manifest.facts)

    @property
    def evaluation(self) -> EvaluationDisplay:
        """The measures on rows held out; InputError if there are none at this party."""
        found = self._details().evaluation
        if found is None:
            raise InputError(
                f"model {self.name!r}, version {self.version}, has no evaluation at "
                f"{self.connection.name}: let its job have [evaluation], and ask the party that "
                "holds the labels"
            )
        return EvaluationDisplay(found)

    def predict(self, ids: Any, *, unknown: str | None = None) -> ScoreRecords:
        """Score ids with exactly this version, at its first label party; see `Party.predict`."""
        return predict(self.connection, self.name, ids, version=self.version, unknown=unknown)

    def write_report(self, path: str | os.PathLike[str]) -> Path:
        """Write the page of `vertikal model report` to a file."""
        from vertikal.node.models.model_page import model_page

        write_whole(Path(path), model_page(*self._details()).encode())
        return Path(path)

    def _details(self) -> Any:
        return self.connection.models.details(self.name, self.version)

    def __repr__(self) -> str:
        return f"<model {self.name}, version {self.version}, of {self.connection.name}>"

    def _repr_html_(self) -> str:
        from vertikal.node.models.model_card import describe

        manifest, _, evaluation, search = self._details()
        return displays.facts(describe(manifest, evaluation, search))


class Models(tuple[StoredModel, ...]):
    """Several stored models, as a notebook shows them."""

    def _repr_html_(self) -> str:
        rows = [
            (
                one.name,
                one.version,
                one.manifest.created,
                one.manifest.algorithm,
                one.manifest.digest,
            )
            for one in self
        ]
        return displays.table(("model", "version", "stored", "algorithm", "digest"), rows)


class ScoreRecords(list[dict[str, Any]]):
    """One record per id: ``id``, ``status``, ``value``, and by class ``probability_...``."""

    def to_pandas(self) -> Any:
        """Make a data frame; it needs pandas."""
        import pandas

        return pandas.DataFrame(list(self))

    def _repr_html_(self) -> str:
        titles = list(self[0]) if self else ["id"]
        shown = [[row.get(title, "") for title in titles] for row in self[:20]]
        more = f"<div>and {len(self) - 20:,} more</div>" if len(self) > 20 else ""
        return displays.table(titles, shown) + more


def predict(
    connection: Connection,
    name: str,
    ids: Any,
    *,
    version: int | None = None,
    unknown: str | None = None,
) -> ScoreRecords:
    """Ask the service for scores, some thousands of ids at a time."""
    from vertikal.node.models.score_reading import flat

    if unknown not in (None, "reject", "degraded"):
        raise InputError.of("unknown", "None, 'reject' or 'degraded'", unknown)
    if isinstance(ids, str | bytes):
        raise InputError.of("ids", "a sequence of ids", ids)
    wanted = [str(one) for one in ids]
    scores = ScoreRecords()
    for start in range(0, len(wanted), BATCH):
        answer = connection.ask(
            "predict",
            name=name,
            ids=wanted[start : start + BATCH],
            degraded=None if unknown is None else unknown == "degraded",
            version=version,
        )
        scores += map(flat, answer)
    return scores
