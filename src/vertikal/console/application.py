"""The routes of the console, behind the guard."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Any

from vertikal.console import live
from vertikal.console.forms import read_body, read_form
from vertikal.console.guard import SESSION, Guard, is_from_form
from vertikal.console.page import PageAnswer, PageRequest, fill
from vertikal.console.pages import audit, jobs, models, overview, tables
from vertikal.console.party_view import PartyView
from vertikal.console.results import Results
from vertikal.console.sessions import Session, Sessions
from vertikal.errors import RequestRefused, VertikalError
from vertikal.reporting.rendering import render_template

PAGES: dict[str, Callable[[PageRequest], PageAnswer]] = {
    "/": overview.overview,
    "/jobs": jobs.job_list,
    "/jobs/{digest}": jobs.job_page,
    "/jobs/{digest}/{verdict}": jobs.confirm,
    "/models": models.model_list,
    "/models/compare": models.compared,
    "/models/{name}/{version}": models.model,
    "/models/{name}/{version}/report": models.report,
    "/models/{name}/{version}/card": models.model_card,
    "/models/{name}/{version}/delete": models.confirm_delete,
    "/models/{name}/{version}/scores/{kept}": models.scores,
    "/models/{name}/{version}/scores/{kept}/file": models.scores_file,
    "/tables": tables.tables,
    "/audit": audit.audit,
    "/audit/file": audit.export,
}
"""Pages by path."""
CHANGES: dict[str, Callable[[PageRequest], PageAnswer]] = {
    "/jobs/{digest}/{verdict}": jobs.decide,
    "/models/{name}/{version}/delete": models.delete,
    "/models/{name}/{version}/score": models.score,
    "/tables/check": tables.check,
    "/audit/verify": audit.verified,
}
"""Changes by path; each needs the token of a form."""
LIVE: dict[str, Callable[[PageRequest], dict[str, str]]] = {
    "/live/overview": overview.regions,
    "/live/jobs/{digest}": jobs.regions,
}
"""Streams by path."""
STATIC = {
    "console.css": "text/css",
    "console.js": "text/javascript",
    "charts.css": "text/css",
    "tips.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}


class Console:
    """The console of one party as an ASGI application.

    ``origins`` are the addresses under which browsers may ask for it; the first is its own.
    ``note`` hears of sessions that begin and end, for the audit log.
    """

    def __init__(
        self,
        view: PartyView,
        sessions: Sessions,
        origins: tuple[str, ...] = (),
        note: Callable[..., object] = lambda event, **facts: None,
    ) -> None:
        self.view = view
        self.sessions = sessions
        self.origins = origins
        self.streams = live.Streams()
        self.results = Results()
        self._note = note

    def admitting(self, admitted: Callable[[Any], object] = lambda client: None) -> Guard:
        """Make the application; ``admitted`` hears of clients that have a session."""
        return Guard(
            _routes(self), self.sessions, lambda: self.origins, self.cookie, self._refuse, admitted
        )

    @property
    def cookie(self) -> str:
        """Name of the cookie; that of another party's console on this machine is another."""
        return f"vertikal-console-{self.view.name}"

    def enter(self, token: str) -> tuple[str, Session] | None:
        found = self.sessions.enter(token)
        if found is not None:
            self._note("console session", role=found[1].role)
        return found

    def leave(self, session: Session) -> None:
        self.sessions.end(session)
        self._note("console session ended", role=session.role)

    def error(self, status: int, words: str, session: Session | None = None) -> PageAnswer:
        """Make the page of an error; its words may be those of another party."""
        title = {
            401: "Please open a link",
            403: "Not allowed",
            404: "Not found",
            503: "This cannot be shown now",
        }.get(status, "That did not work")
        page = fill(
            "error.html",
            party=self.view.name,
            session=session,
            menu="",
            title=title,
            words=words,
            status=status,
            wait=5 if status == 503 else 0,
        )
        return PageAnswer(page, status)

    def _refuse(self, status: int, words: str) -> Any:
        return _response(self.error(status, words))


