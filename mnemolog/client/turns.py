"""The methods that publish turns: add, add_many, dry_run."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Unpack

from mnemolog.client.base import Publish
from mnemolog.client.inputs import TurnArgs, Wait, kind_of
from mnemolog.client.producer import OutgoingRecord
from mnemolog.client.records import Messages, as_messages, build_turn, validated_turn
from mnemolog.client.results import ResultMixin, published
from mnemolog.errors import InvalidTurnError, NotConnectedError, WaitTimeoutError
from mnemolog.projections.queries.results import Result
from mnemolog.projections.queries.trace import entity_names, fact_ids_of_commit
from mnemolog.projections.queries.write_result import fact_texts, write_result
from mnemolog.schemas.turn import Turn


class TurnMixin(ResultMixin):
    """Publishes turns, or says what would become of one."""

    @Publish
    async def add(self, messages: Messages, *, wait: Wait = False, **turn: Unpack[TurnArgs]) -> Result:
        """Publish one turn; returns once the broker has it for good, or with `wait` once it has ended.

        `messages` is a text of the user, or a list of `{role, content, name}`; messages in OpenAI's form are taken as
        they are. `TurnArgs` says what the other arguments mean.

        The `status` of the result is `pending`; with `wait` (True for 30, or seconds) it is that of the end. A turn
        that ended `failed` or `rejected` raises nothing: `success` and `error` of the result say so. Raises
        `WaitTimeoutError` where there is no end in time: the turn is published and goes on, so wait for it again
        instead of adding it again.

        Raises `InvalidTurnError` before anything is sent, `LimitExceededError` where it is known that the turn would be
        refused for a limit, and `PublishError` when no acknowledgement came in time: publish again with the same
        `turn_id`, a second copy does nothing.
        """
        built, notes = self._build_turn(messages, turn)
        if wait:
            self._connections.read_pool()  # raises before anything is published where nothing says where Postgres is
        with suppress(NotConnectedError):  # nothing says where Postgres is: publishing does without
            await self._connections.limit_precheck.check(self._connections.read_pool(), built, self._now())
        producer = await self._connections.producer()
        delivered = await producer.publish(OutgoingRecord.of(built))
        sent = published(built, position=delivered.position, notes=notes)
        return (await self._wait_for_all([sent], wait))[0] if wait else sent

    @Publish
    async def add_many(self, turns: Iterable[Turn], *, wait: Wait = False) -> list[Result]:
        """Publish turns in their order, many at a time; returns once the broker has all of them, or all have ended.

        Raises `InvalidTurnError` for the first invalid turn, before anything is sent, and `PartlyPublishedError` that
        names those which were not acknowledged. Limits are not checked here: a turn over one ends as rejected.
        """
        valid = [validated_turn(turn, max_bytes=self._settings.max_turn_bytes) for turn in _as_turns(turns)]
        if wait:
            self._connections.read_pool()
        producer = await self._connections.producer()
        reports = await producer.publish_batch(map(OutgoingRecord.of, valid))
        sent = [published(one, position=report.position) for one, report in zip(valid, reports, strict=True)]
        return await self._wait_for_all(sent, wait) if wait else sent

    @Publish
    async def dry_run(
        self,
        messages: Messages,
        *,
        verbose: bool = True,
        timeout: float = 120.0,  # noqa: ASYNC109 - the error says what did not finish
        on_wait: Callable[[str], None] | None = None,
        **turn: Unpack[TurnArgs],
    ) -> Result:
        """What `add` of the same arguments would do now and what it would cost; nothing is stored or published.

        The very stages run here, with the models and settings of this process, on what the tables hold at the moment:
        turns that are still being processed are not waited for. Model calls are real, and not recorded. Needs Postgres,
        not Kafka. Raises `InvalidTurnError`, `WaitTimeoutError` after `timeout` seconds, and what building a model
        raises. `on_wait` is called with what a run of more than 3 s waits for, and again where that has changed.
        """
        built, notes = self._build_turn(messages, turn)
        try:
            async with asyncio.timeout(timeout):
                result = await self._run_dry(built, on_wait, verbose=verbose)
                return replace(result, notes=(*notes, *result.notes))
        except TimeoutError as error:
            reason = self._connections.dry_run_waits_for
            raise WaitTimeoutError(f"the dry run did not finish within {timeout:g} s: it waits for {reason}") from error

    def _build_turn(self, messages: Messages, arguments: TurnArgs) -> tuple[Turn, tuple[str, ...]]:
        """The turn, and notes on what was left out of its messages."""
        read, notes = as_messages(messages)
        complete: TurnArgs = {
            **arguments,
            "turn_id": arguments.get("turn_id") or self._new_id(),
            "occurred_at": arguments.get("occurred_at") or self._now(),
        }
        return build_turn(read, complete, max_bytes=self._settings.max_turn_bytes), notes

    async def _run_dry(self, turn: Turn, on_wait: Callable[[str], None] | None, *, verbose: bool) -> Result:
        async with self._connections.read_pool().connection():
            pass  # raises where Postgres is away or has no tables: the stages would wait for it
        commit = await (await self._connections.dry_run()).decide(turn, on_wait)
        if not verbose:
            return write_result(commit, None, self._prices)
        # The texts of the facts in the commit: known ones, and those that the turn itself brings.
        fresh = {fact.fact_id: fact.text for event in commit.events if (fact := event.new_fact) is not None}
        known = await self._query(fact_texts, commit.scope, fact_ids_of_commit(commit))
        names = await self._query(entity_names, commit)
        return write_result(commit, fresh | known, self._prices, names)


def _as_turns(given: object) -> Iterator[Turn]:
    if isinstance(given, str | bytes | Mapping | Turn) or not isinstance(given, Iterable):
        raise InvalidTurnError(f"turns must be a list of Turn, not {kind_of(given)}")
    for number, one in enumerate(given):
        if not isinstance(one, Turn):
            raise InvalidTurnError(f"turns.{number} must be a Turn, not {kind_of(one)}: or call `add` for each")
        yield one
