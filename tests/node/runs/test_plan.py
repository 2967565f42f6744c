"""Plans: the probe goes through all that the job's run does, and grows until it can be measured."""

from __future__ import annotations

import msgspec
import pytest

from vertikal.algorithms.algorithm import Algorithm
from vertikal.node.config.evaluation_plan import EvaluationPlan
from vertikal.node.config.job_file import Job, Part
from vertikal.node.runs import plan as module
from vertikal.node.runs.plan import MeasuredLink, plan
from vertikal.side_by_side import cores

PARTS = {"lender": Part("people", "default"), "bank": Part("people"), "shop": Part("people")}
LINKS = {"bank": MeasuredLink(0.02, 1e6), "shop": MeasuredLink(0.01, 2e6)}


def job(evaluation=None, parties=PARTS, **settings):
    return Job(parties=parties, settings={"n_components": 16, **settings}, evaluation=evaluation)


@pytest.fixture(autouse=True)
def small_probes(monkeypatch):
    monkeypatch.setattr(module, "ENOUGH", 0.0)
    monkeypatch.setattr(module, "SPINS", 10)
    monkeypatch.setattr(module, "WARM", 40)
    monkeypatch.setattr(Algorithm, "probe_rows", (60, 180))


def test_a_plan_has_alignment_and_all_that_follows():
    found = plan(job(), 2000, LINKS, reading=0.5)
    assert found.rows == 2000
    assert list(found.stages) == ["begin", "read", "align", "train and measure"]
    assert found.stages["read"] == 0.5 * module.READINGS
    assert all(seconds > 0 for seconds in found.stages.values())
    # A row of the alignment is a few points of 32 bytes, and then its phases.
    assert found.parties["bank"].bytes_sent > 2000 * (32 + 16)
    work = sum(found.stages.values())
    assert 60 * found.minutes["as measured"] > work + found.parties["bank"].bytes_sent / 1e6
    assert found.minutes["10 Mb/s"] > found.minutes["1 Gb/s"]


def test_evaluation_is_part_of_it():
    """Contributions predict the held-out rows once more for each party."""
    bare = plan(job(), 2000, {}).parties["bank"].bytes_sent
    held_out = plan(job(EvaluationPlan(holdout=0.2)), 2000, {})
    shuffled = plan(job(EvaluationPlan(holdout=0.2, contributions=True)), 2000, {})
    sent = held_out.parties["bank"].bytes_sent
    assert sent != bare
    assert shuffled.parties["bank"].bytes_sent > sent + 3 * 400 * 16 * 0.9


@pytest.mark.parametrize(
    "one",
    [
        job(EvaluationPlan(holdout=0.3, time="moment")),
        job(EvaluationPlan(folds=3, group="town")),
        job(loss="square", parties=PARTS | {"lender": Part("people", "y", positive="yes")}),
        msgspec.structs.replace(
            job(disclosure={"name": "values", "dealer": "notary"}),
            parties={"lender": PARTS["lender"], "bank": PARTS["bank"], "notary": Part()},
        ),
        job(parties=PARTS | {"shop": Part("people", "default")}),
        job(parties=PARTS | {"lender": Part("people", "y", classes=("a", "b", "c"))}),
        Job(
            parties=PARTS | {"lender": Part("people", "y", weight="w")},
            algorithm="admm",
            settings={"loss": "square"},
        ),
        Job(parties=PARTS, algorithm="gram", settings={"machine": "komd", "landmarks": 20}),
    ],
    ids=["time", "folds by group", "positive", "dealer", "two labels", "classes", "admm", "gram"],
)
def test_kinds_of_jobs_that_can_be_planned(one):
    found = plan(one, 1000, {})
    assert set(found.parties) == set(one.names)
    assert all(party.bytes_sent > 0 for party in found.parties.values())


def test_a_kernel_matrix_grows_by_the_square_of_the_rows():
    whole = Job(parties=PARTS, algorithm="gram", settings={"gamma": 0.1})
    columns = Job(parties=PARTS, algorithm="gram", settings={"gamma": 0.1, "landmarks": 20})
    rows = 2000
    sent = plan(whole, rows, {}).parties["bank"].bytes_sent
    entries = 4 * rows * (rows + 1) / 2
    # The rest is the alignment's.
    assert entries < sent < 1.2 * entries
    assert plan(columns, rows, {}).parties["bank"].bytes_sent < 0.2 * entries


def test_probes_grow_until_one_takes_long_enough_or_has_all_rows(monkeypatch):
    probed = []

    def probe(job, rows):
        probed.append(rows)
        seconds = {"align": 0.001 * rows, "train and measure": 0.0}
        return module.ProbeResult(rows, seconds, {name: module.Use(rows, 1) for name in job.names})

    monkeypatch.setattr(module, "probe", probe)
    monkeypatch.setattr(module, "ENOUGH", 2.0)
    found = plan(job(), 30_000, {})
    # 1,620 rows are one block, so that a line from there would be too steep. 14 s are not repeated.
    assert probed == [40, 60, 180, 540, 1620, 4860, 14_580, 4860]
    assert found.stages["align"] == pytest.approx(30.0)
    assert found.parties["bank"].bytes_sent == 30_000
    probed.clear()
    plan(job(), 1000, {})
    assert probed == [40, 60, 180, 540, 180, 540]


@pytest.mark.parametrize(
    ("small", "large", "seconds", "rows", "expected"),
    [
        (900, 2700, 5.0, 30_000, 8100),  # slow, but the small one is a single block
        (900, 2700, 5.0, 8000, 8000),  # never more than all rows
        (900, 2700, 5.0, 2700, None),
        (2700, 8100, 5.0, 30_000, None),
        (2700, 8100, 0.5, 30_000, 24_300),
        (8100, 24_300, 0.5, 30_000, None),
        (300, 900, 5.0, 2048, None),  # all rows are one block
        (300, 900, 0.5, 2048, None),
    ],
)
def test_both_probes_have_several_blocks_if_the_run_has(small, large, seconds, rows, expected):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "ENOUGH", 1.5)
        assert module.larger_probe(small, large, seconds, rows) == expected


def test_free_cores_are_some_of_those_that_there_are():
    assert 0 < module.free_cores(3) <= cores()


def test_of_two_probes_the_faster_stages_count():
    one = module.ProbeResult(10, {"align": 1.0, "train and measure": 5.0}, {})
    other = module.ProbeResult(10, {"align": 2.0, "train and measure": 3.0}, {})
    assert one.faster(other).stages == {"align": 1.0, "train and measure": 3.0}
