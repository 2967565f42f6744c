"""Jobs in plain words, for the owner who decides about them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from vertikal.errors import InputError
from vertikal.node.jobs import Record
from vertikal.node.policy import objections
from vertikal.node.programs import program_named

if TYPE_CHECKING:
    from vertikal.node.service import Service

_SPEED = 2e9
"""Multiplications a second that an estimate of minutes counts with."""
_BANDWIDTH = 100e6 / 8
"""Bytes a second that it counts with: 100 Mb/s."""
_ROUND = 0.02
"""Seconds that a round of messages takes it."""

_DOES = {
    "fdskl": "a kernel machine by random features (FDSKL)",
    "admm": "a linear machine by ADMM sharing",
}


def summary(service: Service, record: Record) -> dict[str, Any]:
    """One job as a line of a list and for programs."""
    proposal, job = record.proposal, record.proposal.job
    # A run ends a moment after its party is done.
    run = None if record.done else service.run_of(record)
    state = record.state(service.me)
    waits = service.council.missing(record) if service.council.alive(record) else []
    if run is not None:
        state = "; ".join([f"running: {run.report.stage}", *waits])
    elif state == "approved by all" and waits:
        state = "waits: " + "; ".join(waits)
    report = run.report if run is not None else None
    return {
        "number": record.number,
        "digest": record.digest,
        "name": proposal.name,
        "from": proposal.submitter,
        "algorithm": job.algorithm,
        "state": state,
        "open": service.council.alive(record),
        "done": record.done,
        "attempt": record.attempt,
        "words": record.words or (record.final.words if record.final else ""),
        "stage": report.stage if report else "",
        "rows_done": report.done if report else 0,
        "rows_total": report.total if report else None,
        "note": report.note if report else "",
        "waits_for": report.waits_for if report else "",
        "bytes_in": report.bytes_in if report else 0,
        "bytes_out": report.bytes_out if report else 0,
    }


def describe(service: Service, record: Record) -> str:
    """All that an owner should know before it approves."""
    proposal, job, me = record.proposal, record.proposal.job, service.me
    program = program_named(job.algorithm)
    settings = job.program_settings()
    lines = [
        f"Job {record.number} ({proposal.name}): {summary(service, record)['state']}",
        f"  submitted by {proposal.submitter} on {_date(proposal.submitted)}, digest "
        f"{record.digest}",
        "",
        "What is computed",
        f"  {_DOES.get(job.algorithm, job.algorithm)}, with {', '.join(job.names)};",
        f"  {proposal.submitter} holds the labels. Settings: "
        + (", ".join(f"{key} = {value}" for key, value in job.settings.items()) or "all defaults"),
    ]
    if job.secret_seed is not None:
        lines.append("  secret_seed is set: whoever reads the job can draw everybody's directions")
    lines += ["", f"Your columns ({me})", *_columns(service, record)]
    lines += ["", "Who learns what"]
    lines += [f"  {one.what}: {one.learns}" for one in program.learns(settings)]
    lines.append(
        "  ids: every party learns which of its own rows all parties have, and how many there are"
    )
    lines.append(
        f"  predictions: {job.leader} may ask for predictions of ids it names; you learn which "
        f"ids, up to {service.site.policy.predictions_per_day} rows a day"
    )
    lines += ["", "What it costs, at most", *_cost(service, record)]
    lines += ["", "Decisions"]
    for name in job.names:
        entry = record.decisions.get(name)
        if entry is None:
            lines.append(f"  {name}: not decided")
        else:
            words = f" ({entry[1].words})" if entry[1].words else ""
            lines.append(f"  {name}: {entry[1].verdict}, {_date(entry[1].when)}, signed{words}")
    if record.words:
        lines += ["", f"Note: {record.words}"]
    return "\n".join(lines)


def _columns(service: Service, record: Record) -> list[str]:
    part = record.proposal.job.parties[service.me]
    try:
        columns = record.columns or service.site.columns(record.proposal)
    except InputError as error:
        return [f"  {error}"]
    lines = [f"  table {part.table!r}: {', '.join(columns)} as features"]
    if part.label:
        lines.append(f"  {part.label} as the label")
    lines += [f"  against your policy: {words}" for words in objections_of(service, record)]
    return lines


def objections_of(service: Service, record: Record) -> list[str]:
    return objections(service.site.file, record.proposal) if not record.done else []


def _cost(service: Service, record: Record) -> list[str]:
    proposal, job = record.proposal, record.proposal.job
    width = max(1, len(record.columns) or 10)
    cost = program_named(job.algorithm).cost(job.program_settings(), proposal.rows, width)
    sent = cost.bytes_sent.get(service.me, 0)
    most = max(cost.bytes_sent.values())
    seconds = cost.multiplications / _SPEED + most / _BANDWIDTH + cost.rounds * _ROUND
    return [
        f"  {proposal.rows:,} rows at most (those of {proposal.submitter}), {cost.rounds} rounds",
        f"  you send about {sent / 1e6:,.1f} MB, and hold {cost.memory[service.me] / 1e6:,.0f} MB",
        f"  about {max(1, round(seconds / 60))} min at 100 Mb/s",
    ]


def _date(when: float) -> str:
    return datetime.fromtimestamp(when, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
