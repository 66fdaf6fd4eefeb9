"""A chat model and an embedder on any OpenAI-compatible server, through the package `openai`.

Which failures are faults of the call and which of the server is decided here; `calls` repeats attempts by that.
"""

import asyncio
import base64
import binascii
import json
import math
import os
import re
import struct
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from http import HTTPStatus
from typing import Any, Final, Literal, TypeVar
from urllib.parse import parse_qsl

import openai
from pydantic import TypeAdapter
from pydantic_core import from_json, to_json

from mnemolog.common.logs import get_logger
from mnemolog.schemas.base import MAX_MODEL_NAME
from mnemolog.schemas.vector import Vector, cosine_similarity
from mnemolog.streams import metrics
from mnemolog.streams.llm import ports
from mnemolog.streams.llm.ask import object_schema
from mnemolog.streams.llm.calls import CallFailure, CallRetrier, CallSlots, RetrySettings
from mnemolog.streams.settings import StreamsSettings

_log = get_logger(__name__)
CallPurpose = Literal["extract", "resolve", "summarise", "rerank", "variants", "embed"]
_CONNECT_SECONDS: Final = 10.0
_REFUSED_STATUSES: Final = frozenset({400, 413, 414, 422, 431})
"""What the server says about this request. Other statuses can pass: a load, an outage, a key to be renewed."""
_TOO_LARGE: Final = "too large"
"""In the message of a 429: the request alone exceeds the limit of a minute, so that no waiting helps."""
Parameter = Literal["system", "max_tokens", "temperature", "seed", "response_format", "dimensions", "encoding_format"]
"""What a request can do without; without `system` the instructions stand in the first message of the user."""
_PARAMETER_WORDS: Final[Mapping[Parameter, re.Pattern[str]]] = {
    "max_tokens": re.compile(r"\bmax_(?:completion_)?tokens\b|\bin the completion\b"),
    "response_format": re.compile(
        r"response[_ ]format|json[_ ](?:schema|object|mode)|structured output|grammar|guided decoding"
    ),
    "encoding_format": re.compile(r"encoding_format|base64"),
    "temperature": re.compile(r"\btemperature\b"),
    "dimensions": re.compile(r"\bdimensions\b"),
    "seed": re.compile(r"\bseed\b"),
    "system": re.compile(
        r"\bsystem (?:role|messages?|prompts?)\b|\broles?\W+(?:does not support )?\W?system\b|\broles must alternate"
        r"|\bonly user and assistant roles|\bdeveloper instruction"
    ),
}
_TOO_LONG: Final = re.compile(
    r"too (?:long|large)|tokens?\b|context (?:length|size)|maximum length|exceeds?\b", re.IGNORECASE
)
"""In the message of a server that was sent a longer text than its model takes."""
_ABOUT_REQUEST: Final = frozenset({400, 404, 413, 415, 422, 500, 501})
"""With these a server may mean a parameter, or a length."""
_STATUS_OF_CODE: Final[Mapping[str, int]] = {
    "invalid_api_key": 401,
    "insufficient_quota": 429,
    "rate_limit_exceeded": 429,
    "model_not_found": 404,
}
_UNNAMED: Final = frozenset({"http_400", "http_422"})
"""With these a server may refuse a parameter that it does not name."""
_FEWEST_CHARACTERS: Final = 200
"""A text that is refused with so few characters is not refused for its length."""
_PLAUSIBLY_TOO_LONG: Final = 1_000
"""More characters than the 256 tokens of the smallest models: what is refused without a reason may be too long."""
_ANSWER_FIELDS: Final = (
    *("content", "parsed", "tool_calls", "function_call", "text", "delta"),
    *("reasoning_content", "reasoning", "thinking"),
)
"""Where servers put an answer."""
_OF_SERVER: Final = frozenset({"connection", "timeout", "not_json", "unexpected_reply", "other_model"})
"""Failures, besides statuses, with which a fallback is asked."""
_LONGEST_WAIT: Final = 86_400.0  # seconds; who names a longer one may have sent a wrong date
AWAY_SECONDS: Final = 60.0
"""So long an endpoint that failed is asked after its fallbacks, unless it says how long."""
UNANSWERED_SECONDS: Final = 6.0
"""After so long a call without an answer is a problem: with the interval of `write_problems` that is below ten."""
TELL_AGAIN_SECONDS: Final = 1.0
_SHORTEST_KEY: Final = 8  # characters; of a shorter one the ends are common words
_MAX_DETAIL: Final = 300  # characters of a server's message that are kept
_ERROR_STATUSES: Final = range(400, 600)
_UNKNOWN_STATUS: Final = 500
_MAX_TOKENS: Final = 100_000_000
"""Tokens of one call: more are no count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where to call. No `base_url` is OpenAI itself, no `api_key` is OPENAI_API_KEY; `timeout` in seconds a call.

    A fallback has a `name`, which is shown, and may have a chat model of its own.
    """

    name: str | None = None
    chat_model: str | None = None
    fallbacks: tuple["Endpoint", ...] = ()
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    timeout: float = 60.0
    max_tokens: int = 8192
    retry: RetrySettings = field(default_factory=RetrySettings)
    problems: ports.Problems = field(default_factory=dict)


