"""A prepared correlation as a file: it serves one run of one job."""

from __future__ import annotations

import os
import stat
import threading

import numpy as np
import pytest

from tests.conformance.running import run
from vertikal.algorithms.kernel_machine.algorithm import AVFKAM, FDSKL, Fdskl
from vertikal.algorithms.kernel_machine.settings import FdsklSettings
from vertikal.errors import InputError, PadReused
from vertikal.mesh import local_meshes
from vertikal.node.config.job_file import Job
from vertikal.node.runs.launch import run_one
from vertikal.node.storage.prepared_correlation import claim_correlation, write_correlation
from vertikal.solvers.sealed_steps import COEFFICIENT_BITS

ROWS = 60
JOB = """
algorithm = "{algorithm}"
secret_seed = 4
timeout = 30
[settings]
n_components = 16
bandwidth = 2.0
loss = "square"
max_iter = 9
alpha = 0.01
disclosure = {{ name = "{disclosure}", dealer = "notary"{more} }}
[parties.bank]
table = "bank.csv"
label = "y"
[parties.shop]
table = "shop.csv"
[parties.notary]
rows = 60
"""


@pytest.fixture
def folder(tmp_path):
    draw = np.random.default_rng(0)
    X = draw.normal(size=(ROWS, 4))
    y = (X[:, 0] + X[:, 3] > 0).astype(int)
    for name, block, titles in (
        ("bank", np.column_stack((X[:, :2], y)), "u,v,y"),
        ("shop", X[:, 2:], "u,v"),
    ):
        np.savetxt(tmp_path / f"{name}.csv", block, "%.17g", ",", header=titles, comments="")
    return tmp_path


def job_of(folder, disclosure="sealed", algorithm="fdskl"):
    more = ", value_bits = 28, gradient_bits = 20" if disclosure == "values" else ""
    (folder / "job.toml").write_text(
        JOB.format(disclosure=disclosure, more=more, algorithm=algorithm)
    )
    return Job.load(folder / "job.toml")


def train(job, folder, correlation=None):
    """All three parties as threads; their shards."""

    def party(mesh):
        given = correlation if mesh.me == "notary" else None
        return run_one(folder / "job.toml", job, mesh, None, lambda progress: None, given)

    return run(local_meshes(job.names, 30.0), party).unwrap()


def coefficients(shards):
    if shards["bank"].coefficients is not None:
        return shards["bank"].coefficients
    total = shards["bank"].coefficient_share + shards["shop"].coefficient_share
    return total.view(np.int64) * 2.0**-COEFFICIENT_BITS


@pytest.mark.parametrize("algorithm", [FDSKL, AVFKAM], ids=lambda one: one.name)
@pytest.mark.parametrize("disclosure", ["values", "sealed"])
def test_a_run_with_a_prepared_correlation_gives_the_same_model(folder, disclosure, algorithm):
    job = job_of(folder, disclosure, algorithm.name)
    size = write_correlation(folder / "c", algorithm, job.algorithm_settings(), ROWS)
    assert (folder / "c").stat().st_size == size
    correlation = claim_correlation(folder / "c", job.algorithm_settings(), ROWS)
    prepared, live = train(job, folder, correlation), train(job, folder)
    correlation.close()
    scale = np.abs(coefficients(live)).max()
    assert scale > 0
    np.testing.assert_allclose(
        coefficients(prepared), coefficients(live), rtol=0, atol=0.01 * scale
    )


def test_it_is_its_owners_alone(folder):
    write_correlation(folder / "c", FDSKL, job_of(folder).algorithm_settings(), ROWS)
    assert stat.S_IMODE((folder / "c").stat().st_mode) == 0o600
    assert not (folder / "c.part").exists()


def test_it_is_taken_once(folder):
    settings = job_of(folder).algorithm_settings()
    write_correlation(folder / "c", FDSKL, settings, ROWS)
    claim_correlation(folder / "c", settings, ROWS).close()
    assert not list(folder.glob("c*"))
    with pytest.raises(InputError, match=r"'c' cannot be taken: .*; each is used once, prepare an"):
        claim_correlation(folder / "c", settings, ROWS)


def test_the_disk_has_forgotten_it_before_it_is_used(folder, monkeypatch):
    """With a loss of power in mind: a name that came back would give the same masks again."""
    settings = job_of(folder).algorithm_settings()
    write_correlation(folder / "c", FDSKL, settings, ROWS)
    synced, fsync = [], os.fsync

    def sync(number):
        synced.append((os.readlink(f"/proc/self/fd/{number}"), sorted(os.listdir(folder))))
        fsync(number)

    monkeypatch.setattr(os, "fsync", sync)
    claim_correlation(folder / "c", settings, ROWS).close()
    assert synced == [(os.fspath(folder), ["bank.csv", "job.toml", "shop.csv"])]


