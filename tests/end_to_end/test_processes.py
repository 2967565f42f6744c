"""Parties as real processes on loopback, killed, frozen, late and doubled."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from tests.conformance.meshes import without_mpi
from tests.conformance.proxy import Proxy
from tests.conformance.ranks import AS_ROOT
from tests.ports import free_port
from vertikal.algorithms.kernel_machine.algorithm import FDSKL
from vertikal.node.config.federation_file import entry_of
from vertikal.node.runs.workplaces import models_in
from vertikal.secure.keys.identity import Identity

NAMES = ("bank", "shop", "clinic")
COMMAND = (sys.executable, "-m", "vertikal")
JOB = """
secret_seed = 1
timeout = {timeout}
[settings]
n_components = {directions}
scale = "standard"
{more}
[parties.bank]
table = "bank.csv"
label = "y"
[parties.shop]
table = "shop.csv"
[parties.clinic]
table = "clinic.csv"
"""
LONG = 'solver = { name = "dsg", n_steps = 100000000, step_size = 0.01 }\n'
"""Work without end, for parties that are to be disturbed."""


@pytest.fixture
def folder(tmp_path):
    """Tables, identities and a federation file of three parties."""
    draw = np.random.default_rng(0)
    X = draw.normal(size=(300, 9))
    y = (X[:, 0] * X[:, 4] + X[:, 8] > 0).astype(int)
    for i, name in enumerate(NAMES):
        block, titles = X[:, 3 * i : 3 * i + 3], "u,v,w"
        if name == "bank":
            block, titles = np.column_stack((block, y)), "u,v,w,y"
        np.savetxt(tmp_path / f"{name}.csv", block, "%.17g", ",", header=titles, comments="")
    entries = []
    for name in NAMES:
        identity = Identity.create(name)
        identity.save(tmp_path / f"{name}.key", tmp_path / f"{name}.crt")
        listens = f"127.0.0.1:{free_port()}" if name == "bank" else None
        entries.append(entry_of(identity, listens))
    (tmp_path / "federation.toml").write_text("\n".join(entries))
    write_job(tmp_path)
    return tmp_path


def write_job(folder, timeout=60, directions=64, more=""):
    text = JOB.format(timeout=timeout, directions=directions, more=more)
    (folder / "job.toml").write_text(text)


def start_party(folder, name, out="out", federation="federation.toml"):
    return subprocess.Popen(
        [
            *(*COMMAND, "run-party", str(folder / "job.toml"), name),
            *("--federation", str(folder / federation)),
            *("--key", str(folder / f"{name}.key"), "--certificate", str(folder / f"{name}.crt")),
            *("--out", str(folder / out)),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for(child, pattern, seconds=100.0):
    """Read a party's reports until one matches."""
    until = time.monotonic() + seconds
    for line in child.stdout:
        if re.search(pattern, line):
            return line
        assert time.monotonic() < until, f"no {pattern} within {seconds} s"
    pytest.fail(f"ended without {pattern}: {child.stderr.read()}")


def end_all(children):
    for child in children.values():
        if child.poll() is None:
            child.kill()
        child.communicate()


def said(child, seconds=100.0):
    """Return what a party printed last, and its exit code; its input stays open till then."""
    timer = threading.Timer(seconds, child.kill)
    timer.start()
    child.stdout.read()
    errors = child.stderr.read()
    child.wait()
    timer.cancel()
    return child.returncode, errors.strip()


def shards(folder, out):
    """The digest of each party's shard, bit for bit what was trained."""
    return {name: models_in(folder / out, name).check("job").digest for name in NAMES}


