"""How a decision came about and what it cost."""

from typing import Annotated, Final, Literal
from uuid import UUID

from pydantic import Field
from pydantic.dataclasses import dataclass

from mnemolog.schemas.base import PART_OF_ANSWERS, Count, Fraction, Identifier, IfAny, IfSet, Record, Text, Timestamp
from mnemolog.schemas.entities import MAX_UNLINKED, AnsweredName, UnlinkedName
from mnemolog.schemas.facts import Slot

Stage = Literal["journal", "extract", "embed", "match", "resolve", "project"]
OmissionReason = Literal["question", "greeting", "supposition", "joke", "quotation", "request", "too_long", "undecided"]
"""Why an extraction leaves out a sentence that it has read: what the sentence is, or that there is too much of it."""
DropReason = (
    OmissionReason
    | Literal[
        "excerpt_not_found",
        "unfounded",
        "invalid_fact",
        "near_duplicate",
        "recalled",
        "below_importance",
        "never_stored",
    ]
)
Verdict = Literal["ADD", "KEEP", "MERGE", "REPLACE", "CONTRADICT", "EXTEND", "SIMILAR", "RETRACT", "EXPIRE"]
"""What a reader of two statements can say of them."""
Guard = Literal[
    "high_risk",
    "high_confidence",
    "low_confidence",
    "human_word",
    "late_news",
    "add_only",
    "other_subject",
    "lasting_value",
    "lost_slot",
]
"""Why a verdict was blocked or held: the rule that applied."""


class Origin(Record):
    """The position of the turn or command in `conversation_turns`."""

    topic: Text
    partition: Count
    offset: Count

    @property
    def position(self) -> str:
        return f"{self.topic}/{self.partition}/{self.offset}"


class DroppedStatement(Record):
    """A statement that became no fact, and why; `excerpt` is how it was said, `similarity` where one was too near.

    `detail` says in words what of it was not said.
    """

    text: Text
    reason: DropReason
    similarity: float | None = None
    excerpt: Text = ""
    detail: IfAny[Text] = ""


Emotion = Literal["joy", "love", "gratitude", "surprise", "sadness", "anger", "fear", "disgust", "shame", "neutral"]
Energy = Literal["low", "medium", "high"]


class Mood(Record):
    """How the user sounds in a turn: an emotion, how strong it is, from 0 to 1, and how much energy is in it."""

    emotion: Emotion
    intensity: Fraction
    energy: Energy


class Step(Record):
    """One stage's part in a turn: time in milliseconds, and calls and tokens where a model was asked.

    `complaints` are the complaints about invalid replies, one text for each re-prompt; `notes` say what of the record
    was changed before it was read, and what could not be read beside it. `conversation` are the earlier turns that an
    extraction was shown, `known` the facts, `entities` the entities whose names it was told, `instructions` is the
    version of the instructions of a policy. `cached_tokens` are the tokens of the input that the model's server had in
    its cache; None where it does not tell. `mood` is the mood of the turn, where an extraction is asked for it.

    Where several turns shared a call, `call_turns` is their number, `shared_with` the ids of the others, and `request`
    the digest of its prompt, which is the same for all of them: tokens are the turn's share then, and the call counts
    for one of them. Calls and tokens are those that this attempt of its source paid for; `stored_replies` is how many
    replies it used that another attempt had paid for. `unlinked` are the first of the names that were read and link no
    new fact, `answered_names` the names about which the model was asked which entities they mean.
    """

    stage: Stage
    milliseconds: float = Field(ge=0)
    model: Text | None = None
    prompt_version: Text | None = None
    llm_calls: Count = 0
    embedding_calls: float = Field(default=0, ge=0)
    input_tokens: Count = 0
    output_tokens: Count = 0
    cached_tokens: IfSet[Count] = None
    reprompts: Count = 0
    complaints: tuple[Text, ...] = ()
    dropped: tuple[DroppedStatement, ...] = ()
    notes: IfAny[tuple[Text, ...]] = ()
    instructions: IfSet[Text] = None
    conversation: IfAny[tuple[Identifier, ...]] = ()
    known: IfAny[tuple[UUID, ...]] = ()
    entities: IfAny[tuple[UUID, ...]] = ()
    mood: IfSet[Mood] = None
    call_turns: Annotated[int, Field(ge=1)] = Field(default=1, exclude_if=lambda turns: turns == 1)
    request: IfSet[Text] = None
    unlinked: IfAny[Annotated[tuple[UnlinkedName, ...], Field(max_length=MAX_UNLINKED)]] = ()
    shared_with: IfAny[tuple[Identifier, ...]] = ()
    stored_replies: IfAny[Count] = 0
    answered_names: IfAny[tuple[AnsweredName, ...]] = ()


class Thresholds(Record):
    """Cosine similarities that decided: above `duplicate` skip, above `conflict` ask, below add.

    A statement that ends something is compared with known facts from `ending` on. A name may mean what another one
    means from `name_twin` on, by none where that is 0.
    """

    embedding_model: Text
    duplicate: Fraction
    raw_duplicate: Fraction
    conflict: Fraction
    near_duplicate: Fraction
    ending: Fraction = 0.40
    name_twin: IfAny[Fraction] = 0.0


class WeighedCandidate(Record):
    """A candidate that was looked at, with its similarity."""

    fact_id: UUID
    similarity: float


@dataclass(frozen=True, slots=True, kw_only=True, config=PART_OF_ANSWERS)
class FactSnapshot:
    """A fact that an event ends, or would end, as it was before."""

    fact_id: UUID
    text: Text
    key: Slot | None = None
    value: Text | None = None
    confidence: Fraction
    true_from: Timestamp


DecidedBy = Literal["model", "rule", "person", "timer"]
RULES_PREFIX: Final = "rules-"
"""Begins the names of providers that answer by rules: to ask them is no call of a language model."""


def answered_by(model: str | None) -> Literal["model", "rule"]:
    """Who decides by the answer of a provider of this name."""
    return "rule" if model is not None and model.startswith(RULES_PREFIX) else "model"


class Decision(Record):
    """Why this event and no other.

    `by` is who decided: a model with its prompt; a rule (of thresholds, equal words, guards, a policy, or a provider
    that answers by rules); a person, or the application for one, by a command; or the timer. `candidates` are the known
    facts that were looked up, and `shown` those that the question was about: a model was shown them, and what is kept
    as unresolved stands beside them. `verdict` is what the model or the provider said; `guard` the rule that blocked or
    held it; `before` are the targets as they were.
    """

    by: DecidedBy
    reason: Text
    candidates: tuple[WeighedCandidate, ...] = ()
    model: Text | None = None
    prompt_version: Text | None = None
    verdict: Verdict | None = None
    guard: Guard | None = None
    before: tuple[FactSnapshot, ...] = ()
    shown: IfAny[tuple[UUID, ...]] = ()


class Provenance(Record):
    """The steps of a turn through the stages, and the thresholds that applied."""

    steps: tuple[Step, ...] = ()
    thresholds: Thresholds | None = None
