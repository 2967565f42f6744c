"""Every algorithm and every level of disclosure, from ids to predictions through services."""

from __future__ import annotations

import json
import urllib.request

import numpy as np
import pytest
from click.testing import CliRunner

from tests.node.services import trio
from tests.organisations import NAMES, RULE, lay_out, write_job
from vertikal.algorithms.alignment.alignment import DISCLOSURES as ALIGNMENT
from vertikal.algorithms.catalogue import algorithm_named
from vertikal.algorithms.kernel_machine.stochastic.validation_curve import auc
from vertikal.cli import main
from vertikal.node import service
from vertikal.node.predictions import session_pool
from vertikal.node.runs import party_run
from vertikal.node.runs.workplaces import models_in
from vertikal.node.storage.audit_log import read

ROWS = 150
IDS = tuple(str(number) for number in range(1000, 1000 + ROWS))
HTTP = '\n[http]\nlisten = "127.0.0.1:0"\ntoken_file = "token"\n'

AVFKAM = 'algorithm = "avfkam"'
KERNEL = 'algorithm = "kernel"'
TWO = 'label = "default"'
STEPS = "batch_size = 32, block_size = 8, n_steps = 60"
DSG = f'disclosure = "open"\nsolver = {{ name = "dsg", {STEPS} }}'
SEALED = 'loss = "{}"\nbandwidth = "mean"\nmax_iter = 60\nalpha = 0.01\n'

PRECISE = (
    'disclosure = { name = "values", bits = 64, value_bits = 20, gradient_bits = 20, '
    "prediction_bits = 28 }"
)
JOBS = {
    "fdskl": {"settings": 'disclosure = "open"'},
    "fdskl values": {"settings": PRECISE},
    "fdskl encoded": {"settings": 'disclosure = "open"', "scale": "smooth"},
    "fdskl values encoded": {"settings": PRECISE, "scale": "quantile"},
    "fdskl sealed": {"settings": 'disclosure = "sealed"\n' + SEALED.format("square")},
    "avfkam": {"top": AVFKAM, "settings": 'disclosure = "open"'},
    "avfkam values": {
        "top": AVFKAM,
        "settings": PRECISE,
    },
    "avfkam sealed": {
        "top": AVFKAM,
        "settings": 'disclosure = "sealed"\n' + SEALED.format("square"),
    },
    "avfkam, two label parties": {"top": AVFKAM, "settings": 'disclosure = "open"', "bank": TWO},
    "avfkam in turns": {
        "top": AVFKAM,
        "settings": DSG.replace(STEPS, STEPS + ', schedule = "turns"'),
        "bank": TWO,
    },
    "avfkam async": {
        "top": AVFKAM,
        "settings": DSG.replace(STEPS, STEPS + ', schedule = "async"'),
        "bank": TWO,
    },
    "little memory": {"settings": 'disclosure = "open"\nbandwidth = "mean"\ncache_size = 4000'},
    "kernel": {"top": KERNEL, "settings": 'disclosure = "open"', "scale": None},
    "kernel values": {"top": KERNEL, "settings": PRECISE, "scale": None},
    "kernel, two label parties": {
        "top": KERNEL,
        "settings": 'disclosure = "open"',
        "scale": None,
        "bank": TWO,
    },
    "kernel, as many directions as it takes": {
        "top": KERNEL,
        "settings": 'disclosure = "open"',
        "scale": None,
        "directions": None,
    },
    "admm": {"top": 'algorithm = "admm"', "settings": "max_iter = 60", "directions": None},
    "gram": {"top": 'algorithm = "gram"', "settings": "C = 2.0", "directions": None},
    "gram ridge": {
        "top": 'algorithm = "gram"',
        "settings": 'machine = "ridge"\nkernel = "polynomial"\ndegree = 2\ngamma = 0.3',
        "directions": None,
    },
    "gram komd": {
        "top": 'algorithm = "gram"',
        "settings": 'machine = "komd"',
        "directions": None,
    },
    "gram landmarks": {
        "top": 'algorithm = "gram"',
        "settings": 'machine = "komd"\nlandmarks = 30',
        "directions": None,
    },
    "admm kernel": {
        "top": 'algorithm = "admm"',
        "settings": 'kernel = { name = "gaussian", bandwidth = 2.0, n_components = 64 }\n'
        "max_iter = 60",
        "directions": None,
    },
}
EXACT = {
    "fdskl",
    "fdskl encoded",
    "little memory",
    "avfkam",
    "avfkam, two label parties",
    "avfkam in turns",
    "kernel",
    "kernel, two label parties",
    "kernel, as many directions as it takes",
    "admm",
    "admm kernel",
    "gram",
    "gram ridge",
    "gram komd",
    "gram landmarks",
}
"""Jobs that give the same numbers whenever they run with the same secrets."""
LONG = {
    "fdskl encoded",
    "fdskl values encoded",
    "little memory",
    "avfkam values",
    "avfkam sealed",
    "avfkam, two label parties",
    "avfkam in turns",
    "avfkam async",
    "kernel, two label parties",
    "kernel, as many directions as it takes",
    "admm kernel",
    "gram ridge",
    "gram komd",
    "gram landmarks",
}
PROBABLE = {one for one in JOBS if not one.startswith("gram")} - {"avfkam sealed"}


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    root = tmp_path_factory.mktemp("algorithms")
    everything = ("open", "values", "sealed", "rounds", "kernel", "private")
    many = "predictions_per_day = 100000\nmost_row_bits = 100000\n" + RULE
    policy = {"lender": HTTP, "bank": many, "shop": many}
    lay_out(root, ROWS, policy, everything, labelled=("lender", "bank"))
    with pytest.MonkeyPatch.context() as patch:
        # Each model keeps its session for a while; there are more models here than elsewhere.
        patch.setattr(session_pool, "MOST_SESSIONS", 2 * len(JOBS))
        patch.setattr(service, "BEAT", 0.2)
        with trio(root) as three:
            yield three


