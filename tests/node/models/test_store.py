"""The model store: whole versions or none, nothing used that was changed, known answers."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from tests.node.shards import shard_of
from vertikal import ADMMClassifier, AVFKAMClassifier, FDSKLClassifier, Gaussian, Stochastic
from vertikal.algorithms.admm.algorithm import ADMM
from vertikal.algorithms.kernel_machine import algorithm
from vertikal.algorithms.kernel_machine.algorithm import AVFKAM, FDSKL, Fdskl
from vertikal.data.preparation import ColumnPlan, Preparation
from vertikal.errors import DiskFull, InputError
from vertikal.node.models import store
from vertikal.node.models.store import ModelStore

PREPARATION = Preparation("bank", "mean", (ColumnPlan("x", "number", 2.5),))


def same(one, other):
    assert type(one) is type(other)
    for name in one.__dataclass_fields__:
        left, right = getattr(one, name), getattr(other, name)
        if isinstance(left, np.ndarray):
            assert (left.dtype, left.shape) == (right.dtype, right.shape)
            assert (left == right).all()
        elif name == "landmarks":
            assert {k: v.tolist() for k, v in left.items()} == {
                k: v.tolist() for k, v in right.items()
            }
        else:
            assert repr(left) == repr(right)
            assert getattr(left, "seed", None) == getattr(right, "seed", None)


@pytest.fixture
def models(tmp_path):
    return ModelStore(tmp_path / "models")


def trained(kind):
    X = np.random.default_rng(0).normal(size=(60, 4))
    y = (X[:, 0] * X[:, 2] > 0).astype(int)
    if kind == "landmarks":
        return FDSKLClassifier(2, n_components=16, feature_map="landmarks").fit(X, y)
    if kind == "fourier":
        return FDSKLClassifier(2, n_components=16, kernel="matern", label_parties=2).fit(X, y)
    if kind == "encoded":
        X[:, 1] = np.exp(3 * X[:, 1]).clip(1)
        return FDSKLClassifier(2, n_components=16, scale="smooth").fit(X, y)
    if kind == "places":
        settings = {"n_components": 16, "scale": "quantile", "feature_map": "landmarks"}
        return FDSKLClassifier(2, **settings).fit(X, y)
    if kind == "pairs":
        return AVFKAMClassifier(
            2, solver=Stochastic(n_steps=20), label_parties=2, n_components=16
        ).fit(X, y)
    if kind == "cosines":
        return ADMMClassifier(2, kernel=Gaussian(n_components=8)).fit(X, y)
    return ADMMClassifier(2).fit(X, y)


ALGORITHM_OF = {
    "fourier": FDSKL,
    "landmarks": FDSKL,
    "encoded": FDSKL,
    "places": FDSKL,
    "pairs": AVFKAM,
    "linear": ADMM,
    "cosines": ADMM,
}


@pytest.mark.parametrize("kind", ALGORITHM_OF)
def test_every_kind_of_shard_comes_back_as_it_was(models, kind):
    algorithm = ALGORITHM_OF[kind]
    for name, shard in trained(kind).shards_.items():
        models.save(name, shard, algorithm, preparation=PREPARATION)
        loaded = models.load(name, algorithm)
        same(loaded.shard, algorithm.to_store(shard))
        assert loaded.preparation == PREPARATION


def test_versions_count_up_and_the_newest_is_meant(models):
    first, second = shard_of(8), shard_of(16)
    one = models.save("credit", first, FDSKL, facts={"job": "7", "rows": 300})
    two = models.save("credit", second, FDSKL)
    again = models.save("credit", first, FDSKL)
    assert [one.version, two.version, again.version] == [1, 2, 3]
    assert one.digest == again.digest != two.digest
    same(models.load("credit", FDSKL, 2).shard, second)
    same(models.load("credit", FDSKL).shard, first)
    assert models.load("credit", FDSKL, 2).preparation is None
    assert [(m.name, m.version) for m in models.versions()] == [("credit", n) for n in (1, 2, 3)]
    assert models.show("credit", 1).facts == {"job": "7", "rows": 300}


def test_deleting(models):
    for name in ("credit", "fraud"):
        for _ in range(3):
            models.save(name, shard_of(), FDSKL)
    assert models.delete("credit", 2) == [2]
    assert models.delete("fraud") == [1, 2, 3]
    assert [(m.name, m.version) for m in models.versions()] == [("credit", 1), ("credit", 3)]
    with pytest.raises(InputError, match=r"'credit, version 2' is not in this store; .*\[1, 3\]"):
        models.load("credit", FDSKL, 2)
    with pytest.raises(InputError, match=r"model 'fraud' is not in this store; .*\['credit'\]"):
        models.delete("fraud")


def test_deleting_the_last_version_spares_one_that_is_stored_meanwhile(models, monkeypatch):
    models.save("credit", shard_of(8), FDSKL)

    def overtaken(remove):
        def late(path, **options):
            if path.name == "credit":
                models.save("credit", shard_of(16), FDSKL)
            remove(path, **options)

        return late

    for place, name in ((store.shutil, "rmtree"), (store.Path, "rmdir")):
        monkeypatch.setattr(place, name, overtaken(getattr(place, name)))
    assert models.delete("credit") == [1]
    same(models.load("credit", FDSKL).shard, shard_of(16))


def test_a_version_is_begun_again_when_its_folder_is_deleted(models, monkeypatch):
    models.save("credit", shard_of(8), FDSKL)
    mkdir, deleted = store.Path.mkdir, []

    def overtaken(path, *arguments, **options):
        if path.name.startswith(".new-") and not deleted:
            deleted.append(models.delete("credit"))
        mkdir(path, *arguments, **options)

    monkeypatch.setattr(store.Path, "mkdir", overtaken)
    assert models.save("credit", shard_of(16), FDSKL).version == 1
    assert deleted == [[1]]


def test_another_version_of_a_number_is_not_the_one_that_was_there(models):
    first = models.save("credit", shard_of(8), FDSKL)
    assert models.holds(first)
    assert models.holds(models.load("credit", FDSKL).manifest)
    models.delete("credit")
    assert not models.holds(first)
    second = models.save("credit", shard_of(16), FDSKL)
    assert second.version == first.version
    assert not models.holds(first)


def test_a_damaged_version_hides_no_other(models, tmp_path):
    models.save("credit", shard_of(8), FDSKL)
    models.save("fraud", shard_of(8), FDSKL)
    (tmp_path / "models/credit/1/manifest.json").write_bytes(b"")
    damaged = []
    assert [one.name for one in models.versions(damaged)] == ["fraud"]
    assert len(damaged) == 1
    assert damaged[0].startswith("model 'credit', version 1: manifest.json cannot be read")
    with pytest.raises(InputError, match=re.escape(damaged[0])):
        models.versions()
    assert models.delete("credit") == [1]
    assert [one.name for one in models.versions()] == ["fraud"]


def test_a_version_that_is_deleted_while_all_are_listed_is_not_damaged(models, monkeypatch):
    models.save("credit", shard_of(8), FDSKL)
    show = ModelStore.show

    def overtaken(self, name, version=None):
        self.delete(name)
        return show(self, name, version)

    monkeypatch.setattr(ModelStore, "show", overtaken)
    assert models.versions() == []


def test_everything_is_the_owners_only_and_nothing_is_pickled(models, tmp_path):
    models.save("credit", shard_of(), FDSKL, preparation=PREPARATION)
    paths = [tmp_path / "models", *(tmp_path / "models").rglob("*")]
    assert len(paths) == 7
    for path in paths:
        assert path.stat().st_mode & 0o077 == 0, path
        if path.is_file():
            assert b"pickle" not in path.read_bytes()
    assert {p.suffix for p in paths if p.is_file()} == {".json", ".npz"}


def test_a_folder_that_others_can_read_is_refused(tmp_path):
    (tmp_path / "open").mkdir(mode=0o755)
    with pytest.raises(InputError, match="chmod 700"):
        ModelStore(tmp_path / "open")


@pytest.mark.parametrize("title", [store.SHARD, store.ARRAYS, store.PREPARATION])
def test_a_changed_file_is_not_used(models, tmp_path, title):
    models.save("credit", shard_of(), FDSKL, preparation=PREPARATION)
    path = tmp_path / "models/credit/1" / title
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(raw)
    for look in (lambda: models.load("credit", FDSKL), lambda: models.check("credit")):
        with pytest.raises(InputError, match=f"{title} is not what was stored"):
            look()
    path.unlink()
    with pytest.raises(InputError, match=f"{title} cannot be read: No such file"):
        models.load("credit", FDSKL)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda m: m["files"].update({"../x": "0"}), "no part of a model: '../x'"),
        (lambda m: m["files"].pop("arrays.npz"), "lacks shard.json or arrays.npz"),
        (lambda m: m.update(strange=1), "manifest.json cannot be read"),
        (lambda m: m.update(format=2), "has format 2, this release reads formats up to 1"),
        (lambda m: m.update(kind="AdmmShard"), "must be a Shard, got a AdmmShard"),
    ],
)
def test_a_changed_manifest_is_not_used(models, tmp_path, change, said):
    models.save("credit", shard_of(), FDSKL)
    path = tmp_path / "models/credit/1/manifest.json"
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    with pytest.raises(InputError, match=re.escape(said)):
        models.load("credit", FDSKL)


def test_a_shard_of_another_algorithm(models):
    models.save("credit", shard_of(), FDSKL)
    with pytest.raises(InputError, match="version 1 must be a AdmmShard, got a Shard"):
        models.load("credit", ADMM)


def test_a_shard_that_this_library_cannot_read(models, monkeypatch):
    @dataclass(frozen=True)
    class Shard:  # of another library, under the name of ours
        party: str
        columns: tuple[str, ...]
        word: str

    class Other(Fdskl):
        shard_type = Shard

        def to_store(self, shard):
            return shard

        def known_answers(self, shard, rows):
            return rows

    manifest = models.save("odd", Shard("bank", ("x",), "x"), Other())
    assert models.load("odd", Other()).shard == Shard("bank", ("x",), "x")
    with pytest.raises(InputError, match="is not a Shard of this library"):
        models.load("odd", FDSKL)
    assert manifest.kind == "Shard"
    with pytest.raises(NotImplementedError, match="object in a shard"):
        models.save("odd", Shard("bank", ("x",), object()), Other())


def test_known_answers_notice_another_library(models, monkeypatch):
    """The same file, but directions are drawn in another way."""
    models.save("credit", shard_of(), FDSKL)
    original = algorithm.draw_directions

    def drawn_otherwise(shard, label_party):
        found = original(shard, label_party)
        return replace(found, directions=found.directions[:, ::-1])

    monkeypatch.setattr(algorithm, "draw_directions", drawn_otherwise)
    with pytest.raises(InputError, match=r"known answers are other ones .* vertikal 0\.1\.0"):
        models.load("credit", FDSKL)
    monkeypatch.setattr(FDSKL, "known_answers", lambda shard, rows: np.zeros((1, 1)), raising=False)
    with pytest.raises(InputError, match="off by inf"):
        models.load("credit", FDSKL)


@pytest.mark.parametrize("name", ["", "../x", ".hidden", "a/b", "x" * 65, "a b"])
def test_names_that_are_no_names(models, name):
    with pytest.raises(InputError, match="name of a model must be 1 to 64 letters"):
        models.save(name, shard_of(), FDSKL)


class Full(io.BufferedWriter):
    """A file on a disk without room."""

    def __init__(self, number, mode):
        super().__init__(io.FileIO(number, mode))

    def write(self, content):
        raise OSError(28, "No space left on device")


@pytest.mark.parametrize("step", ["open", "write", "fsync", "rename"])
def test_a_failure_at_any_step_leaves_what_was_there(models, tmp_path, monkeypatch, step):
    models.save("credit", shard_of(8), FDSKL)

    place, name = {"write": (os, "fdopen"), "rename": (Path, "rename")}.get(step, (os, step))
    original, failed = getattr(place, name), []

    def fail_once(*arguments, **options):
        if not failed:
            failed.append(step)
            if step == "write":
                return Full(*arguments)
            raise OSError(28, "No space left on device")
        return original(*arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(place, name, fail_once)
        with pytest.raises(DiskFull):
            models.save("credit", shard_of(16), FDSKL)
    assert [one.version for one in models.versions()] == [1]
    same(models.load("credit", FDSKL).shard, shard_of(8))
    assert {path.name for path in (tmp_path / "models/credit").iterdir()} == {"1"}
    assert models.save("credit", shard_of(16), FDSKL).version == 2


def test_two_writers_take_two_numbers(models, monkeypatch):
    """Another one is quicker just when a version is to get its number."""
    models.save("credit", shard_of(8), FDSKL)
    rename, others = Path.rename, []

    def overtaken(path, target):
        if not others:
            others.append(target)
            assert models.save("credit", shard_of(16), FDSKL).version == 2
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", overtaken)
    assert models.save("credit", shard_of(24), FDSKL).version == 3
    for version, width in ((1, 8), (2, 16), (3, 24)):
        same(models.load("credit", FDSKL, version).shard, shard_of(width))


WRITER = """
import sys
from pathlib import Path
from tests.node.shards import shard_of
from vertikal.algorithms.kernel_machine.algorithm import FDSKL
from vertikal.node.models.store import ModelStore
models = ModelStore(Path(sys.argv[1]))
models.save("credit", shard_of(512), FDSKL)
print("ready", flush=True)
while True:
    models.save("credit", shard_of(512), FDSKL)
