"""One job as a line of a list: its decisions, its run, and the parties that it waits for."""

from __future__ import annotations

from typing import Any

import msgspec

from vertikal.node.approval.job_records import JobRecord
from vertikal.node.approval.proposals import AHEAD
from vertikal.node.links.gossip import Gossip
from vertikal.node.printable import printable
from vertikal.node.runs.progress import Progress
from vertikal.node.runs.run_thread import RunThread

_UNITS = {"solve": "iterations", "alignment: ids": "ids"}
"""Units of the stages that do not count rows."""


def summarise_job(record: JobRecord, gossip: Gossip, progress: Progress | None) -> dict[str, Any]:
    """Describe a job by plain values, for lists and programs; ``progress`` is that of its run."""
    proposal, job = record.proposal, record.proposal.job
    if record.done:
        # A run ends a moment after its party is done.
        progress = None
    told = {
        "job": record.id,
        "digest": record.digest,
        "name": proposal.name,
        "from": proposal.submitter,
        "algorithm": job.algorithm,
        "state": _state(record, gossip, progress),
        "open": gossip.is_alive(record),
        "done": record.done,
        "attempt": record.attempt,
        "words": record.note or (record.final.words if record.final else ""),
        "stage": progress.stage if progress else "",
        "amount": progress.done if progress else 0,
        "total": progress.total if progress else None,
        "unit": _UNITS.get(progress.stage, "rows") if progress else "",
        "note": progress.note if progress else "",
        "waits_for": progress.waits_for if progress else "",
        "bytes_in": progress.bytes_in if progress else 0,
        "bytes_out": progress.bytes_out if progress else 0,
        "seconds": progress.seconds if progress else 0.0,
        "seconds_left": progress.time_left() if progress else None,
    }
    return {key: printable(one) if isinstance(one, str) else one for key, one in told.items()}


def describe_run(run: RunThread | None) -> dict[str, Any] | None:
    """Describe a run that is under way by plain values: its stages, curves, waits and traffic."""
    if run is None:
        return None
    progress = run.progress
    return {
        "attempt": run.attempt,
        "stages": msgspec.to_builtins(run.history.stages(progress.bytes_out)),
        "curves": {
            printable(name): [list(point) for point in points]
            for name, points in run.history.curves().items()
        },
        "waits": [
            {**told, "what": printable(told["what"])}
            for told in msgspec.to_builtins(progress.waits)
        ],
        "traffic": msgspec.to_builtins(progress.traffic),
        "result": printable(progress.result),
    }


def _state(record: JobRecord, gossip: Gossip, progress: Progress | None) -> str:
    state = record.state(gossip.me)
    missing = gossip.missing(record) if gossip.is_alive(record) else []
    if progress is not None:
        return "; ".join([f"running: {progress.stage}", *missing])
    if state == "approved by all" and missing:
        return "waits: " + "; ".join(missing)
    if record.open and record.leads(gossip.me):
        return "; ".join([state, *_late_clocks(record, gossip)])
    return state


def _late_clocks(record: JobRecord, gossip: Gossip) -> list[str]:
    """Name the undecided parties whose clocks are so far behind that they refuse this job."""
    undecided = [name for name in record.proposal.job.names if not record.verdict(name)]
    leads = {name: last.clock_lead for name, last in gossip.beats.items() if name in undecided}
    return [
        f"the clock of {gossip.me} is {-lead:.0f} s ahead of that of {name}, which refuses it; "
        "set them right, cancel this job and submit it again"
        for name, lead in leads.items()
        if lead < -AHEAD
    ]
