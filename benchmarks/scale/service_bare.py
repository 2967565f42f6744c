"""One party of the work of `service.py` without a service: align, prepare, train.

python -m benchmarks.scale.service_bare FOLDER NAME
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

from vertikal.algorithms.alignment.alignment import align
from vertikal.algorithms.kernel_machine import fdskl
from vertikal.compute.threads import one_blas_thread
from vertikal.data.labels import read_labels
from vertikal.data.preparation import learn_preparation
from vertikal.data.sources import open_source
from vertikal.data.tables import Table
from vertikal.mesh.network import NetworkMesh
from vertikal.node.config.federation_file import FederationFile
from vertikal.node.config.job_file import Job
from vertikal.node.config.party_file import PartyFile
from vertikal.party.party import Labels, Party, digest
from vertikal.secure.keys.identity import Identity
from vertikal.secure.keys.prg import fresh_key
from vertikal.version import __version__


def main(root: Path, name: str) -> float:
    """Seconds from the moment all are connected until this party has its shard."""
    folder = root / name
    file = PartyFile.load(folder / "party.toml")
    job = Job.load(root / "lender" / "credit.toml")
    federation = FederationFile.load(folder / "federation.toml")
    identity = Identity.load(folder / f"{name}.key", folder / f"{name}.crt")
    # The services hold the federation's own port.
    listens = f"127.0.0.1:{(root / 'bare-port').read_text()}"
    addresses = {one: at and listens for one, at in federation.addresses().items()}
    mesh = NetworkMesh(
        name, addresses, federation.credentials(identity), job="bare", version=__version__
    )
    mesh.connect(120.0)
    began = time.monotonic()
    source = open_source(name, "people.parquet", id="customer", folder=folder)
    options = {
        "label_parties": job.label_parties,
        "secret": fresh_key(),
        "job": "bare",
        "version": __version__,
    }
    settings = job.algorithm_settings()
    with one_blas_thread():
        nobody = Table(name, (), np.zeros((0, 0)))
        aligned = Party(mesh, nobody, labels=None, settings_digest="", **options)
        rows = align(aligned, source.ids()).rows
        _, prepared = learn_preparation(source, file.tables["people"].features, rows=rows)
        labels = None
        plan = job.label_plan(name)
        if plan is not None:
            found = read_labels(source, plan, rows)
            labels = Labels(found.targets, found.weights)
        party = Party(
            mesh, prepared.table, labels=labels, settings_digest=digest(settings), **options
        )
        fdskl.train(party, settings)
    took = time.monotonic() - began
    mesh.stop()
    return took


if __name__ == "__main__":
    print(main(Path(sys.argv[1]), sys.argv[2]))
