"""The booking of one request for predictions, which is undone if nothing was computed."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from vertikal.errors import DiskFull, InputError
from vertikal.node.predictions.daily_limit import DailyLimit
from vertikal.node.storage.question_count import QuestionCount


class Booking:
    """Rows of the day and questions about people, booked before this party answers.

    A request that is refused, here or elsewhere, or that breaks off before this party has computed
    its part gives them back: without that part nobody has a score.
    """

    def __init__(self, limit: DailyLimit, questions: QuestionCount, model: str) -> None:
        self._limit = limit
        self._questions = questions
        self._model = model
        self._rows = 0
        self._ids: tuple[bytes, ...] = ()

    def book_rows(self, rows: int) -> None:
        """Book rows of the day, or refuse them (PeerVisibleError)."""
        self._limit.spend(rows)
        self._rows = rows

    def book_questions(self, ids: Mapping[int, bytes]) -> None:
        """Book a question about each of these ids, or refuse them (PeerVisibleError)."""
        self._questions.book(self._model, ids)
        self._ids = tuple(ids.values())

    def keep(self) -> None:
        """Let the booking stand: this party begins to compute."""
        self._rows, self._ids = 0, ()

    def end(self) -> None:
        """Give back what does not stand; a full disk keeps it booked."""
        with suppress(DiskFull, InputError):
            if self._rows:
                self._limit.give_back(self._rows)
            if self._ids:
                self._questions.give_back(self._model, self._ids)
        self.keep()
