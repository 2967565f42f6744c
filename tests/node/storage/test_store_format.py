"""Formats of stored files: each says its own, and a later one is refused before it is touched."""

from __future__ import annotations

import json
import stat

import msgspec
import pytest

from tests.node.alone import alone, kept, proposal
from tests.organisations import lay_out
from vertikal.errors import InputError
from vertikal.node.service import Service
from vertikal.node.storage.store_format import FILE, FORMAT, check_store
from vertikal.privacy.budget import BudgetFile
from vertikal.records import check_format
from vertikal.version import __version__


def test_a_store_without_a_mark_gets_one(tmp_path):
    check_store(tmp_path)
    mark = tmp_path / FILE
    assert json.loads(mark.read_text()) == {"format": FORMAT, "library": __version__}
    assert stat.S_IMODE(mark.stat().st_mode) == 0o600


def test_the_mark_of_an_older_release_is_brought_up_to_date(tmp_path):
    mark = tmp_path / FILE
    mark.write_text('{"format": 1, "library": "0.0.9"}')
    check_store(tmp_path)
    assert json.loads(mark.read_text())["library"] == __version__


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (
            '{"format": 2, "library": "0.2.0", "more": [1]}',
            r"written by vertikal 0.2.0 \(format 2\), this release reads formats up to 1",
        ),
        ("{", "cannot be read"),
        ("[]", "cannot be read"),
    ],
)
def test_a_later_or_broken_mark_stops_the_service(tmp_path, content, why):
    lay_out(tmp_path, rows=60)
    with alone(tmp_path):
        pass
    mark = tmp_path / "bank" / "store" / FILE
    mark.write_text(content)
    for _ in range(2):  # the store is not left locked
        with pytest.raises(InputError, match=why):
            Service(tmp_path / "bank" / "party.toml", print)
    assert mark.read_text() == content


def test_a_job_of_a_later_release_is_left_aside_and_kept(tmp_path):
    lay_out(tmp_path, rows=60)
    with alone(tmp_path) as (bank, _):
        record = kept(bank, proposal(tmp_path))
    (path,) = (tmp_path / "bank" / "store" / "jobs").iterdir()
    saved = msgspec.msgpack.decode(path.read_bytes())
    assert saved["format"] == 1
    path.write_bytes(msgspec.msgpack.encode({**saved, "format": 2, "mood": "new"}))
    with alone(tmp_path) as (bank, said):
        assert bank.book.find(record.digest) is None
        assert any("has format 2, this release reads formats up to 1" in one for one in said)
    del saved["format"]  # as it was written before files said their format
    path.write_bytes(msgspec.msgpack.encode(saved))
    with alone(tmp_path) as (bank, _):
        assert bank.book.find(record.digest) is not None


def test_a_budget_of_a_later_release_is_refused(tmp_path):
    path = tmp_path / "budget.json"
    budget = BudgetFile.create(path, epsilon=1.0, delta=1e-5)
    budget.charge("bank", "7", 0.1, 3)
    content = json.loads(path.read_text())
    assert content["format"] == 1
    path.write_text(json.dumps({**content, "format": 2, "mood": "new"}))
    with pytest.raises(InputError, match="has format 2, this release reads formats up to 1"):
        BudgetFile(path)
    del content["format"]
    path.write_text(json.dumps(content))
    assert len(BudgetFile(path).entries) == 1


@pytest.mark.parametrize("raw", [b"", b"nonsense", b"[1]", b'{"format": "x"}'])
def test_what_is_no_record_is_left_to_its_reader(raw):
    check_format(raw, 1, "it")
