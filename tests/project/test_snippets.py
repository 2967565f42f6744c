"""Commands and code that README and docs tell a reader to type are executed.

Blocks fenced as ``python`` and the ``$ vertikal ...`` lines of blocks fenced as ``console`` run in
the order of the page, in one namespace and one empty working directory per page. A line
``<!-- no-run: reason -->`` right before a block exempts it; few blocks may need that.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Executed by tests of their own, with a folder and a service for each organisation.
SEVERAL_TERMINALS = {
    "tutorial-between-organisations.md",
    "tutorial-many-clients.md",
    "how-to-python-client.md",
    "how-to-score-new-people.md",
    "how-to-retrain.md",
}
PAGES = sorted(
    page
    for page in [ROOT / "README.md", *ROOT.glob("docs/*.md")]
    if page.exists() and page.name not in SEVERAL_TERMINALS
)

MOST_EXEMPTIONS = 3
COMMAND_TIMEOUT = 120
# Other names for what is executed; written so, a block would not be.
UNEXECUTED = {"py", "python3", "pycon", "sh", "bash", "shell", "zsh"}
ELSEWHERE = {"make", "pip", "git", "cd", "source"}

FENCE = re.compile(
    r"^(?P<indent>[ \t]*)```[ \t]*(?P<language>[\w-]*)[^\n`]*\n"
    r"(?P<text>.*?)"
    r"^(?P=indent)```[ \t]*$",
    re.MULTILINE | re.DOTALL,
)
EXEMPTION = re.compile(r"<!-- no-run: \S[^\n]*-->\s*\Z")
# The console script, without asking where it was installed.
ENTRY = "import sys; from vertikal.cli import main; sys.argv[0] = 'vertikal'; sys.exit(main())"


@dataclass(frozen=True)
class Block:
    page: Path
    line: int
    language: str
    text: str
    exempt: bool

    @property
    def where(self) -> str:
        return f"{self.page.name}:{self.line}"

    @property
    def commands(self) -> list[str]:
        """The lines of a console block that start with ``$``, continuation lines joined."""
        joined = self.text.replace("\\\n", " ")
        return [line[2:].strip() for line in joined.splitlines() if line.startswith("$ ")]


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [
        Block(
            page,
            text.count("\n", 0, found.start("text")) + 1,
            found["language"],
            textwrap.dedent(found["text"]),
            EXEMPTION.search(text[: found.start()]) is not None,
        )
        for found in FENCE.finditer(text)
    ]


def run_command(command: str, where: str) -> None:
    """Run one ``vertikal`` command in the working directory, or check what is run elsewhere."""
    program, *arguments = shlex.split(command, comments=True)
    if program == "vertikal":
        done = subprocess.run(
            [sys.executable, "-c", ENTRY, *arguments],
            capture_output=True,
            text=True,
            timeout=COMMAND_TIMEOUT,
            check=False,
        )
        assert done.returncode == 0, f"{where}: $ {command}\n{done.stdout}{done.stderr}"
    elif program == "python" and arguments[:1] and arguments[0].startswith("examples/"):
        # test_examples runs it.
        assert (ROOT / arguments[0]).exists(), f"{where}: no {arguments[0]}"
    else:
        assert program in ELSEWHERE, f"{where}: nobody runs `{command}`; mark the block no-run"


def run_page(blocks: list[Block]) -> None:
    """Execute the blocks of one page in the current directory, in order."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    for block in blocks:
        if block.exempt:
            continue
        if block.language == "python":
            # Padding makes a traceback name the line of the page.
            padded = "\n" * (block.line - 1) + block.text
            exec(compile(padded, str(block.page), "exec"), namespace)
        elif block.language == "console":
            for command in block.commands:
                run_command(command, block.where)


def make_targets_in(text: str) -> set[str]:
    """Targets named in ``make ...`` between backticks or after a prompt."""
    named = re.findall(r"(?:`|^\s*\$ )make ([a-z][a-z -]*)", text, re.MULTILINE)
    return {target for names in named for target in names.split()}


def targets_of(makefile: str) -> set[str]:
    return set(re.findall(r"^([a-z][a-z-]*):(?!=)", makefile, re.MULTILINE))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_page(blocks_of(page))


def test_readme_shows_python_and_a_command():
    blocks = [block for block in blocks_of(ROOT / "README.md") if not block.exempt]
    assert any(block.language == "python" for block in blocks)
    assert any(block.language == "console" and block.commands for block in blocks)


def test_few_blocks_are_exempt():
    exempt = [block.where for page in PAGES for block in blocks_of(page) if block.exempt]
    assert len(exempt) <= MOST_EXEMPTIONS, exempt


def test_no_block_escapes_under_another_name():
    assert [
        block.where
        for page in PAGES
        for block in blocks_of(page)
        if block.language in UNEXECUTED or (block.language != "console" and block.commands)
    ] == []


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_named_make_targets_exist(name):
    named = make_targets_in((ROOT / name).read_text(encoding="utf-8"))
    assert named
    assert named <= targets_of((ROOT / "Makefile").read_text(encoding="utf-8"))


GOOD_PAGE = """
```python
total = 1
```

<!-- no-run: needs a second machine -->

```python
raise RuntimeError
```

```text
raise RuntimeError
```

!!! note

    ```python title="indented"
    from pathlib import Path
    Path("total.txt").write_text(str(total + 1))
    ```

```console
$ make demo
$ vertikal --help
Usage: vertikal
$ python examples/absent.py
```
"""


def page_with(tmp_path: Path, text: str) -> Path:
    page = tmp_path / "page.md"
    page.write_text(text)
    return page


def test_blocks_share_a_namespace_and_a_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = blocks_of(page_with(tmp_path, GOOD_PAGE))
    assert [block.language for block in blocks] == ["python", "python", "text", "python", "console"]
    assert [block.exempt for block in blocks] == [False, True, False, False, False]
    assert blocks[0].line == 3
    run_page(blocks[:-1])
    assert (tmp_path / "total.txt").read_text() == "2"
    with pytest.raises(AssertionError, match="no examples/absent"):
        run_page(blocks)


@pytest.mark.parametrize(
    "text",
    [
        "```python\nraise AssertionError\n```",
        "<!-- no-run: -->\n```python\nraise AssertionError\n```",
        "<!-- no-run: far away -->\nText.\n```python\nraise AssertionError\n```",
        "```console\n$ curl something\n```",
        "```console\n$ vertikal --no-such-option\n```",
    ],
)
def test_a_bad_block_is_caught(text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AssertionError):
        run_page(blocks_of(page_with(tmp_path, text)))


def test_make_targets_are_found():
    text = "Use `make demo` and make sure\n    $ make format lint\n"
    assert make_targets_in(text) == {"demo", "format", "lint"}
    assert targets_of("A := 1\ntest-all: test  ## x\nb.c: d\n\techo a: b\n") == {"test-all"}
