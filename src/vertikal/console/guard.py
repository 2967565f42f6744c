"""The guard before every page: who asks, from where, and what the browser may do with the answer.

A request must name this console as its host, or another site's name that was pointed at loopback
would speak for it (DNS rebinding). It must come from a page of this console or from nowhere, it
must show a session, and a change must carry the token that only pages of that session have.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import urlsplit

from vertikal.console.sessions import Session, Sessions

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

SESSION = "vertikal.session"
"""Key of the session in the scope of a request."""
FORM_FIELD = "form_token"
FREE_PATHS = ("/enter", "/static/")
"""Paths that need no session: the way in, and files that say nothing about the party."""
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    # Without a referrer at all browsers do not say either from which page a form comes.
    "referrer-policy": "same-origin",
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
_HEADERS = [(key.encode(), value.encode()) for key, value in HEADERS.items()]


class Guard:
    """Lets requests through to an application, or refuses them.

    ``origins`` are the addresses under which this console may be asked. ``refuse`` answers what is
    not let through, ``admitted`` hears of clients that have a session.
    """

    def __init__(
        self,
        application: Application,
        sessions: Sessions,
        origins: Callable[[], tuple[str, ...]],
        cookie: str,
        refuse: Callable[[int, str], Application],
        admitted: Callable[[Any], object],
    ) -> None:
        self._application = application
        self._sessions = sessions
        self._origins = origins
        self._cookie = cookie
        self._refuse = refuse
        self._admitted = admitted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return

        async def send_guarded(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                own = {name for name, _ in message["headers"]}
                message["headers"] = [
                    *message["headers"],
                    *(
                        (k.encode(), v.encode())
                        for k, v in HEADERS.items()
                        if k.encode() not in own
                    ),
                ]
            await send(message)

        chosen = self._choose(scope)
        await chosen(scope, receive, send_guarded)

    def _choose(self, scope: Scope) -> Application:
        """Return the application, or one that refuses."""
        fault = self._fault_of_origin(scope)
        if fault:
            return self._refuse(403, fault)
        if scope["method"] not in ("GET", "HEAD", "POST"):
            return self._refuse(405, "only GET, HEAD and POST are answered")
        session = self._session(scope)
        scope[SESSION] = session
        if session is not None:
            self._admitted(scope.get("client"))
        elif not scope["path"].startswith(FREE_PATHS):
            return self._refuse(
                401, "this page needs a link: run `vertikal console` and open what it prints"
            )
        return self._application

    def _fault_of_origin(self, scope: Scope) -> str:
        """Say why the host or the page that asks is not this console; nothing if it is."""
        origins = self._origins()
        hosts = {urlsplit(origin).netloc for origin in origins}
        if _values(scope, b"host") not in [[host] for host in hosts]:
            return f"the console answers at {', '.join(sorted(hosts))} only"
        for origin in _values(scope, b"origin"):
            if origin not in origins:
                return "a page of another site may not ask the console"
        site = "".join(_values(scope, b"sec-fetch-site"))
        navigates = _values(scope, b"sec-fetch-mode") == ["navigate"] and scope["method"] == "GET"
        if site in ("cross-site", "same-site") and not navigates:
            return "a page of another site may not ask the console"
        if scope["method"] == "POST" and not _values(scope, b"origin") and site != "same-origin":
            return "a change must come from a page of the console"
        return ""

    def _session(self, scope: Scope) -> Session | None:
        for text in _values(scope, b"cookie"):
            try:
                found = SimpleCookie(text).get(self._cookie)
            except CookieError:
                continue
            if found is not None:
                return self._sessions.find(found.value)
        return None


def is_from_form(session: Session, fields: MutableMapping[str, str]) -> bool:
    """Return True if a form comes from a page of this session; takes its token out."""
    given = fields.pop(FORM_FIELD, "")
    return hmac.compare_digest(given.encode(), session.form_token.encode())


def _values(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in scope["headers"] if key == name]
