"""The count of questions: on disk before it counts, and never in favour of who asks."""

from __future__ import annotations

import errno
import os

import pytest

from vertikal.errors import DiskFull, PeerVisibleError
from vertikal.node.storage.question_count import QuestionCount

ANN, BOB = b"ann", b"bob"


def test_questions_outlive_the_process_and_belong_to_a_model(tmp_path):
    QuestionCount(tmp_path / "q", 2).book("m", {0: ANN, 1: BOB})
    again = QuestionCount(tmp_path / "q", 2)
    again.book("m", {0: ANN})
    assert again.asked("m", [ANN, BOB, b"cy"]) == [2, 1, 0]
    with pytest.raises(PeerVisibleError, match=r"row 8 of the request .* the 2 times that are"):
        again.book("m", {3: BOB, 7: ANN})
    again.book("m", {0: BOB})
    again.book("other", {0: ANN})
    assert QuestionCount(tmp_path / "q", 2).asked("m", [ANN, BOB]) == [2, 2]


def test_one_person_in_several_rows_is_several_questions(tmp_path):
    count = QuestionCount(tmp_path / "q", 3)
    with pytest.raises(PeerVisibleError, match="in row 1, 2, 3, 4, 5 and 2 more of the request"):
        count.book("m", dict.fromkeys(range(7), ANN))
    assert count.asked("m", [ANN]) == [0]
    count.book("m", dict.fromkeys(range(3), ANN))
    assert count.asked("m", [ANN]) == [3]


def test_files_are_the_owners_and_hold_no_id(tmp_path):
    QuestionCount(tmp_path / "q", 3).book("m", {0: b"a long name that stands out"})
    QuestionCount(tmp_path / "q", 3).book("m", {})
    files = sorted((tmp_path / "q").iterdir())
    assert [path.name for path in files] == [".key", "m"]
    for path in files:
        assert path.stat().st_mode & 0o077 == 0
        assert b"name" not in path.read_bytes()
    assert files[1].stat().st_size == 8


def test_half_a_mark_of_a_crash_is_no_question(tmp_path):
    QuestionCount(tmp_path / "q", 9).book("m", {0: ANN})
    with (tmp_path / "q" / "m").open("ab") as file:
        file.write(b"half")
    again = QuestionCount(tmp_path / "q", 9)
    again.book("m", {0: BOB, 1: ANN})
    assert QuestionCount(tmp_path / "q", 9).asked("m", [ANN, BOB]) == [2, 1]


def test_a_question_for_which_the_disk_has_no_room_is_neither_booked_nor_answered(
    tmp_path, monkeypatch
):
    count = QuestionCount(tmp_path / "q", 9)
    count.book("m", {0: ANN})

    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(DiskFull):
            count.book("m", {0: BOB})
    assert count.asked("m", [ANN, BOB]) == [1, 0]
    assert QuestionCount(tmp_path / "q", 9).asked("m", [ANN, BOB]) == [1, 0]


@pytest.mark.slow
def test_thousands_of_people_are_cheap(tmp_path):
    count = QuestionCount(tmp_path / "q", 2)
    people = {row: b"%d" % row for row in range(20_000)}
    count.book("m", people)
    again = QuestionCount(tmp_path / "q", 2)
    again.book("m", people)
    assert (tmp_path / "q" / "m").stat().st_size == 2 * 8 * 20_000
    with pytest.raises(PeerVisibleError, match="and 19995 more") as told:
        again.book("m", people)
    # The leader is told the whole of it.
    assert len(str(told.value)) < 300


def test_questions_that_were_not_answered_are_given_back(tmp_path):
    count = QuestionCount(tmp_path / "q", 3)
    count.book("m", {0: ANN, 1: BOB, 2: ANN})
    count.give_back("m", [ANN, BOB])
    assert count.asked("m", [ANN, BOB]) == [1, 0]
    again = QuestionCount(tmp_path / "q", 3)
    assert again.asked("m", [ANN, BOB]) == [1, 0]
    again.give_back("m", [BOB, BOB])
    again.book("m", {0: BOB})
    assert QuestionCount(tmp_path / "q", 3).asked("m", [ANN, BOB]) == [1, 1]
