"""The federated model of the demonstration: a job, run by real processes over mutual TLS.

The parties' tables are written to a folder of this run, each party reads its own, and what they
leave there (models, predictions) is read back. With the mesh "local" the same job runs in
threads of this process: the same shards, bit for bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from vertikal.algorithms.catalogue import algorithm_named
from vertikal.algorithms.kernel_machine.shard import Shard
from vertikal.algorithms.tuned.shard import TunedShard
from vertikal.demo.data_sets import DataSet
from vertikal.node.config.job_file import Job, Part
from vertikal.node.models.training_record import TrainingRecord
from vertikal.node.runs import launch
from vertikal.node.runs.progress import Tell
from vertikal.node.runs.workplaces import PREDICTIONS, models_in
from vertikal.privacy.ledger import Entry

Array = npt.NDArray[Any]

LABEL = "label"
TIMEOUT = 120.0


@dataclass(frozen=True)
class FederatedRun:
    """Everything that the parties left behind."""

    job: Job
    mesh: str
    shard: TunedShard | Shard  # of the label party
    records: Mapping[str, TrainingRecord]
    values: Array  # (test rows,): f of each, positive for class 1

    @property
    def seconds(self) -> float:
        """Seconds of training at the slowest party; starting its process does not count."""
        return max(record.seconds for record in self.records.values())

    @property
    def bytes_sent(self) -> int:
        """Bytes that all parties sent in training."""
        return sum(record.bytes_sent for record in self.records.values())

    def stages(self) -> list[tuple[str, str, float, int]]:
        """(stage, party, seconds, bytes sent), stage by stage."""
        names = dict.fromkeys(name for one in self.records.values() for name in one.stages)
        return [
            (name, party, record.stages[name].seconds, record.stages[name].bytes_sent)
            for name in names
            for party, record in self.records.items()
            if name in record.stages
        ]

    def entries(self) -> list[Entry]:
        """Join the ledgers of all parties, largest entry first, as only an experiment can."""
        entries = [entry for record in self.records.values() for entry in record.ledger]
        return sorted(entries, key=lambda entry: (-entry.bytes, entry.sender, entry.receiver))


def job_of(data: DataSet, seed: int, width: int | None = None) -> Job:
    """Make the job that all parties run; the label party comes first, so that it listens.

    It tunes itself; with a ``width`` it is one plain fit with so many directions.
    """
    plain = {} if width is None else {"scale": "standard", "n_components": width}
    names = sorted(data.columns, key=lambda name: name != data.label_party)
    labels = {data.label_party: LABEL}
    return Job(
        {name: Part(f"{name}.csv", labels.get(name), test=f"{name}-test.csv") for name in names},
        settings={**plain, "seed": seed},
        algorithm="kernel" if width is None else "fdskl",
        timeout=TIMEOUT,
        secret_seed=seed,
    )


def train(
    data: DataSet, job: Job, X: Array, y: Array, X_test: Array, mesh: str, tell: Tell
) -> FederatedRun:
    """Hand each party its columns, run the job, and gather what came out."""
    with TemporaryDirectory(prefix="vertikal-demo-") as name:
        folder, out = Path(name), Path(name, "out")
        for party, columns in data.numbers().items():
            titles = list(data.columns[party])
            held = X[:, columns]
            _write(folder / f"{party}-test.csv", titles, X_test[:, columns])
            if party == data.label_party:
                titles, held = [*titles, LABEL], np.column_stack((held, y))
            _write(folder / f"{party}.csv", titles, held)
        file = folder / "credit.toml"
        file.write_text(_toml(job), encoding="utf-8")
        start = launch.run_threads if mesh == "local" else launch.run_processes
        start(file, Job.load(file), out, tell)
        algorithm = algorithm_named(job.algorithm)
        kept = {party: models_in(out, party).load(file.stem, algorithm) for party in data.columns}
        return FederatedRun(
            job,
            mesh,
            kept[data.label_party].shard,
            {party: one.record for party, one in kept.items() if one.record},
            np.loadtxt(out / PREDICTIONS, delimiter=",", skiprows=1, usecols=0),
        )


def _write(path: Path, titles: list[str], values: Array) -> None:
    quoted = ",".join(f'"{title}"' for title in titles)
    np.savetxt(path, values, "%.17g", ",", header=quoted, comments="", encoding="utf-8")


def _toml(job: Job) -> str:
    """Write the job as a file; JSON's texts and numbers are also TOML's."""

    def lines(values: Mapping[str, Any]) -> list[str]:
        return [
            f"{key} = {msgspec.json.encode(value).decode()}"
            for key, value in values.items()
            if value is not None
        ]

    text = lines(
        {"algorithm": job.algorithm, "timeout": job.timeout, "secret_seed": job.secret_seed}
    )
    text += ["[settings]", *lines(job.settings)]
    for name, part in job.parties.items():
        text += [f"[parties.{msgspec.json.encode(name).decode()}]"]
        text += lines(msgspec.structs.asdict(part))
    return "\n".join(text) + "\n"
