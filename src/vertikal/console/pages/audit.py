"""The audit log: its lines, a search, a check of the chain, and the log to keep."""

from __future__ import annotations

from typing import Any

from vertikal.console.page import PageAnswer, PageRequest
from vertikal.errors import LogTampered
from vertikal.node.storage.audit_log import Line, verify
from vertikal.node.storage.audit_wording import found_in

LINES = 100
"""Lines of one page."""


def audit(asked: PageRequest) -> PageAnswer:
    return _page(asked, "", False)


def verified(asked: PageRequest) -> PageAnswer:
    """Follow the chain of the whole log, as `vertikal audit verify` does."""
    try:
        head = verify(asked.view.connection.store / "audit.log")
    except LogTampered as error:
        return _page(asked, str(error), True)
    words = f"{head.number:,} lines, each bound to the one before it. Head {head}"
    return _page(asked, words, False)


def export(asked: PageRequest) -> PageAnswer:
    """The log as it is stored, for `vertikal audit verify` anywhere."""
    path = asked.view.connection.store / "audit.log"
    raw = path.read_bytes() if path.exists() else b""
    whole = raw[: raw.rfind(b"\n") + 1]
    return PageAnswer.file(whole, f"audit-{asked.view.name}.jsonl", "application/x-ndjson")


def _page(asked: PageRequest, words: str, tampered: bool) -> PageAnswer:
    search = asked.query.get("search", "")[:200]
    lines = asked.view.audit()
    found = [line for line in reversed(lines) if found_in(line, search)]
    text = asked.query.get("page", "1")
    last = max(1, -(-len(found) // LINES))
    number = min(int(text), last) if text.isascii() and text.isdigit() and len(text) < 7 else 1
    number = max(1, number)
    return asked.page(
        "audit.html",
        menu="audit",
        title="Audit",
        search=search,
        rows=[
            (line.number, line.time[:19].replace("T", " "), line.event, _facts(line))
            for line in found[(number - 1) * LINES : number * LINES]
        ],
        found=len(found),
        count=len(lines),
        number=number,
        last=last,
        head=f"{lines[-1].number}:{lines[-1].digest}" if lines else "",
        words=words,
        tampered=tampered,
    )


def _facts(line: Line) -> dict[str, Any]:
    """Return the facts of a line; the id of a job says what its name and digest would say again."""
    named = "job" in line.facts or str(line.facts.get("what", "")).startswith("job ")
    told_by_id = ("digest", "name") if named else ()
    return {key: one for key, one in line.facts.items() if key not in told_by_id}
