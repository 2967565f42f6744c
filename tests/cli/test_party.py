"""The output of a service."""

from __future__ import annotations

import io
import os
import sys

import pytest

from vertikal.cli import party


def test_words_that_nobody_reads_do_no_harm(monkeypatch):
    read, write = os.pipe()
    os.close(read)
    pipe = os.fdopen(write, "w")
    monkeypatch.setattr(sys, "stdout", pipe)
    party.say("hello")
    monkeypatch.undo()
    with pytest.raises(BrokenPipeError):
        pipe.close()
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stdout", closed)
    party.say("hello")