def tokens_of(body: Mapping[str, Any]) -> ports.Usage:
    """The tokens that a reply counts, 0 where it has no plausible count; no reply is refused for it.

    Of those that the server had in its cache there may be no count.
    """
    counts = usage if isinstance(usage := body.get("usage"), dict) else {}
    details = told if isinstance(told := counts.get("prompt_tokens_details"), dict) else {}
    asked, said, cached = (
        count if type(count) is int and 0 <= count <= _MAX_TOKENS else None
        for count in (counts.get("prompt_tokens"), counts.get("completion_tokens"), details.get("cached_tokens"))
    )
    cached = None if cached is None else min(cached, asked or 0)
    return ports.Usage(input_tokens=asked or 0, output_tokens=said or 0, cached_tokens=cached)


# As the typed methods ask for it; otherwise an administrator's key of the environment would do as well.
_OPTIONS: Final[Any] = {"headers": {"Content-Type": "application/json"}, "security": {"bearer_auth": True}}

R = TypeVar("R")


def create_client(endpoint: Endpoint) -> openai.AsyncOpenAI:
    """A client that repeats nothing itself, over aiohttp, which takes half of the CPU time of the package's default.

    Raises `ProviderConfigurationError` without a key for OpenAI.
    """
    timeout = openai.Timeout(None, connect=_CONNECT_SECONDS)
    address, _, query = (endpoint.base_url or "").partition("?")
    asked: dict[str, object] = dict(parse_qsl(query))
    key = endpoint.api_key or os.environ.get("OPENAI_API_KEY")
    if not key and not address:
        raise ports.ProviderConfigurationError("no key for OpenAI: set MNEMOLOG_API_KEY or OPENAI_API_KEY")
    return openai.AsyncOpenAI(
        api_key=key or "none",  # a local server often asks for no key
        base_url=address or None,
        default_query=asked,
        default_headers={"api-key": key} if "api-version" in asked and key else {},  # as Azure names it
        max_retries=0,
        timeout=timeout,
        http_client=openai.DefaultAioHttpClient(timeout=timeout),
    )


def without_key(words: str, key: str) -> str:
    """Words of a server without those in which it quotes the key, or its beginning or end as OpenAI does."""
    if len(key) < _SHORTEST_KEY:
        return words
    return re.sub(rf"\S*(?:{re.escape(key[:4])}|{re.escape(key[-4:])})\S*", "(key)", words)


