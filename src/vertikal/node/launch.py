"""All parties of a job on this machine: as processes over the network mesh, as MPI ranks, or as
threads. For experiments; between organisations each party starts its own process.

The processes get fresh keys and certificates for this run, listen on loopback only, and speak
mutual TLS as they would elsewhere. Each writes reports as lines of JSON; when this process goes
away, their standard input ends and they stop.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from vertikal.errors import InputError, MeshError
from vertikal.mesh import local_meshes
from vertikal.node.federation import entry_of
from vertikal.node.job import Job
from vertikal.node.progress import Report
from vertikal.node.work import work
from vertikal.secure.identity import Identity

Tell = Callable[[Report], None]
COMMAND = (sys.executable, "-m", "vertikal")
AS_ROOT = ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")
"""What Open MPI wants to see in the environment of root."""
GRACE = 8.0
"""Seconds that processes have to end after one has failed, or after an interruption."""


def run_threads(job: Job, folder: Path, out: Path | None, tell: Tell) -> None:
    """All parties as threads of this process, on the local mesh."""
    meshes = local_meshes(job.names, job.timeout)
    errors: list[BaseException] = []

    def one(name: str) -> None:
        try:
            work(job, folder, meshes[name], out, tell)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=one, args=(name,), daemon=True) for name in job.names]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            while thread.is_alive():
                thread.join(0.2)
    except KeyboardInterrupt:
        for mesh in meshes.values():
            mesh.fail("interrupted")
        raise
    if errors:
        raise next((error for error in errors if not isinstance(error, MeshError)), errors[0])


def run_processes(path: Path, job: Job, out: Path | None, tell: Tell) -> tuple[str, ...]:
    """All parties as processes over the network mesh, mutually authenticated.

    Returns those without which the others finished, where the job allows that.
    """
    with TemporaryDirectory(prefix="vertikal-run-") as folder:
        keys = Path(folder)
        address = f"127.0.0.1:{_free_port()}"
        entries = []
        for place, name in enumerate(job.names):
            identity = Identity.create(name, days=1)
            identity.save(keys / f"{place}.key", keys / f"{place}.crt")
            entries.append(entry_of(identity, None if place else address))
        (keys / "federation.toml").write_text("\n".join(entries), encoding="utf-8")
        commands = {
            name: [
                *COMMAND,
                *("run-party", str(path), name, "--federation", str(keys / "federation.toml")),
                *("--key", str(keys / f"{place}.key")),
                *("--certificate", str(keys / f"{place}.crt")),
                *(("--out", str(out)) if out else ()),
            ]
            for place, name in enumerate(job.names)
        }
        settings = job.fdskl()
        spared = settings.asynchronous and settings.allow_missing
        return supervise(commands, tell, job.label_parties if spared else ())


def run_ranks(path: Path, job: Job, out: Path | None, tell: Tell) -> None:
    """All parties as MPI ranks, under an mpiexec started here."""
    command = [
        *(str(Path(sys.executable).with_name("mpiexec")), "-n", str(len(job.names))),
        *("--oversubscribe", "--mca", "mpi_yield_when_idle", "1"),
        *(*COMMAND, "run", str(path), "--mesh", "mpi", "--reports"),
        *(("--out", str(out)) if out else ()),
    ]
    if not Path(command[0]).exists():
        raise InputError(
            "--mesh mpi needs mpiexec next to this Python; install vertikal[mpi], or start "
            "`mpiexec -n ... vertikal run` yourself"
        )
    if os.geteuid() == 0 and not all(os.environ.get(name) == "1" for name in AS_ROOT):
        raise InputError(f"--mesh mpi as root needs {' and '.join(AS_ROOT)} set to 1")
    supervise({"mpiexec": command}, tell)


def supervise(
    commands: Mapping[str, list[str]], tell: Tell, dispensable: tuple[str, ...] = ()
) -> tuple[str, ...]:
    """Run these commands until all have ended; when one fails, or at Ctrl-C, the others end too.

    The failure of one of the ``dispensable`` does not end the others while one of them is left;
    those that failed are returned.
    """
    said: dict[str, str] = {}
    last: dict[str, str] = {}
    children: dict[str, subprocess.Popen[str]] = {}
    readers = []
    try:
        for name, command in commands.items():
            child = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                # Ctrl-C reaches this process only, which then ends the others in good order.
                start_new_session=True,
            )
            children[name] = child
            readers += [
                _thread(_read_reports, child, tell, said),
                _thread(_read_errors, name, child, last),
            ]
        _await(children, dispensable)
    except BaseException:
        _end(children)
        raise
    finally:
        for reader in readers:
            reader.join(GRACE)
        for child in children.values():
            for stream in (child.stdin, child.stdout, child.stderr):
                if stream:
                    stream.close()
    failed = [name for name, child in children.items() if child.returncode]
    if _fatal(failed, dispensable):
        raise MeshError(_words(failed, children, said, last))
    return tuple(failed)


def _words(
    failed: list[str],
    children: Mapping[str, subprocess.Popen[str]],
    said: Mapping[str, str],
    last: Mapping[str, str],
) -> str:
    """Which party failed and why: the one that began it rather than those that it stopped."""
    for name in failed:
        code = children[name].returncode
        if code < 0 and code not in (-signal.SIGTERM, -signal.SIGINT):
            return f"{name}: its process was ended by signal {signal.Signals(-code).name}"
    causes = {name: words for name, words in said.items() if " stopped (" not in words}
    for name, words in (*causes.items(), *said.items()):
        return words if words.startswith(f"{name}:") else f"{name}: {words}"
    name = failed[0]
    return f"{name}: {last.get(name) or f'ended with code {children[name].returncode}'}"


def _fatal(failed: list[str], dispensable: tuple[str, ...]) -> bool:
    return bool(set(failed) - set(dispensable)) or bool(failed and set(failed) >= set(dispensable))


def _await(children: Mapping[str, subprocess.Popen[str]], dispensable: tuple[str, ...]) -> None:
    until: float | None = None
    while any(child.poll() is None for child in children.values()):
        failed = [name for name, child in children.items() if child.poll()]
        if until is None and _fatal(failed, dispensable):
            # The others hear of it through the mesh; who does not end by itself is ended.
            until = time.monotonic() + GRACE
        if until is not None and time.monotonic() > until:
            _end(children)
        time.sleep(0.05)


def _end(children: Mapping[str, subprocess.Popen[str]]) -> None:
    for child in children.values():
        if child.poll() is None:
            child.send_signal(signal.SIGTERM)
    until = time.monotonic() + GRACE
    for child in children.values():
        try:
            child.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def _read_reports(child: subprocess.Popen[str], tell: Tell, said: dict[str, str]) -> None:
    assert child.stdout is not None
    for line in child.stdout:
        try:
            report = msgspec.json.decode(line, type=Report)
        except msgspec.DecodeError:
            continue
        if report.ended not in ("", "done"):
            said.setdefault(report.party, report.ended)
        tell(report)


def _read_errors(name: str, child: subprocess.Popen[str], last: dict[str, str]) -> None:
    assert child.stderr is not None
    for line in child.stderr:
        if line.strip():
            last[name] = line.strip().removeprefix("error: ")


def _thread(work: Callable[..., None], *arguments: object) -> threading.Thread:
    thread = threading.Thread(target=work, args=arguments, daemon=True)
    thread.start()
    return thread


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def end_with_parent() -> None:
    """In a child: stop as if interrupted when the process that started this one is gone."""

    def watch() -> None:
        while os.read(0, 1024):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    signal.signal(signal.SIGTERM, _interrupt)
    _thread(watch)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt
