"""Parties as real processes on loopback, killed, frozen, late and doubled."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from tests.conformance.networks import free_port
from vertikal.node.federation import entry_of
from vertikal.node.shard_file import read_shard
from vertikal.secure.identity import Identity

NAMES = ("bank", "shop", "clinic")
COMMAND = (sys.executable, "-m", "vertikal")
JOB = """
secret_seed = 1
timeout = {timeout}
[settings]
n_directions = {directions}
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
LONG = 'solver = "dsg"\nsteps = 100000000\nstep_size = 0.01\n'
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


def start_party(folder, name, out="out"):
    return subprocess.Popen(
        [
            *(*COMMAND, "run-party", str(folder / "job.toml"), name),
            *("--federation", str(folder / "federation.toml")),
            *("--key", str(folder / f"{name}.key"), "--certificate", str(folder / f"{name}.crt")),
            *("--out", str(folder / out)),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for(child, pattern, seconds=40.0):
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


def said(child, seconds=40.0):
    """What a party printed last, and its exit code; its standard input stays open till then."""
    timer = threading.Timer(seconds, child.kill)
    timer.start()
    child.stdout.read()
    errors = child.stderr.read()
    child.wait()
    timer.cancel()
    return child.returncode, errors.strip()


def shards(folder, out):
    return {name: (folder / out / f"{name}.shard").read_bytes() for name in NAMES}


def run_local(folder, out):
    done = subprocess.run(
        [*COMMAND, "run", str(folder / "job.toml"), "--mesh", "local", "--out", str(folder / out)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_a_party_that_starts_last_and_one_that_was_frozen_change_nothing(folder):
    run_local(folder, "local")
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
    assert read_shard(folder / "out" / "bank.shard").coefficients.shape == (64, 1)
    assert read_shard(folder / "out" / "shop.shard").coefficients is None


def test_a_killed_party_is_named_by_all_others_within_the_deadline(folder):
    write_job(folder, timeout=6, more=LONG + "memory = 1000\n")
    children = {name: start_party(folder, name) for name in NAMES}
    try:
        wait_for(children["bank"], '"stage":"solve"')
        children["shop"].send_signal(signal.SIGKILL)
        began = time.monotonic()
        for name in ("bank", "clinic"):
            code, errors = said(children[name])
            assert code == 1
            assert "shop" in errors
            assert len(errors.splitlines()) == 1
        assert time.monotonic() - began < 25.0
    finally:
        end_all(children)
    assert not (folder / "out").exists()


@pytest.mark.slow
def test_a_second_process_of_one_party_is_refused_and_the_first_goes_on(folder):
    write_job(folder, timeout=30, more=LONG + "memory = 1000\n")
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


def test_control_c_ends_every_process(folder):
    write_job(folder, more=LONG)
    parent = subprocess.Popen(
        [*COMMAND, "run", str(folder / "job.toml")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        until = time.monotonic() + 40.0
        while len(found := parties_of(parent.pid)) < 3:
            assert time.monotonic() < until
            time.sleep(0.2)
        time.sleep(2.0)
        parent.send_signal(signal.SIGINT)
        parent.communicate(timeout=30.0)
        assert parent.returncode == 130
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
