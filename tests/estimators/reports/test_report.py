"""Traces of a fit: the ledger, the report, and what an observer was told."""

from __future__ import annotations

import threading
from collections import Counter

import numpy as np
import pytest

from tests.options import grouped
from vertikal import FDSKLClassifier
from vertikal.errors import InputError
from vertikal.estimators.progress import ProgressBars
from vertikal.estimators.reports.report import Report
from vertikal.party.clock import Stage

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(500, 8))
Y = (X[:, 0] * X[:, 4] > 0).astype(int)


def fit(rows=500, **settings):
    given = {"parties": 4, "n_components": 256, "random_state": 0}
    return FDSKLClassifier(**grouped(**(given | settings))).fit(X[:rows], Y[:rows])


def phase_bytes(model):
    sent = Counter()
    for entry in model.ledger_.entries():
        if entry.disclosure.name == "phases":
            assert entry.disclosure.masked
            sent[entry.sender] += entry.bytes
    return sent


@pytest.mark.parametrize("ring_bits", [8, 16, 32])
def test_one_byte_per_row_direction_and_sender(ring_bits):
    sent = phase_bytes(fit(feature_map__bits=ring_bits))
    assert set(sent) == {"party2", "party3", "party4"}
    for size in sent.values():
        assert ring_bits / 8 <= size / (500 * 256) <= 1.02 * ring_bits / 8


def test_several_label_parties_send_each_direction_once():
    sent = phase_bytes(fit(label_parties=["party1", "party2"]))
    assert sum(sent.values()) / (500 * 256) == pytest.approx(3, rel=0.02)
    assert sent["party1"] / (500 * 128) == pytest.approx(1, rel=0.02)


@pytest.mark.parametrize("settings", [{}, {"label_parties": 2}, {"masking": "trees"}])
@pytest.mark.parametrize("solver", ["exact", "dsg"])
def test_the_report_counts_what_the_ledger_counts(solver, settings):
    model = fit(rows=80, solver=solver, n_components=32, solver__block_size=8, **settings)
    assert sum(model.report_.bytes_sent.values()) == model.ledger_.bytes
    booked = Counter()
    for entry in model.ledger_.entries():
        booked[entry.sender] += entry.bytes
    assert dict(booked) == {n: size for n, size in model.report_.bytes_sent.items() if size}


def test_the_ledger_tells_what_the_label_party_learns():
    text = str(fit(rows=80, n_components=32).ledger_)
    assert "party2 → party1" in text
    assert "party1 → party2" in text  # the agreement
    assert "blind source separation" in " ".join(text.split())
    assert all(len(line) <= 100 for line in text.splitlines() if line.startswith(" "))


def test_with_one_label_party_learning_is_local():
    names = {d.name for d in fit(rows=80, bandwidth=1.0).ledger_.disclosures()}
    assert names == {"agreement", "phases"}
    names = {d.name for d in fit(rows=80, bandwidth=1.0, label_parties=2).ledger_.disclosures()}
    compared = {"agreement", "comparison of labels", "phases", "partial predictions"}
    assert names == compared | {"inner products"}
    dsg = fit(rows=80, bandwidth=1.0, label_parties=2, solver="dsg")
    names = {d.name for d in dsg.ledger_.disclosures()}
    assert names == compared | {"batches"}


def test_the_report_by_stage_and_party():
    report = fit(rows=80).report_
    assert list(report.stages) == ["agreement", "prepare", "bandwidth", "phases", "solve"]
    assert set(report.stages["phases"]) == {f"party{i}" for i in range(1, 5)}
    assert set(report.stages["solve"]) == {"party1"}
    assert set(report.seconds) == {f"party{i}" for i in range(1, 5)}
    assert 0 < max(report.seconds.values()) <= report.wall
    assert len(report.rows()) == 4 * 4 + 1


def test_the_report_in_text():
    report = Report.of({"shop": {"phases": Stage(1.5, 12345)}, "bank": {"solve": Stage(2, 1)}}, 3.0)
    lines = [line.split() for line in str(report).splitlines()]
    assert lines == [
        ["stage", "party", "seconds", "bytes", "sent"],
        ["phases", "shop", "1.500", "12,345"],
        ["solve", "bank", "2.000", "1"],
        ["in", "all", "3.000", "12,346"],
    ]


@pytest.mark.parametrize("attribute", ["ledger_", "report_"])
def test_names_are_escaped_in_html(attribute):
    model = fit(rows=80, parties={"<script>x</script>": [0, 1], "R&D": [2]}, n_components=16)
    page = getattr(model, attribute)._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;x&lt;/script&gt;" in page
    assert "R&amp;D" in page
    assert "<script>x</script>" in str(getattr(model, attribute))
    assert page.count("<tr>") == page.count("</tr>") > 2


class Watcher:
    """An observer that notes everything, and from which thread it came."""

    def __init__(self):
        self.begun, self.done, self.ended = [], Counter(), []
        self.threads, self.notes = set(), []
        self.lock = threading.Lock()

    def begin(self, party, stage, total):
        with self.lock:
            self.begun.append((party, stage, total))
            self.threads.add((party, threading.current_thread().name))

    def advance(self, party, stage, amount, note):
        with self.lock:
            self.done[party, stage] += amount
            self.notes.append(note)

    def end(self, party, stage, seconds):
        with self.lock:
            self.ended.append((party, stage))
            assert seconds >= 0


@pytest.mark.parametrize("solver", ["exact", "dsg"])
def test_an_observer_sees_all_stages_and_all_rows(solver):
    watcher = Watcher()
    model = fit(solver=solver, verbose=watcher)
    parties = [f"party{i}" for i in range(1, 5)]
    assert sorted((p, s) for p, s, _ in watcher.begun) == sorted(watcher.ended)
    for party in parties:
        assert (party, "phases", 500) in watcher.begun
        assert watcher.done[party, "phases"] == 500
        assert (party, party) in watcher.threads
    steps = model.n_iter_ + 1 if solver == "exact" else model.n_iter_
    assert watcher.done["party1", "solve"] == steps
    word = "objective" if solver == "exact" else "loss"
    assert any(note.startswith(word) for note in watcher.notes)
    model.predict(X[:20])
    assert all(watcher.done[party, "predict"] == 20 for party in parties)


@pytest.mark.parametrize(
    "parties", [2, {"[/b]": [0, 1], "[red]shop": [2]}], ids=["plain", "markup"]
)
def test_bars_are_drawn_on_standard_error_only(capfd, parties):
    model = fit(rows=80, parties=parties, n_components=16, verbose=1)
    model.predict(X[:5])
    out, err = capfd.readouterr()
    assert out == ""
    for name in model.shards_:
        assert name in err
    assert "phases" in err
    assert "solve" in err
    assert "predict" in err


def test_silence_by_default(capfd):
    fit(rows=80, n_components=16)
    assert capfd.readouterr() == ("", "")


def test_what_is_no_observer_is_refused():
    with pytest.raises(
        InputError, match=r"^verbose must be a number, True, False, or an observer, got 'loud'$"
    ):
        ProgressBars("loud")
