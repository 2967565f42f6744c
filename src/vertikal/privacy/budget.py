"""An owner's budget file: what all jobs together may spend of one party's privacy, and have spent.

The file lies with the owner of the data, in JSON. A job reserves its whole cost before anything
leaves the party; one that would exceed the total is refused there, and an interrupted job stays
charged. Costs add up as μ² (Gaussian DP), which is exact for Gaussian releases.
"""

from __future__ import annotations

import contextlib
import fcntl
import math
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import msgspec

from vertikal.errors import BudgetSpent, InputError
from vertikal.files import sync_folder
from vertikal.privacy.accountant import check_budget, epsilon_of, mu_of
from vertikal.records import check_format, from_json


class Charge(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One job's charge."""

    job: str
    mu: float
    rounds: int


FORMAT = 1


class _Content(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    epsilon: float
    delta: float
    entries: tuple[Charge, ...] = ()
    format: int = FORMAT


class BudgetFile:
    """The budget of one party at ``path``; made with `BudgetFile.create`, which sets the total."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._read()

    @classmethod
    def create(cls, path: str | os.PathLike[str], *, epsilon: float, delta: float) -> BudgetFile:
        """A new file with a total of (ε, δ); refuses to replace one that is there."""
        if not _make(Path(path), epsilon, delta):
            raise InputError(
                f"budget file must be new, got {os.fspath(path)!r}, which exists; "
                "what is spent cannot be forgotten by starting again"
            )
        return cls(path)

    @classmethod
    def obtain(cls, path: str | os.PathLike[str], *, epsilon: float, delta: float) -> BudgetFile:
        """Open the file at ``path``; if there is none, make it with this total.

        Two that call this at once get the same file.
        """
        if not Path(path).exists():
            _make(Path(path), epsilon, delta)
        return cls(path)

    @property
    def entries(self) -> tuple[Charge, ...]:
        """The charges so far, oldest first."""
        return self._read().entries

    @property
    def total(self) -> tuple[float, float]:
        """(ε, δ) that all jobs together may spend."""
        content = self._read()
        return content.epsilon, content.delta

    @property
    def spent(self) -> float:
        """ε spent so far, at the file's δ."""
        content = self._read()
        return epsilon_of(_mu(content), content.delta)

    def charge(self, party: str, job: str, mu: float, rounds: int) -> None:
        """Book a job of Gaussian releases of μ in all, or refuse it."""
        if not (math.isfinite(mu) and mu > 0):
            raise InputError.of("mu", "a positive number", mu)
        with self._locked():
            content = self._read()
            after = msgspec.structs.replace(
                content, entries=(*content.entries, Charge(job, mu, rounds))
            )
            if _mu(after) > mu_of(content.epsilon, content.delta) * (1 + 1e-8):
                spent = epsilon_of(_mu(content), content.delta)
                wanted = epsilon_of(_mu(after), content.delta)
                earlier = sum(bool(job) and entry.job == job for entry in content.entries)
                runs = f" ({earlier} earlier runs of it are charged)" if earlier else ""
                raise BudgetSpent(
                    f"{party}: budget file {str(self.path)!r} allows epsilon {content.epsilon:g} "
                    f"at delta {content.delta:g}, {spent:.4g} is spent and this job{runs} would "
                    f"make it {wanted:.4g}; {_remedy(content)}"
                )
            # Written beside and moved over, so that a crash leaves the old file or the new one.
            fresh = self.path.with_name(self.path.name + ".new")
            _write(fresh, after)
            os.replace(fresh, self.path)
            # Before anything leaves the party: a loss of power must not bring the old file back.
            sync_folder(self.path.parent)

    def spend_rest(self, party: str, job: str) -> None:
        """Book all that is left, where nobody knows what was spent."""
        content = self._read()
        rest = mu_of(content.epsilon, content.delta) ** 2 - _mu(content) ** 2
        if rest > 0:
            self.charge(party, job, math.sqrt(rest), 0)

    def _read(self) -> _Content:
        try:
            raw = self.path.read_bytes()
            if not raw:
                # It may have held a charge: older versions did not wait for the folder, and a loss
                # of power could bring back what was there before the charge.
                raise InputError(
                    f"budget file {str(self.path)!r} is empty: a crash while it was made, or a "
                    "loss of power, leaves it so; restore it from a copy that holds all charges, "
                    "or remove it if no job with privacy has ever run here"
                )
            check_format(raw, FORMAT, f"budget file {str(self.path)!r}")
            content = from_json(raw, _Content)
        except FileNotFoundError:
            raise InputError(
                f"budget file must exist, got {str(self.path)!r}; "
                "make it with vertikal.privacy.budget.BudgetFile.create"
            ) from None
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
            raise InputError(
                f"budget file {str(self.path)!r} must be as written, got damaged content: {error}; "
                "restore it from a copy that holds all charges"
            ) from None
        check_budget(content.epsilon, content.delta)
        if not all(math.isfinite(entry.mu) and entry.mu > 0 for entry in content.entries):
            raise InputError(f"budget file {str(self.path)!r} holds a charge that is not positive")
        return content

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """One job at a time: two that start together must not both see the same rest."""
        name = self.path.with_name(self.path.name + ".lock")
        with open(name, "wb", opener=_private) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _remedy(content: _Content) -> str:
    """The remedy to name: the ε that is left. Fewer rounds would change the noise, not the cost."""
    left = max(mu_of(content.epsilon, content.delta) ** 2 - _mu(content) ** 2, 0.0)
    epsilon = math.floor(1000 * epsilon_of(math.sqrt(left), content.delta)) / 1000
    asked = f"ask for epsilon {epsilon:g} or less at that delta, or " if epsilon else ""
    return asked + "let the owner make a file with a larger total"


def _make(path: Path, epsilon: float, delta: float) -> bool:
    """Write a new file beside ``path`` and link it there, so that it is whole or missing.

    False if ``path`` exists.
    """
    check_budget(epsilon, delta)
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        _write(fresh, _Content(epsilon, delta))
        os.link(fresh, path)
    except FileExistsError:
        return False
    finally:
        fresh.unlink(missing_ok=True)
    sync_folder(path.parent)
    return True


def _write(path: Path, content: _Content) -> None:
    with open(path, "wb", opener=_private) as file:
        file.write(msgspec.json.encode(content))
        file.flush()
        os.fsync(file.fileno())


def _private(path: str, flags: int) -> int:
    """Open a file that only its owner may read and write."""
    return os.open(path, flags, 0o600)


def _mu(content: _Content) -> float:
    return math.sqrt(sum(entry.mu**2 for entry in content.entries))
