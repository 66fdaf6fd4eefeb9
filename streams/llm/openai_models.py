"""A chat model and an embedder on any OpenAI-compatible server, through the package `openai`.

Which failures are faults of the call and which of the server is decided here; `calls` repeats attempts by that.
"""

import asyncio
import base64
import binascii
import json
import math
import re
import struct
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from http import HTTPStatus
from typing import Annotated, Any, Final, Literal, TypeVar
from urllib.parse import parse_qsl

import openai
from pydantic import BaseModel, BeforeValidator, ValidationError
from pydantic_core import to_json

from mnemolog.common.logs import get_logger
from mnemolog.schemas.base import MAX_MODEL_NAME
from mnemolog.schemas.vector import Vector
from mnemolog.streams import metrics
from mnemolog.streams.llm.calls import CallFailure, CallRetrier, CallSlots, RetrySettings
from mnemolog.streams.llm.ports import (
    ChatMessage,
    Embeddings,
    ModelWatch,
    OnFailure,
    Prompt,
    ProviderConfigurationError,
    Purpose,
    Reply,
    SharedPrompt,
    Usage,
    ignore_failure,
)
from mnemolog.streams.settings import StreamsSettings

_log = get_logger(__name__)
CallPurpose = Literal["extract", "resolve", "summarise", "rerank", "variants", "embed"]
_CONNECT_SECONDS: Final = 10.0
_REFUSED_STATUSES: Final = frozenset({400, 413, 414, 422, 431})
"""What the server says about this request. Other statuses can pass: a load, an outage, a key to be renewed."""
_TOO_LARGE: Final = "too large"
"""In the message of a 429: the request alone exceeds the limit of a minute, so that no waiting helps."""
Parameter = Literal["temperature", "seed", "response_format", "dimensions", "encoding_format"]
_PARAMETER_WORDS: Final[Mapping[str, Parameter]] = {
    "temperature": "temperature",
    "seed": "seed",
    "response_format": "response_format",
    "json_schema": "response_format",
    "json_object": "response_format",
    "structured output": "response_format",
    "dimensions": "dimensions",
    "encoding_format": "encoding_format",
    "base64": "encoding_format",
}
_TOO_LONG: Final = re.compile(
    r"too (?:long|large)|tokens?\b|context (?:length|size)|maximum length|exceeds?\b", re.IGNORECASE
)
"""In the message of a server that was sent a longer text than its model takes."""
_TOO_LONG_STATUSES: Final = frozenset({400, 413, 422, 500})
_FEWEST_CHARACTERS: Final = 200
"""A text that is refused with so few characters is not refused for its length."""
_MAX_DETAIL: Final = 300  # characters of a server's message that are kept
_ERROR_STATUSES: Final = range(400, 600)
_UNKNOWN_STATUS: Final = 500
_MAX_TOKENS: Final = 100_000_000
"""Tokens of one call: more are no count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where to call. No `base_url` is OpenAI itself, no `api_key` is OPENAI_API_KEY; `timeout` in seconds a call.

    `problems` has why all calls of a kind fail at the moment.
    """

    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    timeout: float = 60.0
    retry: RetrySettings = field(default_factory=RetrySettings)
    on_failure: OnFailure = ignore_failure
    problems: MutableMapping[str, str] = field(default_factory=dict)


def _plausible(sent: object) -> int:
    """A server's count of tokens; 0, as from a server that counts none, where the value cannot be a count."""
    return sent if type(sent) is int and 0 <= sent <= _MAX_TOKENS else 0


PlausibleCount = Annotated[int, BeforeValidator(_plausible)]


