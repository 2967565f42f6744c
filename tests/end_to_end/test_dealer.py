"""A dealer without data as a real process: it prepares, joins, listens for the others, is done."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner

from tests.end_to_end.test_mpi import MPIEXEC, mpiexec
from tests.end_to_end.test_processes import end_all, said
from tests.ports import free_port
from vertikal.algorithms.kernel_machine.algorithm import FDSKL
from vertikal.cli import main
from vertikal.node.config.federation_file import entry_of
from vertikal.node.runs.workplaces import models_in
from vertikal.secure.keys.identity import Identity
from vertikal.solvers.sealed_steps import COEFFICIENT_BITS

NAMES = ("notary", "bank", "shop")
COMMAND = (sys.executable, "-m", "vertikal")
JOB = """
secret_seed = 1
timeout = 60
[settings]
n_components = 32
bandwidth = 2.0
loss = "square"
alpha = 0.01
max_iter = 20
disclosure = { name = "sealed", dealer = "notary" }
[parties.notary]
rows = 150
[parties.bank]
table = "bank.csv"
label = "y"
[parties.shop]
table = "shop.csv"
"""


@pytest.fixture
def folder(tmp_path):
    """Tables of two parties, identities of three, and a federation in which the dealer listens."""
    X = np.random.default_rng(0).normal(size=(150, 4))
    y = (X[:, 0] * X[:, 2] > 0).astype(int)
    for name, block, titles in (
        ("bank", np.column_stack((X[:, :2], y)), "u,v,y"),
        ("shop", X[:, 2:], "u,v"),
    ):
        np.savetxt(tmp_path / f"{name}.csv", block, "%.17g", ",", header=titles, comments="")
    entries = []
    for name in NAMES:
        identity = Identity.create(name)
        identity.save(tmp_path / f"{name}.key", tmp_path / f"{name}.crt")
        listens = f"127.0.0.1:{free_port()}" if name == "notary" else None
        entries.append(entry_of(identity, listens))
    (tmp_path / "federation.toml").write_text("\n".join(entries))
    (tmp_path / "job.toml").write_text(JOB)
    return tmp_path


def arguments(folder, name):
    return [
        *(str(folder / "job.toml"), name),
        *("--federation", str(folder / "federation.toml")),
        *("--key", str(folder / f"{name}.key"), "--certificate", str(folder / f"{name}.crt")),
    ]


def start(*command):
    return subprocess.Popen(
        [*COMMAND, *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def command(*words):
    """A command that ends by itself, in this process."""
    return CliRunner().invoke(main, words)


def stored(folder, name):
    return models_in(folder, name).load("job", FDSKL).shard


def coefficients(folder):
    bank, shop = (stored(folder, name) for name in ("bank", "shop"))
    return (bank.coefficient_share + shop.coefficient_share).view(np.int64) * 2.0**-COEFFICIENT_BITS


@pytest.mark.slow
def test_a_prepared_dealer_that_is_also_the_relay(folder):
    stock = folder / "correlation"
    done = command("dealer", "prepare", str(folder / "job.toml"), "--out", str(stock))
    assert done.exit_code == 0, done.stderr
    assert "correlation  correlation (" in done.stdout
    join = ("dealer", "join", *arguments(folder, "notary"), "--correlation", str(stock))
    out = folder / "out"
    children = {
        "notary": start(*join),
        "bank": start("run-party", *arguments(folder, "bank"), "--out", str(out)),
        "shop": start("run-party", *arguments(folder, "shop"), "--out", str(out)),
    }
    try:
        for name, child in children.items():
            code, errors = said(child, 200.0)
            assert code == 0, f"{name}: {errors}"
    finally:
        end_all(children)
    assert not stock.exists()
    again = command(*join)
    assert again.exit_code == 1
    assert "'correlation' cannot be taken" in again.stderr
    assert "each is used once" in again.stderr
    local = folder / "local"
    done = command("run", str(folder / "job.toml"), "--mesh", "local", "--out", str(local))
    assert done.exit_code == 0, done.stderr
    expected = coefficients(local)
    np.testing.assert_allclose(
        coefficients(out), expected, rtol=0, atol=0.01 * np.abs(expected).max()
    )


@pytest.mark.slow
@pytest.mark.skipif(not MPIEXEC.exists(), reason="no mpiexec next to this Python")
def test_ranks_of_mpi_with_a_dealer_without_data(folder):
    out = folder / "ranks"
    done = mpiexec(
        3, "-m", "vertikal", "run", str(folder / "job.toml"), "--mesh", "mpi", "--out", str(out)
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert np.abs(coefficients(out)).max() > 0.01
    assert stored(out, "notary").coefficient_share is None
