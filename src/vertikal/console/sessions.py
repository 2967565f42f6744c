"""Links to the console that are good once, and the sessions that they begin.

A link is a random token that `vertikal console` prints. Whoever shows it first gets a session of
its role, and the link is gone. Only digests of tokens are on disk, in the party's store, which
nobody but the owner may enter: so commands make links for a console that runs already, and a
console that is started again still knows its sessions.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from vertikal.errors import InputError
from vertikal.files import private_folder, write_whole
from vertikal.records import from_json

VIEWER, APPROVER = "viewer", "approver"
ROLES = (VIEWER, APPROVER)
LINK_LIFE = 600.0
"""Seconds in which a link has to be used."""
SESSION_LIFE = 12 * 3600.0
"""Seconds after which a session ends, whatever happens in it."""
IDLE_LIFE = 3600.0
"""Seconds without a request after which it ends."""
_TOUCH = 60.0
"""Seconds between two marks that a session is used."""
_LINK, _SESSION = ".link", ".session"


class _Kept(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A link or a session on disk: its role, and when it ends."""

    role: str
    until: float


@dataclass(frozen=True)
class Session:
    """One browser that has shown a link."""

    digest: str
    role: str
    form_token: str
    """Token that each form of its pages carries: another site cannot know it."""

    @property
    def may_decide(self) -> bool:
        return self.role == APPROVER


class Sessions:
    """The links and sessions in one folder; several processes may use it at once."""

    def __init__(self, folder: Path, clock: Callable[[], float] = time.time) -> None:
        self._folder = private_folder(folder)
        self._clock = clock

    def make_link(self, role: str) -> str:
        """Return the token of a new link, which is good once and for a few minutes."""
        if role not in ROLES:
            raise InputError.of("role", f"one of {ROLES}", role)
        return self._make(_LINK, role, LINK_LIFE)

    def enter(self, token: str) -> tuple[str, Session] | None:
        """Use up a link; return the token of the session that begins, None if the link is no good.

        Of two that show the same link at once, one gets in.
        """
        path = self._find(token, _LINK)
        if path is None:
            return None
        kept = self._read(path)
        try:
            path.unlink()
        except FileNotFoundError:
            return None
        if kept is None or self._clock() >= kept.until:
            return None
        self._sweep()
        fresh = self._make(_SESSION, kept.role, SESSION_LIFE)
        return fresh, _session(fresh, kept.role)

    def find(self, token: str, *, used: bool = True) -> Session | None:
        """Return the session of this token, unless it has ended; ``used`` keeps it from ending."""
        path = self._find(token, _SESSION)
        kept = None if path is None else self._read(path)
        if path is None or kept is None:
            return None
        now = self._clock()
        try:
            last = path.stat().st_mtime
            if now >= kept.until or now >= last + IDLE_LIFE:
                path.unlink(missing_ok=True)
                return None
            if used and now >= last + _TOUCH:
                os.utime(path, (now, now))
        except FileNotFoundError:
            return None
        return _session(token, kept.role)

    def end(self, session: Session) -> None:
        """End one session."""
        (self._folder / f"{session.digest}{_SESSION}").unlink(missing_ok=True)

    def end_all(self) -> int:
        """End all sessions and take back all links; return how many sessions there were."""
        ended = 0
        for path in self._files(_LINK):
            path.unlink(missing_ok=True)
        for path in self._files(_SESSION):
            path.unlink(missing_ok=True)
            ended += 1
        return ended

    def _make(self, kind: str, role: str, life: float) -> str:
        token = secrets.token_urlsafe(32)
        now = self._clock()
        path = self._folder / f"{_digest(token)}{kind}"
        write_whole(path, msgspec.json.encode(_Kept(role, now + life)), durable=False)
        os.utime(path, (now, now))
        return token

    def _find(self, token: str, kind: str) -> Path | None:
        """Find the file of a token; the time that this takes does not depend on the token."""
        wanted, found = _digest(token), None
        for path in self._files(kind):
            if hmac.compare_digest(path.name.removesuffix(kind), wanted):
                found = path
        return found

    def _files(self, kind: str) -> Iterator[Path]:
        return (path for path in list(self._folder.iterdir()) if path.name.endswith(kind))

    def _read(self, path: Path) -> _Kept | None:
        with suppress(OSError, msgspec.DecodeError):
            return from_json(path.read_bytes(), _Kept)
        return None

    def _sweep(self) -> None:
        """Remove what has ended, of which nobody shows the token any more."""
        for kind in (_LINK, _SESSION):
            for path in self._files(kind):
                kept = self._read(path)
                if kept is None or self._clock() >= kept.until:
                    path.unlink(missing_ok=True)


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


def _session(token: str, role: str) -> Session:
    form = hmac.new(token.encode(), b"vertikal console form", hashlib.sha256).hexdigest()
    return Session(_digest(token), role, form)
