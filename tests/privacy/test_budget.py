"""Budget files: kept across jobs, exact in composition, refused beyond, never forgotten."""

from __future__ import annotations

import math
import os
import re
import stat
import threading

import pytest

from vertikal.errors import BudgetSpent, InputError, SecrecyError
from vertikal.privacy import budget
from vertikal.privacy.accountant import epsilon_of, mu_of
from vertikal.privacy.budget import BudgetFile


@pytest.fixture
def path(tmp_path):
    BudgetFile.create(tmp_path / "shop.json", epsilon=2.0, delta=1e-6)
    return tmp_path / "shop.json"


def test_jobs_add_up_as_squares_and_across_openings(path):
    whole = mu_of(2.0, 1e-6)
    BudgetFile(path).charge("shop", "one", 0.6 * whole, 10)
    BudgetFile(path).charge("shop", "two", 0.79 * whole, 5)
    file = BudgetFile(path)
    assert [entry.job for entry in file.entries] == ["one", "two"]
    assert file.spent == pytest.approx(epsilon_of(math.hypot(0.6, 0.79) * whole, 1e-6))
    assert file.total == (2.0, 1e-6)
    with pytest.raises(BudgetSpent, match=r"^shop: budget file .* allows epsilon 2 .* would make"):
        file.charge("shop", "three", 0.2 * whole, 5)
    assert len(BudgetFile(path).entries) == 2
    assert issubclass(BudgetSpent, SecrecyError)


def test_the_whole_budget_can_be_spent(path):
    BudgetFile(path).charge("shop", "all", mu_of(2.0, 1e-6), 1)
    assert BudgetFile(path).spent == pytest.approx(2.0, rel=1e-6)


def test_a_refusal_says_what_would_still_be_accepted(path):
    file = BudgetFile(path)
    file.charge("shop", "one", 0.6 * mu_of(2.0, 1e-6), 1)
    with pytest.raises(BudgetSpent) as refused:
        file.charge("shop", "two", mu_of(2.0, 1e-6), 1)
    found = re.search(r"; ask for epsilon ([\d.]+) or less at that delta, or ", str(refused.value))
    left = float(found.group(1))
    with pytest.raises(BudgetSpent):
        file.charge("shop", "more", mu_of(left + 0.002, 1e-6), 1)
    file.charge("shop", "rest", mu_of(left, 1e-6), 1)


def test_a_budget_that_is_spent_leaves_only_a_larger_one(path):
    file = BudgetFile(path)
    file.charge("shop", "all", mu_of(2.0, 1e-6), 1)
    with pytest.raises(BudgetSpent, match=r"; let the owner make a file with a larger total$"):
        file.charge("shop", "more", 0.5, 1)


def test_two_jobs_at_once_do_not_both_get_the_rest(path):
    refused = []

    def job(name):
        try:
            BudgetFile(path).charge("shop", name, 0.8 * mu_of(2.0, 1e-6), 1)
        except BudgetSpent:
            refused.append(name)

    threads = [threading.Thread(target=job, args=(str(i),)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(refused) == 3
    assert len(BudgetFile(path).entries) == 1


def test_a_file_is_not_made_anew(path):
    with pytest.raises(InputError, match=r"budget file must be new, .* which exists"):
        BudgetFile.create(path, epsilon=5.0, delta=1e-6)


def test_two_that_make_a_file_at_once_get_the_same(tmp_path, monkeypatch):
    """The second finds none, and is overtaken while it writes its own."""
    path, real = tmp_path / "new.json", os.link

    def link(*names):
        if not path.exists():
            other = tmp_path / "other"
            other.write_bytes(b'{"epsilon": 2.0, "delta": 1e-6, "entries": []}')
            real(other, path)
        real(*names)

    monkeypatch.setattr(budget.os, "link", link)
    assert BudgetFile.obtain(path, epsilon=3.0, delta=1e-6).total == (2.0, 1e-6)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["new.json", "other"]


def test_a_crash_while_a_file_is_made_leaves_none(tmp_path, monkeypatch):
    def crash(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(budget.msgspec.json, "encode", crash)
    with pytest.raises(KeyboardInterrupt):
        BudgetFile.create(tmp_path / "new.json", epsilon=2.0, delta=1e-6)
    assert not (tmp_path / "new.json").exists()


def test_an_empty_file_may_have_held_charges(path):
    path.write_bytes(b"")
    with pytest.raises(InputError, match=r"is empty: .*; restore it .* or remove it if no job"):
        BudgetFile.obtain(path, epsilon=2.0, delta=1e-6)


def test_a_charge_is_on_the_disk_when_it_returns(path, monkeypatch):
    events, replace, fsync = [], os.replace, os.fsync

    def replaced(*names):
        events.append("moved")
        replace(*names)

    def synced(number):
        events.append("folder" if stat.S_ISDIR(os.fstat(number).st_mode) else "file")
        fsync(number)

    monkeypatch.setattr(budget.os, "replace", replaced)
    monkeypatch.setattr(budget.os, "fsync", synced)
    BudgetFile(path).charge("shop", "one", 0.1, 1)
    assert events == ["file", "moved", "folder"]


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match=r"budget file must exist, got .*BudgetFile\.create"):
        BudgetFile(tmp_path / "absent.json")


@pytest.mark.parametrize(
    "content",
    [
        b"{}",
        b"no json",
        b'{"epsilon": 1.0, "delta": 1e-5, "entries": [{"job": "a", "mu": -1, "rounds": 1}]}',
        b'{"epsilon": -1.0, "delta": 1e-5, "entries": []}',
    ],
)
def test_a_damaged_file_is_refused(path, content):
    path.write_bytes(content)
    with pytest.raises(InputError):
        BudgetFile(path)


@pytest.mark.parametrize("mu", [0.0, -1.0, math.inf])
def test_a_charge_is_a_positive_number(path, mu):
    with pytest.raises(InputError, match="mu must be a positive number"):
        BudgetFile(path).charge("shop", "job", mu, 1)
