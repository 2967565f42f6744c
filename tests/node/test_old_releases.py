"""Stored files and messages of every release so far are read by this one, as they were read then.

`tests/fixtures/write_release.py` writes those of a release.
"""

from __future__ import annotations

import io
import json
import zipfile

import msgspec
import pytest

from tests.fixtures.write_release import FOLDER, PASSPHRASE, SECRET, expected
from vertikal.algorithms.catalogue import ALGORITHMS, algorithm_named
from vertikal.node.approval.job_records import JobBook
from vertikal.node.links.messages import Message
from vertikal.node.models.store import ModelStore
from vertikal.node.storage.audit_log import read, verify
from vertikal.node.storage.store_format import check_store
from vertikal.privacy.budget import BudgetFile
from vertikal.records import msgpack_reader
from vertikal.secure.keys.encrypted_stream import EncryptedReader
from vertikal.version import __version__

RELEASES = sorted(one.stem for one in FOLDER.glob("*.zip"))


@pytest.fixture(scope="module", params=RELEASES)
def release(request, tmp_path_factory):
    """The files of one release, readable by their owner only, as a store must be."""
    folder = tmp_path_factory.mktemp(request.param)
    with zipfile.ZipFile(FOLDER / f"{request.param}.zip") as file:
        file.extractall(folder)
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o700 if path.is_dir() else 0o600)
    return folder


@pytest.fixture(params=["lender", "bank"])
def store(request, release):
    return release / request.param


def test_this_release_is_among_them():
    assert __version__ in RELEASES


def test_shards_compute_what_they_did(store):
    models = ModelStore(store / "models")
    found = models.versions()
    assert {one.facts["algorithm"] for one in found} == set(ALGORITHMS)
    for one in found:
        # Loading compares the shard's answers to invented rows with those that were stored.
        loaded = models.load(one.name, algorithm_named(one.facts["algorithm"]), one.version)
        assert loaded.shard.party == store.name
        assert loaded.preparation is not None
        assert loaded.record is not None


def test_counts_are_what_they_were(store, release):
    party = store.name
    check_store(store)
    kept = json.loads((release / f"{party}.json").read_text())
    assert json.loads(json.dumps(expected(store, party))) == kept
    assert kept["evaluated"] == (["open"] if party == "lender" else [])
    (entry,) = BudgetFile(store / "budget.json").entries
    assert (entry.job, entry.mu) == ("7f3a", 0.1)


def test_logs_and_jobs_are_read(store):
    said = []
    verify(store / "audit.log")
    assert "done" in {one.event for one in read(store / "audit.log")}
    # All are done: nobody's signature has to be checked again.
    book = JobBook(store / "jobs", None, said.append)
    assert said == []
    assert all(one.done and one.approved_by_all for one in book.all())
    assert {one.proposal.job.algorithm for one in book.all()} == set(ALGORITHMS)
    for one in book.all():
        one.proposal.job.check()


def test_messages_are_read_and_written_as_they_were(release):
    reader = msgpack_reader(Message)
    kinds = sorted(release.glob("*.msgpack"))
    assert len(kinds) > 5
    for path in kinds:
        message = reader(path.read_bytes())
        assert type(message).__name__ == path.stem
        assert msgspec.msgpack.encode(message) == path.read_bytes()


def test_encrypted_files_are_read(release):
    reader = EncryptedReader(io.BytesIO((release / "encrypted").read_bytes()), PASSPHRASE)
    assert reader.read(len(SECRET) + 1) == SECRET
