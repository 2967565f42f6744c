"""Sums of elements of rows: from worker to worker, through the one port, or some of each.

Workers are objects of this process here; their links are real connections over TLS.
"""

from __future__ import annotations

import secrets
import threading
from dataclasses import dataclass, field

import numpy as np
import pytest

from tests.conformance.uniformity import check_uniform, check_unrelated
from vertikal.compute.place import Place
from vertikal.compute.workers.cluster import Workers
from vertikal.compute.workers.spread_place import SpreadPlace
from vertikal.compute.workers.worker_group import WorkerGroup
from vertikal.data.tables import Table
from vertikal.errors import LinkLost, MeshError
from vertikal.kernels.random_features import FourierMap
from vertikal.mesh import local_meshes
from vertikal.mesh.party_threads import run_in_threads
from vertikal.mesh.worker_links import WorkerLinks
from vertikal.party import direct_links
from vertikal.party.direct_links import RENEWALS, WORKER_LINKS, DirectLinks
from vertikal.party.party import Party
from vertikal.privacy.ledger import Disclosure
from vertikal.ring.integers import Ring

pytestmark = pytest.mark.usefixtures("in_process")

ROWS, WIDTH, HEIGHT = 13_000, 3, 3000
SUMS = Disclosure("phases", "sums", "nothing", masked=True)


@pytest.fixture
def in_process(monkeypatch):
    """Let all workers run in this process."""
    pytest.importorskip("ray", reason="Ray is not installed (extra ray)")
    from tests.compute.workers.in_process_ray import InProcessRay

    ray = InProcessRay()
    monkeypatch.setattr("vertikal.compute.workers.worker_group.connect", lambda workers: ray)
    return ray


def cells(name):
    return np.random.default_rng(ord(name)).normal(size=(ROWS, 2))


def feature_map(name, to):
    generator = np.random.default_rng([ord(name), ord(to)])
    offsets = generator.integers(0, 256, WIDTH, np.uint8)
    return FourierMap(Ring(8), generator.normal(size=(2, WIDTH)), offsets, WIDTH)


def naive_sum(names, to, rows):
    """The twin: everybody's elements in the open, added up."""
    return sum(feature_map(name, to).local(cells(name)[rows]) for name in names)


@dataclass
class Federation:
    """Parties by name, each with its workers or None, and what is done between blocks."""

    workers: dict[str, Workers | None]
    label_parties: tuple[str, ...] = ("a",)
    rows: np.ndarray = field(default_factory=lambda: np.arange(500, ROWS))
    disturb: dict[int, object] = field(default_factory=dict)
    """Faults by block: done at the first party before it ends that block."""
    rooms: bool = False
    """Label parties say where their sums are to be written."""

    def run(self):
        """Sum all blocks; returns sums, notes and parties by name."""
        self.notes = {name: [] for name in self.workers}
        self.groups, self.parties = {}, {}
        ended = run_in_threads(local_meshes(tuple(self.workers), 20.0), self._at_party)
        for group in self.groups.values():
            group.close()
        if ended.errors:
            raise next(iter(ended.errors.values()))
        return ended.results

    def _at_party(self, mesh):
        name, workers = mesh.me, self.workers[mesh.me]
        place = Place()
        if workers is not None:
            self.groups[name] = WorkerGroup(workers, name, log=self.notes[name].append)
            place = SpreadPlace(self.groups[name])
        table = Table(name, ("x", "y"), cells(name))
        party = self.parties[name] = Party(
            mesh,
            place.table(table),
            label_parties=self.label_parties,
            labels=None,
            secret=bytes(32),
            job=secrets.token_hex(4),
            settings_digest="same",
            version="1",
            place=place,
        )
        found = np.empty((len(self.rows), WIDTH), np.uint8)
        spans = [
            slice(start, min(start + HEIGHT, len(self.rows)))
            for start in range(0, len(self.rows), HEIGHT)
        ]
        with party.row_sums(SUMS) as sums:
            maps = {to: feature_map(name, to) for to in self.label_parties}
            # Parties are not equally far ahead of what has ended.
            ahead, begun = 1 + ord(name) % 3, []

            def finish():
                number, where, parts = begun.pop(0)
                if name == next(iter(self.workers)) and number in self.disturb:
                    self.disturb[number](self)
                for to, part in parts.items():
                    total = part.finish()
                    assert (total is not None) == (to == name)
                    if total is not None:
                        found[where] = total

            for number, where in enumerate(spans):
                parts = {
                    to: sums.begin(
                        to,
                        maps[to],
                        None,
                        self.rows[where],
                        found[where] if self.rooms and to == name else None,
                    )
                    for to in maps
                }
                begun.append((number, where, parts))
                if len(begun) > ahead:
                    finish()
            while begun:
                finish()
        return found


