"""A job: what is to be trained, by which parties, on which tables. One TOML file.

    algorithm = "fdskl"              # or "avfkam", "admm"
    timeout = 300
    [settings]                       # of the algorithm, most as the estimators' parameters
    n_components = 512
    scale = "standard"
    [parties.lender]                 # the order of the parties is the order of the ranks
    table = "lender.csv"
    label = "default"                # a label party names its column of labels
    [parties.bank]
    table = "bank.csv"
    columns = ["balance"]            # all that are offered, if left out
    [parties.notary]                 # a dealer without data says how many rows the others have;
    rows = 30000                     # between services nothing: they tell it

`vertikal run` reads the tables from files beside the job, whose rows are the same people in the
same order. A party may also name a ``test`` table of other people there, with the same columns; if
all do, their values are predicted after training. Between services a table is the name under which
its owner offers it, and rows are aligned by their ids. ``secret_seed`` draws the parties' private
seeds from a number, so that a run can be repeated bit for bit: for experiments only, since whoever
knows it knows every party's directions.
"""

from __future__ import annotations

import csv
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from vertikal.algorithms.catalogue import algorithm_named
from vertikal.errors import InputError, PartyUnknown
from vertikal.mesh.collectives import SHAPES
from vertikal.node.config.federation_file import read_toml
from vertikal.secure.keys.prg import derive_key, fresh_key

if TYPE_CHECKING:
    from vertikal.data.tables import Table
    from vertikal.party.party import Labels

