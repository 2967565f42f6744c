"""Memory that a service gives back between jobs."""

import subprocess
import sys

import pytest

from vertikal.node.runs import memory

GROWS_AND_SHRINKS = """
import sys, threading
from vertikal.node.runs.memory import release_memory, share_one_arena

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096 >> 20

if sys.argv[1] == "shared":
    share_one_arena()
bytearray(24 << 20)  # as the meshes do: smaller blocks are kept
before, steps = resident(), threading.Barrier(8)

def job():
    held = [bytearray(b"x" * (1 << 20)) for _ in range(24)]
    steps.wait(30)  # all at once, so that each has an arena

for _ in range(3):
    threads = [threading.Thread(target=job) for _ in range(8)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    if sys.argv[1] == "shared":
        release_memory()
print(resident() - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc, needs glibc")
def test_what_the_threads_of_a_job_used_goes_back():
    left = {}
    for how in ("shared", "not"):
        told = subprocess.run(
            [sys.executable, "-c", GROWS_AND_SHRINKS, how],
            check=True,
            capture_output=True,
            text=True,
            timeout=60,
        )
        left[how] = int(told.stdout)
    assert left["shared"] < 16 < left["not"]


def test_without_glibc_nothing_is_done(monkeypatch):
    monkeypatch.setattr(memory.ctypes, "CDLL", lambda _: object())
    memory.share_one_arena()
    memory.release_memory()
