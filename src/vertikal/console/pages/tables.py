"""Tables and policy: what the party file says, each setting with its line, and a check of it."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from vertikal.console.page import PageAnswer, PageRequest
from vertikal.errors import InputError
from vertikal.node.approval.table_check import TableFinding, check_tables
from vertikal.node.config.explained_settings import ExplainedSetting, explain_settings


def tables(asked: PageRequest) -> PageAnswer:
    return _page(asked)


def check(asked: PageRequest) -> PageAnswer:
    """Read all tables as a job would, as `vertikal party check` does."""
    try:
        file = asked.view.party_file
    except InputError:
        return _page(asked)
    return _page(asked, check_tables(file, asked.view.connection.file.parent))


def _page(asked: PageRequest, found: list[TableFinding] | None = None) -> PageAnswer:
    path = asked.view.connection.file
    settings: list[ExplainedSetting] = []
    fault = ""
    try:
        settings = explain_settings(path)
    except InputError as error:
        fault = str(error)
    return asked.page(
        "tables.html",
        menu="tables",
        title="Tables and policy",
        file=path.name,
        fault=fault,
        sections=[
            {"name": name, "title": _title(name), "settings": _rows(group)}
            for name, group in groupby(settings, key=lambda one: one.section)
        ],
        found=found,
    )


def _title(section: str) -> str:
    if section.startswith("tables."):
        return f"Table {section.removeprefix('tables.')}"
    return {"": "The party", "policy": "Policy"}.get(section, f"[{section}]")


def _rows(group: Any) -> list[dict[str, Any]]:
    """List the settings that are set first, then those that have their defaults."""
    rows: list[ExplainedSetting] = sorted(group, key=lambda one: one.line is None)
    return [
        {"name": one.name, "value": one.value, "meaning": one.meaning, "line": one.line}
        for one in rows
    ]