def direct(count, **options):
    return Workers(count=count, direct=True, **options)


@pytest.fixture(autouse=True)
def same_job(monkeypatch):
    monkeypatch.setattr(secrets, "token_hex", lambda size: "job")


def check(federation):
    found = federation.run()
    for to in federation.label_parties:
        expected = naive_sum(federation.workers, to, federation.rows)
        np.testing.assert_array_equal(found[to], expected)
    return federation


def said(federation, name, words):
    return [note for note in federation.notes[name] if words in note]


@pytest.mark.parametrize(
    "workers",
    [
        {"a": direct(2), "b": direct(2)},
        {"a": direct(1), "b": direct(3), "c": direct(2)},
        {"a": direct(3), "b": None, "c": direct(2)},
        {"a": direct(2), "b": Workers(count=2), "c": direct(1)},
    ],
    ids=["alike", "cut differently", "one without workers", "one that does not offer"],
)
def test_sums_are_those_of_all_elements(workers):
    federation = check(Federation(workers))
    linked = [name for name in workers if name != "a" and workers[name] and workers[name].direct]
    for name in linked:
        assert said(federation, name, "phases for a go from worker to worker")
    assert said(federation, "a", f"phases of {', '.join(linked)} come from worker to worker")


def test_two_label_parties_are_linked_with_each_other():
    check(Federation({"a": direct(2), "b": direct(3), "c": direct(2)}, ("a", "b")))


@pytest.mark.parametrize(
    "workers",
    [
        {"a": None, "b": direct(2)},
        {"a": Workers(count=2), "b": direct(2)},
        {"a": direct(2), "b": Workers(count=2)},
    ],
)
def test_without_two_that_offer_no_word_is_said_of_links(workers):
    federation = check(Federation(workers))
    assert all(
        "worker to worker" not in note for notes in federation.notes.values() for note in notes
    )
    for party in federation.parties.values():
        assert WORKER_LINKS not in party.ledger.disclosures()


def test_bytes_are_booked_as_if_they_had_gone_through_the_port():
    booked = []
    for offered in (True, False):
        workers = {name: Workers(count=2, direct=offered) for name in "abc"}
        federation = check(Federation(workers, ("a", "b")))
        booked.append(
            {
                (entry.sender, entry.receiver): (entry.frames, entry.bytes)
                for party in federation.parties.values()
                for entry in party.ledger.entries()
                if entry.disclosure == SUMS
            }
        )
    assert booked[0] == booked[1]


def test_rows_that_are_no_neighbours_go_through_the_port(monkeypatch):
    sent = recorded(monkeypatch)
    rows = np.random.default_rng(0).permutation(ROWS)[:7000]
    check(Federation({"a": direct(2), "b": direct(2)}, rows=rows))
    assert not sent


def recorded(monkeypatch):
    """All that workers send by links: (sender, worker, tag, values)."""
    sent, send = [], WorkerLinks.send

    def kept(self, peer, worker, tag, values):
        sent.append((self.me, self.worker, tag, np.array(values)))
        send(self, peer, worker, tag, values)

    monkeypatch.setattr(WorkerLinks, "send", kept)
    return sent


def killing(name, number):
    """End a worker of a party, with all its links."""

    def disturb(federation):
        federation.groups[name].actors()[number].end()

    return disturb


@pytest.mark.parametrize("lost", ["a", "b"])
def test_a_lost_workers_rows_are_done_again_under_other_pads(monkeypatch, lost):
    sent = recorded(monkeypatch)
    federation = check(
        Federation(
            {"a": direct(2), "b": direct(2)},
            rows=np.arange(ROWS),
            disturb={1: killing(lost, 0)},
        )
    )
    assert said(federation, lost, f"worker 1 of 2 of {lost}")
    assert said(federation, "b", "links between workers are made anew, since worker 1 of ")
    frames = [values for *_, values in sent]
    check_uniform(frames)
    # The pads of every frame are other ones, of the same rows above all.
    own = feature_map("b", "a").local(cells("b"))
    pads: dict[int, list[np.ndarray]] = {}
    for _, _, tag, values in sent:
        start = int(tag.rpartition("/")[2])
        pads.setdefault(start, []).append(values - own[start : start + len(values)])
    check_uniform([pad for several in pads.values() for pad in several])
    twice = [several for several in pads.values() if len(several) > 1]
    assert twice
    check_unrelated([one[0] for one in twice], [one[1] for one in twice])


