"""The ports to models: what a prompt is about, what is asked for a source, what providers answer, and errors.

`ChatModel` and `Embedder` are providers. Stages ask a `SourceChatModel` and a `SourceEmbedder`, which store replies.
The errors are grouped by what a stage does about them.
"""

from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal, Protocol
from uuid import UUID

from mnemolog.schemas.base import known_sum
from mnemolog.schemas.entities import ENTITY_TYPES, EntityType, SummaryLanguage
from mnemolog.schemas.envelopes import Envelope
from mnemolog.schemas.errors import MnemologError
from mnemolog.schemas.facts import Candidate, ExtractedFact
from mnemolog.schemas.instructions import Instructions
from mnemolog.schemas.provenance import Stage
from mnemolog.schemas.stored import (
    NO_BACKGROUND,
    Background,
    ReplyKey,
    SharedCall,
    StoredFact,
    StoredReply,
    SummaryFact,
)
from mnemolog.schemas.turn import Turn
from mnemolog.schemas.vector import Vector
from mnemolog.streams.entities.questions import DoubtfulName, DoubtfulNames
from mnemolog.streams.errors import StreamsError

Purpose = Literal["extract", "resolve", "summarise", "rerank", "variants"]
Problems = MutableMapping[str, str]
"""By kind of call why all such calls to models fail now, and what a model does not take, in the user's words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens as the provider counted them; zero where it counts none.

    `cached_tokens` is the part of the input that the provider had in its cache; None where it sends no count.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int | None = None

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cached_tokens=known_sum((self.cached_tokens, other.cached_tokens)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatMessage:
    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionTask:
    """What an extraction prompt is about: the turn, and the allowed categories and types of entities.

    A policy adds `instructions`; `background` is shown beside the turn. `detect_mood` asks for its mood too.
    """

    turn: Turn
    categories: tuple[str, ...]
    entity_types: tuple[str, ...] = ENTITY_TYPES
    instructions: Instructions | None = None
    background: Background = NO_BACKGROUND
    detect_mood: bool = False


KnownAs = Literal["unresolved", "said later", "announced"]
"""Why a model is asked about a known fact as if it were new.

It was kept beside its rivals for want of a valid decision; or it states an end of what the turn says, and was said
after that, or announces an end that is still to come.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a fact means for known facts (`candidates`, the likeliest first): a statement at a `place` of the turn.

    Or the fact is `known`, the reason `known_as`: then it is the end of the one candidate, the statement at `place`; or
    it is unresolved, without a place, and `stored` is that fact with its statement and speaker.
    """

    fact: ExtractedFact
    candidates: tuple[Candidate, ...]
    place: int | None = None
    known: Candidate | None = None
    known_as: KnownAs | None = None
    stored: StoredFact | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberedConflict:
    """A new fact (its number in the prompt) and the known facts it may clash with (each with its number).

    `valid_from` is its event time, or else when it was said. `reconsidered_fact_id` is the id of a known fact that
    stands here as if it were new.
    """

    number: int
    fact: ExtractedFact
    valid_from: datetime
    candidates: tuple[tuple[int, Candidate], ...]
    reconsidered_fact_id: UUID | None = None
    known_as: KnownAs | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberedConflicts:
    """What a resolution prompt is about: all conflicts of one turn, and its names that are in doubt.

    A known fact has one number throughout. `same_turn_ids` are candidates that are facts of this very turn, said before
    the fact they stand beside. `user_names` are the names of the user, as `compare_subjects` takes them. `said_at` is
    when the turn was said; all times are shown in its zone.
    """

    conflicts: tuple[NumberedConflict, ...]
    said_at: datetime
    same_turn_ids: frozenset[UUID] = frozenset()
    user_names: tuple[str, ...] = ()
    names: DoubtfulNames | None = None

    @property
    def doubtful_names(self) -> tuple[DoubtfulName, ...]:
        return self.names.names if self.names else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryTask:
    """What a summary prompt is about: an entity, the facts that are shown, and the estimated tokens of a summary."""

    name: str
    type: EntityType
    aliases: tuple[str, ...]
    facts: tuple[SummaryFact, ...]
    max_tokens: int
    language: SummaryLanguage = "facts"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """One question to a language model.

    `model` is the one to ask instead of the configured one, `timeout` the seconds that a call may take.
    """

    purpose: Purpose
    version: str
    messages: tuple[ChatMessage, ...]
    schema: Mapping[str, Any]
    model: str | None = None
    timeout: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPrompt(Prompt):
    """A question with what it is about as data, for a provider that has rules in the place of a language model."""

    task: ExtractionTask | NumberedConflicts | SummaryTask


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedPrompt(Prompt):
    """A question about several turns of one scope, with what it is about as data, in the turns' order."""

    tasks: tuple[ExtractionTask, ...]


