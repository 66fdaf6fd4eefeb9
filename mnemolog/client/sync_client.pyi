"""The blocking client, for programs without an event loop. This file is written by `make generate`."""

from asyncio import AbstractEventLoop
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from os import PathLike
from types import EllipsisType
from typing import IO, Any, Literal, Self, Unpack, overload
from uuid import UUID

from mnemolog.client.async_client import AsyncMemoryClient
from mnemolog.client.base import ClientOptions
from mnemolog.client.commands import Shown
from mnemolog.client.entities import EntityNames, EntityRef
from mnemolog.client.files import ImportReport
from mnemolog.client.inputs import BoundArgs, CommandArgs, FactId, FactIds, ScopeArgs, TurnArgs, Wait, When
from mnemolog.client.producer import CommandReceipt, Published, SeveralPublished, TurnReceipt
from mnemolog.client.records import Messages
from mnemolog.client.search import SearchResult
from mnemolog.client.search_arguments import ContextArgs, SearchArgs
from mnemolog.projections.context import Context, ContextFormat
from mnemolog.projections.queries.audit import FailedTurn
from mnemolog.projections.queries.diff import Axis, Diff
from mnemolog.projections.queries.entities import Entity, EntityDetails, EntityRelation
from mnemolog.projections.queries.entity_graph import EntityGraph, Neighbour
from mnemolog.projections.queries.explain import Explanation, History
from mnemolog.projections.queries.facts import IdCount
from mnemolog.projections.queries.pending import PendingFact, PendingMerge, UnresolvedFact
from mnemolog.projections.queries.quality import DecisionQuality
from mnemolog.projections.queries.results import Fact, FoundFact, Profile, WriteResult
from mnemolog.projections.queries.write_result import WhyNot
from mnemolog.schemas.command import Edit, ResolveAction
from mnemolog.schemas.policy import Policy, StoredPolicies
from mnemolog.schemas.turn import Turn
from mnemolog.settings import Settings

def new_event_loop() -> AbstractEventLoop: ...

