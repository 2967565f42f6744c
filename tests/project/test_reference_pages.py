"""The reference pages name every command, parameter, part of a job file and kind of message."""

from __future__ import annotations

import ast
import contextlib
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import click
import msgspec
import pytest

import vertikal
from vertikal import errors
from vertikal.algorithms.algorithm import FROM_THE_JOB
from vertikal.algorithms.catalogue import ALGORITHMS, algorithm_named
from vertikal.algorithms.kernel_machine.phases import phases_of
from vertikal.algorithms.kernel_machine.settings import FdsklSettings
from vertikal.algorithms.kernel_machine.values import disclosures_of
from vertikal.cli import main
from vertikal.node.config.evaluation_plan import EvaluationPlan
from vertikal.node.config.job_file import Job, Part
from vertikal.node.config.search_plan import SearchPlan
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


@pytest.mark.parametrize("kind", [Job, Part, EvaluationPlan, SearchPlan])
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
        # Places of products send nothing, and those on devices need extras.
        if info.name.endswith("__main__") or any(
            part in info.name for part in (".attacks", ".compute.")
        ):
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


def section(page: str, title: str) -> str:
    """The text of a page from this heading to the next of its level."""
    return page.split(f"\n## {title}\n")[1].split("\n## ", maxsplit=1)[0]


ESTIMATORS = (DOCS / "reference-estimators.md").read_text()
SECTIONS = {
    "ADMMClassifier": ("ADMM sharing",),
    "ADMMRegressor": ("ADMM sharing",),
    "AVFKAMClassifier": ("AUC maximisation", "Parameters"),
    "CFKOMDRecommender": ("Recommenders",),
    "FDSKLClassifier": ("Parameters",),
    "FDSKLRegressor": ("Parameters",),
    "FedCFKRecommender": ("Recommenders",),
    "FederatedSearchCV": ("Search of parameters",),
    "KernelClassifier": ("The kernel machine that tunes itself",),
    "KernelRegressor": ("The kernel machine that tunes itself",),
    "SecureKernelRidge": ("On the exact kernel matrix",),
    "SecureKernelSVC": ("On the exact kernel matrix",),
}
OPTIONS = {
    "Stochastic": ("Options of a choice", "settings.solver"),
    "Fourier": ("Options of a choice", "settings.feature_map"),
    "Landmarks": ("Options of a choice", "settings.feature_map"),
    "Values": ("Options of a choice", "settings.disclosure"),
    "Sealed": ("Options of a choice", "settings.disclosure"),
    "Gaussian": ("ADMM sharing", "settings.kernel"),
    "Privacy": ("ADMM sharing", "settings.privacy"),
}


def rows_of(text: str, name: str) -> list[str]:
    """The rows of tables whose first cell names it."""
    rows = [line for line in text.splitlines() if line.startswith("|")]
    return [row for row in rows if f"`{name}`" in row.split(" | ")[0]]


def literals(row: str) -> list[object]:
    found: list[object] = []
    for code in re.findall(r"`([^`]*)`", row):
        with contextlib.suppress(ValueError, SyntaxError):
            found.append(ast.literal_eval(code))
    return found


def test_the_pages_know_every_estimator_and_every_record():
    names = {name for name in vertikal.__all__ if not name.startswith("__")}
    assert names == set(SECTIONS) | set(OPTIONS) | {"Workers"}


def test_the_page_of_estimators_has_all_options_of_workers():
    for field in msgspec.structs.fields(vertikal.Workers):
        rows = rows_of(section(ESTIMATORS, "Options of a choice"), field.name)
        assert any(field.default in literals(one) for one in rows), field.name


@pytest.mark.parametrize("name", SECTIONS)
def test_the_page_of_estimators_has_all_their_parameters(name):
    for one in inspect.signature(getattr(vertikal, name)).parameters.values():
        texts = [section(ESTIMATORS, title) for title in SECTIONS[name]]
        assert any(f"`{one.name}`" in text for text in texts), one.name
        rows = next((found for text in texts if (found := rows_of(text, one.name))), [])
        given = one.default is not inspect.Parameter.empty
        if rows and given and "as `SVC`" not in rows[0]:
            assert any(one.default in literals(row) for row in rows), (one.name, rows)


@pytest.mark.parametrize("name", OPTIONS)
def test_both_pages_have_all_options_of_a_choice(name):
    title, table = OPTIONS[name]
    job_page = (DOCS / "reference-job-file.md").read_text()
    tagged = getattr(vertikal, name).__struct_config__.tag or ""
    (row,) = [
        row
        for row in section(job_page, "Options of a choice").splitlines()
        if row.startswith(f"| `[{table}]`") and f'`"{tagged}"`' in (row if tagged else '`""`')
    ]
    for field in msgspec.structs.fields(getattr(vertikal, name)):
        assert f"`{field.name}`" in row
        rows = rows_of(section(ESTIMATORS, title), field.name)
        assert rows, field.name
        if not field.required:
            assert any(field.default in literals(one) for one in rows), field.name


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_page_of_job_files_has_all_settings(algorithm):
    text = section((DOCS / "reference-job-file.md").read_text(), "Settings")
    settings = algorithm_named(algorithm).settings_type
    for field in msgspec.structs.fields(settings):
        if field.name not in FROM_THE_JOB:
            (row,) = rows_of(text, field.name)
            named = row.split(" | ")[-1]
            assert named.startswith("all") or algorithm.upper() in named, field.name
