"""The history of a run: stages with their bytes, and curves that do not grow without end."""

from __future__ import annotations

from vertikal.node.runs.run_history import MOST_POINTS, MOST_STAGES, RunHistory


def test_stages_follow_one_another():
    history = RunHistory()
    assert history.stages(0) == []
    for stage, sent in (("connect", 0), ("phases", 100), ("phases", 150), ("solve", 400)):
        history.begin(stage, sent)
    stages = history.stages(410)
    assert [(one.name, one.bytes_out) for one in stages] == [
        ("connect", 100),
        ("phases", 300),
        ("solve", 10),
    ]
    assert all(one.seconds >= 0 for one in stages)


def test_numbers_are_taken_out_of_notes():
    history = RunHistory()
    for text in (
        "objective 0.53, gradient 1.2e-03",
        "",
        "3 updates",
        "objective -2, gradient 7e+1",
    ):
        history.note(text)
    assert history.curves() == {
        "objective": [(1, 0.53), (2, -2.0)],
        "gradient": [(1, 0.0012), (2, 70.0)],
    }


def test_long_runs_are_thinned():
    history = RunHistory()
    for number in range(10 * MOST_POINTS):
        history.note(f"loss {number}")
        history.begin(f"stage {number}", 0)
    (points,) = history.curves().values()
    assert MOST_POINTS / 2 <= len(points) <= MOST_POINTS
    assert [step for step, _ in points] == sorted({step for step, _ in points})
    assert all(value == step - 1 for step, value in points)
    assert points[-1][0] > 9 * MOST_POINTS
    assert len(history.stages(0)) == MOST_STAGES