@pytest.fixture
def prepared(monkeypatch):
    """By party: the table and the labels that its program was given, in the common order."""
    found = {}
    real = party_run.prepare

    def prepare(place, rows=None):
        columns = real(place, rows)
        found[place.me] = (columns.table, columns.labels)
        return columns

    monkeypatch.setattr(party_run, "prepare", prepare)
    return found


def from_files(world, prepared, folder):
    """`vertikal run` on the same rows in the same order, and its predictions of them."""
    text = (world.root / "lender" / "credit.toml").read_text()
    for name, (table, labels) in prepared.items():
        columns, titles = [table.block(slice(None))], list(table.columns)
        if labels is not None:
            columns, titles = [*columns, labels.targets], [*titles, "default"]
        np.savetxt(
            folder / f"{name}.csv",
            np.hstack(columns),
            "%.17g",
            ",",
            header=",".join(titles),
            comments="",
        )
        text = text.replace(
            f'[parties.{name}]\ntable = "people"',
            f'[parties.{name}]\ntable = "{name}.csv"\ntest = "{name}.csv"',
        )
    (folder / "job.toml").write_text(text)
    out = folder / "out"
    done = CliRunner().invoke(
        main, ["run", str(folder / "job.toml"), "--mesh", "local", "--out", str(out)]
    )
    assert done.exit_code == 0, done.output
    return out, np.loadtxt(out / "predictions.csv", delimiter=",", skiprows=1, usecols=0)


def over_http(world, model):
    (line,) = (line for line in world.said["lender"] if "predictions are served" in line)
    port = line.rpartition(" ")[2]
    token = (world.root / "lender" / "token").read_text().strip()
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/predict",
        json.dumps({"model": model, "ids": IDS[:3]}).encode(),
        {"Authorization": f"Bearer {token}"},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)["scores"]


@pytest.mark.parametrize(
    "kind", [pytest.param(name, marks=pytest.mark.slow) if name in LONG else name for name in JOBS]
)
def test_a_model_by_services_is_that_of_a_run_from_files(world, prepared, tmp_path, kind):
    write_job(world.root, **JOBS[kind])
    digest = world.submit().digest
    world.done(digest)
    if kind == "kernel":
        for name in NAMES:
            (manifest,) = world.models(name).of_job(digest)
            assert "1.00" in manifest.facts["relevance"]
            assert ("chosen" in manifest.facts) == (name == "lender")
    for name in NAMES:
        assert booked(world, name, digest) <= shown(world, name, digest)
    scores = world["lender"].predict("credit", IDS, None, None)
    assert {one["status"] for one in scores} == {"ok"}
    assert all(("probability" in one) == (kind in PROBABLE) for one in scores)
    values = np.array([one["value"] for one in scores])
    over = over_http(world, "credit")
    np.testing.assert_allclose([one["value"] for one in over], values[:3], atol=1e-2)

    out, expected = from_files(world, prepared, tmp_path)
    positive = prepared["lender"][1].targets[:, 0] > 0
    theirs = auc(expected, positive)
    assert theirs > 0.65
    # The same people in another order.
    mine = auc(values, labels_by_id(world))
    if kind in EXACT:
        np.testing.assert_allclose(np.sort(values), np.sort(expected), atol=1e-9)
        assert mine == pytest.approx(theirs, abs=1e-12)
        algorithm = algorithm_named(world.record("lender", digest).proposal.job.algorithm)
        for name in NAMES:
            found = world.models(name).load("credit", algorithm).shard
            assert same(found, models_in(out, name).load("job", algorithm).shard)
    else:
        assert mine == pytest.approx(theirs, abs=0.05)


def booked(world, name, digest):
    """The kinds of messages that this party sent in the runs of a job, without the alignment's."""
    found = set()
    for line in read(world.root / name / "store" / "audit.log"):
        if line.event == "sent" and line.facts["digest"] == digest:
            found |= {key.rsplit(" to ", 1)[0] for key in line.facts["bytes"]}
    assert found
    return found - {one.name for one in ALIGNMENT.values()}


def shown(world, name, digest):
    """The kinds of messages that the owner was told of before it decided."""
    record = world.record(name, digest)
    text = world[name].answer({"command": "show", "job": record.id})["text"]
    job = record.proposal.job
    kinds = algorithm_named(job.algorithm).messages(job.algorithm_settings())
    assert all(f"{one.what}: {one.learns}" in text for one in kinds)
    return {one.name for one in kinds}


def labels_by_id(world):
    rows = np.loadtxt(world.root / "lender" / "people.csv", delimiter=",", skiprows=1)
    found = {str(int(row[0])): row[-1] > 0 for row in rows}
    return np.array([found[one] for one in IDS])


def same(found, expected):
    if hasattr(expected, "blocks"):
        return all(same(*both) for both in zip(found.blocks, expected.blocks, strict=True))
    if expected.coefficients is None:
        return found.coefficients is None and found.seed == expected.seed
    return found.coefficients.tobytes() == expected.coefficients.tobytes()


def test_words_for_the_owner(world):
    write_job(world.root, directions=64, **JOBS["avfkam in turns"])
    digest = world.submit().digest
    world.done(digest)
    job = world.record("shop", digest).id
    text = world["shop"].answer({"command": "show", "job": job})["text"]
    assert "a kernel machine for the AUC, on pairs of rows (AVFKAM)" in text
    assert "lender and bank hold the labels" in text