"""


@pytest.mark.slow
def test_a_writer_that_is_killed_leaves_whole_versions(tmp_path):
    """kill -9 at moments of no choosing: every version that is there loads."""
    folder = tmp_path / "models"
    for pause in (0.02, 0.11):
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(folder)], stdout=subprocess.PIPE, cwd=os.getcwd()
        )
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        time.sleep(pause)
        os.kill(process.pid, signal.SIGKILL)
        process.wait(200)
        process.stdout.close()
    models = ModelStore(folder)
    versions = [one.version for one in models.versions()]
    assert len(versions) >= 2
    assert versions == list(range(1, len(versions) + 1))
    for version in versions:
        same(models.load("credit", FDSKL, version).shard, shard_of(512))
    assert models.save("credit", shard_of(512), FDSKL).version == len(versions) + 1


def test_what_a_crash_left_is_swept_away_later(models, tmp_path):
    models.save("credit", shard_of(8), FDSKL)
    left = tmp_path / "models/credit/.new-0123"
    left.mkdir()
    (left / "shard.json").touch()
    models.save("credit", shard_of(8), FDSKL)
    assert left.exists()  # somebody may be writing it
    os.utime(left, times=(time.time() - 2 * 3600,) * 2)
    models.save("credit", shard_of(8), FDSKL)
    assert not left.exists()
    assert [one.version for one in models.versions()] == [1, 2, 3]
