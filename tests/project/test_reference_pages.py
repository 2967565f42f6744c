"""The reference pages name every command, every part of a job file, and every kind of message."""

from __future__ import annotations

import importlib
import pkgutil
import re
from pathlib import Path

import click
import msgspec
import pytest

import vertikal
from vertikal import errors
from vertikal.algorithms.kernel_machine.phases import phases_of
from vertikal.algorithms.kernel_machine.settings import FdsklSettings
from vertikal.algorithms.kernel_machine.values import disclosures_of
from vertikal.cli import main
from vertikal.node.config.job_file import Job, Part
from vertikal.privacy.ledger import Disclosure

DOCS = Path(__file__).parents[2] / "docs"


def commands(group: click.Group, prefix: str = "vertikal") -> list[str]:
    """All commands that are not hidden, in full."""
    context, found = click.Context(group), []
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            found += commands(command, f"{prefix} {name}")
        elif command is not None and not command.hidden:
            found.append(f"{prefix} {name}")
    return found


@pytest.mark.parametrize("command", commands(main))
def test_every_command_is_on_its_page(command):
    assert re.search(rf"`{command}[ `]", (DOCS / "reference-commands.md").read_text())


def test_every_command_on_the_page_exists():
    page = (DOCS / "reference-commands.md").read_text()
    known = commands(main)
    for named in re.findall(r"`(vertikal [^`]*)`", page):
        assert any(f"{named} ".startswith(f"{one} ") for one in known), named


def tree_of_errors(page: str) -> dict[str, str]:
    """Error -> the one above it, as the drawing on the page has them."""
    above, path = {}, []
    for line in page.split("```text\n")[1].split("```", maxsplit=1)[0].splitlines():
        name = line.lstrip("│├└─ ")
        path = path[: (len(line) - len(name)) // 4]
        above[name.partition(" ")[0]] = path[-1] if path else "Exception"
        path.append(name.partition(" ")[0])
    return above


def test_the_page_of_errors_has_the_tree():
    kinds = {one for one in vars(errors).values() if isinstance(one, type)}
    page = (DOCS / "reference-errors.md").read_text()
    assert tree_of_errors(page) == {one.__name__: one.__bases__[0].__name__ for one in kinds}
    for one in kinds - {errors.VertikalError}:
        assert re.search(rf"^(## .*\b{one.__name__}\b|\| `{one.__name__}` )", page, re.M), one


@pytest.mark.parametrize("kind", [Job, Part])
def test_the_page_of_job_files_has_all_their_settings(kind):
    page = (DOCS / "reference-job-file.md").read_text()
    for field in msgspec.structs.fields(kind):
        assert re.search(rf"^\| `\[?{field.name}(\.NAME)?\]?` ", page, re.M), field.name


def disclosures() -> set[str]:
    """The names of all kinds of messages: those that stand in modules, and those of settings."""
    settings = FdsklSettings(parties=("a", "b", "c"), label_parties=("a",), disclosure="values")
    hidden = disclosures_of(settings, "a", training=True)
    found = {one.name for one in (phases_of(settings), *hidden.values())}
    for info in pkgutil.walk_packages(vertikal.__path__, "vertikal."):
        if info.name.endswith("__main__") or ".attacks" in info.name:
            continue
        for value in vars(importlib.import_module(info.name)).values():
            values = value.values() if isinstance(value, dict) else [value]
            found |= {one.name for one in values if isinstance(one, Disclosure)}
    return found


def test_the_threat_model_has_every_kind_of_message():
    names = disclosures()
    assert {"phases", "ids known", "contributions", "passes"} <= names
    page = (DOCS / "threat-model.md").read_text()
    assert sorted(name for name in names if f"`{name}`" not in page) == []
