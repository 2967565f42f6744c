"""The settings of a party file, each with its value, its line in the file, and what it means."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from vertikal.node.config.party_file import PartyFile

EXPLAINED = {
    "name": "who this party is in the federation",
    "key": "the party's secret key",
    "certificate": "the certificate that the others know it by",
    "federation": "the federation file, the same at all parties",
    "store": "the folder of jobs, models, checkpoints and the audit log",
    "passphrase_file": "the file with the passphrase of the key",
    "on_proposal": "a command that is run when a job waits for the owner",
    "tables.source": "where the table lies",
    "tables.id": "the column of ids, by which rows are aligned",
    "tables.features": "columns that jobs may use as features",
    "tables.labels": "columns that jobs may use as labels",
    "tables.weights": "columns that jobs may use as weights of rows",
    "tables.query": "the query, where the table lies in a database",
    "tables.rows": "a filter: only rows for which it is true are offered",
    "tables.scores_for": "tables whose models may score the people of this one",
    "tables.missing": "how missing cells are filled; refuse takes no job with such cells",
    "tables.categories": "columns that only name things",
    "tables.splits": "further columns by which an evaluation may hold out rows",
    "tables.separator": "the character between two cells of a CSV file",
    "tables.decimal": "the decimal mark of a CSV file",
    "tables.encoding": "the encoding of a CSV file",
    "policy.who": "parties that may submit jobs which use these tables, and ask for predictions",
    "policy.algorithms": "algorithms that jobs may run",
    "policy.disclosures": "levels of disclosure that jobs may have",
    "policy.least_rows": "fewest people whom all parties must have for a job to go on",
    "policy.most_ids": "most ids that another party may bring to an alignment; by default ten for "
    "each row of the own table",
    "policy.most_directions": "most directions per row of one job",
    "policy.most_passes": "most values of a row that hidden phases may open; by default a quarter "
    "of the directions",
    "policy.most_value_bits": "most bits of each of these values",
    "policy.most_gradient_bits": "most bits of each gradient that such a job opens",
    "policy.most_fits": "most fits of one job, those of folds and of a search included",
    "policy.most_row_bits": "most bits about a row that all jobs together may open to one receiver",
    "policy.least_difference": "fewest people by which two jobs on one table may differ",
    "policy.differencing": "what becomes of a job that differs by fewer",
    "policy.predictions_per_day": "most rows a day that others may have predicted",
    "policy.most_questions": "most questions about one person with one model",
    "policy.unknown_ids": "what this party asks for an id that a party lacks",
    "policy.degraded_predictions": "whether to take part in scores of ids that some party lacks",
    "policy.most_attempts": "most runs of one job, with those that were broken off",
    "policy.proposals_per_day": "most proposals of one submitter a day that are taken in",
    "policy.catalog": "what vertikal catalog tells those in who about the tables",
    "policy.experiments": "whether jobs that only reproduce papers are taken",
    "policy.privacy": "the budget of all jobs with differential privacy together",
    "policy.standing": "rules that approve jobs without asking the owner",
    "http.listen": "the address at which predictions are served",
    "http.token_file": "the file with the token of that endpoint",
    "http.most_rows": "most ids of one request",
    "http.most_bytes": "most bytes of one request",
    "http.per_minute": "most requests a minute",
    "monitor.listen": "the address of health and metrics",
    "console.listen": "the address of the console",
    "console.origin": "the address under which browsers see the console behind a proxy",
    "log.output": "the form of standard output",
    "log.file": "the file of JSON lines",
    "log.most_bytes": "bytes of that file before the next one is begun",
    "log.keep": "older files that are kept",
    "compute.device": "the device that this party computes on",
    "compute.workers": "actors of Ray that this party's rows are spread over",
    "compute.address": "the address of the Ray cluster",
    "compute.cpus": "cores that each worker declares",
    "compute.gpus": "GPUs that each worker declares",
    "compute.memory": "bytes of memory that each worker declares",
    "compute.direct": "whether workers send masked phases straight to those of other parties",
    "compute.first_port": "the port at which others reach the first worker, the second at the next",
}
"""Meaning of each setting, by its section and name."""
_SECTIONS = ("policy", "http", "monitor", "console", "log", "compute")
_HEAD = re.compile(r"\s*\[\[?\s*([^\]]+?)\s*\]\]?\s*(#.*)?")
_KEY = re.compile(r"""\s*(?:"([^"]+)"|'([^']+)'|([A-Za-z0-9_.-]+))\s*=""")


@dataclass(frozen=True)
class ExplainedSetting:
    """One setting: ``line`` counts from 1, and is None if the file leaves the setting out."""

    section: str
    name: str
    value: str
    meaning: str
    line: int | None


def explain_settings(path: Path) -> list[ExplainedSetting]:
    """List all settings of a party file in their order, tables first."""
    file = PartyFile.load(path)
    lines = _lines(path.read_text(encoding="utf-8"))
    return [
        ExplainedSetting(
            section, name, _text(name, value), EXPLAINED[known], _line(lines, section, name)
        )
        for section, known, name, value in _settings(file)
    ]


def _settings(file: PartyFile) -> Iterator[tuple[str, str, str, Any]]:
    """Yield section in the file, key of `EXPLAINED`, name and value of each setting."""
    for table, offer in file.tables.items():
        for name, value in msgspec.structs.asdict(offer).items():
            yield f"tables.{table}", f"tables.{name}", name, value
    for section in _SECTIONS:
        content = getattr(file, section)
        if content is not None:
            for name, value in msgspec.structs.asdict(content).items():
                yield section, f"{section}.{name}", name, value
    for name in ("name", "key", "certificate", "federation", "store"):
        yield "", name, name, getattr(file, name)
    yield "", "passphrase_file", "passphrase_file", file.passphrase_file
    yield "", "on_proposal", "on_proposal", file.on_proposal


def _text(name: str, value: Any) -> str:
    """Write a value as the file would; the address of a database may hold a password."""
    if name == "source" and "://" in value:
        return f"{value.partition('://')[0]} database, its address is not shown"
    if value is None:
        return "not set"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ", ".join(_text("", one) for one in value) or "none"
    if isinstance(value, msgspec.Struct):
        told = msgspec.structs.asdict(value).items()
        return "; ".join(f"{key}: {_text(key, one)}" for key, one in told)
    return str(value)


def _lines(text: str) -> dict[tuple[str, str], int]:
    """Find the line of each key, by the section above it."""
    found: dict[tuple[str, str], int] = {}
    section = ""
    for number, line in enumerate(text.splitlines(), start=1):
        head = _HEAD.fullmatch(line)
        if head is not None:
            section = head[1].replace('"', "").replace("'", "")
            found.setdefault((section, ""), number)
            continue
        key = _KEY.match(line)
        if key is not None:
            found.setdefault((section, key[1] or key[2] or key[3]), number)
    return found


def _line(lines: dict[tuple[str, str], int], section: str, name: str) -> int | None:
    """Find the line of a setting; one that is a section of its own stands at its head."""
    whole = f"{section}.{name}" if section else name
    return lines.get((section, name)) or lines.get((whole, "")) or lines.get(("", whole))
