"""The page of decisions: what is known of a user, now and at past moments, why, and what waits to be settled.

Rendered by the server: htmx exchanges the list of facts while a slider moves, and without scripts a button does. No
text of a user is ever HTML: the templates escape everything.
"""

import math
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlencode

import jinja2
from fastapi import APIRouter, Depends, Form, Query, Request
from pydantic import BeforeValidator, Field
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response

from mnemolog.client.inputs import in_utc
from mnemolog.projections.queries.entity_graph import EntityGraph
from mnemolog.projections.queries.pending import PendingMerge
from mnemolog.projections.queries.results import Axis
from mnemolog.server.access import ForbiddenError, NotAuthenticatedError
from mnemolog.server.bodies import Body
from mnemolog.server.gate import COOKIE, Access, Authorise, Gate, Ids
from mnemolog.server.operations import failed_turns

MAX_FACTS: Final = 1000
STEPS: Final = 1000
"""Places of a slider, from the first moment of a scope to the last one."""
COMMAND_SECONDS: Final = 10.0
"""So long an answer to a click waits for the end of its command."""
PUBLIC: Final = ("/page/sign-in", "/page/static/{name}")
HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # with "no-referrer" a browser names no origin of a form
    "Cache-Control": "no-store",
}
_TEMPLATES: Final = jinja2.Environment(
    loader=jinja2.PackageLoader("mnemolog.server.page"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_TEMPLATES.filters["day"] = lambda at: f"{at:%Y-%m-%d %H:%M}" if at else ""
_TEMPLATES.filters["plain"] = lambda name: str(name).replace("_", " ")
_FOLDER: Final = Path(__file__).parent
MAX_USERS: Final = 100
MAX_DRAWN: Final = 40
MAX_KEY: Final = 8000
MAX_QUESTION: Final = 2000
SIGNED_IN_SECONDS: Final = 12 * 3600
_RADIUS: Final = 40.0


router = APIRouter(include_in_schema=False)


def _page(name: str, values: Mapping[str, Any], *, status: int = 200) -> HTMLResponse:
    return HTMLResponse(_TEMPLATES.get_template(f"{name}.html").render(values), status, HEADERS)


def is_page(request: Request) -> bool:
    return request.url.path == "/" or request.url.path.startswith("/page/")


def error_page(request: Request, error: Exception, status: int, detail: str) -> Response:
    """What a browser shows where a request ended with `error`; who has not signed in is sent to do so."""
    if not isinstance(error, NotAuthenticatedError):
        return _page("error", {"message": detail, "ids": {}}, status=status)
    if request.method == "GET":
        return RedirectResponse("/page/sign-in", HTTPStatus.SEE_OTHER)
    return _page("sign_in", {"ids": {}, "message": detail}, status=status)


class View:
    """The memory of one scope as a page: a client that is bound to it, and what every template needs."""

    def __init__(self, access: Access, request: Request, ids: Mapping[str, str | None]) -> None:
        bound = access.scope({name: value or None for name, value in ids.items()})
        self.ids = {name: str(value) for name, value in bound.items() if name in ids}
        self.memory = access.memory(self.ids)
        self.can_command = request.app.state.page_commands and "command" in access.principal.rights

    def show(self, name: str, *, status: int = 200, **values: Any) -> HTMLResponse:
        shown = {"ids": self.ids, "query": urlencode(self.ids), "can_command": self.can_command, **values}
        return _page(name, shown, status=status)


MayRead = Annotated[Access, Depends(Authorise("read", by_cookie=True))]
MayCommand = Annotated[Access, Depends(Authorise("command", by_cookie=True))]
MayAdminister = Annotated[Access, Depends(Authorise("admin", by_cookie=True))]


def _viewed(request: Request, access: MayRead, ids: Ids) -> View:
    return View(access, request, ids)


Viewed = Annotated[View, Depends(_viewed)]


@router.get("/")
async def start(request: Request, access: MayRead) -> Response:
    """Whose memory is to be seen; of a key for one user it is that one's."""
    users = access.principal.users
    if not users.is_prefix:
        return RedirectResponse(f"/page/facts?{urlencode({'user_id': users.id})}", HTTPStatus.SEE_OTHER)
    can_list = users.is_everybody and "admin" in access.principal.rights
    known = await access.memory({}).admin.users(limit=MAX_USERS) if can_list else []
    return _page("start", {"ids": {}, "users": known, "signed_in": COOKIE in request.cookies})


@router.get("/page/sign-in")
async def sign_in_form() -> Response:
    return _page("sign_in", {"ids": {}, "message": ""})


@router.post("/page/sign-in")
async def sign_in(request: Request, key: Annotated[str, Form(max_length=MAX_KEY)]) -> Response:
    """Keep a key or token in a cookie that no script reads and that no other site sends."""
    check_same_site(request)
    gate: Gate = request.app.state.gate
    await gate.access(request, "read", credentials=key.strip())
    answer = RedirectResponse("/", HTTPStatus.SEE_OTHER)
    is_secure = request.url.scheme == "https"
    answer.set_cookie(
        COOKIE, key.strip(), httponly=True, samesite="strict", secure=is_secure, max_age=SIGNED_IN_SECONDS
    )
    return answer


@router.post("/page/sign-out")
async def sign_out(request: Request, _: MayRead) -> Response:
    check_same_site(request)
    answer = RedirectResponse("/page/sign-in", HTTPStatus.SEE_OTHER)
    answer.delete_cookie(COOKIE)
    return answer


@router.get("/page/static/{name}")
async def static(name: Literal["htmx.min.js", "page.css"]) -> Response:
    kind = "text/javascript" if name.endswith(".js") else "text/css"
    return FileResponse(_FOLDER / name, media_type=kind, headers={"Cache-Control": "max-age=3600"})


Place = Annotated[int, Query(ge=0, le=STEPS)]


@router.get("/page/facts")
async def facts(request: Request, view: Viewed, believed: Place = STEPS, true: Place = STEPS) -> Response:
    """The facts of a scope: what was believed at one place of time to be true at another; the last place is now."""
    now = datetime.now(UTC)
    learned, began = await view.memory.admin.first_moments() or (now, now)
    told, held = _at(believed, learned, now), _at(true, began, now)
    is_now = believed == true == STEPS
    asked: dict[str, Any] = {"limit": MAX_FACTS} if is_now else {"believed_at": told, "true_at": held}
    found = await view.memory.facts(**asked)
    values: dict[str, Any] = {"facts": found, "told": told, "held": held, "told_place": believed, "held_place": true}
    name = "facts_list" if request.headers.get("hx-request") == "true" else "facts"
    return view.show(name, **values, is_now=is_now, last=STEPS, is_cut=is_now and len(found) == MAX_FACTS)


def _at(place: int, first: datetime, now: datetime) -> datetime:
    """The moment at a place of a slider that leads from the first moment to now."""
    return now if place == STEPS else now - max(now - first, timedelta()) * (STEPS - place) / STEPS


@router.get("/page/fact")
async def fact(view: Viewed, fact_id: str) -> Response:
    """One fact's life: its turn and excerpt, the candidates, the decision and its reason, versions and events."""
    explained = await view.memory.explain(fact_id)
    return view.show("fact", explained=explained, history=await view.memory.history(fact_id))


@router.get("/page/settle")
async def settle(view: Viewed) -> Response:
    """What waits for a confirmation, and what contradicts what."""
    waiting = await view.memory.pending()
    merges = [one for one in waiting if isinstance(one, PendingMerge)]
    held = [one for one in waiting if not isinstance(one, PendingMerge)]
    return view.show("settle", held=held, merges=merges, unresolved=await view.memory.unresolved())


@router.get("/page/people")
async def people(view: Viewed) -> Response:
    """The entities of a scope, and a graph of their relations."""
    graph = await view.memory.entities.graph()
    listed = await view.memory.entities.list(limit=MAX_FACTS)
    names = {one.entity_id: one.name for one in listed}
    return view.show("people", entities=listed, names=names, relations=graph.relations, drawing=drawing_of(graph))


def drawing_of(graph: EntityGraph) -> dict[str, Any]:
    """The places of a graph's entities on a circle, and its lines, in a square of 100 by 100."""
    shown = graph.entities[:MAX_DRAWN]
    angles = [math.tau * number / max(1, len(shown)) for number in range(len(shown))]
    places = {
        one.entity_id: (50 + _RADIUS * math.sin(angle), 50 - _RADIUS * math.cos(angle))
        for one, angle in zip(shown, angles, strict=True)
    }
    lines = [
        {"from": places[one.subject_id], "to": places[one.object_id], "relation": one}
        for one in graph.relations
        if one.subject_id in places and one.object_id in places
    ]
    nodes = [{"at": places[one.entity_id], "entity": one} for one in shown]
    return {"nodes": nodes, "lines": lines, "left_out": len(graph.entities) - len(shown)}


Typed = Annotated[datetime | None, BeforeValidator(lambda given: given or None)]
"""A time as a form sends it: an empty field is none."""


@router.get("/page/diff")
async def diff(view: Viewed, since: Typed = None, until: Typed = None, axis: Axis = "believed") -> Response:
    """What changed between two moments; in a week up to now unless given. Times without an offset are UTC."""
    now = datetime.now(UTC)
    begin = in_utc(since) if since else now - timedelta(days=7)
    end = in_utc(until) if until else now
    changes = await view.memory.diff(begin, end, axis=axis)
    return view.show("diff", changes=changes, since=begin, until=end, axis=axis)


@router.get("/page/search")
async def search(view: Viewed, q: Annotated[str, Query(max_length=MAX_QUESTION)] = "") -> Response:
    """The facts that a question finds, with the parts of their scores."""
    found = await view.memory.search(q, limit=20) if q.strip() else None
    return view.show("search", found=found, question=q)


@router.get("/page/failed")
async def failed(access: MayAdminister) -> Response:
    """The newest failed turns of the tenant, whether the servers answer, and what turns wait for."""
    client = access.memory({})
    await client.ping()
    problems = await client._problems()  # noqa: SLF001 - what a wait in vain tells, too
    return _page("failed", {"ids": {}, "problems": problems, "turns": await failed_turns(access, limit=100)})


class Decision(Body):
    """The form of a button: what is to be done with a fact, a proposed merge or an event of a scope."""

    what: Literal["confirm", "reject", "keep_both", "keep_old", "replace", "undo"]
    target: str = Field(max_length=MAX_KEY)


@router.post("/page/settle")
async def decide(request: Request, access: MayCommand, form: Annotated[Decision, Form()]) -> Response:
    """Confirm, reject, resolve or undo; then what is left to settle, or what went wrong."""
    check_same_site(request)
    view = View(access, request, form.ids)
    if not view.can_command:
        raise ForbiddenError("this page only reads: MNEMOLOG_HTTP_PAGE_COMMANDS=true lets it change memory")
    memory, target = view.memory, form.target
    match form.what:
        case "confirm":
            sent = await memory.confirm(target, wait=COMMAND_SECONDS)
        case "reject":
            sent = await memory.reject(target, wait=COMMAND_SECONDS)
        case "undo":
            sent = await memory.undo(event_id=target, wait=COMMAND_SECONDS)
        case settled:
            sent = await memory.resolve(target, settled, wait=COMMAND_SECONDS)
    if not sent.success:
        return view.show("error", message=sent.error or sent.status, status=HTTPStatus.CONFLICT)
    return RedirectResponse(f"/page/settle?{urlencode(view.ids)}", HTTPStatus.SEE_OTHER)


def check_same_site(request: Request) -> None:
    """Raise `ForbiddenError` for a form that a page of another site has sent; every browser names the origin."""
    origin = request.headers.get("origin", "").partition("://")[2]
    if not origin or origin != request.headers.get("host"):
        raise ForbiddenError("this form comes from another site: open the page itself")