class TokenCounts(BaseModel):
    prompt_tokens: PlausibleCount = 0
    completion_tokens: PlausibleCount = 0
    prompt_tokens_details: Any = None
    """Servers differ in it, and no reply is refused for it."""

    @property
    def cached_tokens(self) -> int | None:
        """The tokens of the prompt that the server had in its cache; None where it sends no count."""
        details = self.prompt_tokens_details
        sent = details.get("cached_tokens") if isinstance(details, dict) else None
        return min(max(0, sent), self.prompt_tokens) if isinstance(sent, int) else None


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
    address, _, query = (endpoint.base_url or "").partition("?")
    asked = dict(parse_qsl(query))
    headers = {"api-key": endpoint.api_key} if "api-version" in asked and endpoint.api_key else {}  # as Azure names it
    options: dict[str, Any] = {
        "base_url": address or None,
        "default_query": asked,
        "default_headers": headers,
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


@dataclass(slots=True)
class OptionalParameters:
    """The optional parameters of requests, without what the server, or a setting, leaves out.

    A server that refuses a request and names one of them is asked again without it, and gets it no more.
    """

    name: str
    on_failure: OnFailure
    left_out: set[str]

    def of(self, form: Mapping[Parameter, Any]) -> dict[str, Any]:
        return {name: value for name, value in form.items() if name not in self.left_out}

    def learn(self, outcome: object, sent: Mapping[str, Any]) -> bool:
        """Whether a parameter that was sent is why the request was refused."""
        if not isinstance(outcome, CallFailure) or outcome.refuses is None or outcome.refuses not in sent:
            return False
        self.left_out.add(outcome.refuses)
        _log.warning("parameter_left_out", provider=self.name, parameter=outcome.refuses, detail=outcome.detail)
        self.on_failure(f"{self.name} refuses {outcome.refuses}, which is left out from now on")
        return True


async def send(
    request: SendRequest,
    read: Callable[[bytes], R | CallFailure],
    *,
    purpose: CallPurpose,
    model: str,
    timeout: float,  # noqa: ASYNC109 -- of a whole call, headers to last byte
    on_failure: OnFailure = ignore_failure,
) -> R | CallFailure:
    """What `read` makes of the reply, or what its failure means; failures are counted and given to `on_failure`."""
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
    is_too_large = status == HTTPStatus.TOO_MANY_REQUESTS and _TOO_LARGE in message.lower()
    return CallFailure(
        kind="refused" if is_too_large or status in _REFUSED_STATUSES else "unavailable",
        code=f"http_{status}",
        detail=message[:_MAX_DETAIL],
        retry_after=wait,
        refuses=next((name for word, name in _PARAMETER_WORDS.items() if word in message.lower()), None),
        is_too_long=status in _TOO_LONG_STATUSES and bool(_TOO_LONG.search(message)),
    )


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


StructuredOutput = Literal["json_schema", "json_object", "none"]
MAX_TEXTS: Final = 256
MAX_CHARACTERS: Final = 6_000
"""A text is embedded by its beginning: OpenAI refuses more than 8191 tokens, and CJK has up to 1.4 a character."""
_REQUEST_CHARACTERS: Final = 200_000  # OpenAI refuses requests of more than 300 000 tokens over all texts
_LENGTH_TOLERANCE: Final = 1e-4
_OVERRIDE_MODEL_LABEL: Final = "other"  # the label of a turn's own model where it fails: a label has few values
_PROBE_TEXT: Final = "Hello."
_PROBE_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {"hello": {"type": "boolean"}},
    "required": ["hello"],
    "additionalProperties": False,
}


class ChatMessageBody(BaseModel):
    """A message as servers send it: the answer may stand in parts, in a call of a tool or where reasoning should."""

    content: Any = None
    refusal: str | None = None
    tool_calls: Any = None
    reasoning_content: Any = None
    reasoning: Any = None

    @property
    def text(self) -> str:
        """The first of these that has words; "" where none has."""
        parts = self.content if isinstance(self.content, list) else []
        calls = self.tool_calls if isinstance(self.tool_calls, list) else []
        found = (
            self.content,
            "".join(said for part in parts if isinstance(part, dict) and isinstance(said := part.get("text"), str)),
            *(call["function"].get("arguments") for call in calls if isinstance(call, dict) and "function" in call),
            self.reasoning_content,
            self.reasoning,
        )
        return next((text for text in found if isinstance(text, str) and text.strip()), "")


class Choice(BaseModel):
    message: ChatMessageBody
    finish_reason: str | None = None


class CompletionBody(ReplyBody):
    choices: list[Choice] | None = None


class EmbeddingItem(BaseModel):
    index: int
    embedding: str | list[float]