def _routes(console: Console) -> Any:
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.requests import ClientDisconnect, Request
    from starlette.responses import StreamingResponse
    from starlette.routing import Route

    def asked_by(request: Request, form: dict[str, str] | None = None) -> PageRequest:
        return PageRequest(
            console.view,
            request.scope[SESSION],
            dict(request.path_params),
            dict(request.query_params),
            form or {},
            console.results,
        )

    def answered(
        make: Callable[[PageRequest], PageAnswer], asked: PageRequest, fault: int
    ) -> PageAnswer:
        try:
            return make(asked)
        except RequestRefused as refusal:
            return console.error(refusal.status, str(refusal), asked.session)
        except VertikalError as error:
            return console.error(fault, " ".join(str(error).split()), asked.session)

    def page(make: Callable[[PageRequest], PageAnswer]) -> Any:
        async def answer(request: Request) -> Any:
            return _response(await run_in_threadpool(answered, make, asked_by(request), 503))

        return answer

    def change(make: Callable[[PageRequest], PageAnswer]) -> Any:
        async def answer(request: Request) -> Any:
            session = request.scope[SESSION]
            try:
                body = await read_body(request.stream())
                form = read_form(request.headers.get("content-type", ""), body)
            except RequestRefused as refusal:
                return _response(console.error(refusal.status, str(refusal), session))
            except ClientDisconnect:
                return _response(PageAnswer("", 400))
            if not is_from_form(session, form):
                words = "this form is not of your session; open the page again. Nothing was done"
                return _response(console.error(403, words, session))
            return _response(await run_in_threadpool(answered, make, asked_by(request, form), 400))

        return answer

    def stream(make: Callable[[PageRequest], dict[str, str]]) -> Any:
        async def answer(request: Request) -> Any:
            asked = asked_by(request)
            watcher = live.Watcher(request.cookies.get(console.cookie, ""), asked.session.digest)
            found = console.streams.events(
                # Parts of a page have no token in them: all of one role see the same.
                (request.url.path, asked.session.role),
                watcher,
                lambda: make(asked),
                # A page that is left open must not keep its session.
                lambda cookie: console.sessions.find(cookie, used=False),
                run_in_threadpool,
            )
            return StreamingResponse(found, media_type="text/event-stream")

        return answer

    async def enter(request: Request) -> Any:
        token = request.query_params.get("token", "")
        # Who only asks for the headers, as a scanner of links does, must not use the link up.
        found = None if request.method == "HEAD" else await run_in_threadpool(console.enter, token)
        if found is None:
            words = (
                "this link was used already, or is too old: each is good once, for ten minutes. "
                "Run `vertikal console` for another"
            )
            return _response(console.error(401, words))
        # A page and no redirect: a browser that came from elsewhere would not send the new cookie.
        told = fill(
            "entered.html", party=console.view.name, session=found[1], menu="", title="Welcome"
        )
        response = _response(PageAnswer(told))
        response.set_cookie(
            console.cookie,
            found[0],
            httponly=True,
            samesite="strict",
            path="/",
            secure=console.origins[0].startswith("https:") if console.origins else False,
        )
        return response

    async def static(request: Request) -> Any:
        name = request.path_params["name"]
        if name not in STATIC:
            return _response(console.error(404, "there is no such page", request.scope[SESSION]))
        return _response(PageAnswer(static_file(name), media_type=STATIC[name]))

    async def lost(request: Request, error: Exception) -> Any:
        return _response(console.error(404, "there is no such page", request.scope[SESSION]))

    def leave(asked: PageRequest) -> PageAnswer:
        console.leave(asked.session)
        return PageAnswer(
            fill("left.html", party=console.view.name, session=None, menu="", title="Signed out")
        )

    routes = [
        Route("/enter", enter, methods=["GET"]),
        Route("/static/{name}", static, methods=["GET"]),
        Route("/sign-out", change(leave), methods=["POST"]),
        *(Route(path, change(make), methods=["POST"]) for path, make in CHANGES.items()),
        *(Route(path, stream(make), methods=["GET"]) for path, make in LIVE.items()),
        *(Route(path, page(make), methods=["GET"]) for path, make in PAGES.items()),
    ]
    return Starlette(routes=routes, exception_handlers={404: lost, 405: lost})


def _response(answer: PageAnswer) -> Any:
    from starlette.responses import Response

    return Response(
        answer.content, answer.status, dict(answer.headers), media_type=answer.media_type
    )


@cache
def static_file(name: str) -> bytes:
    """Read a file that pages need; those of charts are the ones of reports."""
    if name == "charts.css":
        return render_template((), "charts.css").encode()
    if name == "tips.js":
        return render_template((), "page.js").encode()
    return (files("vertikal.console") / "static" / name).read_bytes()