ON_LOSS = ("wait", "stop")
MASKINGS = ("pads", "trees")


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one party brings: a table, the column of labels if any, and which features of it.

    A dealer without data brings a number of rows only, and between services nothing at all.
    """

    table: str | None = None
    label: str | None = None
    columns: tuple[str, ...] | None = None
    test: str | None = None
    rows: int | None = None


class Job(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A job as its file says it.

    ``on_loss`` says what a service does when a party is lost: wait until it is back, or stop.
    """

    parties: dict[str, Part]
    algorithm: str = "fdskl"
    settings: dict[str, Any] = {}
    masking: str = "pads"
    shape: str = "star"
    timeout: float = 300.0
    on_loss: str = "wait"
    secret_seed: int | None = None

    @classmethod
    def load(cls, path: Path) -> Job:
        """The job in this file, its settings checked."""
        job = cls.read_unchecked(path)
        job.check()
        return job

    @classmethod
    def read_unchecked(cls, path: Path) -> Job:
        """The same for a service to check, without the libraries of the algorithms."""
        job: Job = read_toml(path, cls, "job file")
        return job

    def check(self) -> None:
        """Refuse what cannot be run, whoever sent it."""
        if len(self.parties) < 2:
            raise InputError.of("parties", "two at least", list(self.parties))
        if not 0 < self.timeout < 1e9:
            raise InputError.of("timeout", "a positive number of seconds", self.timeout)
        if self.masking not in MASKINGS:
            raise InputError.of("masking", f"one of {MASKINGS}", self.masking)
        if self.shape not in SHAPES:
            raise InputError.of("shape", f"one of {list(SHAPES)}", self.shape)
        if self.on_loss not in ON_LOSS:
            raise InputError.of("on_loss", f"one of {ON_LOSS}", self.on_loss)
        if self.secret_seed is not None and not 0 <= self.secret_seed < 1 << 256:
            raise InputError.of("secret_seed", "a number from 0 on", self.secret_seed)
        if not self.label_parties:
            raise InputError.of("label", "named by one party at least", "none")
        given = [name for name, part in self.parties.items() if part.test is not None]
        if given and len(given) < len(self.parties):
            raise InputError.of("test", "named by all parties or by none", f"only by {given}")
        dealer = self.dealer
        for name, part in self.parties.items():
            self._check_part(name, part, dealer)

    def _check_part(self, name: str, part: Part, dealer: str | None) -> None:
        """Refuse a part that is neither a table nor that of a dealer without data."""
        if part.table is not None:
            if part.rows is not None:
                raise InputError.of(f"rows of {name}", "left out: it names a table", part.rows)
            return
        if dealer != name:
            raise InputError.of(
                f"table of {name}", "named: only the dealer of hidden phases has none", "none"
            )
        if part.columns is not None or part.test is not None:
            raise InputError.of(f"columns and test of {name}", "left out: it has no table", "some")
        if part.rows is not None and part.rows < 2:
            raise InputError.of(f"rows of {name}", "a whole number from 2 on", part.rows)

    def check_for_services(self) -> None:
        """Refuse what is only meant for tables that are files beside the job."""
        for name, part in self.parties.items():
            if part.rows is not None:
                raise InputError.of(
                    f"rows of {name}",
                    "left out between services: a dealer is told how many rows are common",
                    part.rows,
                )
            if part.test is not None:
                raise InputError.of(
                    f"test of {name}",
                    "left out between services: predictions are asked for by ids",
                    part.test[:60],
                )

    @property
    def dealer(self) -> str | None:
        """The party that deals random masks, if the job has one; it may have a table."""
        dealer = algorithm_named(self.algorithm).dealer(self.algorithm_settings())
        return None if dealer is None else dealer.name

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.parties)

    @property
    def label_parties(self) -> tuple[str, ...]:
        return tuple(name for name, part in self.parties.items() if part.label)

    @property
    def table_parties(self) -> tuple[str, ...]:
        """The parties that bring a table: all but a dealer without data."""
        return tuple(name for name, part in self.parties.items() if part.table is not None)

    @property
    def bare_dealer(self) -> str | None:
        """The dealer without data, if the job has one."""
        bare = [name for name, part in self.parties.items() if part.table is None]
        return bare[0] if bare else None

    @property
    def digest(self) -> str:
        """What all parties must share; the names of files are each one's own business."""
        bare = {
            name: Part(None, part.label, test=None if part.test is None else "", rows=part.rows)
            for name, part in self.parties.items()
        }
        shared = msgspec.structs.replace(self, parties=bare)
        return hashlib.sha256(msgspec.json.encode(shared, order="sorted")).hexdigest()

    @property
    def leader(self) -> str:
        """The first label party, which submits the job and speaks for it."""
        return self.label_parties[0]

    @property
    def predicts(self) -> bool:
        """Whether there are rows to predict after training."""
        return all(part.test is not None for part in self.parties.values())

    def algorithm_settings(self) -> Any:
        """The settings of the job's algorithm, checked."""
        algorithm = algorithm_named(self.algorithm)
        return algorithm.read_settings(self.settings, self.names, self.label_parties)

    def secret(self, name: str) -> bytes:
        """A party's own 32 bytes: from the operating system, or from ``secret_seed``."""
        if self.secret_seed is None:
            return fresh_key()
        return derive_key(self.secret_seed.to_bytes(32, "big"), "party", name)

    def read(self, name: str, folder: Path) -> tuple[Table, Labels | None]:
        """The table of one party, relative to the job file's folder, and its labels."""
        import numpy as np

        from vertikal.data.scaling import check_columns
        from vertikal.data.tables import Table

        part = self._part(name)
        if part.table is None:
            if part.rows is None:
                raise InputError.of(
                    f"rows of {name}", "given where no service tells it: those of the others", None
                )
            return Table(name, (), np.empty((part.rows, 0))), None
        titles, values = read_csv(folder / part.table, name)
        labels = None
        if part.label is not None:
            if part.label not in titles:
                raise InputError.of(f"label of {name}", f"one of the columns {titles}", part.label)
            place = titles.index(part.label)
            labels = self._labels(name, values[:, place])
            values = np.delete(values, place, axis=1)
            titles.pop(place)
        if part.columns is not None:
            strange = [column for column in part.columns if column not in titles]
            if strange:
                raise InputError.of(f"columns of {name}", f"some of {titles}", strange[0])
            values = values[:, [titles.index(column) for column in part.columns]]
            titles = list(part.columns)
        table = Table(name, tuple(titles), values)
        if not table.width:
            raise InputError.of(f"table of {name}", "at least one column of features", "none")
        check_columns(table, varying=True)
        return table, labels

    def read_test(self, name: str, folder: Path, like: Table) -> Table:
        """The rows that one party is to predict; columns that training had not are left out."""
        from vertikal.data.scaling import check_columns
        from vertikal.data.tables import Table

        part = self._part(name)
        titles, values = read_csv(folder / str(part.test), name)
        if not set(like.columns) <= set(titles):
            raise InputError.of(f"test of {name}", f"of the columns {like.columns}", tuple(titles))
        kept = [titles.index(column) for column in like.columns]
        table = Table(name, like.columns, values[:, kept])
        check_columns(table, varying=False)
        return table

    def _part(self, name: str) -> Part:
        if name not in self.parties:
            raise PartyUnknown(f"{name!r} is not a party of this job; those are {self.names}")
        return self.parties[name]

    def _labels(self, name: str, column: Any) -> Labels:
        return labels_of(name, column, regression=self.algorithm_settings().regression)


def labels_of(name: str, column: Any, *, regression: bool) -> Labels:
    """A column of labels as a program wants it: numbers, or two classes as −1 and +1."""
    import numpy as np

    from vertikal.party.party import Labels

    if not np.isfinite(column).all():
        raise InputError.of(f"label of {name}", "finite numbers", "NaN or infinity")
    weights = np.ones(len(column))
    if regression:
        return Labels(np.asarray(column, float)[:, None], weights)
    classes = np.unique(column)
    if len(classes) != 2:
        raise InputError.of(f"label of {name}", "of two classes", f"{len(classes)} classes")
    return Labels(np.where(column == classes[1], 1.0, -1.0)[:, None], weights)


def read_csv(path: Path, party: str) -> tuple[list[str], Any]:
    """The column titles of a CSV file of numbers, and its values (rows, columns)."""
    import numpy as np

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