class MemoryClient:
    """`AsyncMemoryClient` without `await`: same arguments, results and errors.

    One thread runs its event loop until `close`; several threads may call it at once.
    """

    _client: AsyncMemoryClient

    def __init__(self, **options: Unpack[ClientOptions]) -> None: ...
    @classmethod
    def from_settings(cls, settings: Settings) -> Self: ...
    def scope(self, **ids: Unpack[BoundArgs]) -> Self:
        """The same client bound to a scope: its methods take these ids where a call does not give them."""

    def close(self) -> None:
        """Send what is still queued, disconnect and end the thread; does nothing on what `scope` gives."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *_: object) -> None: ...
    @overload
    def add(self, messages: Messages, *, wait: Literal[False] = ..., **turn: Unpack[TurnArgs]) -> TurnReceipt:
        """Publish one turn; returns once the broker has it for good, or with `wait` once it has ended.

        `messages` is a text of the user, or a list of `{role, content, name}`; messages in OpenAI's form are taken as
        they are. Further arguments: user_id, agent_id, app_id, run_id, tenant, infer, occurred_at, metadata, turn_id,
        speaker, valid_until, recalled, overrides (`TurnArgs` says what each means).

        Returns a receipt; with `wait` (True for 30, or seconds) the result. A turn that ended `failed` or `rejected`
        raises nothing: `success` and `error` of the result say so. Raises `WaitTimeoutError` where there is no end in
        time: the turn is published and goes on, so wait for it again instead of adding it again.

        Raises `InvalidTurnError` before anything is sent, `LimitExceededError` where it is known that the turn would be
        refused for a limit, and `PublishError` when no acknowledgement came in time: publish again with the same
        `turn_id`, a second copy does nothing.
        """

    @overload
    def add(self, messages: Messages, *, wait: float, **turn: Unpack[TurnArgs]) -> WriteResult: ...
    @overload
    def add_many(self, turns: Iterable[Turn], *, wait: Literal[False] = ...) -> list[TurnReceipt]:
        """Publish turns in their order, many at a time; returns once the broker has all of them, or all have ended.

        Raises `InvalidTurnError` for the first invalid turn, before anything is sent, and `PartlyPublishedError` that
        names those which were not acknowledged. Limits are not checked here: a turn over one ends as rejected.
        """

    @overload
    def add_many(self, turns: Iterable[Turn], *, wait: float) -> list[WriteResult]: ...
    def dry_run(
        self,
        messages: Messages,
        *,
        verbose: bool = ...,
        timeout: float = ...,
        on_wait: Callable[[str], None] | None = ...,
        **turn: Unpack[TurnArgs],
    ) -> WriteResult:
        """What `add` of the same arguments would do now and what it would cost; nothing is stored or published.

        The very stages run here, with the models and settings of this process, on what the tables hold at the moment:
        turns that are still being processed are not waited for. Model calls are real, and not recorded. Needs Postgres,
        not Kafka. Raises `InvalidTurnError`, `WaitTimeoutError` after `timeout` seconds, and what building a model
        raises. `on_wait` is called with what a run of more than 3 s waits for, and again where that has changed.
        """

    @overload
    def status(
        self, turn_id: Published, *, user_id: str | None = ..., tenant: str | None = ..., verbose: bool = ...
    ) -> WriteResult:
        """How a turn or a command ended and what it did, or that it is pending; `verbose` adds the trace.

        `turn_id` is an id, or what `add` or a command returned, or a list of these. The trace tells what was retrieved,
        each decision with its reason, re-prompts and what was left out. The notes of a pending one say what fails in
        the workers. Raises `UnknownTurnError` for one that is not
        in the tables (yet), `AmbiguousTurnError` where several users have a turn of this id: give `user_id`.
        """

    @overload
    def status(
        self, turn_id: SeveralPublished, *, user_id: str | None = ..., tenant: str | None = ..., verbose: bool = ...
    ) -> list[WriteResult]: ...
    @overload
    def wait(
        self,
        turn_id: Published,
        *,
        timeout: float = ...,
        user_id: str | None = ...,
        tenant: str | None = ...,
        verbose: bool = ...,
        attempt: int = ...,
    ) -> WriteResult:
        """Wait until a turn or a command has ended, or several have, `timeout` seconds at the most.

        `turn_id` is what `status` takes. An end may be `failed` or `rejected`: `success` of the result says so, nothing
        is raised. What failed, or was rejected for a limit, and is published again has another end: wait for its
        new receipt, or by id for `attempt` 2. Raises `WaitTimeoutError` that says how far it is; the stages go on.
        """

    @overload
    def wait(
        self,
        turn_id: SeveralPublished,
        *,
        timeout: float = ...,
        user_id: str | None = ...,
        tenant: str | None = ...,
        verbose: bool = ...,
        attempt: int = ...,
    ) -> list[WriteResult]: ...
    def find_turn_id(self, beginning: str, *, user_id: str | None = ..., tenant: str | None = ...) -> str:
        """The whole id of the only turn or command whose id begins so (four characters or more), or is just this.

        Raises `UnknownTurnError`, `AmbiguousIdError` that names the candidates, and `AmbiguousTurnError`.
        """

    def search(self, query: str, **arguments: Unpack[SearchArgs]) -> SearchResult:
        """The facts nearest to `query` in meaning and words, best first, each with the reasons for its place.

        `SearchArgs` says what may be asked besides: the scope, `top_k`, `threshold`, `filters`, `state`, times, several
        scopes at once, how signals are fused, and whether turns are included, which are `turns` of the result. `notice`
        of it says why there is no hit.
        Pending facts are found as well: `status` of the fact says so. The client needs the embedder that the stages
        have (`MNEMOLOG_EMBEDDING_PROVIDER` and `_MODEL`): vectors of another one find nothing by meaning. Without a
        vector the search goes by words; `mode` and `notice` of the result say so.
        """

    def context(
        self,
        query: str | None,
        *,
        budget_tokens: int = ...,
        format: ContextFormat = ...,
        count_tokens: Callable[[str], int] | None = ...,
        min_confidence: float | None = ...,
        doubtful: bool = ...,
        summaries: bool = ...,
        **arguments: Unpack[ContextArgs],
    ) -> Context:
        """What is known of one scope, or of those in `any`, and matters to `query`: a text of at most `budget_tokens`.

        First what must be respected (hard preferences and health), then the current task, what the search finds, and
        soft preferences. Where the budget is tight, facts that are pending, unresolved, old, or below `min_confidence`
        (that of the settings, or 0.5, unless given) are left out first; with `doubtful=False` in any case. Without a
        query (None) nothing is searched.
        `count_tokens` is the model's tokenizer, such as `lambda text: len(encoding.encode(text))`; without it tokens
        are estimated from above. Put `messages` of the result into the prompt, and give `recalled` of it to `add` with
        the turn that comes of it. With `summaries` the summaries of the entities that most of these facts name, up to
        three, stand behind the facts where there is room; with `doubtful=False` none that has a doubtful fact.
        """

    def get(self, fact_id: FactId, **scope: Unpack[ScopeArgs]) -> FoundFact:
        """The fact of an id as it is now, whatever its status: of a former version what took its place (`former_id`).

        `fact_id` may be the beginning of the id, if only one fact has it. `history` has what a former version said.

        Raises `UnknownFactError`, also for a fact that is not of the ids that are named, and `AmbiguousIdError`.
        """

    def facts(
        self,
        *,
        all_versions: bool = ...,
        filters: Mapping[str, Any] | None = ...,
        limit: int | None = ...,
        after: FactId | None = ...,
        **scope: Unpack[ScopeArgs],
    ) -> list[Fact]:
        """The current facts, in the order in which they were learned; or all versions.

        `filters` narrows them further, for example `{"OR": [{"categories": "health"}, {"importance": {"gte": 0.8}}]}`;
        one that asks about `state` looks among all versions. Where no id is named beside it, it says whose facts:
        `{"user_id": "alice"}` are those without any other id, `{"OR": [{"user_id": "alice"}]}` those with any.

        All of them are returned, however many there are, or `limit` of them, from the first or from the one that
        follows the fact `after`: the id of a page's last fact gives the next page, and every fact is in one page,
        whatever is stored meanwhile.
        """

    def get_all(
        self,
        *,
        all_versions: bool = ...,
        filters: Mapping[str, Any] | None = ...,
        limit: int | None = ...,
        after: FactId | None = ...,
        **scope: Unpack[ScopeArgs],
    ) -> list[Fact]:
        """The same as `facts`, under its name in other memory layers."""

    def facts_as_of(self, believed_at: When, true_at: When | None = ..., **scope: Unpack[ScopeArgs]) -> list[Fact]:
        """What was known at `believed_at` to be true at `true_at` (the same unless given), each fact as it was then."""

    def profile(self, **scope: Unpack[ScopeArgs]) -> Profile:
        """What is known of exactly one scope, by section; empty where nothing is.

        It is the present one, or, where a policy says so, the one that was published last (`published_at`).
        """

    def count(
        self, *, all_versions: bool = ..., filters: Mapping[str, Any] | None = ..., **scope: Unpack[ScopeArgs]
    ) -> int:
        """How many facts `facts` of the same arguments lists."""

    def export(
        self,
        file: str | PathLike[str] | IO[bytes],
        *,
        all_versions: bool = ...,
        filters: Mapping[str, Any] | None = ...,
        **scope: Unpack[ScopeArgs],
    ) -> int:
        """Write what `facts` of the same arguments lists into a file: a line of JSON for each, as `to_dict` has it.

        Returns how many there are. They are read in batches, all as of one moment. A file that is named is there once
        it is whole; until then its name ends in `.part`. Raises `QueryError` where it cannot be written.
        """

    def users(self, *, limit: int | None = ..., after: str | None = ..., **scope: Unpack[ScopeArgs]) -> list[IdCount]:
        """The users of the tenant of whom something is known, each with the number of active and pending facts.

        In order of their ids: all, or `limit` of them, from the first or from the one that follows the id `after`. An
        id that is not given is "**" here: with `agent_id="bot"` they are the users of this agent.
        """

    def agents(self, *, limit: int | None = ..., after: str | None = ..., **scope: Unpack[ScopeArgs]) -> list[IdCount]:
        """The agents, as `users` lists users."""

    def runs(self, *, limit: int | None = ..., after: str | None = ..., **scope: Unpack[ScopeArgs]) -> list[IdCount]:
        """The runs, as `users` lists users: with `user_id="alice"` those of Alice."""

    def history(self, fact_id: FactId, **scope: Unpack[ScopeArgs]) -> History:
        """A fact's versions, and every event that made or touched them. Takes ids and raises as `get` does."""

    def explain(self, fact_id: FactId, **scope: Unpack[ScopeArgs]) -> Explanation:
        """Where a fact comes from: its turn and excerpt, how it was extracted and decided, what happened to it since.

        `words` of the result says it in sentences. Takes ids and raises as `get` does.
        """

    def why_not(self, turn_id: str, *, user_id: str | None = ..., tenant: str | None = ...) -> WhyNot:
        """The statements of a turn that were not stored as facts, and why. Raises as `status` does."""

    def pending(self, **scope: Unpack[ScopeArgs]) -> list[PendingFact | PendingMerge]:
        """Changes of facts that wait for a confirmation, with the guard that holds them, then merges; the oldest first.

        A merge is of two entities that a rule takes for one.
        """

    def unresolved(self, **scope: Unpack[ScopeArgs]) -> list[UnresolvedFact]:
        """Facts that were added beside others because their conflict could not be decided, the oldest first."""

    def diff(self, since: When, until: When | None = ..., *, axis: Axis = ..., **scope: Unpack[ScopeArgs]) -> Diff:
        """What changed from `since` up to `until` (now unless given), by kind.

        On the axis `believed` what was decided then; on the axis `true` what became or ceased to be true then, as it
        is known now. Either way the result also compares what was known at both ends.
        """

    def quality(
        self, since: When | None = ..., until: When | None = ..., **scope: Unpack[ScopeArgs]
    ) -> DecisionQuality:
        """How often memory was overwritten, how often wrongly, what is pending, and what models cost.

        Of the last 30 days unless told otherwise, and of the whole tenant: an id that is not given is "**" here.
        """

    def failed_turns(self, *, limit: int = ..., **scope: Unpack[ScopeArgs]) -> list[FailedTurn]:
        """The newest turns that ended failed or rejected, of the whole tenant: an id that is not given is "**" here."""

    def received_turn(self, turn_id: str, *, user_id: str | None = ..., tenant: str | None = ...) -> Turn | None:
        """A turn as it was first received; None where it is not known (yet), or what came was no valid turn."""

    def short_ids(self, whole_ids: Collection[UUID]) -> dict[UUID, str]:
        """For each id of a fact or event the beginning, of eight characters or more, that stands for no other now."""

    def entities(
        self,
        *,
        type: str | None = ...,
        limit: int | None = ...,
        after: UUID | str | None = ...,
        **scope: Unpack[ScopeArgs],
    ) -> list[Entity]:
        """The entities that facts of a scope name, in the order in which they were named first. The user is one.

        All of them, those of one `type` ("person", "place"), or `limit` of them, from the first or from the one that
        follows the entity `after`, a whole id.
        """

    def entity(
        self,
        name: str,
        *,
        all_versions: bool = ...,
        believed_at: When | None = ...,
        true_at: When | None = ...,
        **scope: Unpack[ScopeArgs],
    ) -> EntityDetails:
        """One entity: its names, the current facts that name it with its role in each, and its possible twins.

        With its relations, its profile (what holds of it now) and its timeline.

        `name` is one of its names, as it was said ("Ana"), the beginning of its id, or what it is to somebody, as `who`
        takes it ("my wife"): who is that now, else who was called so. Raises `UnknownEntityError`, and
        `AmbiguousIdError` where several are meant.

        With `believed_at` and `true_at` as `relations` takes them, what was known then: the facts of `facts_as_of` that
        name it, its relations and profile of then, what happened to it up to then; and no summary.
        """

    def relations(
        self,
        entity: str | None = ...,
        *,
        predicate: str | None = ...,
        all_versions: bool = ...,
        believed_at: When | None = ...,
        true_at: When | None = ...,
        **scope: Unpack[ScopeArgs],
    ) -> list[EntityRelation]:
        """What the entities of a scope are to each other now, or ever were, as it was stated; the oldest first.

        With `entity`, a name or id as `entity` takes it, all relations read from that one, also those that were stated
        of others. `predicate` is a word for one: "spouse", "wife", "works at". Raises as `entity` does.

        `believed_at` asks for what was known then, `true_at` for what held then: now, and the same as `believed_at`,
        unless given. Entities are those of now, after all merges and splits; what was taken back since is left out.
        """

    def neighbours(
        self,
        entity: str,
        *,
        hops: int = ...,
        believed_at: When | None = ...,
        true_at: When | None = ...,
        **scope: Unpack[ScopeArgs],
    ) -> list[Neighbour]:
        """The entities that hold to be related to one, or at 2 `hops` also to those, each once with the path to it.

        The times are those of `relations`. Raises as `entity` does, and `QueryError` for other hops.
        """

    def who(
        self, name: str, *, believed_at: When | None = ..., true_at: When | None = ..., **scope: Unpack[ScopeArgs]
    ) -> list[Entity]:
        """Who or what somebody means: "my wife", "Tom's boss", "my wife's dog", "my employer", or a name.

        "My" is the user's; "wife" alone is, too, where nobody has that name. What somebody is to another one follows
        from relations that hold now, or at the times that `relations` takes; an empty list where nobody is that.
        """

    def graph(
        self,
        *,
        all_versions: bool = ...,
        believed_at: When | None = ...,
        true_at: When | None = ...,
        **scope: Unpack[ScopeArgs],
    ) -> EntityGraph:
        """The related entities of a scope with their relations, at the times that `relations` takes.

        Its `mermaid` is a diagram.
        """

    @overload
    def delete_all(
        self,
        *,
        key: str | None = ...,
        category: str | None = ...,
        filters: Mapping[str, Any] | None = ...,
        wait: Literal[False] = ...,
        **arguments: Unpack[CommandArgs],
    ) -> list[CommandReceipt]:
        """Delete every active or pending fact of a scope, or those of a key, a category or a filter.

        "*" stands for any value of an id, "**" also for none: then there is one command for each scope that the tables
        know now, in the list that is returned; with an exact scope it has one. `run_id` or `app_id` without a user and
        an agent is all of that run or application, whoever's it is. Where no id is named, the filter says whose facts,
        as in `facts`. Which facts it lets through is decided where the command is carried out.
        """

    @overload
    def delete_all(
        self,
        *,
        key: str | None = ...,
        category: str | None = ...,
        filters: Mapping[str, Any] | None = ...,
        wait: float,
        **arguments: Unpack[CommandArgs],
    ) -> list[WriteResult]: ...
    @overload
    def undo(
        self, *, event_id: FactId, cascade: bool = ..., wait: Literal[False] = ..., **arguments: Unpack[CommandArgs]
    ) -> CommandReceipt:
        """Undo an event, a turn (or a command, by its command_id), or all that a model or prompt version decided.

        The latter from `since` up to `until`; there "*" and "**" are allowed, as in `delete_all`, and a list
        is returned. A prompt version stands for its variants too: "extract-6" for "extract-6-turns-1". Where later
        decisions build on it the undo is rejected with their list, or with `cascade` undoes those too. An undo is
        undone by the id of its command. Whose event or turn it is need not be named.
        """

    @overload
    def undo(
        self, *, event_id: FactId, cascade: bool = ..., wait: float, **arguments: Unpack[CommandArgs]
    ) -> WriteResult: ...
    @overload
    def undo(
        self, *, turn_id: str, cascade: bool = ..., wait: Literal[False] = ..., **arguments: Unpack[CommandArgs]
    ) -> CommandReceipt: ...
    @overload
    def undo(
        self, *, turn_id: str, cascade: bool = ..., wait: float, **arguments: Unpack[CommandArgs]
    ) -> WriteResult: ...
    @overload
    def undo(
        self,
        *,
        model: str | None = ...,
        prompt_version: str | None = ...,
        since: When,
        until: When,
        cascade: bool = ...,
        wait: Literal[False] = ...,
        **arguments: Unpack[CommandArgs],
    ) -> list[CommandReceipt]: ...
    @overload
    def undo(
        self,
        *,
        model: str | None = ...,
        prompt_version: str | None = ...,
        since: When,
        until: When,
        cascade: bool = ...,
        wait: float,
        **arguments: Unpack[CommandArgs],
    ) -> list[WriteResult]: ...
    @overload
    def set_policy(
        self, policy: Policy | Mapping[str, Any], *, wait: Literal[False] = ..., **arguments: Unpack[CommandArgs]
    ) -> CommandReceipt:
        """Set the policy of a scope, or of the whole tenant where neither user nor agent is named.

        It replaces the policy of this level: rules that are not given are unset, and the level above decides.
        """

    @overload
    def set_policy(
        self, policy: Policy | Mapping[str, Any], *, wait: float, **arguments: Unpack[CommandArgs]
    ) -> WriteResult: ...
    @overload
    def feedback(
        self,
        shown: Shown,
        *,
        used: Shown,
        query: str | None = ...,
        wait: Literal[False] = ...,
        **arguments: Unpack[CommandArgs],
    ) -> CommandReceipt:
        """Say which of the facts that a search or a context showed were used, so that `quality` can tell hit rates.

        `shown` is the result of `search` or `context`, or facts or whole ids in the order shown; `used` are facts or
        whole ids, also such as were not shown: those were missed. It is no evidence and changes no fact. The scope need
        not be named where `shown` is a result, or has hits or facts.
        """

    @overload
    def feedback(
        self, shown: Shown, *, used: Shown, query: str | None = ..., wait: float, **arguments: Unpack[CommandArgs]
    ) -> WriteResult: ...
    @overload
    def end_session(self, *, wait: Literal[False] = ..., **arguments: Unpack[CommandArgs]) -> CommandReceipt:
        """Say that a session of this scope has ended: what its turns until now have changed is published.

        It matters where a policy has `publish_profile` "session_end" or "every_turns": `profile` then shows what was
        known when it was last published.
        """

    @overload
    def end_session(self, *, wait: float, **arguments: Unpack[CommandArgs]) -> WriteResult: ...
    def policies(self, **scope_args: Unpack[ScopeArgs]) -> StoredPolicies:
        """What has been set for a tenant, and for a scope where a user or an agent is named."""

    @overload
    def update(
        self,
        fact_id: FactId,
        text: str,
        *,
        key: str | None = ...,
        value: str | EllipsisType | None = ...,
        categories: Sequence[str] = ...,
        metadata: Mapping[str, Any] | None = ...,
        wait: Literal[False] = ...,
        **arguments: Unpack[CommandArgs],
    ) -> CommandReceipt:
        """Replace the text of a fact from now on. A fact that a human corrected is changed by `correct` alone.

        Key, categories and metadata stay unless given; of key and categories nothing stays where the new text has
        nothing in common with the old one. Without `value` its value is read from the new text where the two texts
        differ in the value alone, and cleared where that is not clear; None clears it. The id may be that of a former
        version: what took its place is updated, and the `notes` of the result say so.
        """

    @overload
    def update(
        self,
        fact_id: FactId,
        text: str,
        *,
        key: str | None = ...,
        value: str | EllipsisType | None = ...,
        categories: Sequence[str] = ...,
        metadata: Mapping[str, Any] | None = ...,
        wait: float,
        **arguments: Unpack[CommandArgs],
    ) -> WriteResult: ...
    @overload
    def batch_update(
        self, edits: Iterable[Edit | Mapping[str, Any]], *, wait: Literal[False] = ..., **arguments: Unpack[CommandArgs]
    ) -> CommandReceipt:
        """Update up to 100 facts of a scope, all or none.

        An edit has fact_id, text, and perhaps key, value, categories and metadata, as in `update`.
        """

    @overload
    def batch_update(
        self, edits: Iterable[Edit | Mapping[str, Any]], *, wait: float, **arguments: Unpack[CommandArgs]
    ) -> WriteResult: ...
    @overload
    def delete(
        self, fact_id: FactId, *, wait: Literal[False] = ..., **arguments: Unpack[CommandArgs]
    ) -> CommandReceipt:
        """Delete a fact, or what took its place. The history keeps it, and `undo` restores it."""

    @overload
    def delete(self, fact_id: FactId, *, wait: float, **arguments: Unpack[CommandArgs]) -> WriteResult: ...
    @overload
    def batch_delete(
        self, fact_ids: FactIds, *, wait: Literal[False] = ..., **arguments: Unpack[CommandArgs]
    ) -> CommandReceipt:
        """Delete up to 100 facts of a scope, all or none."""

    @overload
    def batch_delete(self, fact_ids: FactIds, *, wait: float, **arguments: Unpack[CommandArgs]) -> WriteResult: ...
    @overload
    def confirm(
        self, fact_ids: FactIds, *, wait: Literal[False] = ..., **arguments: Unpack[CommandArgs]
    ) -> CommandReceipt:
        """Confirm pending facts and apply the changes they were held back from."""

    @overload
    def confirm(self, fact_ids: FactIds, *, wait: float, **arguments: Unpack[CommandArgs]) -> WriteResult: ...
    @overload
    def reject(
        self, fact_ids: FactIds, *, wait: Literal[False] = ..., **arguments: Unpack[CommandArgs]
    ) -> CommandReceipt:
        """Reject pending facts; the known facts stay active."""

    @overload
    def reject(self, fact_ids: FactIds, *, wait: float, **arguments: Unpack[CommandArgs]) -> WriteResult: ...
    @overload
    def correct(
        self,
        fact_id: FactId,
        text: str,
        *,
        key: str | None = ...,
        value: str | EllipsisType | None = ...,
        categories: Sequence[str] = ...,
        metadata: Mapping[str, Any] | None = ...,
        true_from: When | None = ...,
        ended_at: When | None = ...,
        wait: Literal[False] = ...,
        **arguments: Unpack[CommandArgs],
    ) -> CommandReceipt:
        """Correct a fact; only a human can change it afterwards.

        The old one never was true, or, where `ended_at` is given, was true until then. All else is as in `update`.
        The new one is true since `true_from`; without it since the old one was, or since the date that its text has in
        the place of another one. What the old one had ended, ends with the beginning of the new one.
        """

    @overload
    def correct(
        self,
        fact_id: FactId,
        text: str,
        *,
        key: str | None = ...,
        value: str | EllipsisType | None = ...,
        categories: Sequence[str] = ...,
        metadata: Mapping[str, Any] | None = ...,
        true_from: When | None = ...,
        ended_at: When | None = ...,
        wait: float,
        **arguments: Unpack[CommandArgs],
    ) -> WriteResult: ...
    @overload
    def resolve(
        self,
        fact_id: FactId,
        action: ResolveAction,
        *,
        targets: FactIds = ...,
        text: str | None = ...,
        wait: Literal[False] = ...,
        **arguments: Unpack[CommandArgs],
    ) -> CommandReceipt:
        """Resolve the conflict of an unresolved fact with `targets`, by default all that it was added beside.

        `text` is the merged text of a `merge`, and of nothing else.
        """

    @overload
    def resolve(
        self,
        fact_id: FactId,
        action: ResolveAction,
        *,
        targets: FactIds = ...,
        text: str | None = ...,
        wait: float,
        **arguments: Unpack[CommandArgs],
    ) -> WriteResult: ...
    @overload
    def promote(
        self,
        fact_ids: FactIds = ...,
        *,
        turn_id: str | None = ...,
        filters: Mapping[str, Any] | None = ...,
        into: Mapping[str, str | None] | None = ...,
        wait: Literal[False] = ...,
        **arguments: Unpack[CommandArgs],
    ) -> CommandReceipt:
        """Have facts of a run decided in the scope of its user, like statements of a turn there.

        They are facts by their ids, those that a turn brought, those that a filter lets through, or all that are active
        in the run; the ids (user_id, run_id ...) are those of the run, or found by the facts or the turn. `into` names
        the ids in which the scope that they go to differs: it has no run_id unless given, and the same user.
        Both facts stay; what was promoted before is left out. A command takes up to 50 facts, and `notes` of its result
        name the command for the rest. `undo(turn_id=command_id)` takes back what one command did.
        """

    @overload
    def promote(
        self,
        fact_ids: FactIds = ...,
        *,
        turn_id: str | None = ...,
        filters: Mapping[str, Any] | None = ...,
        into: Mapping[str, str | None] | None = ...,
        wait: float,
        **arguments: Unpack[CommandArgs],
    ) -> WriteResult: ...
    @overload
    def rename_entity(
        self, entity: EntityRef, name: str, *, wait: Literal[False] = ..., **arguments: Unpack[CommandArgs]
    ) -> CommandReceipt:
        """Give an entity another own name, which no other one may have. The former one stays one of its names."""

    @overload
    def rename_entity(
        self, entity: EntityRef, name: str, *, wait: float, **arguments: Unpack[CommandArgs]
    ) -> WriteResult: ...
    @overload
    def alias_entity(
        self,
        entity: EntityRef,
        name: str,
        *,
        moved_from: EntityRef | None = ...,
        wait: Literal[False] = ...,
        **arguments: Unpack[CommandArgs],
    ) -> CommandReceipt:
        """Give an entity one more name: a name, or what it is to somebody ("my wife", "Ben's dog").

        One that another entity has stays with that, and the command is rejected, unless `moved_from` names that entity.
        """

    @overload
    def alias_entity(
        self,
        entity: EntityRef,
        name: str,
        *,
        moved_from: EntityRef | None = ...,
        wait: float,
        **arguments: Unpack[CommandArgs],
    ) -> WriteResult: ...
    @overload
    def merge_entities(
        self,
        entities: EntityRef | Iterable[EntityRef],
        *,
        into: EntityRef,
        wait: Literal[False] = ...,
        **arguments: Unpack[CommandArgs],
    ) -> CommandReceipt:
        """Say that entities, up to 20, are the same as `into`, which has their names and facts from now on."""

    @overload
    def merge_entities(
        self,
        entities: EntityRef | Iterable[EntityRef],
        *,
        into: EntityRef,
        wait: float,
        **arguments: Unpack[CommandArgs],
    ) -> WriteResult: ...
    @overload
    def split_entity(
        self,
        entity: EntityRef,
        name: str,
        *,
        fact_ids: FactIds = ...,
        names: EntityNames = ...,
        type: str | None = ...,
        wait: Literal[False] = ...,
        **arguments: Unpack[CommandArgs],
    ) -> CommandReceipt:
        """Say that an entity is two: a new one called `name` gets these facts and names of it, up to 100 each.

        Its type is that of the entity unless given. Later turns that use one of its names mean the new one.
        """

    @overload
    def split_entity(
        self,
        entity: EntityRef,
        name: str,
        *,
        fact_ids: FactIds = ...,
        names: EntityNames = ...,
        type: str | None = ...,
        wait: float,
        **arguments: Unpack[CommandArgs],
    ) -> WriteResult: ...
    @overload
    def forget_entity(
        self, entity: EntityRef, *, facts: bool = ..., wait: Literal[False] = ..., **arguments: Unpack[CommandArgs]
    ) -> CommandReceipt:
        """Forget an entity: it has no names, and no fact names it. Its facts stay, or with `facts` are deleted."""

    @overload
    def forget_entity(
        self, entity: EntityRef, *, facts: bool = ..., wait: float, **arguments: Unpack[CommandArgs]
    ) -> WriteResult: ...
    @overload
    def summarise_entity(
        self, entity: EntityRef, *, wait: Literal[False] = ..., **arguments: Unpack[CommandArgs]
    ) -> CommandReceipt:
        """Have the model of the worker write a summary of an entity from its active facts; `entity()` shows it.

        Rejected where no policy or setting (`entity_summary`) allows that, and where a budget of the day is spent.
        """

    @overload
    def summarise_entity(self, entity: EntityRef, *, wait: float, **arguments: Unpack[CommandArgs]) -> WriteResult: ...
    def import_facts(
        self,
        file: str | PathLike[str] | IO[bytes],
        *,
        skip_damaged: bool = ...,
        wait: Wait = ...,
        **arguments: Unpack[BoundArgs],
    ) -> ImportReport:
        """Store the facts of a file, each a line of JSON as `export` writes it, without a model.

        A line needs a `text` (or `memory`) and whose it is; ids that are given here go first. Each is a command under
        the id `import/ID/DIGEST`, so a second import of the file does nothing. A fact that the scope has already is
        left as it is; beside another value of its key it is unresolved. Facts that are not active, as an export of all
        versions has them, are passed over. Raises `InvalidCommandError` that names damaged
        lines before anything is sent, or with `skip_damaged` sends the others.
        """
