"""Lists: whole in a pipe and on a narrow terminal, and unable to steer it."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios

from vertikal.cli.terminal.output import print_table

DIGEST = "0123456789abcdef" * 4
TITLES = ("job", "model", "digest")
ROWS = [(7, "credit", DIGEST), (12, "[bold]x[/]\x1b[31m", DIGEST[::-1])]


def test_a_pipe_gets_plain_columns(capsys):
    print_table(TITLES, ROWS)
    assert capsys.readouterr().out.splitlines() == [
        "job  model            digest",
        f"  7  credit           {DIGEST}",
        f" 12  [bold]x[/]?[31m  {DIGEST[::-1]}",
    ]


def test_a_narrow_terminal_gets_every_character():
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 40, 0, 0))
    code = (
        f"from vertikal.cli.terminal.output import print_table; print_table({TITLES!r}, {ROWS!r})"
    )
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "40"}
    with subprocess.Popen([sys.executable, "-c", code], stdout=theirs, env=environment) as child:
        os.close(theirs)
        drawn = b""
        while piece := _read(ours):
            drawn += piece
    os.close(ours)
    assert child.returncode == 0
    assert b"\x1b[31m" not in drawn
    text = re.sub(r"\x1b\[\d*m", "", drawn.decode())  # titles are bold
    titles, _, *lines = text.splitlines()
    assert titles.split() == list(TITLES)
    assert max(map(len, lines)) <= 40
    assert "[bold]x[/]?[31m" in text
    place = titles.index("digest")
    assert "".join(line[place:].strip() for line in lines) == DIGEST + DIGEST[::-1]


def _read(number: int) -> bytes:
    try:
        return os.read(number, 4096)
    except OSError:  # the other end is closed
        return b""