class EmbeddingsBody(ReplyBody):
    data: list[EmbeddingItem] | None = None


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
        self._left_out = left_out
        self._parameters: dict[str, OptionalParameters] = {}
        self._client = create_client(endpoint)
        self._timeout = endpoint.timeout
        self._retry = endpoint.retry
        self._on_failure = endpoint.on_failure
        self._problems = endpoint.problems
        self._slots = CallSlots(endpoint.retry.max_concurrent)
        self._retriers: dict[Purpose, CallRetrier] = {}

    @property
    def paused(self) -> bool:
        """Whether all prompts of a purpose wait until a probe succeeds."""
        return any(retrier.paused for retrier in self._retriers.values())

    async def complete(self, prompt: Prompt) -> Reply:
        """As `ChatModel`. A reply cut off by the length limit is returned as it is, for the parser to judge."""
        retrier = self._retriers.get(prompt.purpose) or self._new_retrier(prompt)
        return await retrier.call(
            partial(self._attempt, prompt),
            divisible=isinstance(prompt, SharedPrompt),
            overridden=prompt.model is not None or prompt.timeout is not None,
        )

    async def probe(self) -> Reply | CallFailure:
        """One short call, which is not repeated."""
        greeting = ChatMessage(role="user", content=_PROBE_TEXT)
        return await self._attempt(
            Prompt(purpose="extract", version="probe", messages=(greeting,), schema=_PROBE_SCHEMA)
        )

    async def _attempt(self, prompt: Prompt) -> Reply | CallFailure:
        model = prompt.model or self.model
        parameters = self._parameters.setdefault(
            model, OptionalParameters(f"chat {model}", self._on_failure, {*self._left_out})
        )
        while True:
            sent = parameters.of(self._form(prompt))
            outcome = await send(
                post(self._client, "chat/completions", self._body(prompt, sent)),
                partial(self._read, model),
                purpose=prompt.purpose,
                model=_OVERRIDE_MODEL_LABEL if prompt.model else self.model,
                timeout=prompt.timeout or self._timeout,
                on_failure=self._on_failure,
            )
            if not parameters.learn(outcome, sent):
                return outcome

    def _new_retrier(self, prompt: Prompt) -> CallRetrier:
        """The retrier of a purpose. Its probe has the purpose's instructions and schema: what fails all fails it."""
        purpose = prompt.purpose
        instructions = tuple(message for message in prompt.messages if message.role == "system")
        greeting = ChatMessage(role="user", content=_PROBE_TEXT)
        probe = Prompt(
            purpose=purpose, version=prompt.version, messages=(*instructions, greeting), schema=prompt.schema
        )
        self._retriers[purpose] = CallRetrier(
            self._retry,
            name=f"{purpose} {self.model}",
            probe=partial(self._attempt, probe),
            slots=self._slots,
            on_pause=show_pauses(purpose, self.model),
            problems=self._problems,
        )
        return self._retriers[purpose]

    async def close(self) -> None:
        await self._client.close()

    def _form(self, prompt: Prompt) -> dict[Parameter, Any]:
        form: dict[Parameter, Any] = {"temperature": 0.0, "seed": 0}
        if self._structured_output == "json_schema":
            strict = {"name": prompt.purpose, "strict": True, "schema": prompt.schema}
            form["response_format"] = {"type": "json_schema", "json_schema": strict}
        elif self._structured_output == "json_object":
            form["response_format"] = {"type": "json_object"}
        return form

    def _body(self, prompt: Prompt, sent: Mapping[str, Any]) -> dict[str, Any]:
        messages = [{"role": message.role, "content": message.content} for message in prompt.messages]
        if self._structured_output != "json_schema" or "response_format" not in sent:
            # In the first message: some servers take one system message alone.
            instruction = f"Answer with one JSON object that follows this JSON Schema:\n{json.dumps(prompt.schema)}"
            messages[0]["content"] += f"\n\n{instruction}"
        return {"model": prompt.model or self.model, "messages": messages, **sent}

    def _read(self, model: str, content: bytes) -> Reply | CallFailure:
        body = parse_body(content, CompletionBody)
        if isinstance(body, CallFailure):
            return body
        if not body.choices:
            return _unusable_reply("no_choices", "a reply without choices")
        choice = body.choices[0]
        if choice.message.refusal:
            return CallFailure(kind="refused", code="model_refusal", detail=choice.message.refusal[:_MAX_DETAIL])
        if choice.finish_reason == "content_filter":
            return CallFailure(kind="refused", code="content_filter", detail="the server's filter stopped the reply")
        name = (body.model or model)[:MAX_MODEL_NAME]
        return Reply(text=choice.message.text, model=name, usage=body.tokens)


