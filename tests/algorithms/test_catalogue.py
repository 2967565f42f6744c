"""The table of algorithms: what is loaded when, and all that adding one takes."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner

from tests.algorithms.toy import TOY
from tests.node.services import trio
from tests.organisations import lay_out
from vertikal.algorithms.algorithm import LEVELS, Algorithm
from vertikal.algorithms.catalogue import ALGORITHMS, algorithm_named
from vertikal.cli import main
from vertikal.errors import InputError
from vertikal.node import service
from vertikal.node.approval.policy import objections
from vertikal.node.approval.proposals import Proposal
from vertikal.node.config.job_file import Job
from vertikal.node.config.party_file import PartyFile
from vertikal.records import convert

JOB = """
algorithm = "toy"
[settings]
shrinkage = 0.5
[parties.lender]
table = "{lender}"
label = "default"
{tests[0]}
[parties.bank]
table = "{bank}"
{tests[1]}
"""


@pytest.fixture
def toy(monkeypatch):
    """One line in the table."""
    monkeypatch.setitem(ALGORITHMS, "toy", "tests.algorithms.toy:TOY")


@pytest.mark.parametrize("name", ALGORITHMS)
def test_the_table_leads_to_algorithms_under_their_own_names(name):
    algorithm = algorithm_named(name)
    assert isinstance(algorithm, Algorithm)
    assert algorithm.name == name


def test_an_algorithm_that_there_is_not():
    with pytest.raises(
        InputError,
        match=r"^algorithm must be one of \['admm', .*'fdskl', 'gram', 'kernel'\], got 'toy'",
    ):
        algorithm_named("toy")


def test_a_service_and_the_table_start_without_the_algorithms():
    text = (
        "import sys, vertikal.node.service\n"
        "from vertikal.algorithms.catalogue import algorithm_named\n"
        "early = [n for n in sys.modules if n.startswith('vertikal.algorithms.')]\n"
        "assert set(early) <= {'vertikal.algorithms.' + n for n in ('algorithm', 'catalogue')}\n"
        "assert 'numba' not in sys.modules and 'scipy' not in sys.modules\n"
        "algorithm_named('admm')\n"
        "assert 'vertikal.algorithms.admm.algorithm' in sys.modules\n"
        "assert 'vertikal.algorithms.kernel_machine.algorithm' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_an_algorithm_without_a_dealer_prepares_nothing():
    settings = TOY.read_settings({}, ("a", "b"), ("a",))
    assert TOY.dealer(settings) is None
    assert not TOY.can_spare_label_parties(settings)
    with pytest.raises(InputError, match="algorithm must be one with a dealer, got 'toy'"):
        TOY.prepared_roles(settings)
    with pytest.raises(InputError, match="algorithm must be one with a dealer, got 'toy'"):
        TOY.prepare(None, settings, 10)


def test_a_new_algorithm_trains_and_predicts_from_files(toy, tmp_path):
    draw = np.random.default_rng(0)
    X = draw.normal(size=(40, 3))
    y = np.where(X[:, 0] + X[:, 2] > 0, 1.0, -1.0)
    for name, columns, titles in (
        ("lender", np.column_stack((X[:, 0], y)), "a,default"),
        ("bank", X[:, 1:], "b,c"),
    ):
        path = tmp_path / f"{name}.csv"
        np.savetxt(path, columns, "%.17g", ",", header=titles, comments="")
    tests = ('test = "lender.csv"', 'test = "bank.csv"')
    (tmp_path / "job.toml").write_text(
        JOB.format(lender="lender.csv", bank="bank.csv", tests=tests)
    )
    done = CliRunner().invoke(
        main,
        ["run", str(tmp_path / "job.toml"), "--mesh", "local", "--out", str(tmp_path / "out")],
    )
    assert done.exit_code == 0, done.output
    found = np.loadtxt(tmp_path / "out" / "predictions.csv", delimiter=",", skiprows=1, usecols=0)
    np.testing.assert_allclose(found, X @ (0.5 * X.T @ y / 40), atol=1e-4)


def test_a_new_algorithm_is_described_bounded_stored_and_predicts_between_services(
    toy, tmp_path, monkeypatch
):
    monkeypatch.setattr(service, "BEAT", 0.2)
    lay_out(tmp_path, rows=60)
    job = tmp_path / "lender" / "credit.toml"
    job.write_text(JOB.format(lender="people", bank="people", tests=("", "")))
    with trio(tmp_path) as world:
        digest = world.submit().digest
        job = world.record("bank", digest).id
        shown = world["bank"].answer({"command": "show", "job": job})["text"]
        assert "correlations with the labels, with lender, bank" in shown
        assert "the labels: everybody learns all labels" in shown
        assert "each prediction: the leader gets a toy prediction of each row" in shown
        world.approve(digest, "bank")
        for name in ("lender", "bank"):
            world.wait(name, digest, lambda record: record.done, "done")
            shard = world.models(name).load("credit", TOY).shard
            assert shard.coefficients.any()
            assert (shard.settings.shrinkage, shard.seconds) == (0.5, 0.0)
        scores = world["lender"].predict("credit", ("1000", "1001"), None, None)
        assert [one["status"] for one in scores] == ["ok", "ok"]
        assert all(one["value"] and "probability" not in one for one in scores)


def test_policies_bound_a_new_algorithm(toy):
    parties = {"lender": {"table": "t", "label": "y"}, "bank": {"table": "t"}}
    job = convert({"algorithm": "toy", "parties": parties}, Job)
    job.check()
    proposal = Proposal("m", job, "lender", 0.0, "v", 1000, "n")
    files = dict.fromkeys(("key", "certificate", "federation", "store"), "x")
    offer = {"source": "a.csv", "id": "customer", "features": ["balance"]}

    def bank(**policy):
        content = {"name": "bank", "tables": {"t": offer}, "policy": policy}
        return convert({**files, **content}, PartyFile)

    willing = {"who": ["lender"], "experiments": True}
    assert objections(bank(**willing), proposal) == []
    for unwilling, words in (
        ({"experiments": False}, "toys are for experiments only"),
        ({"algorithms": ["fdskl"]}, "algorithm 'toy' is not allowed"),
        (
            {"disclosures": ["sealed"]},
            f"disclosure 'values' ({LEVELS['values']}) is not allowed, only 'sealed'",
        ),
    ):
        found = objections(bank(**{**willing, **unwilling}), proposal)
        assert found == [f"policy of bank: {words}"]
