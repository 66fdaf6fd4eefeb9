"""Bodies of requests; their fields are arguments of the client's methods, which check them again."""

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from mnemolog.client.search import Include, WhenAsked
from mnemolog.projections.context import DEFAULT_BUDGET_TOKENS, ContextFormat
from mnemolog.projections.search.search import Fusion
from mnemolog.projections.search.turn_search import TurnStatus
from mnemolog.schemas.facts import FactStatus

Time = Annotated[str, Field(description="a day (2026-01-31, from 00:00 UTC), or a time with its zone")]
MAX_TURNS = 1000
"""Of a batch."""


class Body(BaseModel):
    """Whose memory it is about. Unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")

    user_id: str | None = None
    agent_id: str | None = None
    app_id: str | None = None
    run_id: str | None = None

    @property
    def ids(self) -> dict[str, str | None]:
        return {"user_id": self.user_id, "agent_id": self.agent_id, "app_id": self.app_id, "run_id": self.run_id}

    @property
    def arguments(self) -> dict[str, Any]:
        """The fields that are given, without the ids."""
        return {name: getattr(self, name) for name in self.model_fields_set if name not in Body.model_fields}


class SaidMessage(BaseModel):
    """A message with its text, in the form of OpenAI's API; what is no text is left out, and a note says so."""

    model_config = ConfigDict(extra="allow")

    role: str
    content: str | list[dict[str, Any]] | None = None
    name: str | None = None


class TurnBody(Body):
    """A turn: `messages` is what the user says, or a list of messages. A second one of a `turn_id` does nothing."""

    messages: str | list[SaidMessage]
    turn_id: str | None = None
    infer: bool = True
    occurred_at: Time | None = None
    metadata: dict[str, Any] | None = None
    speaker: str | None = None
    valid_until: Time | None = None
    recalled: list[str] = []
    immutable: bool = False
    overrides: dict[str, Any] | None = None

    @property
    def arguments(self) -> dict[str, Any]:
        return {name: value for name, value in super().arguments.items() if name != "messages"}

    @property
    def said(self) -> str | list[dict[str, Any]]:
        if isinstance(self.messages, str):
            return self.messages
        return [one.model_dump(exclude_unset=True) for one in self.messages]


class BatchBody(BaseModel):
    """Turns in their order, each with whose it is."""

    model_config = ConfigDict(extra="forbid")

    turns: Annotated[list[TurnBody], Field(min_length=1, max_length=MAX_TURNS)]


ScopeIds = dict[str, str | None]


class SearchBody(Body):
    """A search; `docs/search.md` says what each field does."""

    query: str
    limit: int = 20
    threshold: float | None = None
    min_confidence: float | None = None
    filters: dict[str, Any] | None = None
    state: FactStatus | Sequence[FactStatus] | None = None
    believed_at: Time | None = None
    true_at: Time | None = None
    any: Sequence[ScopeIds] | None = None
    period: Sequence[Time] | None = None
    only_period: bool = False
    neighbours: int = 0
    per_matter: int = 3
    explain: bool = False
    ranks: bool = False
    fusion: Fusion = "rrf"
    rrf_k: int = 60
    half_life_days: float = 365.0
    weights: dict[str, float] | None = None
    rerank: bool = False
    variants: int = 0
    when: WhenAsked = "boost"
    include: Include | Sequence[Include] = "facts"
    turn_status: TurnStatus | Sequence[TurnStatus] | None = None


class ContextBody(Body):
    """A context for a prompt; without a `query` nothing is searched."""

    query: str | None = None
    budget_tokens: int = DEFAULT_BUDGET_TOKENS
    format: ContextFormat = "markdown"
    min_confidence: float | None = None
    doubtful: bool = True
    summaries: bool = False
    limit: int = 20
    threshold: float | None = None
    any: Sequence[ScopeIds] | None = None


class CommandBody(Body):
    """A command. The same one under the same `command_id` is carried out once."""

    command_id: str | None = None
