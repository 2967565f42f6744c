"""The frame of every page, and the parts of a request that a page may use."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup, escape

from vertikal.console.guard import FORM_FIELD
from vertikal.console.party_view import PartyView
from vertikal.console.results import Results
from vertikal.console.sessions import Session
from vertikal.errors import RequestRefused
from vertikal.reporting.rendering import render_template
from vertikal.reporting.text_width import legible
from vertikal.version import __version__

PACKAGES = ("vertikal.console", "vertikal.node.models")
_CODE = re.compile(r"`([^`<>]+)`")
MENU = {
    "overview": ("Overview", "/"),
    "jobs": ("Jobs", "/jobs"),
    "models": ("Models", "/models"),
    "tables": ("Tables and policy", "/tables"),
    "audit": ("Audit", "/audit"),
}
"""Pages by key: title and path."""


@dataclass(frozen=True)
class PageAnswer:
    """The answer to a request: a page, a file to keep, or the way to another page."""

    content: str | bytes = ""
    status: int = 200
    media_type: str = "text/html"
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def to(cls, path: str) -> PageAnswer:
        """Send the browser to another page after a change, so that a reload repeats nothing."""
        return cls("", 303, headers={"location": path})

    @classmethod
    def file(cls, content: str | bytes, name: str, media_type: str) -> PageAnswer:
        """Send a file that the browser keeps, and does not open as a page."""
        return cls(
            content,
            media_type=media_type,
            headers={"content-disposition": f'attachment; filename="{name}"'},
        )


@dataclass(frozen=True)
class PageRequest:
    """A request of somebody with a session."""

    view: PartyView
    session: Session
    path: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    form: Mapping[str, str] = field(default_factory=dict)
    results: Results = field(default_factory=Results)

    def page(
        self, template: str, *, menu: str, title: str, status: int = 200, **values: Any
    ) -> PageAnswer:
        """Fill a template of this room that extends "frame.html"."""
        return PageAnswer(self.fill(template, menu=menu, title=title, **values), status)

    def fill(self, template: str, **values: Any) -> str:
        """Fill a template, a page or a part of one."""
        return fill(template, party=self.view.name, session=self.session, **values)

    def number(self, name: str) -> int:
        """Read a number of the path."""
        text = self.path[name]
        if not text.isascii() or not text.isdigit() or len(text) > 9:
            raise RequestRefused(404, "there is no such page")
        return int(text)


def coded(text: object) -> Markup:
    """Escape a text, and set what stands in backticks as code."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(legible(str(text))))))


def fill(template: str, *, party: str, session: Session | None, **values: Any) -> str:
    """Fill a template; a form token is in it only for who has a session."""
    token = session.form_token if session else ""
    frame = {
        "party": party,
        "role": session.role if session else "",
        "may_decide": session is not None and session.may_decide,
        "form_token": Markup('<input type="hidden" name="{}" value="{}">').format(
            FORM_FIELD, token
        ),
        "menu_pages": MENU,
        "version": __version__,
        "headings": [],
        "coded": coded,
        "live": "",
        "again": 0,
        "wait": 0,
    }
    return render_template(PACKAGES, template, **(frame | values))
