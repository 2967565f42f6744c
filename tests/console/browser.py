"""A browser without a screen: requests to the console's application in this process."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode, urlsplit

from vertikal.console.guard import FORM_FIELD

ORIGIN = "http://127.0.0.1:8601"


@dataclass(frozen=True)
class Reply:
    """An answer: headers by their names, each with all of its values."""

    status: int
    headers: dict[str, list[str]]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    def header(self, name: str) -> str:
        return ", ".join(self.headers.get(name, []))


def request(
    application: Any,
    method: str,
    path: str,
    headers: dict[str, str] | None = None,
    body: bytes = b"",
    until: bytes | None = None,
) -> Reply:
    """Ask an ASGI application; of a stream no more than ``until`` is read."""
    parts = urlsplit(path)
    sent: list[dict[str, Any]] = []
    given = {"host": urlsplit(ORIGIN).netloc, **(headers or {})}
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": parts.path,
        "raw_path": parts.path.encode(),
        "root_path": "",
        "query_string": parts.query.encode(),
        "headers": [
            (name.lower().encode(), one.encode("latin-1"))
            for name, value in given.items()
            for one in (value if isinstance(value, list) else [value])
        ],
        "client": ("127.0.0.1", 50000),
        "server": ("127.0.0.1", 8601),
    }

    async def ask() -> None:
        pieces = [{"type": "http.request", "body": body, "more_body": False}]
        enough = asyncio.Event()

        async def receive() -> dict[str, Any]:
            if pieces:
                return pieces.pop()
            await enough.wait()
            return {"type": "http.disconnect"}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)
            if until is not None and until in message.get("body", b""):
                enough.set()

        await asyncio.wait_for(application(scope, receive, send), 60)

    asyncio.run(ask())
    found: dict[str, list[str]] = {}
    for name, value in sent[0]["headers"]:
        found.setdefault(name.decode(), []).append(value.decode())
    whole = b"".join(message.get("body", b"") for message in sent[1:])
    return Reply(sent[0]["status"], found, whole)


@dataclass
class Browser:
    """A browser of the owner: it keeps the cookie, and sends what browsers send."""

    application: Any
    cookies: dict[str, str] = field(default_factory=dict)

    def enter(self, sessions: Any, role: str) -> Browser:
        """Open a one-time link."""
        self.get(f"/enter?token={sessions.make_link(role)}")
        return self

    def get(self, path: str, until: bytes | None = None, **headers: str) -> Reply:
        return self._keep(
            request(self.application, "GET", path, {**self.headers(), **headers}, until=until)
        )

    def post(self, path: str, fields: dict[str, str], **headers: str) -> Reply:
        own = {
            "origin": ORIGIN,
            "sec-fetch-site": "same-origin",
            "content-type": "application/x-www-form-urlencoded",
            **self.headers(),
            **headers,
        }
        body = urlencode(fields).encode()
        return self._keep(request(self.application, "POST", path, own, body))

    def form(self, path: str) -> dict[str, str]:
        """The hidden fields of the page's form in its content."""
        content = self.get(path).text.partition("<main")[2]
        found = re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)">', content)
        return dict(found)

    def token(self) -> dict[str, str]:
        """The field that each form of this session has."""
        text = self.get("/").text
        return {FORM_FIELD: text.partition(f'name="{FORM_FIELD}" value="')[2].partition('"')[0]}

    def headers(self) -> dict[str, str]:
        pairs = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        return {"cookie": pairs} if pairs else {}

    def _keep(self, reply: Reply) -> Reply:
        for line in reply.headers.get("set-cookie", []):
            name, _, value = line.partition(";")[0].partition("=")
            self.cookies[name] = value
        return reply