class OpenAiEmbedder:
    """Embeds texts, by their first `MAX_CHARACTERS` characters; the vectors have length 1.

    Where the server says that a text is too long for its model, texts are embedded by a shorter beginning from then on.
    Without `dimensions` the first reply says how many there are, and later replies have to agree.
    Raises `ProviderConfigurationError` where there is no key for OpenAI.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        model: str,
        *,
        dimensions: int | None = None,
        left_out: Collection[Parameter] = (),
    ) -> None:
        self.model = model
        self._form: dict[Parameter, Any] = {"encoding_format": "base64"}
        if dimensions is not None:
            self._form["dimensions"] = dimensions
        self._parameters = OptionalParameters(f"embed {model}", endpoint.on_failure, {*left_out})
        self._dimensions = dimensions
        self._max_characters = MAX_CHARACTERS
        self._client = create_client(endpoint)
        self._timeout = endpoint.timeout
        self._on_failure = endpoint.on_failure
        self._retrier = CallRetrier(
            endpoint.retry,
            name=f"embed {model}",
            probe=self.probe,
            on_pause=show_pauses("embed", model),
            problems=endpoint.problems,
        )

    async def embed(self, texts: Sequence[str], *, divisible: bool = False) -> Embeddings:
        """As `Embedder`. More texts than one request takes go in several, one after another."""
        vectors: list[Vector] = []
        usage = Usage()
        for batch in request_batches(texts):
            part = await self._retrier.call(partial(self._embed, batch), divisible=divisible)
            vectors += part.vectors
            usage += part.usage
        return Embeddings(vectors=tuple(vectors), usage=usage)

    async def close(self) -> None:
        await self._client.close()

    async def probe(self) -> Embeddings | CallFailure:
        """One short call, which is not repeated."""
        return await self._embed([_PROBE_TEXT])

    async def _embed(self, texts: list[str]) -> Embeddings | CallFailure:
        limit = self._max_characters
        while True:
            sent = self._parameters.of(self._form)
            body = {"model": self.model, "input": [text[:limit] for text in texts], **sent}
            outcome = await send(
                post(self._client, "embeddings", body),
                partial(self._read, len(texts)),
                purpose="embed",
                model=self.model,
                timeout=self._timeout,
                on_failure=self._on_failure,
            )
            if not isinstance(outcome, CallFailure):
                if limit < self._max_characters:
                    self._max_characters = limit
                    _log.warning("texts_embedded_by_their_beginning", provider=self._parameters.name, characters=limit)
                return outcome
            if self._parameters.learn(outcome, sent):
                continue
            longest = max(min(len(text), limit) for text in texts)
            if not outcome.is_too_long or longest <= _FEWEST_CHARACTERS:
                return outcome
            limit = max(_FEWEST_CHARACTERS, longest // 2)

    def _read(self, count: int, content: bytes) -> Embeddings | CallFailure:
        body = parse_body(content, EmbeddingsBody)
        if isinstance(body, CallFailure):
            return body
        items = sorted(body.data or (), key=lambda item: item.index)
        if [item.index for item in items] != list(range(count)):
            return _unusable_reply("wrong_count", f"{len(items)} embeddings for {count} texts")
        try:
            rows = [normalized(decode_embedding(item.embedding)) for item in items]
        except ValueError as error:
            return _unusable_reply("bad_embedding", str(error))
        expected = self._dimensions or len(rows[0])
        if any(len(row) != expected for row in rows):
            sizes = ", ".join(map(str, sorted({len(row) for row in rows})))
            advice = "set MNEMOLOG_EMBEDDING_DIMENSIONS to what the model gives"
            return _unusable_reply("wrong_dimensions", f"{sizes} dimensions where {expected} were expected: {advice}")
        self._dimensions = expected
        return Embeddings(vectors=tuple(Vector.from_values(self.model, row) for row in rows), usage=body.tokens)


def endpoint_of(settings: StreamsSettings, watch: ModelWatch, *, timeout: float, concurrency: int) -> Endpoint:
    return Endpoint(
        base_url=settings.base_url,
        api_key=settings.api_key.get_secret_value() if settings.api_key else None,
        timeout=timeout,
        retry=RetrySettings(max_concurrent=concurrency),
        on_failure=watch.on_failure,
        problems=watch.problems,
    )


def request_batches(texts: Sequence[str]) -> Iterator[list[str]]:
    """Cut `texts` into requests that the server takes: by number, and by characters in all."""
    batch: list[str] = []
    characters = 0
    for text in texts:
        # OpenAI refuses an empty text; a space means the same to a model
        sent = text[:MAX_CHARACTERS] or " "
        if len(batch) == MAX_TEXTS or characters + len(sent) > _REQUEST_CHARACTERS:
            yield batch
            batch, characters = [], 0
        batch.append(sent)
        characters += len(sent)
    if batch:
        yield batch


def decode_embedding(embedding: str | list[float]) -> Sequence[float]:
    """An embedding from numbers, or from base64 of little-endian float32. Raises ValueError where it is neither."""
    if isinstance(embedding, list):
        return embedding
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


def _unusable_reply(code: str, detail: str) -> CallFailure:
    return CallFailure(kind="unavailable", code=code, detail=detail)