class Server:
    """An endpoint, and what is known of it: the parameters that it refuses, and why and until when it is avoided."""

    def __init__(self, endpoint: Endpoint, left_out: Collection[Parameter]) -> None:
        self.endpoint = endpoint
        self.client = create_client(endpoint)
        self.away_until = 0.0
        self.failure: CallFailure | None = None
        self._left_out: dict[str, set[Parameter]] = defaultdict(lambda: {*left_out})

    async def ask(
        self,
        path: str,
        form: Mapping[Parameter, Any],
        body: Callable[[dict[str, Any]], Mapping[str, Any]],
        read: Callable[[bytes], R | CallFailure],
        *,
        purpose: CallPurpose,
        model: str,
        timeout: float,  # noqa: ASYNC109 -- of a whole call, headers to last byte
        label: str | None = None,
        is_probe: bool = False,
    ) -> R | CallFailure:
        """What `read` makes of the reply to `body` of `form`, or what its failure means; failures are counted.

        A request that is refused for a part of `form` is sent again, and from then on, without it. Where no part is
        named, a probe finds out which it is.
        """
        left_out = self._left_out[model]

        async def send(names: AbstractSet[Parameter]) -> R | CallFailure:
            content = to_json(body({name: form[name] for name in form if name in names}))
            outcome = await self._send(path, content, read, purpose, timeout)
            if isinstance(outcome, CallFailure):
                outcome = replace(outcome, detail=without_key(outcome.detail[:_MAX_DETAIL], self.client.api_key))
                metrics.MODEL_ERRORS.labels(purpose=purpose, model=label or model, error=outcome.code).inc()
            return outcome

        while True:
            sent = form.keys() - left_out
            outcome = await send(sent)
            if not isinstance(outcome, CallFailure):
                return outcome
            refused: AbstractSet[Parameter] = {name for name in sent if name == outcome.refuses}
            if is_probe and not refused and outcome.code in _UNNAMED:
                refused = await _refused_parts(sent, send)
            if not refused:
                return outcome
            left_out |= refused
            for name in sorted(refused):
                _log.warning("parameter_left_out", model=model, parameter=name, detail=outcome.detail)
                said = f"{name} is refused, and left out from now on: name it in MNEMOLOG_LEAVE_OUT"
                self.endpoint.problems[f"{purpose} {model} ({name})"] = said

    async def _send(
        self,
        path: str,
        content: bytes,
        read: Callable[[bytes], R | CallFailure],
        purpose: CallPurpose,
        timeout: float,  # noqa: ASYNC109 -- as above
    ) -> R | CallFailure:
        # The package's typed methods walk every message and the whole schema, and join the address anew: a quarter of
        # a call's CPU time. An address without a path has no slash in the end.
        address = f"{str(self.client.base_url).rstrip('/')}/{path}"
        try:
            with self._shown_while_unanswered(purpose, timeout):
                async with asyncio.timeout(timeout):
                    reply = await self.client.post(address, cast_to=bytes, content=content, options=_OPTIONS)
            return read(reply)
        except TimeoutError:
            return CallFailure(code="timeout", detail=f"no reply within {timeout:g} s")
        except openai.APIStatusError as error:
            wait = retry_after(error.response.headers, datetime.now(UTC))
            return _status_failure(error.status_code, words_of(error.body) or error.message, wait)
        except openai.APIConnectionError as error:
            return CallFailure(code="connection", detail=f"{error.__cause__ or error}")

    @contextmanager
    def _shown_while_unanswered(self, purpose: CallPurpose, limit: float) -> Iterator[None]:
        """While the server does not answer a call, and after it did not until its limit, that is a problem."""
        loop, problems = asyncio.get_running_loop(), self.endpoint.problems
        began, server = loop.time(), self.client.base_url.netloc.decode()
        name = f"{purpose} at {server}"
        setting = "MNEMOLOG_EMBEDDING_TIMEOUT" if purpose == "embed" else "MNEMOLOG_LLM_TIMEOUT"

        timer: asyncio.TimerHandle

        def tell() -> None:
            nonlocal timer
            waited = f"the server at {server} has not answered for {loop.time() - began:.0f} s"
            problems[name] = f"{waited}; {setting} is {limit:g}"
            timer = loop.call_later(TELL_AGAIN_SECONDS, tell)

        timer = loop.call_later(UNANSWERED_SECONDS, tell)
        has_answered = True
        try:
            yield
        except TimeoutError:
            has_answered = False
            raise
        finally:
            timer.cancel()
            if has_answered:
                problems.pop(name, None)


async def _refused_parts(
    sent: AbstractSet[Parameter], send: Callable[[AbstractSet[Parameter]], Awaitable[object]]
) -> AbstractSet[Parameter]:
    """The parts for which a server refuses a request without naming them; none where they are not what it refuses.

    A request without any has to pass; then each is put back, and stays where the request passes with it.
    """
    kept = frozenset[Parameter]()
    for name in (None, *sorted(sent)):
        outcome = await send(tried := kept | ({name} if name else frozenset()))
        if not isinstance(outcome, CallFailure):
            kept = tried
        elif name is None or outcome.code not in _UNNAMED:
            return frozenset()
    return sent - kept


