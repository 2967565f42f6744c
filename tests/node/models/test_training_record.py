"""The record of a training: what it sums up, and that it is stored beside the shard."""

from __future__ import annotations

import json

import pytest

from tests.node.shards import shard_of
from vertikal.algorithms.kernel_machine.algorithm import FDSKL
from vertikal.algorithms.kernel_machine.shard import Moment, Training
from vertikal.errors import InputError
from vertikal.node.models.store import ModelStore
from vertikal.node.models.training_record import TrainingRecord
from vertikal.party.clock import Stage
from vertikal.privacy.ledger import Disclosure, Entry, Ledger

PHASES = Disclosure("phases", "what", "learns", True)
IDS = Disclosure("ids", "what", "learns", True)


class Step:
    """A party in one step of a run, as far as a record looks at it."""

    def __init__(self, stages, *sent):
        self.clock, self.ledger = type("Clock", (), {"stages": stages}), Ledger()
        for disclosure, size in sent:
            self.ledger.book("a", "b", disclosure, size)


def test_steps_are_summed_up():
    record = TrainingRecord.of(
        "a",
        [
            Step({"agreement": Stage(0.5, 10)}, (IDS, 10)),
            Step(
                {"agreement": Stage(0.25, 20), "phases": Stage(1.0, 3980)},
                *((PHASES, 1980), (PHASES, 2000), (IDS, 20)),
            ),
        ],
    )
    assert record.stages == {"agreement": Stage(0.75, 30), "phases": Stage(1.0, 3980)}
    assert record.ledger == (Entry("a", "b", PHASES, 2, 3980), Entry("a", "b", IDS, 2, 30))
    assert (record.seconds, record.bytes_sent) == (1.75, 4010)


@pytest.fixture
def models(tmp_path):
    return ModelStore(tmp_path / "models")


def test_a_record_comes_back_with_its_shard(models, tmp_path):
    entry = Entry("a", "b", PHASES, 3, 4000)
    record = TrainingRecord("a", (entry,), {"solve": Stage(1.5, 10), "phases": Stage(0.5, 3990)})
    models.save("credit", shard_of(), FDSKL, record=record)
    assert models.load("credit", FDSKL).record == record
    path = tmp_path / "models" / "credit" / "1" / "training.json"
    path.write_text(json.dumps({"party": "a"}))
    with pytest.raises(InputError, match=r"training\.json is not what was stored"):
        models.load("credit", FDSKL)


def test_the_digest_of_a_shard_does_not_depend_on_how_long_it_took(models):
    digests = set()
    for seconds in (0.1, 0.2):
        curve = [Moment(seconds, 1, 1, 0.0)]
        shard = shard_of(training=Training(moments=curve))
        record = TrainingRecord("a", (), {"solve": Stage(seconds, 0)})
        digests.add(models.save("credit", shard, FDSKL, record=record).digest)
        assert shard.training.moments == curve
    assert len(digests) == 1
    assert models.save("credit", shard_of(16), FDSKL).digest not in digests