CUT_OFF: Final = "(cut off at the token limit)"
"""Ends the text of a reply of which the server says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The text of a model's reply, unparsed, with the model and the tokens used; `endpoint` is that of a fallback."""

    text: str
    model: str
    usage: Usage = Usage()
    endpoint: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedReply(Reply):
    """A reply as it is kept for re-deliveries, with the time it took in milliseconds.

    `shared` is the call that it is a part of, where several turns were asked about together; the time is the call's.
    With `is_paid` another attempt of the source has paid for it, and counts it.
    """

    milliseconds: float
    shared: SharedCall | None = None
    is_paid: bool = False

    @property
    def cost(self) -> Usage:
        return Usage() if self.is_paid else self.usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Embeddings:
    """One vector a text, in the order of the texts; `endpoint` is the fallback that made some of them."""

    vectors: tuple[Vector, ...]
    usage: Usage = Usage()
    endpoint: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestSource:
    """The source that a model is asked for; `position` is its record's, and differs in another attempt."""

    owner: str
    source_id: str
    stage: Stage
    position: str | None = None

    @classmethod
    def of(cls, envelope: Envelope, stage: Stage) -> "RequestSource":
        return cls(owner=envelope.owner, source_id=envelope.source_id, stage=stage, position=envelope.origin.position)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceQuestion:
    """The question that a source would ask alone; `kept_with` is stored with the reply, where others ask it too."""

    source: RequestSource
    prompt: TaskPrompt
    kept_with: StoredReply | None = None


DivideReply = Callable[[Reply], Sequence[Reply | None]]
"""The part of each question in a reply to all of them, with its share of the tokens; None where it has no part."""
AskModel = Callable[[Prompt, int], Awaitable[TimedReply]]
"""Completes a prompt; the number is that of the attempt, from 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingResult:
    """One vector a text; `calls` is this source's share of the call, `milliseconds` the whole call's.

    Where `is_paid`, another attempt of the source has paid: calls and tokens are 0. `endpoint` is as in `Embeddings`.
    """

    vectors: tuple[Vector, ...]
    model: str
    calls: float
    tokens: int
    milliseconds: float
    is_paid: bool = False
    endpoint: str | None = None


class SourceChatModel(Protocol):
    """A chat model that is asked for a source; the same question of a source gets the same reply."""

    @property
    def model(self) -> str: ...

    def for_source(self, source: RequestSource, question: Prompt) -> AskModel: ...

    async def has_reply(self, question: SourceQuestion) -> bool:
        """Whether a reply to it is stored."""

    async def unused_replies(self, source: RequestSource, question: Prompt | None) -> Sequence[TimedReply]:
        """The stored replies that the record of `source` pays for at its stage, except replies to `question`."""

    async def ask_together(
        self,
        questions: Sequence[SourceQuestion],
        prompt: Prompt,
        divide: DivideReply,
        *,
        known: tuple[UUID, ...] = (),
        entities: tuple[UUID, ...] = (),
    ) -> Sequence[bool]:
        """Ask `prompt` in the place of all `questions`, and store for each its part of the reply as the reply to it.

        Says of each question whether it has a part. The prompt shows the facts `known` and these `entities`. Raises as
        `ChatModel` does.
        """


class SourceEmbedder(Protocol):
    """An embedder that is asked for a source."""

    @property
    def model(self) -> str: ...

    async def embed(self, source: RequestSource, texts: tuple[str, ...]) -> EmbeddingResult:
        """Return one vector a text. Raises `PromptRefusedError`."""


class ChatModel(Protocol):
    """Completes prompts.

    Waits out outages (the stage pauses, no turn fails for one); raises `PromptRefusedError` where this prompt fails
    while others succeed, for a `SharedPrompt` `BatchSuspectError` at its first failure: any turn may be at fault.
    """

    @property
    def model(self) -> str: ...

    async def complete(self, prompt: Prompt) -> Reply: ...

    async def close(self) -> None: ...


class Embedder(Protocol):
    """Embeds texts; as for outages and refusals like `ChatModel`."""

    @property
    def model(self) -> str: ...

    async def embed(self, texts: Sequence[str], *, divisible: bool = False) -> Embeddings:
        """Return one vector a text.

        Where `divisible`, raises `BatchSuspectError` at the first failure while others succeed: any of the texts may be
        at fault, and the caller asks for parts of them.
        """

    async def close(self) -> None: ...


class ReplyStore(Protocol):
    """Stores replies (`mnemolog.projections.stores.turns`); waits while the database is unavailable."""

    async def get_many(self, keys: Sequence[ReplyKey]) -> Mapping[ReplyKey, tuple[StoredReply, ...]]: ...

    async def put_many(self, replies: Sequence[StoredReply]) -> list[StoredReply]: ...

    async def paid(self, owner: str, source_id: str, stage: str, position: str) -> Sequence[StoredReply]: ...


class ProviderError(MnemologError):
    """Base of the providers' errors."""


class PromptRefusedError(ProviderError):
    """This call fails while others of its kind succeed: the turn fails, others go on.

    `replies` came before the question was asked again: they are paid for.
    """

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail
        self.replies: tuple[TimedReply, ...] = ()


class BatchSuspectError(ProviderError):
    """A call for many items failed while other calls succeed: one of the items may be at fault, so ask for parts."""


class ProviderConfigurationError(ProviderError):
    """The provider cannot work as configured (missing package, unknown model name): refused at start."""


class UnusableReplyError(ProviderError):
    """The reply to a search is not valid: the search goes on without it."""

    def __init__(self, detail: str) -> None:
        super().__init__(f"the reply of the model is not valid: {detail}")


class ReplyInvalidError(StreamsError):
    """Every reply, re-prompts included, was invalid.

    The caller ends the turn as failed (extraction) or adds the facts unresolved (resolution);
    `replies` are paid for and belong in the provenance either way, `complaints` says what was wrong with each.
    """

    def __init__(self, complaints: tuple[str, ...], replies: tuple[TimedReply, ...]) -> None:
        super().__init__(f"no valid reply after {len(replies)} calls, the last one: {complaints[-1]}")
        self.complaints = complaints
        self.replies = replies