def test_a_worker_is_lost_at_both_ends_and_between_parties_that_are_not_equally_far():
    def both(federation):
        for name in "abc":
            killing(name, 1)(federation)

    check(
        Federation({"a": direct(2), "b": direct(3), "c": direct(2)}, ("a", "b"), disturb={1: both})
    )


def test_elements_that_were_begun_under_other_pads_are_not_written_to_new_sums(monkeypatch):
    """Threads of a label party without workers compute ahead, to where the sums are wanted."""
    monkeypatch.setattr("vertikal.compute.place.cores", lambda: 8)
    monkeypatch.setattr("vertikal.side_by_side.cores", lambda: 8)
    local, rooms, again = FourierMap.local, [], threading.Event()

    def slow(self, block, out=None):
        elements = local(self, block, out)
        if threading.current_thread().name.startswith("side by side") and out is not None:
            place = out.ctypes.data
            rooms.append(place)
            if rooms.count(place) > 1:
                again.set()
            elif len(rooms) == 2:
                again.wait(1)  # and only then its pads are added
        return elements

    monkeypatch.setattr(FourierMap, "local", slow)
    workers = {"a": direct(2), "b": direct(2), "c": None}
    check(Federation(workers, ("a", "c"), disturb={0: killing("b", 0)}, rooms=True))


def test_links_that_break_too_often_are_given_up(monkeypatch):
    sent = []

    def failing(self, peer, worker, tag, values):
        sent.append(tag)
        self.close()
        raise LinkLost("the cable is cut")

    monkeypatch.setattr(WorkerLinks, "send", failing)
    federation = check(Federation({"a": direct(2), "b": direct(2), "c": None}))
    again = said(federation, "b", "links between workers are made anew")
    assert len(again) == RENEWALS
    assert said(federation, "b", "links between workers are given up")
    assert len(sent) == len(set(sent))


def test_a_label_party_that_cannot_be_reached_gets_all_through_its_port(monkeypatch):
    listen, dialled = WorkerLinks.listen, []

    def behind_a_wall(self, port=0, host=None):
        listen(self, port, host)
        self.address = "127.0.0.1:1"

    dial = WorkerLinks.dial

    def counted(self, *where):
        dialled.append(where)
        dial(self, *where)

    monkeypatch.setattr(WorkerLinks, "listen", behind_a_wall)
    monkeypatch.setattr(WorkerLinks, "dial", counted)
    federation = check(Federation({"a": direct(2), "b": direct(2), "c": direct(1)}))
    for name in "bc":
        (note,) = said(federation, name, "phases for a go through the one port, since worker 1 of")
        assert "cannot reach worker 1 of a at 127.0.0.1:1" in note
        assert said(federation, "a", f"phases of {name} come through the one port")
    assert len(dialled) <= 3


def test_a_port_that_is_taken_leaves_all_to_the_port(monkeypatch):
    def taken(self, port=0, host=None):
        raise OSError("address already in use")

    monkeypatch.setattr(WorkerLinks, "listen", taken)
    federation = check(Federation({"a": direct(2, first_port=50123), "b": direct(2)}))
    assert said(federation, "a", "workers cannot be dialled, since address already in use")


def test_ports_of_workers_follow_one_another(monkeypatch):
    ports, listen = [], WorkerLinks.listen

    def noted(self, port=0, host=None):
        ports.append(port)
        listen(self, 0, host)

    monkeypatch.setattr(WorkerLinks, "listen", noted)
    check(Federation({"a": direct(3, first_port=50123), "b": direct(2)}))
    assert sorted(ports) == [50123, 50124, 50125]


def test_a_message_about_links_that_makes_no_sense_is_refused(monkeypatch):
    class Wrong(DirectLinks):
        def agree(self, to, lost):
            return super().agree(to, 7)

    monkeypatch.setattr("vertikal.party.party.DirectLinks", Wrong)
    with pytest.raises(MeshError, match="spoke of links between workers wrongly"):
        Federation({"a": direct(1), "b": direct(1)}).run()


def test_a_label_party_that_names_links_that_are_not_there_is_refused(monkeypatch):
    convert = direct_links.convert

    def everybody(message, kind):
        found = convert(message, kind)
        return kind(("b", "c")) if kind is direct_links.LinkedParties else found

    monkeypatch.setattr(direct_links, "convert", everybody)
    with pytest.raises(MeshError, match=r"a has links with \['b', 'c'\], which cannot be"):
        Federation({"a": direct(1), "b": direct(1), "c": None}).run()
