"""Errors as `application/problem+json` (RFC 9457): one table from our errors to a status, and what is said besides."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

import orjson
from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict
from starlette.exceptions import HTTPException
from starlette.responses import Response

from mnemolog import errors
from mnemolog.common.logs import get_logger
from mnemolog.schemas.errors import describe_faults
from mnemolog.server import page
from mnemolog.server.access import ForbiddenError, NotAuthenticatedError
from mnemolog.server.gate import TooManyRequestsError
from mnemolog.streams.llm.ports import ProviderError

MEDIA_TYPE: Final = "application/problem+json"
RETRY_SECONDS: Final = 5
"""After which a client may ask again while a server is away."""
_AWAY: Final = "the memory is not available at the moment: send the request again after {} s"
_UNCONFIRMED: Final = "the broker has not confirmed it: send it again after {} s, with the same ids nothing is doubled"

ADVICE: Final = {
    400: "send JSON in UTF-8 that is not nested deeply",
    408: "the body did not come in time: send it again",
    413: "send it in parts, or raise MNEMOLOG_HTTP_MAX_BODY",
}

log = get_logger(__name__)

STATUSES: Final[Mapping[type[Exception], int]] = {
    NotAuthenticatedError: 401,
    ForbiddenError: 403,
    errors.LimitExceededError: 403,
    errors.UnknownFactError: 404,
    errors.UnknownTurnError: 404,
    errors.UnknownEntityError: 404,
    errors.UnknownEventError: 404,
    errors.AmbiguousIdError: 409,
    errors.AmbiguousTurnError: 409,
    errors.InvalidArgumentError: 422,
    RequestValidationError: 422,
    TooManyRequestsError: 429,
    errors.PartlyPublishedError: 503,
    errors.PublishError: 503,
    errors.ServerUnavailableError: 503,
    errors.WaitTimeoutError: 504,
    errors.SettingsError: 503,
    ProviderError: 503,
}
"""The status of an error is that of its nearest base here, else 500. Of 500 and most 503 the log alone says more."""


class Problem(BaseModel):
    """What is wrong and what to do. `limit` is that of a quota, with its count; `turn_id` is what to send again."""

    model_config = ConfigDict(extra="allow")

    type: str
    title: str
    status: int
    detail: str
    request_id: str


def problem(request: Request, status: int, detail: str, kind: str = "about:blank", **more: Any) -> Response:
    """A response with a problem; `Retry-After` is sent where `retry_after` is among `more`."""
    document = {
        "type": kind,
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "request_id": request.scope.get("state", {}).get("request_id", ""),
        **more,
    }
    headers = {"Retry-After": str(more["retry_after"])} if "retry_after" in more else {}
    if status == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    return Response(orjson.dumps(document, default=str), status, headers, MEDIA_TYPE)


def status_of(error: Exception) -> int:
    return next((STATUSES[kind] for kind in type(error).__mro__ if kind in STATUSES), 500)


def answer_to(error: Exception) -> tuple[int, str, dict[str, Any]]:
    """What a request that ended with `error` is told: the status, a sentence, and more fields."""
    status, detail, more = status_of(error), str(error), dict[str, Any]()
    match error:
        case HTTPException():
            status, detail = error.status_code, f"{error.detail}: {ADVICE.get(error.status_code, 'see /openapi.json')}"
        case RequestValidationError():
            detail = _faults_of(error)
        case errors.UnknownFactError():  # whose it is, is said to nobody
            detail = "this fact is not known here: check its id, and whose it is"
        case errors.LimitExceededError():
            more = {"limit": error.hit, "turn_id": error.turn_id}
        case TooManyRequestsError():
            more = {"retry_after": error.retry_after}
        case errors.PublishError():
            detail, more = _UNCONFIRMED.format(RETRY_SECONDS), {"turn_id": error.turn_id, "retry_after": RETRY_SECONDS}
        case errors.PartlyPublishedError():
            again = {"accepted": error.accepted, "failed": list(error.failed), "retry_after": RETRY_SECONDS}
            detail, more = _UNCONFIRMED.format(RETRY_SECONDS), again
        case _ if status == HTTPStatus.SERVICE_UNAVAILABLE:
            log.warning("server_unavailable", error=detail)
            detail, more = _AWAY.format(RETRY_SECONDS), {"retry_after": RETRY_SECONDS}
        case _ if status == HTTPStatus.INTERNAL_SERVER_ERROR:
            log.error("request_failed", exc_info=error)
            detail = "this is a fault of the server: its log has more"
    return status, detail, more


def _faults_of(error: RequestValidationError) -> str:
    faults: Any = error.errors()
    first = faults[0]
    if first["type"] == "json_invalid":
        return f"the body is not valid JSON, at character {first['loc'][1]}: {first['ctx']['error']}"
    if first["loc"] == ("body",):
        return "send a JSON object with the header Content-Type: application/json"
    for one in faults:
        one["loc"] = one["loc"][1:]  # without the word body, query or path
    return describe_faults(faults)


async def problem_of(request: Request, error: Exception) -> Response:
    """The answer to a request that ended with `error`; of the page a page."""
    status, detail, more = answer_to(error)
    if page.is_page(request):
        return page.error_page(request, error, status, detail)
    kind = f"urn:mnemolog:problem:{type(error).__name__.removesuffix('Error')}"
    return problem(request, status, detail, kind, **more)
