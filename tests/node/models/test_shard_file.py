"""Shards and accounts as files: what comes back, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import msgspec
import numpy as np
import pytest

from vertikal import files
from vertikal.algorithms.admm.algorithm import ADMM
from vertikal.algorithms.admm.design import Features
from vertikal.algorithms.admm.settings import AdmmSettings
from vertikal.algorithms.admm.shard import AdmmShard
from vertikal.algorithms.kernel_machine.algorithm import AVFKAM, FDSKL
from vertikal.algorithms.kernel_machine.avfkam_settings import AvfkamSettings
from vertikal.algorithms.kernel_machine.settings import FdsklSettings
from vertikal.algorithms.kernel_machine.shard import Moment, Shard, Training
from vertikal.data.scaling import Scaling
from vertikal.errors import InputError
from vertikal.node.models.shard_file import read_shard, write_shard
from vertikal.node.models.store import ModelStore
from vertikal.node.runs.account import Account, read_account, write_account
from vertikal.party.clock import Stage
from vertikal.privacy.ledger import Disclosure, Entry


def shard(**changes):
    settings = FdsklSettings(parties=("a", "b"), label_parties=("a",), n_components=3)
    scaling = Scaling([0.5, -1.0], [2.0, 1 / 3])
    parts = {
        "coefficients": np.arange(6, dtype=float).reshape(3, 2) / 7,
        "landmarks": {"a": np.ones((3, 2)) / 3},
        "constant": np.array([0.1, 0.2]),
        "training": Training(5, 7, True, [1.0, 0.5], [0.1, 1e-9], 0.01),
        **changes,
    }
    return Shard("a", settings, ("u", "v"), scaling, 1.25, bytes(range(32)), **parts)


@pytest.mark.parametrize("changes", [{}, {"coefficients": None, "landmarks": {}}])
def test_a_shard_comes_back_bit_for_bit(tmp_path, changes):
    path = tmp_path / "below" / "a.shard"
    sent = shard(**changes)
    for _ in range(2):
        write_shard(sent, path, FDSKL)
        assert path.stat().st_mode & 0o777 == 0o600
    came = read_shard(path, FDSKL)
    for name in ("party", "settings", "columns", "scaling", "bandwidth", "seed", "training"):
        assert getattr(came, name) == getattr(sent, name)
    for name in ("coefficients", "constant", "unit"):
        np.testing.assert_array_equal(getattr(came, name), getattr(sent, name))
    assert came.landmarks.keys() == sent.landmarks.keys()
    for owner, points in sent.landmarks.items():
        np.testing.assert_array_equal(came.landmarks[owner], points)


def test_what_is_stored_does_not_depend_on_how_long_it_took(tmp_path):
    store, digests = ModelStore(tmp_path / "models"), set()
    for seconds in (0.1, 0.2):
        curve = [Moment(seconds, 1, 1, 0.0)]
        sent = shard(training=Training(moments=curve))
        write_shard(sent, tmp_path / f"{seconds}.shard", FDSKL)
        digests.add(store.save("credit", sent, FDSKL).digest)
        assert sent.training.moments == curve
    assert (tmp_path / "0.1.shard").read_bytes() == (tmp_path / "0.2.shard").read_bytes()
    assert len(digests) == 1


def test_every_algorithm_has_its_shards(tmp_path):
    pairs = AvfkamSettings(parties=("a", "b"), label_parties=("a",), n_components=3)
    linear = AdmmSettings(parties=("a", "b"), label_parties=("a",))
    for algorithm, sent in (
        (
            AVFKAM,
            replace(shard(coefficient_share=np.array([[2**64 - 1]], np.uint64)), settings=pairs),
        ),
        (
            ADMM,
            AdmmShard(
                "a", linear, ("u",), Features(Scaling([0.0], [1.0]), True, False), np.ones((1, 1))
            ),
        ),
    ):
        write_shard(sent, tmp_path / "x.shard", algorithm)
        came = read_shard(tmp_path / "x.shard", algorithm)
        assert type(came) is type(sent)
        assert came.settings == sent.settings
        assert type(came.settings) is type(sent.settings)
        np.testing.assert_array_equal(came.coefficients, sent.coefficients)
    write_shard(replace(shard(), coefficients=None), tmp_path / "x.shard", FDSKL)
    assert not read_shard(tmp_path / "x.shard", FDSKL).learned


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match=r"shard file 'gone\.shard' cannot be read: No such file"):
        read_shard(tmp_path / "gone.shard", FDSKL)
    with pytest.raises(InputError, match=r"account 'gone\.json' cannot be read: No such file"):
        read_account(tmp_path / "gone.json")


def test_files_that_are_no_shards(tmp_path):
    path = tmp_path / "a.shard"
    write_shard(shard(), path, FDSKL)
    good = path.read_bytes()
    file = msgspec.msgpack.decode(good)
    content = file["shard"]

    def changed(**parts):
        return msgspec.msgpack.encode({**file, "shard": {**content, **parts}})

    wrong = [
        b"",
        b"nonsense",
        good[:-1],
        good + b"x",
        msgspec.msgpack.encode({}),
        msgspec.msgpack.encode({**file, "more": 1}),
        msgspec.msgpack.encode({**file, "kind": "Model"}),
        changed(party=3),
        changed(constant={"dtype": "<f8", "shape": [2], "data": b"short"}),
        changed(constant={"dtype": "<f8", "shape": [3], "data": bytes(16)}),
        changed(constant={"dtype": "|O", "shape": [2], "data": bytes(16)}),
        changed(constant={"shape": [2], "data": bytes(16)}),
        changed(settings={**content["settings"], "kernel": "x"}),
    ]
    for raw in wrong:
        path.write_bytes(raw)
        with pytest.raises(InputError, match=r"a\.shard|kernel must be one of"):
            read_shard(path, FDSKL)


def test_an_account_comes_back(tmp_path):
    entry = Entry("a", "b", Disclosure("phases", "what", "learns", True), 3, 4000)
    sent = Account("a", (entry,), {"solve": Stage(1.5, 10), "phases": Stage(0.5, 3990)})
    path = tmp_path / "below" / "a.account.json"
    write_account(sent, path)
    assert read_account(path) == sent
    assert (sent.seconds, sent.bytes_sent) == (2.0, 4000)
    path.write_text("{}")
    with pytest.raises(InputError, match="is not an account"):
        read_account(path)


@pytest.mark.parametrize(
    ("write", "content", "name"),
    [
        (partial(write_shard, algorithm=FDSKL), shard(), "shard file"),
        (write_account, Account("a", (), {}), "account"),
    ],
)
def test_a_failure_leaves_the_file_that_was_there(tmp_path, monkeypatch, write, content, name):
    path = tmp_path / "a"
    path.write_bytes(b"of yesterday")

    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "open", full)
    with pytest.raises(InputError, match=f"{name} 'a' cannot be written: No space left"):
        write(content, path)
    monkeypatch.undo()
    assert {one.name: one.read_bytes() for one in tmp_path.iterdir()} == {"a": b"of yesterday"}
