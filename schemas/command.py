"""Commands: what an application, a person or the timer asks for, in order with the turns of an owner."""

from collections.abc import Iterable
from typing import Annotated, Literal, Self
from uuid import UUID

from pydantic import Field, model_validator

from mnemolog.schemas.base import (
    FieldPath,
    Fraction,
    Identifier,
    IfAny,
    IfSet,
    Json,
    Metadata,
    Record,
    Text,
    Timestamp,
    Versioned,
)
from mnemolog.schemas.entities import MAX_MERGED, MAX_MOVED, EntityName, EntityType
from mnemolog.schemas.facts import (
    DEFAULT_IMPORTANCE,
    MAX_MORE_CATEGORIES,
    ActionHint,
    Authority,
    Certainty,
    ConflictAction,
    MoreCategories,
    Slot,
)
from mnemolog.schemas.filters import GivenFilter
from mnemolog.schemas.instructions import INSTRUCTIONS_ADVICE
from mnemolog.schemas.policy import Level, Limits, Policy
from mnemolog.schemas.scope import Scope


class RenameEntity(Record):
    """Give an entity another own name; the former one stays one of its names."""

    kind: Literal["rename_entity"] = "rename_entity"
    entity_id: UUID
    name: EntityName


class AliasEntity(Record):
    """Give an entity one more name. One that another entity has moves only where `moved_from` names that entity."""

    kind: Literal["alias_entity"] = "alias_entity"
    entity_id: UUID
    name: EntityName
    moved_from: UUID | None = None


class MergeEntities(Record):
    """Say that entities are one: `into`."""

    kind: Literal["merge_entities"] = "merge_entities"
    entity_ids: Annotated[tuple[UUID, ...], Field(min_length=1, max_length=MAX_MERGED)]
    into: UUID


class SplitEntity(Record):
    """Say that an entity is two: a new one called `name` gets these facts and names of it.

    `type` is that of the entity unless given.
    """

    kind: Literal["split_entity"] = "split_entity"
    entity_id: UUID
    name: EntityName
    type: EntityType | None = None
    fact_ids: Annotated[tuple[UUID, ...], Field(max_length=MAX_MOVED)] = ()
    names: Annotated[tuple[EntityName, ...], Field(max_length=MAX_MOVED)] = ()

    @model_validator(mode="after")
    def _moves_something(self) -> Self:
        if not self.fact_ids and not self.names:
            raise ValueError("a split names facts, names or both that the new entity gets")
        return self


class ForgetEntity(Record):
    """Forget an entity: its names and what links facts to it; with `facts`, delete the facts that name it too."""

    kind: Literal["forget_entity"] = "forget_entity"
    entity_id: UUID
    facts: bool = False


class SummariseEntity(Record):
    """Have a model write a summary of an entity from its active facts, where a policy allows it.

    One that is sent `by_policy` is written only where as many facts have changed since as the policy says.
    """

    kind: Literal["summarise_entity"] = "summarise_entity"
    entity_id: UUID
    by_policy: bool = False


EntityCommand = RenameEntity | AliasEntity | MergeEntities | SplitEntity | ForgetEntity


MAX_ITEMS = 100
MAX_COMMAND_TEXT = 8000  # characters
ResolveAction = Literal[ConflictAction, "merge"]
FactIds = Annotated[tuple[UUID, ...], Field(min_length=1, max_length=MAX_ITEMS)]
CommandText = Annotated[
    Text, Field(min_length=1, max_length=MAX_COMMAND_TEXT, pattern=r"\S", json_schema_extra={"pattern": r"\S"})
]


class Edit(Record):
    """A fact, or a former version of it, and its new text; what is not given stays as far as the text says the same.

    A plain English sentence has the key, value, category and subject that it names. Another one that lacks a word of
    the old text besides the value, or has nothing in common with it, states another fact: of key, category and all else
    it has what is given. Without `value` the value is read from the new text where that is clear, else the fact has
    none; "" clears it. `value_json` stays with its value. Without `metadata` those of the fact stay. `true_from` is
    since when the new text is true; without it, that is read from a date in whose place the text has another one.
    """

    fact_id: UUID
    text: CommandText
    key: Slot | None = None
    value: Text | None = None
    value_json: IfSet[Json] = None
    categories: IfAny[Annotated[tuple[Slot, ...], Field(max_length=MAX_MORE_CATEGORIES + 1)]] = ()
    metadata: IfSet[Metadata] = None
    true_from: Timestamp | None = None


