"""A job: what is to be trained, by which parties, on which tables. One TOML file.

    timeout = 300
    [settings]                       # as the estimators' parameters
    n_directions = 512
    scale = "standard"
    [parties.lender]                 # the order of the parties is the order of the ranks
    table = "lender.csv"
    label = "default"                # a label party names its column of labels
    [parties.bank]
    table = "bank.csv"

The rows of all tables are the same people in the same order. A party may also name a ``test`` table
of other people, with the same columns; if all do, their values are predicted after training.
``secret_seed`` draws the parties'
private seeds from a number, so that a run can be repeated bit for bit: for experiments only, since
whoever knows it knows every party's directions.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from vertikal.algorithms.settings import FdsklSettings
from vertikal.data.prepare import check_columns
from vertikal.data.tables import Table
from vertikal.errors import InputError, UnknownParty
from vertikal.node.federation import read_toml
from vertikal.party import Labels, digest
from vertikal.secure.prg import derive_key, fresh_key

_DRAWN = ("parties", "label_parties", "outputs")


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one party brings."""

    table: str
    label: str | None = None
    test: str | None = None


class Job(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A job as its file says it."""

    parties: dict[str, Part]
    settings: dict[str, Any] = {}
    masking: str = "pads"
    shape: str = "star"
    timeout: float = 300.0
    secret_seed: int | None = None

    @classmethod
    def load(cls, path: Path) -> Job:
        """The job in this file, its settings checked."""
        job: Job = read_toml(path, cls, "job file")
        if len(job.parties) < 2:
            raise InputError.of("parties", "two at least", list(job.parties))
        if not 0 < job.timeout < 1e9:
            raise InputError.of("timeout", "a positive number of seconds", job.timeout)
        given = [name for name, part in job.parties.items() if part.test is not None]
        if given and len(given) < len(job.parties):
            raise InputError.of("test", "named by all parties or by none", f"only by {given}")
        job.fdskl()
        return job

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.parties)

    @property
    def label_parties(self) -> tuple[str, ...]:
        return tuple(name for name, part in self.parties.items() if part.label)

    @property
    def digest(self) -> str:
        """What all parties must share; the names of files are each one's own business."""
        bare = {
            name: Part("", part.label, test=None if part.test is None else "")
            for name, part in self.parties.items()
        }
        return digest(msgspec.structs.replace(self, parties=bare))

    @property
    def predicts(self) -> bool:
        """Whether there are rows to predict after training."""
        return all(part.test is not None for part in self.parties.values())

    def fdskl(self) -> FdsklSettings:
        """The settings of the program, checked."""
        if not self.label_parties:
            raise InputError.of("label", "named by one party at least", "none")
        for name in _DRAWN:
            if name in self.settings:
                raise InputError.of("settings", f"without {name!r}: it follows from the job", name)
        known = {field.name for field in msgspec.structs.fields(FdsklSettings)}
        strange = sorted(set(self.settings) - known)
        if strange:
            raise InputError.of("settings", f"some of {sorted(known - set(_DRAWN))}", strange[0])
        try:
            return msgspec.convert(
                {**self.settings, "parties": self.names, "label_parties": self.label_parties},
                FdsklSettings,
            )
        except msgspec.ValidationError as error:
            raise InputError(f"settings: {error}") from None

    def secret(self, name: str) -> bytes:
        """A party's own 32 bytes: from the operating system, or from ``secret_seed``."""
        if self.secret_seed is None:
            return fresh_key()
        return derive_key(self.secret_seed.to_bytes(32, "big"), "party", name)

    def read(self, name: str, folder: Path) -> tuple[Table, Labels | None]:
        """The table of one party, relative to the job file's folder, and its labels."""
        part = self._part(name)
        titles, values = read_csv(folder / part.table, name)
        labels = None
        if part.label is not None:
            if part.label not in titles:
                raise InputError.of(f"label of {name}", f"one of the columns {titles}", part.label)
            place = titles.index(part.label)
            labels = self._labels(name, values[:, place])
            values = np.delete(values, place, axis=1)
            titles.pop(place)
        table = Table(name, tuple(titles), values)
        if not table.width:
            raise InputError.of(f"table of {name}", "at least one column of features", "none")
        check_columns(table, varying=True)
        return table, labels

    def read_test(self, name: str, folder: Path, like: Table) -> Table:
        """The rows that one party is to predict; a column of labels among them is not looked at."""
        part = self._part(name)
        titles, values = read_csv(folder / str(part.test), name)
        kept = [place for place, title in enumerate(titles) if title != part.label]
        columns = tuple(titles[place] for place in kept)
        if columns != like.columns:
            raise InputError.of(f"test of {name}", f"of the columns {like.columns}", columns)
        table = Table(name, columns, values[:, kept])
        check_columns(table, varying=False)
        return table

    def _part(self, name: str) -> Part:
        if name not in self.parties:
            raise UnknownParty(f"{name!r} is not a party of this job; those are {self.names}")
        return self.parties[name]

    def _labels(self, name: str, column: np.ndarray[Any, Any]) -> Labels:
        if not np.isfinite(column).all():
            raise InputError.of(f"label of {name}", "finite numbers", "NaN or infinity")
        weights = np.ones(len(column))
        if self.settings.get("regression"):
            return Labels(column[:, None].astype(float), weights)
        classes = np.unique(column)
        if len(classes) != 2:
            raise InputError.of(f"label of {name}", "of two classes", f"{len(classes)} classes")
        return Labels(np.where(column == classes[1], 1.0, -1.0)[:, None], weights)


def read_csv(path: Path, party: str) -> tuple[list[str], Any]:
    """The column titles of a CSV file of numbers, and its values (rows, columns)."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            lines = csv.reader(file)
            titles = next(lines, [])
            rows = list(lines)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"table of {party}: {path.name!r} cannot be read: {error}") from None
    if not titles or not rows:
        raise InputError.of(f"table of {party}", "a CSV file with titles and rows", path.name)
    if len(set(titles)) != len(titles):
        raise InputError.of(f"table of {party}", "a CSV file with distinct titles", path.name)
    values = np.empty((len(rows), len(titles)))
    for number, row in enumerate(rows):
        try:
            # Asked for by length: NumPy would repeat a single number over the whole row.
            values[number] = np.array([float(cell) for cell in row]).reshape(len(titles))
        except ValueError:
            raise InputError(
                f"table of {party}: {path.name!r}, line {number + 2} must hold {len(titles)} "
                f"numbers, got {','.join(row)[:80]!r}"
            ) from None
    return titles, values
