"""Things that may not be in the repository, and those that must agree about the version."""

from __future__ import annotations

import importlib
import re
import subprocess
import tomllib
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).parents[2]
MACHINE_PATH = re.compile(r"(?<![\w.~:/$*)}>-])/(?:(?:work|root)\b|(?:tmp|home)/\w)")
LOCK_FILES = re.compile(r"uv\.lock|poetry\.lock|Pipfile\.lock|pylock(\..+)?\.toml")
DATA_SUFFIXES = {".xz", ".svm", ".libsvm", ".parquet", ".npz", ".npy"}


def listed_files(root: Path) -> list[PurePosixPath]:
    """Tracked files and untracked ones that git does not ignore."""
    done = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    )
    names = [name for name in done.stdout.split("\0") if name]
    return [PurePosixPath(name) for name in names if (root / name).is_file()]


def misplaced_files(files: list[PurePosixPath]) -> list[str]:
    """Lock files, which record registry hosts, and data files."""
    return [
        str(file)
        for file in files
        if LOCK_FILES.fullmatch(file.name) or DATA_SUFFIXES & set(file.suffixes)
    ]


def machine_paths(root: Path, files: list[PurePosixPath]) -> list[str]:
    """``file:line`` of every absolute path of somebody's machine in a text file."""
    found = []
    for file in files:
        raw = (root / file).read_bytes()
        if b"\0" in raw:
            continue
        for number, line in enumerate(raw.decode("utf-8", "replace").splitlines(), start=1):
            if MACHINE_PATH.search(line):
                found.append(f"{file}:{number}: {line.strip()}")
    return found


def has_entry(changelog: str, version: str) -> bool:
    """Return True if a heading of the changelog is for this version."""
    return bool(re.search(rf"^## \[?v?{re.escape(version)}\]?(?!\S)", changelog, re.MULTILINE))


@pytest.fixture(scope="module")
def files() -> list[PurePosixPath]:
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    return listed_files(ROOT)


@pytest.fixture(scope="module")
def project() -> dict[str, object]:
    with (ROOT / "pyproject.toml").open("rb") as file:
        return tomllib.load(file)["project"]


def test_this_file_is_listed(files):
    assert PurePosixPath("tests/project/test_hygiene.py") in files


def test_no_lock_or_data_files(files):
    assert misplaced_files(files) == []


def test_no_machine_paths(files):
    assert machine_paths(ROOT, files) == []


def test_versions_agree(project):
    assert importlib.import_module("vertikal").__version__ == project["version"]


def test_changelog_has_this_version(project):
    assert has_entry((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), project["version"])


def test_the_command_resolves(project):
    module, _, name = project["scripts"]["vertikal"].partition(":")
    assert callable(getattr(importlib.import_module(module), name))


@pytest.mark.parametrize("place", ["work", "work/main", "root/.cache", "tmp/x", "home/someone"])
@pytest.mark.parametrize("form", ["see /{}", 'open("/{}")', "=/{}", "`/{}`", "(/{})"])
def test_a_machine_path_is_caught(tmp_path, place, form):
    (tmp_path / "notes.md").write_text(f"First.\n{form.format(place)}\n")
    (found,) = machine_paths(tmp_path, [PurePosixPath("notes.md")])
    assert found.startswith("notes.md:2:")


@pytest.mark.parametrize(
    "text",
    ["https://example.org/work/x", "and/or/root", "./tmp/x", "{a}/tmp/x", "/workers", "/tmp"],
)
def test_other_text_is_no_machine_path(tmp_path, text):
    (tmp_path / "notes.md").write_text(text)
    assert machine_paths(tmp_path, [PurePosixPath("notes.md")]) == []


def test_a_misplaced_file_is_caught():
    bad = ["uv.lock", "a/pylock.dev.toml", "data/a9a.svm", "x.svm.xz", "t/points.npz"]
    good = ["pyproject.toml", "src/vertikal/data/tables.py", "lock.md"]
    assert misplaced_files([PurePosixPath(name) for name in bad + good]) == bad


def test_ignored_and_deleted_files_are_not_listed(tmp_path):
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    (tmp_path / ".gitignore").write_text("ignored.txt\n")
    (tmp_path / "ignored.txt").touch()
    (tmp_path / "kept.txt").touch()
    assert listed_files(tmp_path) == [PurePosixPath(".gitignore"), PurePosixPath("kept.txt")]


@pytest.mark.parametrize("heading", ["## 0.1.0", "## [0.1.0] - 2030-01-01", "## v0.1.0 (today)"])
def test_a_changelog_entry_is_found(heading):
    assert has_entry(f"# Changelog\n\n{heading}\n\n- x\n", "0.1.0")
    assert not has_entry(f"# Changelog\n\n{heading}\n\n- x\n", "0.1.1")
    assert not has_entry("# Changelog\n\n## 0.1.0.1\n", "0.1.0")