class Update(Record):
    """Each text replaces a fact, from the time of the command on."""

    kind: Literal["update"] = "update"
    edits: Annotated[tuple[Edit, ...], Field(min_length=1, max_length=MAX_ITEMS)]


class Delete(Record):
    """Delete these facts."""

    kind: Literal["delete"] = "delete"
    fact_ids: FactIds


class DeleteAll(Record):
    """Delete every active or pending fact of exactly the command's scope, or those of a key, a category or a filter.

    The filter is evaluated where the command stands in the order of its owner.
    """

    kind: Literal["delete_all"] = "delete_all"
    key: Slot | None = None
    category: Slot | None = None
    filters: IfSet[GivenFilter] = None


class Confirm(Record):
    """Confirm pending facts, or raise the confidence of active ones; an id may be that of a proposed merge."""

    kind: Literal["confirm"] = "confirm"
    fact_ids: FactIds


class Reject(Record):
    """Reject pending facts; an id may be that of a proposed merge."""

    kind: Literal["reject"] = "reject"
    fact_ids: FactIds


class Correct(Record):
    """A person corrects a fact: no extraction overrules it. Without `ended_at` the old fact was never true."""

    kind: Literal["correct"] = "correct"
    edit: Edit
    ended_at: Timestamp | None = None


class Resolve(Record):
    """Settle an unresolved fact against `targets`, by default those it was added beside; `text` is for a merge."""

    kind: Literal["resolve"] = "resolve"
    fact_id: UUID
    action: ResolveAction
    targets: Annotated[tuple[UUID, ...], Field(max_length=MAX_ITEMS)] = ()
    text: CommandText | None = None

    @model_validator(mode="after")
    def _text_only_for_merge(self) -> Self:
        if (self.action == "merge") != (self.text is not None):
            raise ValueError("a merge, and nothing else, needs the merged text")
        return self


class Undo(Record):
    """Undo one event, one source (a turn or a command), or what a model or prompt version decided.

    The latter within [since, until). With `cascade` later decisions that build on it are undone as well.
    """

    kind: Literal["undo"] = "undo"
    event_id: UUID | None = None
    source_id: Identifier | None = None
    model: Text | None = None
    prompt_version: Text | None = None
    since: Timestamp | None = None
    until: Timestamp | None = None
    cascade: bool = False

    @model_validator(mode="after")
    def _one_target(self) -> Self:
        by_author = self.model is not None or self.prompt_version is not None
        if sum((self.event_id is not None, self.source_id is not None, by_author)) != 1:
            raise ValueError("undo one of: an event, a turn or command, or what a model or prompt_version decided")
        if by_author and (self.since is None or self.until is None or self.since >= self.until):
            raise ValueError(
                "what a model or prompt version decided is undone from since to until: give both, in order"
            )
        if not by_author and (self.since or self.until):
            raise ValueError(
                "an event, a turn or a command is undone as a whole: leave out since and until, "
                "or name a model or prompt_version instead"
            )
        return self


class SetPolicy(Record):
    """`policy` replaces the policy of this level."""

    kind: Literal["set_policy"] = "set_policy"
    level: Level
    policy: Policy


class Feedback(Record):
    """Which of the facts that a search or a context showed were used: for figures, no fact is changed by it.

    `shown` are in the order in which they were shown, the first the best; `used` may have others, which were missed.
    """

    kind: Literal["feedback"] = "feedback"
    shown: Annotated[tuple[UUID, ...], Field(max_length=MAX_ITEMS)] = ()
    used: Annotated[tuple[UUID, ...], Field(max_length=MAX_ITEMS)] = ()
    query: CommandText | None = None

    @model_validator(mode="after")
    def _each_once(self) -> Self:
        if not self.shown and not self.used:
            raise ValueError("feedback names the facts that were shown, those that were used, or both")
        if any(len(set(ids)) < len(ids) for ids in (self.shown, self.used)):
            raise ValueError("feedback names each fact once among those shown, and once among those used")
        return self


class EndSession(Record):
    """A session of this scope has ended: its profile is published, where a policy has it wait for that."""

    kind: Literal["end_session"] = "end_session"


