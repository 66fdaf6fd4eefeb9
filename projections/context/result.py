"""A context for a prompt: its text, the facts in it, and what was left out."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal
from uuid import UUID

from mnemolog.projections.context.entries import Doubt, Section
from mnemolog.projections.context.formats import ContextFormat
from mnemolog.schemas.scope import Scope

LeftOutReason = Literal["budget", "doubtful"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextFact:
    """A fact in a context. `when` and `state` are as the text says them; `source_id` is its turn or command."""

    fact_id: UUID
    scope: Scope
    text: str
    section: Section
    when: str
    state: str
    confidence: float
    source_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextSummary:
    """A summary of an entity in a context, written from the facts `fact_ids`.

    `changed` facts have ended or are new since.
    """

    entity_id: UUID
    name: str
    summary: str
    version: int
    changed: int
    fact_ids: list[UUID]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A fact that is not in a context: there was no room (`budget`), or no doubtful ones are wanted (`doubtful`)."""

    fact_id: UUID
    text: str
    section: Section
    reason: LeftOutReason
    doubts: tuple[Doubt, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOutSummary:
    """A summary that is not in a context: there was no room, or it has a doubtful fact and none of these is wanted."""

    summary: ContextSummary
    reason: LeftOutReason


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What is known, as a text for a prompt; empty where nothing is known or nothing fits.

    `tokens` are those of the text, never more than `budget_tokens`; `counted_by` says how they are counted. `facts`
    are in the order of the text. `messages` go into the prompt, and `recalled` into `add` of the turn that comes of it:
    then what the answer repeats is no evidence. `summaries` are those of entities, where they were asked for, and
    `left_out_summaries` the others. `notice` is that of the search.
    """

    text: str
    format: ContextFormat
    tokens: int
    budget_tokens: int
    counted_by: Literal["tokenizer", "estimate"]
    facts: tuple[ContextFact, ...]
    left_out: tuple[LeftOut, ...]
    notice: str | None = None
    summaries: tuple[ContextSummary, ...] = ()
    left_out_summaries: tuple[LeftOutSummary, ...] = ()
    messages: list[dict[str, str]] = field(init=False)
    recalled: tuple[str, ...] = field(init=False)
    left_out_counts: dict[LeftOutReason, int] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "messages", [{"role": "system", "content": self.text}] if self.text else [])
        # The whole for copies that run over several lines or are escaped; each fact for what is said in its words.
        shown = (*(fact.text for fact in self.facts), *(one.summary for one in self.summaries))
        texts = (self.text, *shown) if self.text else ()
        object.__setattr__(self, "recalled", texts)
        object.__setattr__(self, "left_out_counts", dict(Counter(one.reason for one in self.left_out)))

    def __str__(self) -> str:
        return self.text
