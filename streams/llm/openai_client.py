"""Send one call to an OpenAI-compatible server, and tell by its failure whether it can be repeated."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from http import HTTPStatus
from typing import Annotated, Any, Final, Literal, TypeVar

import openai
from pydantic import BaseModel, BeforeValidator, ValidationError
from pydantic_core import to_json

from mnemolog.streams import metrics
from mnemolog.streams.llm.call_retry import CallFailure, FailureKind, RetrySettings
from mnemolog.streams.llm.errors import ProviderConfigurationError
from mnemolog.streams.llm.ports import OnFailure, Usage, ignore_failure

CallPurpose = Literal["extract", "resolve", "summarise", "rerank", "variants", "embed"]
_CONNECT_SECONDS: Final = 10.0
_REFUSED_STATUSES: Final = frozenset({400, 413, 414, 422, 431})
"""What the server says about this request. Other statuses can pass: a load, an outage, a key to be renewed."""
_TOO_LARGE: Final = "too large"
"""In the message of a 429: the request alone exceeds the limit of a minute, so that no waiting helps."""
_MAX_DETAIL: Final = 300  # characters of a server's message that are kept
_ERROR_STATUSES: Final = range(400, 600)
_UNKNOWN_STATUS: Final = 500
_MAX_TOKENS: Final = 100_000_000
"""Tokens of one call: more are no count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where to call. No `base_url` is OpenAI itself, no `api_key` is OPENAI_API_KEY; `timeout` in seconds a call.

    `on_failure` is told of each attempt that failed, in words.
    """

    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    timeout: float = 60.0
    retry: RetrySettings = field(default_factory=RetrySettings)
    on_failure: OnFailure = ignore_failure


def _plausible(told: object) -> int:
    """A count of tokens as a server tells it; 0, as for one that counts none, where it cannot be one."""
    return told if type(told) is int and 0 <= told <= _MAX_TOKENS else 0


PlausibleCount = Annotated[int, BeforeValidator(_plausible)]


class TokenCounts(BaseModel):
    prompt_tokens: PlausibleCount = 0
    completion_tokens: PlausibleCount = 0
    prompt_tokens_details: Any = None
    """Servers differ in it, and no reply is refused for it."""

    @property
    def cached_tokens(self) -> int | None:
        """The tokens of the prompt that the server had in its cache; None where it does not tell."""
        details = self.prompt_tokens_details
        told = details.get("cached_tokens") if isinstance(details, dict) else None
        return min(max(0, told), self.prompt_tokens) if isinstance(told, int) else None


class ServerError(BaseModel):
    message: str | None = None
    code: int | str | None = None


class ReplyBody(BaseModel):
    """What replies have in common. Some gateways report an error with status 200."""

    error: ServerError | None = None
    model: str | None = None
    usage: Any = None
    """No reply is refused for it either."""

    @property
    def tokens(self) -> Usage:
        counts = TokenCounts.model_validate(self.usage if isinstance(self.usage, dict) else {})
        return Usage(
            input_tokens=counts.prompt_tokens,
            output_tokens=counts.completion_tokens,
            cached_tokens=counts.cached_tokens,
        )


SendRequest = Callable[[], Awaitable[bytes]]
"""Sends a request and returns the bytes of the reply; it may be called again."""
# As the typed methods ask for it; otherwise an administrator's key of the environment would do as well.
_OPTIONS: Final[Any] = {"headers": {"Content-Type": "application/json"}, "security": {"bearer_auth": True}}

B = TypeVar("B", bound=ReplyBody)
R = TypeVar("R")


def create_client(endpoint: Endpoint) -> openai.AsyncOpenAI:
    """A client that repeats nothing itself, over aiohttp, which takes half of the CPU time of the package's default.

    Raises `ProviderConfigurationError` without a key for OpenAI.
    """
    timeout = openai.Timeout(None, connect=_CONNECT_SECONDS)
    options: dict[str, Any] = {
        "base_url": endpoint.base_url,
        "max_retries": 0,
        "timeout": timeout,
        "http_client": openai.DefaultAioHttpClient(timeout=timeout),
    }
    try:
        return openai.AsyncOpenAI(api_key=endpoint.api_key, **options)
    except openai.OpenAIError as error:
        if endpoint.base_url is None:
            raise ProviderConfigurationError("no key for OpenAI: set MNEMOLOG_API_KEY or OPENAI_API_KEY") from error
        return openai.AsyncOpenAI(api_key="none", **options)  # a local server often asks for no key


def post(client: openai.AsyncOpenAI, path: str, body: Mapping[str, Any]) -> SendRequest:
    """A way to post `body` as JSON to the endpoint `path`.

    The package's typed methods walk every message and the whole schema, and join the address anew: a quarter of a
    call's CPU time.
    """
    address = str(client.base_url).rstrip("/")  # an address without a path has no slash in the end
    return partial(client.post, f"{address}/{path}", cast_to=bytes, content=to_json(body), options=_OPTIONS)


async def send(
    request: SendRequest,
    read: Callable[[bytes], R | CallFailure],
    *,
    purpose: CallPurpose,
    model: str,
    timeout: float,  # noqa: ASYNC109 -- of a whole call, headers to last byte
    on_failure: OnFailure = ignore_failure,
) -> R | CallFailure:
    """What `read` makes of the reply, or what its failure means; a failure is counted and told."""
    try:
        async with asyncio.timeout(timeout):
            outcome = read(await request())
    except TimeoutError:
        outcome = CallFailure(kind="unavailable", code="timeout", detail=f"no reply within {timeout:g} s")
    except openai.APIStatusError as error:
        wait = retry_after(error.response.headers, datetime.now(UTC))
        outcome = _status_failure(error.status_code, error.message, wait)
    except openai.APIConnectionError as error:
        outcome = CallFailure(kind="unavailable", code="connection", detail=str(error.__cause__ or error)[:_MAX_DETAIL])
    if isinstance(outcome, CallFailure):
        metrics.MODEL_ERRORS.labels(purpose=purpose, model=model, error=outcome.code).inc()
        on_failure(f"{purpose} {model}: {outcome.code}" + (f", {outcome.detail}" if outcome.detail else ""))
    return outcome


def show_pauses(purpose: CallPurpose, model: str) -> Callable[[bool], None]:
    """Shows in the metrics whether all calls of a purpose are paused."""
    gauge = metrics.MODEL_PAUSED.labels(purpose=purpose, model=model)
    gauge.set(0)
    return gauge.set


def parse_body(content: bytes, body: type[B]) -> B | CallFailure:
    """Validate a reply of status 200. What is no JSON comes from a proxy or was cut."""
    try:
        reply = body.model_validate_json(content)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        if fault["type"] == "json_invalid":
            return CallFailure(kind="unavailable", code="not_json", detail=fault["msg"][:_MAX_DETAIL])
        place = ".".join(map(str, fault["loc"]))
        return CallFailure(kind="unavailable", code="unexpected_reply", detail=f"{place}: {fault['msg']}"[:_MAX_DETAIL])
    if reply.error is None:
        return reply
    code = reply.error.code
    status = code if isinstance(code, int) and code in _ERROR_STATUSES else _UNKNOWN_STATUS  # a label has few values
    return _status_failure(status, reply.error.message or "", None)


def _status_failure(status: int, message: str, wait: float | None) -> CallFailure:
    is_refused = status in _REFUSED_STATUSES or (
        status == HTTPStatus.TOO_MANY_REQUESTS and _TOO_LARGE in message.lower()
    )
    kind: FailureKind = "refused" if is_refused else "unavailable"
    return CallFailure(kind=kind, code=f"http_{status}", detail=message[:_MAX_DETAIL], retry_after=wait)


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds that the server asks to wait: `retry-after-ms`, or `Retry-After` as seconds or as an HTTP date."""
    text = headers.get("retry-after") or ""
    candidates = (_number(headers.get("retry-after-ms") or "", 0.001), _number(text), _seconds_until(text, now))
    return next((max(0.0, seconds) for seconds in candidates if seconds is not None), None)


def _number(text: str, unit: float = 1.0) -> float | None:
    try:
        value = float(text) * unit
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _seconds_until(text: str, now: datetime) -> float | None:
    try:
        when = parsedate_to_datetime(text)
    except ValueError:
        return None
    return (when.replace(tzinfo=when.tzinfo or UTC) - now).total_seconds()