class Promote(Record):
    """Have the facts of the scope `source`, such as a run, decided in the command's scope like statements of a turn.

    Both scopes are of one owner. Without `fact_ids`, `source_id` (what that brought) or `filters` it is all that is
    active there.
    """

    kind: Literal["promote"] = "promote"
    source: Scope
    fact_ids: Annotated[tuple[UUID, ...], Field(max_length=MAX_ITEMS)] = ()
    source_id: Identifier | None = None
    filters: IfSet[GivenFilter] = None

    @model_validator(mode="after")
    def _one_selection(self) -> Self:
        if sum((bool(self.fact_ids), self.source_id is not None, self.filters is not None)) > 1:
            raise ValueError("promote one of: fact_ids, a source_id, what a filter lets through; or all, without these")
        return self


class Expire(Record):
    """Sent by the timer: the end of these facts may have come. Those whose end has not are left as they are."""

    kind: Literal["expire"] = "expire"
    fact_ids: FactIds


class ImportedFact(Record):
    """A fact as another program or an export has it.

    `true_from` is the time of the command unless given, and `confidence` that of its certainty.
    """

    text: Annotated[Text, Field(min_length=1, pattern=r"\S", json_schema_extra={"pattern": r"\S"})]
    key: Slot | None = None
    value: Text | None = None
    value_json: IfSet[Json] = None
    category: Slot = "other"
    more_categories: MoreCategories = ()
    importance: Fraction = DEFAULT_IMPORTANCE
    certainty: Certainty = "explicit"
    confidence: Fraction | None = None
    authority: Authority = "extracted"
    subject: Text | None = None
    speaker: Text | None = None
    action_hint: ActionHint = "new"
    true_from: Timestamp | None = None
    event_time: Timestamp | None = None
    valid_until: Timestamp | None = None


class Import(Record):
    """Store a fact as it is, without a model, unless it is known. `metadata` is that of the fact."""

    kind: Literal["import"] = "import"
    fact: ImportedFact
    metadata: Metadata = Field(default_factory=dict)


CommandPayload = Annotated[
    Update
    | Delete
    | DeleteAll
    | Confirm
    | Reject
    | Correct
    | Resolve
    | Undo
    | SetPolicy
    | Feedback
    | EndSession
    | Promote
    | Expire
    | Import
    | EntityCommand
    | SummariseEntity,
    Field(discriminator="kind"),
]
TENANT_POLICY_AGENT = "mnemolog-policy"
"""The agent in whose scope a policy of a whole tenant is set: a command needs an owner, and a tenant is not one."""


class Command(Versioned):
    """One command. `command_id` is its source id, `issued_at` when it was given, `actor` a text that says by whom.

    A record of `conversation_turns` without `kind` is a turn.
    """

    kind: Literal["command"] = "command"
    command_id: Identifier
    scope: Scope
    issued_at: Timestamp
    order: CommandPayload
    actor: Text | None = None

    @model_validator(mode="after")
    def _promotes_within_an_owner(self) -> Self:
        source = self.order.source if isinstance(self.order, Promote) else None
        if source is not None and (source == self.scope or source.owner != self.scope.owner):
            raise ValueError(
                "facts are promoted into another scope of the same user, or agent where there is none: "
                "name the run that they are of, or another scope to promote them into"
            )
        return self

    @classmethod
    def error_advice(cls, paths: Iterable[FieldPath]) -> str:
        places = list(paths)
        if any("instructions" in place for place in places):
            return f"; {INSTRUCTIONS_ADVICE}"
        if any("policy" in place for place in places):
            return f"; a policy has {', '.join(Policy.model_fields)}; limits are {', '.join(Limits.model_fields)}"
        return ""


def named_facts(payload: CommandPayload) -> tuple[UUID, ...]:
    match payload:
        case Update(edits=edits):
            return tuple(edit.fact_id for edit in edits)
        case Correct(edit=edit):
            return (edit.fact_id,)
        case Resolve(fact_id=fact_id, targets=targets):
            return (fact_id, *targets)
        case Delete() | Confirm() | Reject() | Expire() | Promote() | SplitEntity():
            return payload.fact_ids
        case _:
            return ()


def embedded_texts(payload: CommandPayload) -> tuple[str, ...]:
    """The texts of a command that become facts, in the order of its items: they are embedded on the way."""
    match payload:
        case Update(edits=edits):
            return tuple(edit.text for edit in edits)
        case Correct(edit=edit):
            return (edit.text,)
        case Resolve(text=str(text)):
            return (text,)
        case Import(fact=fact):
            return (fact.text,)
        case _:
            return ()


def tenant_scope(tenant: str) -> Scope:
    """The scope of commands that concern a whole tenant."""
    return Scope(tenant=tenant, agent_id=TENANT_POLICY_AGENT)
