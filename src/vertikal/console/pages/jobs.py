"""Jobs: the list, one job to decide about or to follow, and the decisions."""

from __future__ import annotations

import re
from typing import Any

from vertikal.console.drawing import (
    curve_charts,
    job_flows,
    learned_by,
    stage_charts,
    traffic_chart,
)
from vertikal.console.page import PageAnswer, PageRequest
from vertikal.console.pages.overview import ASKS, RUNNING, running
from vertikal.errors import InputError, RequestRefused, VertikalError
from vertikal.node.models.model_card import what_left
from vertikal.reporting.limit_bar import limit_bar
from vertikal.reporting.units import bytes_text

VERDICTS = ("approve", "reject", "cancel")
MOST_REASON = 500
_LOG_LINES = 200
_DIGEST = re.compile(r"[0-9a-f]{64}")


def job_list(asked: PageRequest) -> PageAnswer:
    jobs = asked.view.jobs()
    return asked.page(
        "jobs.html", menu="jobs", title="Jobs", jobs=[{**one, "look": _look(one)} for one in jobs]
    )


def job_page(asked: PageRequest) -> PageAnswer:
    one = _job(asked)
    return asked.page(
        "job.html",
        menu="jobs",
        title=one["job"],
        live="" if _is_over(one) else f"/live/jobs/{one['digest']}",
        again=5 if one["state"].startswith(RUNNING) else 0,
        **content(asked, one),
    )


def regions(asked: PageRequest) -> dict[str, str]:
    """The parts of the page that change by themselves, by their ids."""
    one = asked.view.follow(_digest(asked))
    return {
        "state": asked.fill("job_state.html", job=one, look=_look(one)),
        "run": asked.fill("job_run.html", **run_content(asked, one)),
        "log": asked.fill("job_log.html", log=_log(asked, one["digest"])),
        "decisions": asked.fill("job_decisions.html", details={"parties": one["parties"]}),
    }


def content(asked: PageRequest, one: dict[str, Any]) -> dict[str, Any]:
    """Gather all that the page of a job shows."""
    details = one["details"]
    return {
        **run_content(asked, one),
        "look": _look(one),
        "log": _log(asked, one["digest"]),
        "details": details,
        "flows": job_flows(details),
        "learned": learned_by(details),
        "account": [_step(step) for step in details["account"]],
        "costs": _costs(asked.view.name, details["estimate"]),
        "text": one["text"],
        "can_cancel": one["open"] and not one["done"] and one["state"] != ASKS,
    }


def run_content(asked: PageRequest, one: dict[str, Any]) -> dict[str, Any]:
    """Gather what the page shows of the run: as it goes, or what is left of it afterwards."""
    run = one["run"]
    manifest = asked.view.model_of_job(one["digest"]) if one["done"] else None
    left: list[tuple[Any, ...]] = []
    stages = [
        (one["name"], one["seconds"], one["bytes_out"]) for one in (run["stages"] if run else [])
    ]
    if manifest is not None:
        record = asked.view.connection.models.details(manifest.name, manifest.version).record
        left = [(*row[:3], bytes_text(row[3]), row[4]) for row in what_left(record)]
        if not run and record is not None:
            stages = [(name, one.seconds, one.bytes_sent) for name, one in record.stages.items()]
    return {
        "job": one,
        "run": run,
        "progress": running(one) if one["state"].startswith(RUNNING) else None,
        "curves": curve_charts(run["curves"]) if run else [],
        "traffic": traffic_chart(run["traffic"]) if run else None,
        "stages": stage_charts(stages),
        "model": manifest,
        "left": left,
    }


def confirm(asked: PageRequest) -> PageAnswer:
    """Show what is about to be decided, with the digest that will be signed."""
    verdict = asked.path["verdict"]
    if verdict not in VERDICTS:
        raise RequestRefused(404, "there is no such page")
    one = _job(asked)
    _must_decide(asked)
    titles = {"approve": "Approve", "reject": "Reject", "cancel": "Cancel"}
    return asked.page(
        "confirm.html",
        menu="jobs",
        title=f"{titles[verdict]} {one['job']}?",
        job=one,
        verdict=verdict,
        details=one["details"],
        most_reason=MOST_REASON,
    )


def decide(asked: PageRequest) -> PageAnswer:
    """Do what the owner has confirmed: the service signs, as for `vertikal job approve`."""
    verdict, digest = asked.path["verdict"], asked.path["digest"]
    if verdict not in VERDICTS:
        raise RequestRefused(404, "there is no such page")
    _must_decide(asked)
    if asked.form.get("digest", "") != digest or not _DIGEST.fullmatch(digest):
        raise RequestRefused(400, "the digest on the form is not that of this job; nothing is done")
    reason = " ".join(asked.form.get("reason", "").split())
    if len(reason) > MOST_REASON:
        raise RequestRefused(400, f"a reason has at most {MOST_REASON} characters")
    words = {} if verdict == "approve" else {"words": reason}
    asked.view.change(verdict, job=digest, **words)
    return PageAnswer.to(f"/jobs/{digest}")


def _must_decide(asked: PageRequest) -> None:
    if not asked.session.may_decide:
        raise RequestRefused(
            403, "this link is for looking only; `vertikal console` prints one for deciding"
        )


def _job(asked: PageRequest) -> dict[str, Any]:
    try:
        return asked.view.job(_digest(asked))
    except InputError as error:
        if "there is no job" in str(error):
            raise RequestRefused(404, "there is no such job") from None
        raise


def _digest(asked: PageRequest) -> str:
    digest = asked.path["digest"]
    if not _DIGEST.fullmatch(digest):
        raise RequestRefused(404, "there is no such job")
    return digest


def _is_over(one: dict[str, Any]) -> bool:
    return one["done"] or not one["open"]


def _look(one: dict[str, Any]) -> str:
    """Name the look of a job's state: one of those that the stylesheet has."""
    if one["state"] == ASKS:
        return "asks"
    if one["state"].startswith(RUNNING):
        return "runs"
    if one["done"]:
        return "done"
    return "waits" if one["open"] else "ended"


def _step(step: dict[str, Any]) -> dict[str, Any]:
    bar = None
    if step["bounded"] and step["adds"]:
        bar = limit_bar(
            step["before"],
            step["limit"],
            added=step["adds"],
            unit="bits about a row",
            title=f"{step['receiver']}, table {step['table']}",
        )
    return {**step, "bar": bar}


def _costs(me: str, estimate: dict[str, Any]) -> dict[str, str]:
    minutes = estimate["seconds"] / 60
    return {
        "time at 100 Mb/s": "under 1 min" if minutes < 1 else f"about {minutes:,.0f} min",
        "sent by you": bytes_text(estimate["bytes_sent"].get(me, 0)),
        "memory here": bytes_text(estimate["memory"]),
        "rounds of messages": f"{estimate['rounds']:,}",
    }


def _log(asked: PageRequest, digest: str) -> list[tuple[str, str, dict[str, Any]]]:
    """List the lines of the audit log about a job, the last ones."""
    try:
        lines = asked.view.audit_of(digest)
    except VertikalError:
        return []
    hidden = ("job", "digest", "name", "submitter")
    return [
        (
            line.time[:19].replace("T", " "),
            line.event,
            {key: one for key, one in line.facts.items() if key not in hidden},
        )
        for line in lines[-_LOG_LINES:]
    ]
