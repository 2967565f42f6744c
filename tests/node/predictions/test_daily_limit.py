"""The daily limit of predictions: kept on disk, and never in favour of who asks."""

from __future__ import annotations

import pytest

from vertikal.errors import InputError
from vertikal.node.predictions.daily_limit import DailyLimit


def test_rows_of_a_day_outlive_the_process(tmp_path):
    DailyLimit(tmp_path / "rows", 10).spend(7)
    again = DailyLimit(tmp_path / "rows", 10)
    with pytest.raises(InputError, match="4 rows asked for, 7 of 10 a day are used"):
        again.spend(4)
    again.spend(3)
    (tmp_path / "rows").write_text("2001-01-01 10")
    again.spend(10)


def test_a_clock_that_is_set_back_begins_no_new_day(tmp_path):
    (tmp_path / "rows").write_text("2999-12-31 7")
    limit = DailyLimit(tmp_path / "rows", 10)
    with pytest.raises(InputError, match="7 of 10 a day are used; ask again after 2999-12-31, the"):
        limit.spend(4)
    limit.spend(3)
    assert (tmp_path / "rows").read_text() == "2999-12-31 10 0"


@pytest.mark.parametrize("content", [b"", b"2001-01-01", b"2001-01-01 -5", b"\xff\xfe 3"])
def test_a_count_that_cannot_be_read_is_used_up(tmp_path, content):
    (tmp_path / "rows").write_bytes(content)
    with pytest.raises(InputError, match="the owner must look at the file 'rows'"):
        DailyLimit(tmp_path / "rows", 10).spend(1)
    assert (tmp_path / "rows").read_bytes() == content


def test_rows_are_given_back_as_often_as_the_limit_allows(tmp_path):
    limit = DailyLimit(tmp_path / "rows", 10)
    for _ in range(3):
        limit.spend(4)
        limit.give_back(4)
    # Ten were given back today: the last two stay booked.
    limit.spend(8)
    with pytest.raises(InputError, match="1 rows asked for, 10 of 10 a day are used"):
        DailyLimit(tmp_path / "rows", 10).spend(1)
    limit.give_back(8)
    with pytest.raises(InputError, match="10 of 10"):
        limit.spend(1)
    (tmp_path / "rows").write_text("2001-01-01 10 10")
    limit.give_back(5)
    limit.spend(10)