class Servers:
    """An endpoint and its fallbacks, in the order in which they are asked.

    One that fails is asked after the others for `AWAY_SECONDS`, or as long as it says; one that refuses a request
    (`_REFUSED_STATUSES`) stays where it is, as it may take the next one. `problems` has, under `name`, which fallback
    answers, and why.
    """

    def __init__(self, endpoint: Endpoint, *, name: str, left_out: Collection[Parameter]) -> None:
        self._all = [Server(one, left_out) for one in (endpoint, *endpoint.fallbacks)]
        self._problems = endpoint.problems
        self._name = f"{name} (fallback)"

    async def ask(self, attempt: Callable[[Server], Awaitable[R | CallFailure]]) -> R | CallFailure:
        """The outcome of the first server that does not fail; where all fail, of the first one.

        What a model refuses to say goes to no other; and after a server that took the whole time the caller asks again.
        """
        now, first = asyncio.get_running_loop().time, self._all[0]
        failures: dict[Server, CallFailure] = {}
        for server in sorted(self._all, key=lambda one: one.away_until > now()):
            outcome = await attempt(server)
            if not isinstance(outcome, CallFailure):
                server.away_until = 0.0
                if server is first:
                    self._problems.pop(self._name, None)
                elif first.failure is not None:
                    if self._name not in self._problems:
                        _log.warning("fallback_in_use", model=self._name, fallback=server.endpoint.name)
                    self._problems[self._name] = f"{server.endpoint.name} answers, as {first.failure.advice}"
                return outcome
            # Another server may well answer where this one is away or refuses the key, the model's name or a long text.
            if outcome.code not in _OF_SERVER and not outcome.code.startswith("http_"):
                return outcome
            server.failure = failures[server] = outcome
            if outcome.kind == "unavailable":
                server.away_until = now() + (outcome.retry_after or AWAY_SECONDS)
            if outcome.code == "timeout":
                break
        self._problems.pop(self._name, None)
        return next(failures[server] for server in self._all if server in failures)

    async def close(self) -> None:
        for server in self._all:
            await server.client.close()


def show_pauses(purpose: CallPurpose, model: str) -> Callable[[bool], None]:
    gauge = metrics.MODEL_PAUSED.labels(purpose=purpose, model=model)
    gauge.set(0)
    return gauge.set


def parse_body(content: bytes) -> dict[str, Any] | CallFailure:
    """The object of a reply of status 200, with which some gateways report errors.

    What is no JSON comes from a proxy or was cut.
    """
    try:
        body = from_json(content)
    except ValueError as error:
        return CallFailure(code="not_json", detail=f"{error}: {_excerpt(content)}")
    first = body[0] if isinstance(body, list) and body else body
    if not isinstance(first, dict) or not (said := first.get("error")):
        return body if isinstance(body, dict) else CallFailure(code="unexpected_reply", detail=_excerpt(content))
    code = str(said.get("code")) if isinstance(said, dict) else ""
    status = _STATUS_OF_CODE.get(code) or (int(code) if code.isdecimal() else _UNKNOWN_STATUS)
    return _status_failure(status if status in _ERROR_STATUSES else _UNKNOWN_STATUS, words_of(said), None)


def _excerpt(content: bytes) -> str:
    return " ".join(content[:200].decode("utf-8", "replace").split())


def words_of(error: object) -> str:
    if isinstance(error, dict):
        named = (words_of(error[name]) for name in ("message", "error", "detail") if name in error)
        words = next(filter(None, named), "") or str(error)
        param = error.get("param")  # where OpenAI names the parameter
        return words if not isinstance(param, str) or param in words else f"{words} ({param})"
    return "; ".join(map(words_of, error)) if isinstance(error, list) else str(error or "")


