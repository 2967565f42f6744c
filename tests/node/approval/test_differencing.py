"""Two jobs over almost the same people: seen also when they run at once."""

from __future__ import annotations

import hmac
import os
import threading
import time

import msgspec
import pytest

from tests.organisations import lay_out
from vertikal.errors import InputError
from vertikal.node.approval import differencing
from vertikal.node.approval.differencing import check_difference, least_difference
from vertikal.node.approval.job_records import JobRecord
from vertikal.node.approval.proposals import Proposal, SignedBytes
from vertikal.node.config.job_file import Job, Part
from vertikal.node.runs.workplaces import ServiceWorkplace
from vertikal.node.storage.party_home import PartyHome

IDS = [b"%d" % number for number in range(40)]


def rows(ids, **changed):
    """Digests of rows by id; those of ``changed`` are others than they were."""
    return {one: changed.get(f"c{one.decode()}", b"as it was") for one in ids}


@pytest.fixture
def home(tmp_path):
    lay_out(tmp_path, rows=30)
    bank = PartyHome(tmp_path / "bank" / "party.toml")
    yield bank
    bank.close()


def record_of(letter, table="people"):
    job = Job(algorithm="fdskl", parties={"lender": Part("people", "y"), "bank": Part(table)})
    signed = SignedBytes(letter.encode(), b"")
    return JobRecord(1, signed, Proposal("m", job, "lender", 0.0, "1", 60, ""))


def test_of_two_close_jobs_at_once_one_is_refused(home, monkeypatch):
    real, inside, refused = differencing.least_difference, [], []

    def slow(*arguments):
        found = real(*arguments)
        inside.append(1)
        end = time.monotonic() + 0.3
        while len(inside) < 2 and time.monotonic() < end:
            time.sleep(0.01)
        return found

    def job(letter, ids):
        try:
            check_difference(home, record_of(letter), rows(ids))
        except InputError as error:
            refused.append(str(error))

    monkeypatch.setattr(differencing, "least_difference", slow)
    threads = [
        threading.Thread(target=job, args=one) for one in (("a", IDS), ("b", [*IDS[1:], b"77"]))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == 1
    assert "differ from those of an earlier job by 2" in refused[0]


def test_the_closest_other_intersection_counts(tmp_path):
    def marks(*numbers):
        return {number.to_bytes(8, "big") for number in numbers}

    def write(digest, found):
        (tmp_path / f"{b'people'.hex()}-{digest}").write_bytes(b"".join(sorted(found)))

    assert least_difference(tmp_path, "people", "a" * 16, marks(1, 2, 3)) is None
    write("b" * 16, marks(1, 2, 3))
    write("c" * 16, marks(1, 2, 3, 4, 5))
    assert least_difference(tmp_path, "people", "a" * 16, marks(1, 2, 3)) == 2
    assert least_difference(tmp_path, "people", "a" * 16, marks(1, 2, 9)) == 2
    assert least_difference(tmp_path, "other", "a" * 16, marks(1)) is None
    assert least_difference(tmp_path, "people", "c" * 16, marks(1, 2, 3)) is None


def test_two_first_jobs_draw_one_key(home, monkeypatch):
    """Another process writes a key while this one draws its own."""
    folder, theirs = home.store / "intersections", bytes(range(32))
    real = os.urandom

    def urandom(size):
        if not (folder / ".key").exists():
            (folder / ".key").write_bytes(theirs)
        return real(size)

    monkeypatch.setattr(os, "urandom", urandom)
    check_difference(home, record_of("a"), rows(IDS))
    assert (folder / ".key").read_bytes() == theirs
    (kept,) = (path for path in folder.iterdir() if not path.name.startswith("."))
    marks = sorted(hmac.digest(theirs, one, "sha256")[:8] for one in IDS)
    assert kept.read_bytes() == b"".join(marks)


def test_tables_of_one_source_are_compared_with_one_another(home):
    """Two filters of one file may differ by the few people that somebody looks for."""
    offer = home.file.tables["people"]
    tables = {
        "people": offer,
        "recent": msgspec.structs.replace(offer, rows="customer > 3"),
        "others": msgspec.structs.replace(offer, source="others.csv"),
    }
    home.file = msgspec.structs.replace(home.file, tables=tables)
    assert home.file.tables_of_same_source("recent") == ("recent", "people")
    check_difference(home, record_of("a"), rows(IDS))
    check_difference(home, record_of("b", "others"), rows(IDS[1:]))
    with pytest.raises(InputError, match="differ from those of an earlier job by 1"):
        check_difference(home, record_of("c", "recent"), rows(IDS[1:]))


def test_a_version_in_which_the_rows_of_a_few_people_changed_is_refused(home):
    """The two models together would tell what changed about these few."""
    check_difference(home, record_of("a"), rows(IDS))
    check_difference(home, record_of("same"), rows(IDS))
    with pytest.raises(InputError, match="of an earlier job in their cells by 2, fewer than the"):
        check_difference(home, record_of("b"), rows(IDS, c3=b"new", c7=b"new"))
    # Of a job that was refused nothing is kept to compare with.
    with pytest.raises(InputError, match="in their cells by 1, fewer than the"):
        check_difference(home, record_of("c"), rows(IDS, c3=b"new"))
    many = {f"c{number}": b"new" for number in range(10)}
    check_difference(home, record_of("d"), rows(IDS, **many))
    many["c39"] = b"new"
    with pytest.raises(InputError, match="in their cells by 1, fewer than the"):
        check_difference(home, record_of("e"), rows(IDS, **many))


def test_no_file_tells_who_or_what_it_is_about(home):
    check_difference(home, record_of("a"), rows(IDS))
    for path in (home.store / "intersections").iterdir():
        assert b"as it was" not in path.read_bytes()
        assert len(path.read_bytes()) in (32, 8 * len(IDS), 16 * len(IDS))


def test_as_many_other_people_are_no_changed_rows(home):
    check_difference(home, record_of("a"), rows(IDS))
    check_difference(home, record_of("b"), rows([b"other %d" % number for number in range(40)]))


def test_a_table_that_lost_rows_since_its_ids_were_read_is_refused(home):
    place = ServiceWorkplace(home, record_of("a"))
    place.check_rows({b"1000": 3})
    with pytest.raises(InputError, match="the table of bank has changed since its ids were read"):
        place.check_rows({b"1000": 10_000})
