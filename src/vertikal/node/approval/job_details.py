"""The description of a job as plain values, for programs and for pages that draw it.

Words are those of `job_description.py`; beside them are the numbers and ways of which a page makes
bars and arrows.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import msgspec

from vertikal.algorithms.algorithm import Route
from vertikal.algorithms.catalogue import algorithm_named
from vertikal.errors import InputError
from vertikal.node.approval.automatic_approval import DAY
from vertikal.node.approval.disclosure_limit import steps
from vertikal.node.approval.job_description import date_text, estimate, in_short, sections
from vertikal.node.approval.job_records import JobRecord
from vertikal.node.approval.policy import objections, rule_objections, used_features
from vertikal.node.config.job_file import Job
from vertikal.node.config.party_file import StandingRule
from vertikal.node.printable import printable
from vertikal.node.storage.party_home import PartyHome


def job_details(home: PartyHome, record: JobRecord, others: Iterable[JobRecord]) -> dict[str, Any]:
    """Describe a job by plain values; ``others`` are all jobs here, which rules count."""
    proposal, job, me = record.proposal, record.proposal.job, home.me
    try:
        columns = record.columns or used_features(home.file, proposal)
    except InputError:
        columns = ()
    told = {
        "submitted": date_text(proposal.submitted),
        "leader": job.leader,
        "in_short": in_short(home, record),
        "sections": [{"title": one.title, "lines": one.lines} for one in sections(home, record)],
        "table": job.parties[me].table or "",
        "columns": list(columns),
        "label": job.parties[me].label or "",
        "rows": proposal.rows,
        "parties": decisions_of(record),
        "routes": [
            {
                "what": route.disclosure.what,
                "name": route.disclosure.name,
                "training": training,
                "learns": route.disclosure.learns,
                "masked": route.disclosure.masked,
                "senders": list(route.senders),
                "receivers": list(route.receivers),
            }
            for training, route in _routes(job)
        ],
        "account": _account(home, record),
        "estimate": msgspec.to_builtins(estimate(home, record)),
        "objections": objections(home.file, proposal) if record.open else [],
        "rules": _rules(home, record, columns, others),
        "undecided": record.open and not record.verdict(me) and not record.expired,
        "not_compared": home.not_compared(job.names),
    }
    return {key: _plain(value) for key, value in told.items()}


def decisions_of(record: JobRecord) -> list[dict[str, Any]]:
    """List the parties of a job with their roles, and what each has decided."""
    return [_plain(_party(record, name)) for name in record.proposal.job.names]


def _party(record: JobRecord, name: str) -> dict[str, Any]:
    job = record.proposal.job
    entry = record.decisions.get(name)
    role = "label party" if name in job.label_parties else "feature party"
    return {
        "name": name,
        "role": "dealer" if name == job.bare_dealer else role,
        "verdict": entry[1].verdict if entry else "",
        "when": date_text(entry[1].when) if entry else "",
        "reason": entry[1].words if entry else "",
    }


def _routes(job: Job) -> list[tuple[bool, Route]]:
    """List the ways of all messages, and whether they are of training or find the people."""
    # Imported here: a service is ready before the libraries of the algorithms are.
    from vertikal.algorithms.alignment.alignment import DISCLOSURES as ALIGNMENT

    everybody, leader = job.table_parties, (job.leader,)
    ways = {
        "blinded": (leader, everybody),
        "evaluated": (everybody, leader),
        "tables": (everybody, leader),
        "matches": (leader, everybody),
    }
    found = [Route(one, *ways.get(key, (everybody, everybody))) for key, one in ALIGNMENT.items()]
    trained = algorithm_named(job.algorithm).routes(job.algorithm_settings())
    return [*((True, route) for route in trained), *((False, route) for route in found)]


def _account(home: PartyHome, record: JobRecord) -> list[dict[str, Any]]:
    if not record.open:
        return []
    return [
        {
            "table": step.opening.table,
            "receiver": step.opening.receiver,
            "before": step.before,
            "adds": step.opening.row_bits,
            "after": step.after,
            "limit": step.most,
            "bounded": step.opening.bounded,
            "text": str(step),
        }
        for step in steps(home, record.proposal, record.digest)
    ]


def _rules(
    home: PartyHome, record: JobRecord, columns: Iterable[str], others: Iterable[JobRecord]
) -> list[dict[str, Any]]:
    """Say of each standing rule what keeps it from approving this job; nothing if it does."""
    recent = time.time() - DAY
    today = sum(one.by_rule > recent for one in others if one is not record)
    return [
        {
            "rule": _in_words(rule),
            "objections": rule_objections(home.file, rule, record.proposal, columns, today),
        }
        for rule in home.policy.standing
    ]


def _in_words(rule: StandingRule) -> str:
    columns = "" if rule.columns is None else f", with {', '.join(rule.columns)} at most"
    return (
        f"{', '.join(rule.algorithms)} of {', '.join(rule.who)} at level "
        f"{', '.join(rule.disclosures)}{columns}, {rule.per_day:,} a day"
    )


def _plain(value: Any) -> Any:
    """Make the texts in plain values safe to print."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    return value