def _status_failure(status: int, message: str, wait: float | None) -> CallFailure:
    is_too_large = status == HTTPStatus.TOO_MANY_REQUESTS and _TOO_LARGE in message.lower()
    named = (name for name, words in _PARAMETER_WORDS.items() if words.search(message.lower()))
    return CallFailure(
        kind="refused" if is_too_large or status in _REFUSED_STATUSES else "unavailable",
        code=f"http_{status}",
        detail=message,
        retry_after=wait,
        refuses=next(named, None) if status in _ABOUT_REQUEST else None,
        is_too_long=status in _ABOUT_REQUEST and bool(_TOO_LONG.search(message)),
    )


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds that the server asks to wait: `retry-after-ms`, or `Retry-After` as seconds or as an HTTP date."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        with suppress(ValueError):
            if math.isfinite(seconds := float(headers.get(name) or "") * unit):
                return min(max(0.0, seconds), _LONGEST_WAIT)
    with suppress(ValueError):
        when = parsedate_to_datetime(headers.get("retry-after") or "")
        return min(max(0.0, (when.replace(tzinfo=when.tzinfo or UTC) - now).total_seconds()), _LONGEST_WAIT)
    return None


StructuredOutput = Literal["json_schema", "json_object", "none"]
MAX_TEXTS: Final = 256
MAX_CHARACTERS: Final = 6_000
"""A text is embedded by its beginning: OpenAI refuses more than 8191 tokens, and CJK has up to 1.4 a character."""
_REQUEST_CHARACTERS: Final = 200_000  # OpenAI refuses requests of more than 300 000 tokens over all texts
_LENGTH_TOLERANCE: Final = 1e-4
_SAME_MODEL: Final = 0.99
"""Cosine similarity of two vectors of one text: servers of one model differ by rounding."""
_NUMBERS: Final = TypeAdapter(list[float])
_OVERRIDE_MODEL_LABEL: Final = "other"  # the label of a turn's own model where it fails: a label has few values
_PROBE_TEXT: Final = "Hello."
_GREETING: Final = ports.ChatMessage(role="user", content=_PROBE_TEXT)
_PROBE_SCHEMA: Final = object_schema({"hello": {"type": "boolean"}})


def answer_of(choices: Sequence[Any]) -> str | None:
    """The answer in the choices of a reply, wherever a server puts it; None where there is no message.

    Of several texts the first with JSON, without parts that are reasoning.
    """
    found: list[str] = []
    for choice in choices:
        message = (choice.get("message") or choice) if isinstance(choice, dict) else None
        fields = message if isinstance(message, dict) else {"content": message}
        found += [_said(fields[name]) for name in _ANSWER_FIELDS if name in fields]
    said = [text for text in found if text.strip()]
    answer = next((text for text in said if "{" in text or "[" in text), said[0] if said else "")
    return answer if found else None


def _said(part: Any) -> str:
    """The text of a part of a message, or of its parts together; what is none of these is the answer itself."""
    if part is None or isinstance(part, str):
        return part or ""
    if isinstance(part, list) and all(isinstance(one, str) or _content(one) is not None for one in part):
        return "\n".join(map(_said, part))
    return json.dumps(part) if (content := _content(part)) is None else _said(content)


def _content(part: Any) -> Any:
    """What a part of a message, or a call of a tool, has in it; "" for reasoning, None for what is no such part."""
    if not isinstance(part, dict):
        return None
    if re.search("think|reason", str(part.get("type"))):
        return ""
    names = ("function", "arguments", *(("text", "json", "content") if "type" in part else ()))
    return next((part[name] for name in names if name in part), None)


