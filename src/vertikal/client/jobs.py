"""Jobs from Python: their state, decisions about them, and waiting for their end."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from vertikal.client import displays
from vertikal.client.connection import Connection
from vertikal.errors import InputError, JobFailed

if TYPE_CHECKING:
    from vertikal.client.models import EvaluationDisplay, StoredModel

PAUSE = 0.3
"""Seconds between two looks at a job."""
DAY = 86400.0
_ONLY_SHOWN = ("text", "details", "run")
"""Keys of `vertikal job show --json` that a line of a list does not have."""


class JobHandle:
    """One job as this party knows it; `refresh` asks for its present state."""

    def __init__(self, connection: Connection, summary: Mapping[str, Any]) -> None:
        self._connection = connection
        self._summary = {key: one for key, one in summary.items() if key not in _ONLY_SHOWN}

    @property
    def id(self) -> str:
        """The id as all parties have it, such as ``credit-7f3a``."""
        return str(self._summary["job"])

    @property
    def digest(self) -> str:
        return str(self._summary["digest"])

    @property
    def name(self) -> str:
        """Name of the model."""
        return str(self._summary["name"])

    @property
    def submitter(self) -> str:
        return str(self._summary["from"])

    @property
    def state(self) -> str:
        """State in words, when it was last asked for."""
        return str(self._summary["state"])

    @property
    def reason(self) -> str:
        """Reason of an end without a model; empty while the job is open, and once it is done."""
        return "" if self.done or self._summary["open"] else str(self._summary["words"])

    @property
    def done(self) -> bool:
        """True once this party has its shard."""
        return bool(self._summary["done"])

    @property
    def ended(self) -> bool:
        """True if nothing happens to the job any more, with a model or without."""
        return self.done or not self._summary["open"]

    @property
    def summary(self) -> dict[str, Any]:
        """All that `vertikal job list --json` tells of the job."""
        return dict(self._summary)

    @property
    def line(self) -> str:
        """The job in one line, with how far its run has come."""
        one = self._summary
        line = f"job {one['job']}: {one['state']}"
        if one["total"]:
            line += f" {one['amount']:,} / {one['total']:,} {one['unit']}"
        elif one["note"]:
            line += f" {one['note']}"
        return f"{line}, waits for {one['waits_for']}" if one["waits_for"] else line

    @property
    def description(self) -> str:
        """The job in plain words for who decides about it, as `vertikal job show` prints it."""
        return str(self._ask("show")["text"])

    def refresh(self) -> JobHandle:
        """Ask for the present state."""
        self._ask("show")
        return self

    def approve(self) -> JobHandle:
        """Approve exactly this job: sign its digest."""
        self._ask("approve")
        return self

    def reject(self, reason: str = "") -> JobHandle:
        """Reject the job; the others read the reason."""
        self._ask("reject", words=reason)
        return self

    def cancel(self, reason: str = "") -> JobHandle:
        """End the job at all parties, also while it runs."""
        self._ask("cancel", words=reason)
        return self

    def wait(self, timeout: float = DAY, tell: Callable[[str], object] | None = None) -> JobHandle:
        """Wait until the job is done; JobFailed if it ended otherwise, or takes too long.

        ``tell`` hears of every change, in one line.
        """
        until = time.monotonic() + timeout
        last = ""
        while True:
            one = self._ask("show")
            if tell is not None and self.line != last:
                last = self.line
                tell(last)
            if one["done"]:
                return self
            if not one["open"]:
                raise JobFailed(
                    f"job {one['job']} {one['state']}: {one['words'] or 'no reason given'}"
                )
            if time.monotonic() > until:
                raise JobFailed(
                    f"job {one['job']} has not ended within {timeout:g} s: {one['state']}"
                )
            time.sleep(PAUSE)

    @property
    def model(self) -> StoredModel:
        """This party's shard of the model; InputError as long as there is none."""
        from vertikal.client.models import StoredModel

        if not self.done and not self.refresh().done:
            raise InputError(
                f"job {self.id} has no model ({self.state}); call wait() first, and see its "
                "description if it ended without one"
            )
        manifest = self._connection.models.newest_of_job(self.digest)
        if manifest is None:
            raise InputError(
                f"{self._connection.name} has no shard of job {self.id} any more: it was deleted; "
                "submit the job again"
            )
        return StoredModel(self._connection, manifest)

    @property
    def evaluation(self) -> EvaluationDisplay:
        """The measures of the model, at the party that holds the labels."""
        return self.model.evaluation

    def _ask(self, command: str, **arguments: Any) -> Mapping[str, Any]:
        # By the digest: other jobs may come whose ids begin alike.
        answer = dict(self._connection.ask(command, job=self.digest, **arguments))
        self._summary = {key: value for key, value in answer.items() if key not in _ONLY_SHOWN}
        return answer

    def __repr__(self) -> str:
        return f"<{self.line}>"

    def _repr_html_(self) -> str:
        one = self._summary
        under = f"submitted by {self.submitter}, algorithm {one['algorithm']}, {self.digest}"
        shown = displays.heading(f"job {self.id}: {self.state}", under)
        if one["total"]:
            words = f"{one['amount']:,} of {one['total']:,} {one['unit']}"
            shown += displays.bar(one["amount"], one["total"], words)
        if one["words"]:
            shown += f"<div>{displays.text(one['words'])}</div>"
        return shown


class Jobs(tuple[JobHandle, ...]):
    """Several jobs, as a notebook shows them."""

    def _repr_html_(self) -> str:
        rows = [
            (
                one.id,
                one.submitter,
                one.summary["algorithm"],
                f"{one.state}: {one.reason}" if one.reason else one.state,
            )
            for one in self
        ]
        return displays.table(("job", "from", "algorithm", "state"), rows)