def run_all(folder, mesh):
    """All parties by `vertikal run`; what lies in the folder that is named like the mesh."""
    done = subprocess.run(
        [*COMMAND, "run", str(folder / "job.toml"), "--mesh", mesh, "--out", str(folder / mesh)],
        env={**os.environ, **AS_ROOT},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return shards(folder, mesh)


@without_mpi
@pytest.mark.parametrize("masking", ["pads", pytest.param("trees", marks=pytest.mark.slow)])
def test_the_same_shards_on_every_mesh_bit_for_bit(folder, masking):
    text = (folder / "job.toml").read_text()
    for name in NAMES:
        text = text.replace(f'"{name}.csv"', f'"{name}.csv"\ntest = "{name}.csv"')
    (folder / "job.toml").write_text(f'masking = "{masking}"\n' + text)
    found = {mesh: run_all(folder, mesh) for mesh in ("local", "network", "mpi")}
    assert found["local"] == found["network"] == found["mpi"]
    predicted = {mesh: (folder / mesh / "predictions.csv").read_bytes() for mesh in found}
    assert predicted["local"] == predicted["network"] == predicted["mpi"]
    values = np.loadtxt(
        folder / "network" / "predictions.csv", delimiter=",", skiprows=1, usecols=0
    )
    y = np.loadtxt(folder / "bank.csv", delimiter=",", skiprows=1)[:, -1]
    assert np.mean((values > 0) == y) > 0.9


@pytest.mark.slow
def test_parties_by_hand_each_with_its_own_key_one_of_them_locked(folder):
    """`vertikal run --as` at each party; the bank's key is kept under a passphrase."""
    secret = "correct horse battery"
    bank = Identity.load(folder / "bank.key", folder / "bank.crt")
    bank.save(folder / "bank.key", folder / "bank.crt", secret.encode())
    run_all(folder, "local")

    def start(name, **environment):
        return subprocess.Popen(
            [
                *(*COMMAND, "run", str(folder / "job.toml"), "--as", name),
                *("--federation", str(folder / "federation.toml"), "--out", str(folder / "out")),
                *("--key", str(folder / f"{name}.key")),
                *("--certificate", str(folder / f"{name}.crt")),
            ],
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    children = {"locked": start("bank")}
    try:
        code, errors = said(children["locked"])
        assert code == 1
        assert "kept under a passphrase; give it in VERTIKAL_PASSPHRASE" in errors
        children |= {name: start(name) for name in NAMES[1:]}
        children["bank"] = start("bank", VERTIKAL_PASSPHRASE=secret)
        for name in NAMES:
            code, errors = said(children[name])
            assert code == 0, f"{name}: {errors}"
    finally:
        end_all(children)
    assert shards(folder, "out") == shards(folder, "local")


@pytest.mark.slow
def test_a_party_that_starts_last_and_one_that_was_frozen_change_nothing(folder):
    run_all(folder, "local")
    children = {"shop": start_party(folder, "shop"), "clinic": start_party(folder, "clinic")}
    try:
        time.sleep(1.5)
        children["shop"].send_signal(signal.SIGSTOP)
        children["bank"] = start_party(folder, "bank")
        time.sleep(2.0)
        children["shop"].send_signal(signal.SIGCONT)
        for name in NAMES:
            code, errors = said(children[name])
            assert code == 0, f"{name}: {errors}"
    finally:
        end_all(children)
    assert shards(folder, "out") == shards(folder, "local")
    assert models_in(folder / "out", "bank").load("job", FDSKL).shard.coefficients.shape == (64, 1)
    assert models_in(folder / "out", "shop").load("job", FDSKL).shard.coefficients is None


def test_a_killed_party_is_named_by_all_others_within_the_deadline(folder):
    write_job(folder, timeout=10, more=LONG + "cache_size = 1000\n")
    children = {name: start_party(folder, name) for name in NAMES}
    try:
        wait_for(children["bank"], '"stage":"solve"', 100.0)
        children["shop"].send_signal(signal.SIGKILL)
        for name in ("bank", "clinic"):
            code, errors = said(children[name], 90.0)
            assert code == 1
            assert "shop" in errors
            assert len(errors.splitlines()) == 1
    finally:
        end_all(children)
    assert not (folder / "out").exists()


@pytest.mark.slow
def test_a_second_process_of_one_party_is_refused_and_the_first_goes_on(folder):
    write_job(folder, timeout=30, more=LONG + "cache_size = 1000\n")
    children = {name: start_party(folder, name) for name in NAMES}
    try:
        wait_for(children["bank"], '"stage":"solve"')
        children["again"] = start_party(folder, "shop")
        code, errors = said(children["again"])
        assert code == 1
        assert "two processes claim the name 'shop'" in errors
        wait_for(children["bank"], '"stage":"solve"')
        assert all(children[name].poll() is None for name in NAMES)
    finally:
        end_all(children)


@pytest.mark.slow
def test_a_link_cut_in_the_middle_of_a_chunk_changes_nothing(folder):
    write_job(folder, directions=4000, more='solver = { name = "dsg", n_steps = 3 }\n')
    local = run_all(folder, "local")
    text = (folder / "federation.toml").read_text()
    port = re.search(r'listens = "127\.0\.0\.1:(\d+)"', text)[1]
    proxy = Proxy(int(port))
    (folder / "detour.toml").write_text(text.replace(f":{port}", f":{proxy.port}"))
    # The phases of shop are one message of 1.2 MB, so this is in the middle of its first chunk.
    proxy.cut_after = 600_000
    children = {}
    try:
        for name in NAMES:
            detour = "detour.toml" if name == "shop" else "federation.toml"
            children[name] = start_party(folder, name, federation=detour)
        for name in NAMES:
            assert said(children[name], 100.0) == (0, "")
        assert proxy.cuts == 1
        assert proxy.passed > 600_000 + 1_200_000
    finally:
        end_all(children)
        proxy.close()
    assert shards(folder, "out") == local


@pytest.mark.slow
def test_a_party_frozen_beyond_the_deadline_is_named_as_silent(folder):
    write_job(folder, timeout=16, more=LONG + "cache_size = 1000\n")
    children = {name: start_party(folder, name) for name in NAMES}
    try:
        wait_for(children["bank"], '"stage":"solve"')
        children["shop"].send_signal(signal.SIGSTOP)
        for name in ("bank", "clinic"):
            code, errors = said(children[name], 90.0)
            assert code == 1
            assert "shop is connected but silent for" in errors
        children["shop"].send_signal(signal.SIGCONT)
        code, errors = said(children["shop"], 90.0)
        assert code == 1
        assert re.search("bank|clinic", errors)
    finally:
        children["shop"].send_signal(signal.SIGCONT)
        end_all(children)
    assert not (folder / "out").exists()


def relist(folder, name, identity, file="federation.toml"):
    """Make ``identity`` the one of ``name``: its files, and its entry in this federation file."""
    identity.save(folder / f"{name}.key", folder / f"{name}.crt")
    text = (folder / "federation.toml").read_text()
    entries = [f"[[party]]{entry}" for entry in text.split("[[party]]")[1:]]
    place = next(i for i, entry in enumerate(entries) if f'name = "{name}"' in entry)
    entries[place] = entry_of(identity)
    (folder / file).write_text("\n".join(entries))


@pytest.mark.slow
def test_an_expired_certificate_stops_every_party_before_anything_is_sent(folder):
    old = Identity.create("shop", days=1, now=datetime.now(UTC) - timedelta(days=3))
    relist(folder, "shop", old)
    children = {name: start_party(folder, name) for name in NAMES}
    try:
        for name in NAMES:
            code, errors = said(children[name], 90.0)
            assert code == 1
            assert re.fullmatch(r"error: certificate of 'shop' expired on .*keygen shop.*", errors)
    finally:
        end_all(children)
    assert not (folder / "out").exists()


@pytest.mark.slow
def test_names_that_are_not_ones_own_are_refused(folder):
    """A name that the file does not list, another party's name, and another party's certificate."""
    Identity.create("zoe").save(folder / "zoe.key", folder / "zoe.crt")
    bank = start_party(folder, "bank")
    children = {"bank": bank, "zoe": start_party(folder, "zoe")}
    (folder / "clinic.key").rename(folder / "kept.key")
    (folder / "shop.key").rename(folder / "clinic.key")
    children["clinic"] = start_party(folder, "clinic")
    script = (
        "import sys; from pathlib import Path; from vertikal.mesh.network import NetworkMesh; "
        "from vertikal.node.config.federation_file import FederationFile; "
        "from vertikal.secure.keys.identity import Identity; folder = Path(sys.argv[1]); "
        "file = FederationFile.load(folder / 'federation.toml'); "
        "mine = Identity.load(folder / 'kept.key', folder / 'clinic.crt'); "
        "NetworkMesh('shop', file.addresses(), file.credentials(mine), job='j', version='1')"
        ".connect(60)"
    )
    children["posing"] = subprocess.Popen(
        [sys.executable, "-c", script, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        for name, words in (
            ("zoe", r"error: 'zoe' is not in the federation file; listed are \('bank', .*\)"),
            (
                "clinic",
                r"error: key file 'clinic\.key' is not the key of the certificate of 'clin.*",
            ),
            (
                "posing",
                r"(?s).*CertificateMismatch: shop: bank refused this party: 'clinic' showed "
                "its certificate under the name 'shop'.*",
            ),
        ):
            code, errors = said(children[name], 90.0)
            assert code == 1
            assert re.fullmatch(words, errors)
        assert bank.poll() is None
    finally:
        end_all(children)
    assert not (folder / "out").exists()


@pytest.mark.slow
def test_an_unknown_certificate_is_refused_and_the_others_say_who_is_missing(folder):
    write_job(folder, timeout=20)
    relist(folder, "shop", Identity.create("shop"), "other.toml")
    children = {name: start_party(folder, name) for name in ("bank", "clinic")}
    children["shop"] = start_party(folder, "shop", federation="other.toml")
    try:
        code, errors = said(children["shop"], 90.0)
        assert code == 1
        assert re.fullmatch(
            r"error: shop: bank at .* hangs up on the certificate of 'shop'.*", errors
        )
        for name in ("bank", "clinic"):
            code, errors = said(children[name], 90.0)
            assert code == 1
            assert "shop has not connected" in errors
    finally:
        end_all(children)
    assert not (folder / "out").exists()


# A job in the background of a shell, as a test may be, starts with the user's stop switched off.
STOPPABLE = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "from vertikal.__main__ import run; run()"
)


def test_control_c_ends_every_process(folder):
    write_job(folder, more=LONG)
    parent = subprocess.Popen(
        [sys.executable, "-c", STOPPABLE, "run", str(folder / "job.toml")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        until = time.monotonic() + 100.0
        while len(found := parties_of(parent.pid)) < 3:
            assert time.monotonic() < until
            time.sleep(0.2)
        time.sleep(2.0)
        parent.send_signal(signal.SIGINT)
        _, errors = parent.communicate(timeout=100.0)
        assert parent.returncode == 130
        assert "Traceback" not in errors
        assert [pid for pid in found if alive(pid)] == []
    finally:
        parent.kill()
        parent.communicate()


def parties_of(parent):
    listed = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(parent)], capture_output=True, text=True, check=False
    )
    return [int(pid) for pid in listed.stdout.split()]


def alive(pid):
    done = subprocess.run(
        ["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return bool(done.stdout.strip()) and not done.stdout.startswith("Z")