class OpenAiChatModel:
    """Completes prompts at temperature 0 with a fixed seed; a prompt's own model and timeout come first.

    Calls of one purpose are of one kind: a failing prompt is compared with them (`CallRetrier`), also where it has a
    model or timeout of its own. Their probe is a prompt with a greeting in the place of the conversation.

    The server learns the form of the reply by a strict JSON Schema or, with another `structured_output`, from the
    prompt, with or without JSON mode. Parameters that a model refuses, and those in `left_out`, are not sent to it.
    Raises `ProviderConfigurationError` where there is no key for OpenAI.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        model: str,
        *,
        structured_output: StructuredOutput = "json_schema",
        left_out: Collection[Parameter] = (),
    ) -> None:
        self.model = model
        self._structured_output = structured_output
        self._servers = Servers(endpoint, name=f"chat {model}", left_out=left_out)
        self._endpoint = endpoint
        self._slots = CallSlots(endpoint.retry.max_concurrent)
        self._retriers: dict[ports.Purpose, CallRetrier] = {}

    @property
    def paused(self) -> bool:
        """Whether all prompts of a purpose wait until a probe succeeds."""
        return any(retrier.paused for retrier in self._retriers.values())

    async def complete(self, prompt: ports.Prompt) -> ports.Reply:
        """As `ChatModel`. A reply cut off by the length limit is returned as it is, for the parser to judge."""
        purpose = prompt.purpose
        if (retrier := self._retriers.get(purpose)) is None:
            # Its probe has the purpose's instructions and schema: what fails all prompts fails it.
            messages = (*(message for message in prompt.messages if message.role == "system"), _GREETING)
            probe = replace(prompt, messages=messages, model=None, timeout=None)
            retrier = self._retriers[purpose] = CallRetrier(
                self._endpoint.retry,
                name=f"{purpose} {self.model}",
                probe=partial(self._attempt, probe, is_probe=True),
                slots=self._slots,
                on_pause=show_pauses(purpose, self.model),
                problems=self._endpoint.problems,
            )
        return await retrier.call(
            partial(self._attempt, prompt),
            divisible=isinstance(prompt, ports.SharedPrompt),
            overridden=prompt.model is not None or prompt.timeout is not None,
        )

    async def probe(self) -> ports.Reply | CallFailure:
        """One short call, which is not repeated."""
        greeting = ports.Prompt(purpose="extract", version="probe", messages=(_GREETING,), schema=_PROBE_SCHEMA)
        return await self._attempt(greeting, is_probe=True)

    async def close(self) -> None:
        await self._servers.close()

    async def _attempt(self, prompt: ports.Prompt, *, is_probe: bool = False) -> ports.Reply | CallFailure:
        form: dict[Parameter, Any] = {"system": True, "temperature": 0.0, "seed": 0}
        form["max_tokens"] = self._endpoint.max_tokens
        if self._structured_output == "json_schema":
            strict = {"name": prompt.purpose, "strict": True, "schema": prompt.schema}
            form["response_format"] = {"type": "json_schema", "json_schema": strict}
        elif self._structured_output == "json_object":
            form["response_format"] = {"type": "json_object"}

        async def ask(server: Server) -> ports.Reply | CallFailure:
            model = prompt.model or server.endpoint.chat_model or self.model
            return await server.ask(
                "chat/completions",
                form,
                partial(self._body, prompt, model),
                partial(reply_of, model, server.endpoint.name),
                purpose=prompt.purpose,
                model=model,
                timeout=prompt.timeout or self._endpoint.timeout,
                label=_OVERRIDE_MODEL_LABEL if prompt.model else None,
                is_probe=is_probe,
            )

        return await self._servers.ask(ask)

    def _body(self, prompt: ports.Prompt, model: str, sent: dict[str, Any]) -> dict[str, Any]:
        messages = [{"role": message.role, "content": message.content} for message in prompt.messages]
        if self._structured_output != "json_schema" or "response_format" not in sent:
            # In the first message: some servers take one system message alone.
            instruction = f"Answer with one JSON object that follows this JSON Schema:\n{json.dumps(prompt.schema)}"
            messages[0]["content"] += f"\n\n{instruction}"
        if not sent.pop("system", False) and messages[0]["role"] == "system":
            first, second, *rest = messages
            messages = [{**second, "content": f"{first['content']}\n\n{second['content']}"}, *rest]
        return {"model": model, "messages": messages, **sent}


def reply_of(model: str, endpoint: str | None, content: bytes) -> ports.Reply | CallFailure:
    """The reply of a chat completion; `model` was asked, and may be named otherwise by its server."""
    body = parse_body(content)
    if isinstance(body, CallFailure):
        return body
    choices = body.get("choices") or [body]
    choices = choices if isinstance(choices, list) else [choices]
    text = answer_of(choices)
    if text is None:
        return CallFailure(code="no_choices", detail=f"a reply without choices: {_excerpt(content)}")
    choice = next((one for one in choices if isinstance(one, dict)), {})
    if isinstance(message := choice.get("message"), dict) and message.get("refusal"):
        return CallFailure(kind="refused", code="model_refusal", detail=str(message["refusal"]))
    if choice.get("finish_reason") == "content_filter":
        return CallFailure(kind="refused", code="content_filter", detail="the server's filter stopped the reply")
    if str(choice.get("finish_reason")).casefold() in {"length", "max_tokens"}:
        text += ports.CUT_OFF
    name = said if isinstance(said := body.get("model"), str) and said else model
    return ports.Reply(text=text, model=name[:MAX_MODEL_NAME], usage=tokens_of(body), endpoint=endpoint)


class OpenAiEmbedder:
    """Embeds texts, by their first `MAX_CHARACTERS` characters; the vectors have length 1.

    Where the server says that a text is too long for its model, texts are embedded by a shorter beginning from then on.
    Vectors have to agree with the `stored` ones in size; else `dimensions` or the first reply says how many there are.
    Raises `ProviderConfigurationError` where there is no key for OpenAI.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        model: str,
        *,
        dimensions: int | None = None,
        stored: int | None = None,
        left_out: Collection[Parameter] = (),
    ) -> None:
        self.model = model
        self._form: dict[Parameter, Any] = {"encoding_format": "base64"}
        if dimensions is not None:
            self._form["dimensions"] = dimensions
        self._dimensions = stored or dimensions
        self._max_characters = MAX_CHARACTERS
        self._problems = endpoint.problems
        self._servers = Servers(endpoint, name=f"embed {model}", left_out=left_out)
        self._compares = bool(endpoint.fallbacks)
        self._likeness: dict[str | None, Vector] = {}
        self._timeout = endpoint.timeout
        self._retrier = CallRetrier(
            endpoint.retry,
            name=f"embed {model}",
            probe=self.probe,
            on_pause=show_pauses("embed", model),
            problems=endpoint.problems,
        )

    async def embed(self, texts: Sequence[str], *, divisible: bool = False) -> ports.Embeddings:
        """As `Embedder`. More texts than one request takes go in several, one after another."""
        batches, characters = [list[str]()], 0
        for text in texts:
            # OpenAI refuses an empty text; a space means the same to a model
            sent = text[:MAX_CHARACTERS] or " "
            if len(batches[-1]) == MAX_TEXTS or characters + len(sent) > _REQUEST_CHARACTERS:
                batches.append([])
                characters = 0
            batches[-1].append(sent)
            characters += len(sent)
        parts = [await self._retrier.call(partial(self._embed, one), divisible=divisible) for one in batches if one]
        return ports.Embeddings(
            vectors=tuple(vector for part in parts for vector in part.vectors),
            usage=sum((part.usage for part in parts), ports.Usage()),
            endpoint=next((part.endpoint for part in parts if part.endpoint), None),
        )

    async def close(self) -> None:
        await self._servers.close()

    async def probe(self) -> ports.Embeddings | CallFailure:
        return await self._embed([_PROBE_TEXT], is_probe=True)

    async def _embed(self, texts: list[str], *, is_probe: bool = False) -> ports.Embeddings | CallFailure:
        async def ask(server: Server) -> ports.Embeddings | CallFailure:
            """Each of several servers is first asked for one text: nothing tells two models apart but their vectors."""
            name = server.endpoint.name
            if self._compares and name not in self._likeness:
                known = await self._embed_by(server, [_PROBE_TEXT], is_probe=is_probe)
                if isinstance(known, CallFailure):
                    return known
                first = self._likeness.get(None)
                if name and (first is None or cosine_similarity(first.values, known.vectors[0].values) < _SAME_MODEL):
                    return CallFailure(code="other_model", detail=f"{name} is not known to have the same model")
                self._likeness[name] = known.vectors[0]
            return await self._embed_by(server, texts, is_probe=is_probe)

        return await self._servers.ask(ask)

    async def _embed_by(self, server: Server, texts: list[str], *, is_probe: bool) -> ports.Embeddings | CallFailure:
        limit = self._max_characters
        while True:
            cut = [text[:limit] for text in texts]
            outcome = await server.ask(
                "embeddings",
                self._form,
                partial(dict, model=self.model, input=cut),
                partial(embeddings_of, self.model, len(texts), self._dimensions, server.endpoint.name),
                purpose="embed",
                model=self.model,
                timeout=self._timeout,
                is_probe=is_probe,
            )
            if not isinstance(outcome, CallFailure):
                self._dimensions = self._dimensions or len(outcome.vectors[0].values)
                if limit < self._max_characters:
                    self._max_characters = limit
                    _log.warning("texts_embedded_by_their_beginning", model=self.model, characters=limit)
                    said = f"of each text the first {limit} characters are embedded: the model takes no more"
                    self._problems[f"embed {self.model} (length)"] = said
                return outcome
            longest = max(map(len, cut))
            is_unnamed = outcome.kind == "refused" and longest > _PLAUSIBLY_TOO_LONG
            if not (outcome.is_too_long or is_unnamed) or longest <= _FEWEST_CHARACTERS:
                return outcome
            limit = max(_FEWEST_CHARACTERS, longest // 2)


def embeddings_of(
    model: str, count: int, dimensions: int | None, endpoint: str | None, content: bytes
) -> ports.Embeddings | CallFailure:
    """The vectors of a reply about `count` texts, of so many `dimensions` where these are known."""
    body = parse_body(content)
    if isinstance(body, CallFailure):
        return body
    items = body.get("data") or body.get("embeddings") or []
    if not isinstance(items, list) or len(items) != count:
        found = len(items) if isinstance(items, list) else "no list of"
        return CallFailure(code="wrong_count", detail=f"{found} embeddings for {count} texts")
    places = [one.get("index") for one in items if isinstance(one, dict) and one.get("index") is not None]
    if places and sorted(map(str, places)) != sorted(map(str, range(count))):
        return CallFailure(code="wrong_count", detail=f"embeddings for other texts than the {count} that were sent")
    if places:
        items = sorted(items, key=lambda one: int(one["index"]))
    try:
        rows = [normalized(decode_embedding(one["embedding"] if isinstance(one, dict) else one)) for one in items]
    except (KeyError, ValueError) as error:
        return CallFailure(code="bad_embedding", detail=f"{error}")
    expected = dimensions or len(rows[0])
    if any(len(row) != expected for row in rows):
        sizes = ", ".join(map(str, sorted({len(row) for row in rows})))
        return CallFailure(code="wrong_dimensions", detail=f"{sizes} dimensions where {expected} were expected")
    vectors = tuple(Vector.from_values(model, row) for row in rows)
    return ports.Embeddings(vectors=vectors, usage=tokens_of(body), endpoint=endpoint)


def endpoint_of(settings: StreamsSettings, problems: ports.Problems | None = None, *, embeds: bool) -> Endpoint:
    """The server of the settings for completions, or the one that `embeds`, with its fallbacks."""
    first = Endpoint(
        base_url=settings.base_url,
        api_key=settings.api_key.get_secret_value() if settings.api_key else None,
        timeout=settings.embedding_timeout if embeds else settings.llm_timeout,
        max_tokens=settings.llm_max_tokens,
        retry=RetrySettings(max_concurrent=settings.embedding_concurrency if embeds else settings.llm_concurrency),
        problems={} if problems is None else problems,
    )
    others = (
        replace(
            first,
            name=one.name,
            base_url=one.base_url,
            api_key=one.api_key.get_secret_value() if one.api_key else None,
            chat_model=one.chat_model,
        )
        for one in settings.fallbacks
        if one.embeds or not embeds
    )
    return replace(first, fallbacks=tuple(others))


def decode_embedding(embedding: object) -> Sequence[float]:
    """An embedding from numbers, or from base64 of little-endian float32. Raises ValueError where it is neither."""
    if isinstance(embedding, list) and len(embedding) == 1 and isinstance(embedding[0], list):
        (embedding,) = embedding
    if not isinstance(embedding, str):
        return _NUMBERS.validate_python(embedding)
    try:
        raw = base64.b64decode(embedding, validate=True)
        return struct.unpack(f"<{len(raw) // 4}f", raw)
    except (binascii.Error, struct.error) as error:
        raise ValueError(f"an embedding is no base64 of float32: {error}") from error


def normalized(values: Sequence[float]) -> Sequence[float]:
    """`values` scaled to length 1. Raises ValueError where they have no length or are not finite.

    Most servers send that length already; what differs by less than a fifth of float16's step is not scaled.
    """
    length = math.hypot(*values)
    if not 0 < length < math.inf:
        raise ValueError(f"an embedding has the length {length}")
    return values if abs(length - 1) < _LENGTH_TOLERANCE else [value / length for value in values]