def test_of_many_who_want_it_one_gets_it(folder):
    settings = job_of(folder).algorithm_settings()
    write_correlation(folder / "c", FDSKL, settings, ROWS)
    got, start = [], threading.Barrier(8)

    def want():
        start.wait(20.0)
        try:
            got.append(claim_correlation(folder / "c", settings, ROWS))
        except InputError as error:
            got.append(error)

    threads = [threading.Thread(target=want) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30.0)
    assert len(got) == 8
    winners = [correlation for correlation in got if not isinstance(correlation, InputError)]
    assert len(winners) == 1
    winners[0].close()


def test_a_copy_used_twice_in_one_run_is_seen(folder, monkeypatch):
    """A dealer with two copies of the file: the helper sees the same numbers come again."""
    job = job_of(folder)
    settings = job.algorithm_settings()
    write_correlation(folder / "c", FDSKL, settings, ROWS)
    correlation = claim_correlation(folder / "c", settings, ROWS)
    first = {}
    take = correlation.take
    monkeypatch.setattr(
        correlation, "take", lambda step, *args: first.setdefault(step, take(step, *args)).copy()
    )
    with pytest.raises(PadReused, match="the dealer notary sent the same correlation twice"):
        train(job, folder, correlation)
    correlation.close()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"rows": ROWS + 1}, "its number of rows is 60, this job's 61"),
        ({"alpha": 0.02}, r"its settings \(digest\) is"),
    ],
)
def test_one_for_another_job_is_refused_and_stays(folder, change, said):
    settings = job_of(folder).algorithm_settings()
    write_correlation(folder / "c", FDSKL, settings, ROWS)
    rows = change.pop("rows", ROWS)
    fields = {name: getattr(settings, name) for name in settings.__struct_fields__} | change
    with pytest.raises(InputError, match=f"was prepared for another job: {said}"):
        claim_correlation(folder / "c", FdsklSettings(**fields), rows)
    assert (folder / "c").exists()


def test_what_is_no_correlation(folder):
    settings = job_of(folder).algorithm_settings()
    for content, said in (
        (b"hello, this is a letter", "is no correlation: not a frame"),
        (b"VK", "'c' ends too early; prepare another"),
    ):
        (folder / "c").write_bytes(content)
        with pytest.raises(InputError, match=said):
            claim_correlation(folder / "c", settings, ROWS)


def test_a_file_cut_short_opens_nothing(folder):
    job = job_of(folder)
    size = write_correlation(folder / "c", FDSKL, job.algorithm_settings(), ROWS)
    with (folder / "c").open("r+b") as file:
        file.truncate(size - 10)
    correlation = claim_correlation(folder / "c", job.algorithm_settings(), ROWS)
    with pytest.raises(InputError, match="correlation 'c' ends too early"):
        train(job, folder, correlation)
    correlation.close()


def test_arrays_out_of_order_are_refused(folder):
    settings = job_of(folder).algorithm_settings()
    write_correlation(folder / "c", FDSKL, settings, ROWS)
    correlation = claim_correlation(folder / "c", settings, ROWS)
    with pytest.raises(InputError, match=r"has 'corrections' \(60, 16\) where the run needs 'x'"):
        correlation.take("x", (60, 16), np.uint64)
    correlation.close()


def test_a_file_that_is_there_is_not_written_over(folder):
    settings = job_of(folder).algorithm_settings()
    (folder / "c").write_text("precious")
    with pytest.raises(InputError, match="'c' is there already"):
        write_correlation(folder / "c", FDSKL, settings, ROWS)
    with pytest.raises(InputError, match="cannot be written: No such file"):
        write_correlation(folder / "nowhere" / "c", FDSKL, settings, ROWS)


def test_what_cannot_be_prepared(folder):
    settings = job_of(folder).algorithm_settings()
    fields = {name: getattr(settings, name) for name in settings.__struct_fields__}
    opened = FdsklSettings(**(fields | {"disclosure": "open"}))
    with pytest.raises(InputError, match="disclosure must be 'values' or 'sealed' for a dealer"):
        write_correlation(folder / "c", FDSKL, opened, ROWS)
    several = FdsklSettings(
        **(
            fields
            | {
                "disclosure": "values",
                "parties": ("bank", "mill", "shop", "notary"),
                "label_parties": ("bank", "mill"),
            }
        )
    )
    with pytest.raises(InputError, match="label_parties must be one where a dealer prepares"):
        write_correlation(folder / "c", FDSKL, several, ROWS)


def test_an_interrupted_preparation_leaves_nothing(folder, monkeypatch):
    def stop(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(Fdskl, "prepare", stop)
    with pytest.raises(KeyboardInterrupt):
        write_correlation(folder / "c", FDSKL, job_of(folder).algorithm_settings(), ROWS)
    assert not list(folder.glob("c*"))
