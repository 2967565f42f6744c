"""Tiles that the leader kept of a broken-off run are not sent again, and the model is the same."""

from __future__ import annotations

import numpy as np
import pytest

from tests.conformance.running import run as run_all
from tests.conformance.uniformity import check_uniform, check_unrelated
from vertikal.algorithms.catalogue import algorithm_named
from vertikal.algorithms.gram import secgram
from vertikal.algorithms.gram.secgram import tiles
from vertikal.data.tables import Table
from vertikal.errors import MeshError
from vertikal.mesh import RecordingMesh, Tape, local_meshes
from vertikal.party.party import Labels, Party

NAMES = ("lender", "bank", "shop")
GRAM = algorithm_named("gram")
ROWS, HEIGHT = 100, 40
DRAW = np.random.default_rng(8)
X = {name: DRAW.normal(size=(ROWS, 2)) for name in NAMES}
Y = np.sign(X["lender"][:, :1] * X["bank"][:, :1] + X["shop"][:, :1])

WHOLE = {"gamma": 0.2}
TILES = 6
"""Tiles on and above the diagonal."""
LANDMARKS = {"machine": "ridge", "gamma": 0.2, "landmarks": 30}
LANDMARK_TILES = 4
"""The landmarks' lengths, and three runs of rows."""


class Vanished(Exception):
    """The end of a process, as far as the others see."""


class Kept(dict):
    """Checkpoints in memory of a party that vanishes before it saves its ``last`` + 1st block."""

    def __init__(self, last=10**6):
        super().__init__()
        self.last = last

    def saved_blocks(self, name):
        count = 0
        while (name, count) in self:
            count += 1
        return count

    def save_block(self, name, number, block):
        if number >= self.last:
            raise Vanished
        assert (name, number) not in self, "a tile was summed twice"
        self[name, number] = block.copy()

    def restore_block(self, name, number, into):
        into[...] = self[name, number]


@pytest.fixture(autouse=True)
def _small_tiles(monkeypatch):
    monkeypatch.setattr(secgram, "TILE", HEIGHT)
    monkeypatch.setattr(secgram, "tiles", lambda count: tiles(count, HEIGHT))


def run(written, checkpoints, tape=None, columns=X):
    """The outcome of a run: shards by party."""
    settings = GRAM.read_settings(written, NAMES, NAMES[:1])
    tape = Tape() if tape is None else tape

    def one(mesh):
        party = Party(
            mesh,
            Table(mesh.me, ("u", "v"), columns[mesh.me]),
            label_parties=NAMES[:1],
            labels=Labels(Y, np.ones(ROWS)) if mesh.me == "lender" else None,
            secret=mesh.me.encode() * 8,
            job="job",
            settings_digest="s",
            version="v",
            checkpoints=checkpoints.get(mesh.me),
        )
        return GRAM.train(party, settings)

    meshes = {name: RecordingMesh(one, tape) for name, one in local_meshes(NAMES, 20).items()}
    return run_all(meshes, one)


def checkpoints(last=10**6):
    return {"lender": Kept(last), "bank": Kept(), "shop": Kept()}


def same(found, wanted):
    for name in NAMES:
        for what in ("rows", "support", "coefficients", "constant"):
            assert getattr(found[name], what).tobytes() == getattr(wanted[name], what).tobytes()
        assert found[name].kernel == wanted[name].kernel


def frames(tape):
    """Masked tiles of each feature party, in the order of sending."""
    return {name: tape.arrays("sum/kernel", name) for name in NAMES[1:]}


@pytest.mark.parametrize("kept", [0, 1, 3])
@pytest.mark.parametrize(("written", "count"), [(WHOLE, TILES), (LANDMARKS, LANDMARK_TILES)])
def test_a_run_that_broke_off_goes_on_after_its_last_tile(written, count, kept):
    wanted = run(written, {}).unwrap()
    places, first, second = checkpoints(kept), Tape(), Tape()
    broken = run(written, places, first)
    assert isinstance(broken.errors["lender"], Vanished)
    places["lender"].last = 10**6
    same(run(written, places, second).unwrap(), wanted)
    assert len(places["lender"]) == count
    assert not places["bank"]
    assert not places["shop"]
    for name in NAMES[1:]:
        # A feature party may have been a tile ahead when the leader vanished.
        assert kept + 1 <= len(frames(first)[name]) <= count
        assert len(frames(second)[name]) == count - kept


def test_a_finished_kernel_is_not_sent_at_all():
    places, tape = checkpoints(), Tape()
    wanted = run(WHOLE, places).unwrap()
    same(run(WHOLE, places, tape).unwrap(), wanted)
    assert frames(tape) == {"bank": [], "shop": []}


def test_a_run_may_break_off_again_and_again():
    wanted = run(WHOLE, {}).unwrap()
    places, tape = checkpoints(), Tape()
    for last in (2, 4):
        places["lender"].last = last
        run(WHOLE, places)
    places["lender"].last = 10**6
    same(run(WHOLE, places, tape).unwrap(), wanted)
    assert [len(one) for one in frames(tape).values()] == [2, 2]


def test_a_tile_that_is_sent_again_has_other_pads():
    """The same numbers under the same pads would be the same frames."""
    places, tapes = checkpoints(0), (Tape(), Tape())
    for tape in tapes:
        run(WHOLE, places, tape)
    first, second = (
        [frame for sent in frames(tape).values() for frame in sent[:1]] for tape in tapes
    )
    check_uniform([*first, *second])
    check_unrelated(first, second)


def test_tiles_of_another_ring_or_of_other_landmarks_are_not_taken_for_these():
    places = checkpoints(3)
    run(WHOLE, places)
    run(LANDMARKS, places)
    places["lender"].last = 10**6
    wide = {**LANDMARKS, "ring_bits": 64}
    others = {**LANDMARKS, "seed": 1}
    # Another fixed point: rows ten times as long.
    long = {name: 10 * block for name, block in X.items()}
    for written, columns in ((wide, X), (others, X), (LANDMARKS, long)):
        tape = Tape()
        found = run(written, places, tape, columns).unwrap()
        same(found, run(written, {}, None, columns).unwrap())
        assert [len(one) for one in frames(tape).values()] == [LANDMARK_TILES] * 2


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (-1, r"lender sent .*, expected a number of blocks"),
        (7, r"lender says that it kept 7 tiles of the kernel, which has 6"),
    ],
)
def test_a_number_of_tiles_that_cannot_be(told, words):
    class Wrong(Kept):
        def saved_blocks(self, name):
            return told

    with pytest.raises(MeshError, match=words):
        run(WHOLE, {**checkpoints(), "lender": Wrong()}).unwrap()
