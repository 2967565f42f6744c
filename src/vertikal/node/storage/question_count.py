"""The count of questions: how often a person was asked about with a model, on disk.

A prediction tells its bits about a person whatever the label party asked for in place of f. So what
a model can tell about somebody is bounded by the number of questions times their bits, and it is
questions that each party counts which contributes to answers.

Each model has a file, to which every question adds the mark of the person: 8 bytes, under a key of
the store. A question is on disk before it is answered, and a crash loses none that was.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from vertikal.errors import PeerVisibleError
from vertikal.files import disk_error, private_folder, sync_folder, write_whole
from vertikal.node.storage.id_marks import MARK_BYTES, IdMarks
from vertikal.records import from_json

ASSUMED = ".assumed.json"
"""File with the questions about everybody that are assumed, by model."""
_NAMED = 5
"""Rows that a refusal names; of further ones it tells the number."""


class QuestionCount:
    """At most ``most`` questions about one person with one model, in files of this folder."""

    def __init__(self, folder: Path, most: int) -> None:
        self._folder = folder
        self._most = most
        self._lock = threading.Lock()
        self._asked: dict[str, Counter[bytes]] = {}
        """By model: how often each mark was asked about."""

    def book(self, model: str, ids: Mapping[int, bytes]) -> None:
        """Book a question about each of these ids, or refuse them all (PeerVisibleError).

        ``ids`` are in their written form, by their rows in the request; one that stands in two
        rows is two questions. The refusal names rows, and no id.
        """
        with self._lock:
            marks = {row: self._marks().mark(one) for row, one in ids.items()}
            asked, added = self._load(model), Counter(marks.values())
            left = self._most - self._assumed(model)
            spent = [row for row, mark in marks.items() if asked[mark] + added[mark] > left]
            self._refuse(spent)
            self._append(model, b"".join(marks.values()))
            asked.update(added)

    def give_back(self, model: str, ids: Iterable[bytes]) -> None:
        """Undo the booking of questions that were not answered."""
        with self._lock:
            asked = self._load(model) - Counter(map(self._marks().mark, ids))
            write_whole(self._path(model), b"".join(asked.elements()))
            self._asked[model] = asked

    def asked(self, model: str, ids: Sequence[bytes]) -> list[int]:
        """Count the questions so far about each of these ids."""
        with self._lock:
            asked, marks = self._load(model), self._marks()
            assumed = self._assumed(model)
            return [assumed + asked[marks.mark(one)] for one in ids]

    def most_asked(self, model: str) -> int:
        """Return how often the person was asked about who was asked about most."""
        with self._lock:
            return self._assumed(model) + max(self._load(model).values(), default=0)

    def assume(self, models: Iterable[str], questions: int) -> None:
        """Count so many questions about everybody with these models, whom nobody can name any more.

        That is for a store that was restored from a backup: what was asked since is not in it.
        """
        with self._lock:
            assumed = self._all_assumed()
            for model in models:
                assumed[model] = assumed.get(model, 0) + questions
            write_whole(private_folder(self._folder) / ASSUMED, msgspec.json.encode(assumed))

    def _assumed(self, model: str) -> int:
        return self._all_assumed().get(model, 0)

    def _all_assumed(self) -> dict[str, int]:
        try:
            return from_json((self._folder / ASSUMED).read_bytes(), dict[str, int])
        except FileNotFoundError:
            return {}

    def _refuse(self, rows: list[int]) -> None:
        if not rows:
            return
        named = ", ".join(str(row + 1) for row in rows[:_NAMED])
        more = f" and {len(rows) - _NAMED} more" if len(rows) > _NAMED else ""
        refusal = PeerVisibleError(
            f"who is in row {named}{more} of the request would be asked about more often than the "
            f"{self._most} times that are allowed with one model; leave these rows out, or let the "
            "owner raise most_questions"
        )
        refusal.rows_spent = tuple(rows)
        raise refusal

    def _marks(self) -> IdMarks:
        return IdMarks(private_folder(self._folder))

    def _load(self, model: str) -> Counter[bytes]:
        if model not in self._asked:
            try:
                raw = self._path(model).read_bytes()
            except FileNotFoundError:
                raw = b""
            # What a crash left unfinished at the end was not answered.
            ends = range(MARK_BYTES, len(raw) + 1, MARK_BYTES)
            self._asked[model] = Counter(raw[end - MARK_BYTES : end] for end in ends)
        return self._asked[model]

    def _append(self, model: str, marks: bytes) -> None:
        """Add whole marks and wait until the disk has them; a full disk leaves none of them."""
        path = self._path(model)
        try:
            is_new = not path.exists()
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
                size = file.seek(0, os.SEEK_END)
                end = file.seek(size - size % MARK_BYTES)
                try:
                    file.write(marks)
                    file.flush()
                    os.fsync(file.fileno())
                except OSError:
                    os.ftruncate(file.fileno(), end)
                    raise
            if is_new:
                sync_folder(self._folder)
        except OSError as error:
            raise disk_error(path, error) from None

    def _path(self, model: str) -> Path:
        return self._folder / model
