"""The steps of the demonstration, each by what any application would use."""

import asyncio
import io
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from importlib.resources import files
from typing import Final, TypeVar
from uuid import UUID

import orjson
from aiokafka import AIOKafkaConsumer  # type: ignore[import-untyped] # aiokafka ships no types

from mnemolog.admin import Source, audit, rebuild
from mnemolog.cli import admin, results
from mnemolog.cli.output import ProgressBars, escape, print_result, stdout
from mnemolog.client.async_client import AsyncMemoryClient
from mnemolog.client.discovery import ServerAddresses
from mnemolog.client.receipts import CommandReceipt, TurnReceipt
from mnemolog.client.turn_files import TurnFilePublisher
from mnemolog.errors import MnemologError
from mnemolog.projections.queries.results import EventResult, WriteResult
from mnemolog.settings import Settings
from mnemolog.streams.kafka.dead_letters import DeadLetter
from mnemolog.streams.kafka.topics import DEAD_LETTERS, topic_name

LAST_DAY: Final = date(2026, 3, 7)  # of the conversation
END_TIMEOUT_SECONDS: Final = 60.0  # for one turn or command
QUESTION: Final = "Where does Mira live?"

T = TypeVar("T")


class DemoError(MnemologError):
    """A step of the demonstration did not show what it should."""


class Demo:
    """The steps, one after another; each writes a heading and what it shows, or one JSON line."""

    def __init__(self, settings: Settings, servers: ServerAddresses, *, as_json: bool) -> None:
        self._servers = servers
        self._settings = settings.model_copy(update={"kafka": servers.kafka, "postgres": servers.postgres})
        self._as_json = as_json
        self._began = datetime.now(UTC)
        self._step = 0

    async def run(self) -> None:
        async with AsyncMemoryClient.from_settings(self._settings) as client:
            self._heading("Kafka, Postgres and all stages run")
            addresses = f"  Kafka {self._servers.kafka}, metrics {self._servers.metrics_url}/metrics"
            self._show(lambda _: stdout().print(addresses, markup=False), self._servers)
            turns = await self._publish()
            memories = await self._wait_for_facts(client, turns)
            replaced = await self._show_replaced(client, memories)
            await self._search(client)
            await self._confirm_pending(client)
            await self._undo_and_reinstate(client, replaced)
            await self._diff(client)
            await self._dead_letter()
            self._heading("The profile of Mira", "made of her active facts")
            self._show(results.show_profile, await client.profile(user_id="mira"))
        await self._rebuild("kafka")
        await self._rebuild("table")
        report = await audit(self._settings)
        self._heading("Audit")
        self._show(admin.show_audit, report)
        _check(report.ok, "the audit found errors")

    async def _publish(self) -> list[TurnReceipt]:
        records = list(shifted_records(self._began.date() - timedelta(days=1)))
        file = TurnFilePublisher(self._settings, raw=True, progress=lambda *_: None)
        turns = await file.publish(io.BytesIO(b"\n".join(records)))
        _check(len(turns) == len(records), f"{len(turns)} of {len(records)} records were acknowledged")
        self._heading("The conversation of three people is published", "durable once the broker has acknowledged it")
        sent = f"  {file.report.read} records sent, {file.report.acknowledged} acknowledged"
        self._show(lambda _: stdout().print(sent), file.report)
        return turns

    async def _wait_for_facts(self, client: AsyncMemoryClient, turns: list[TurnReceipt]) -> list[EventResult]:
        self._heading("Turns become facts", "every turn reaches exactly one end")
        memories: list[EventResult] = []
        for turn in turns:
            end = await client.wait(turn.turn_id, timeout=END_TIMEOUT_SECONDS, user_id=turn.user_id, tenant=turn.tenant)
            memories.extend(end.memories)
            self._show(show_end, end)
        _check(bool(memories), "no turn became a fact")
        return memories

    async def _show_replaced(self, client: AsyncMemoryClient, memories: list[EventResult]) -> UUID:
        replacing = [one.fact_id for one in memories if one.event == "fact_replaced" and one.fact_id]
        _check(bool(replacing), "no fact was replaced")
        history = await client.history(replacing[0])
        self._heading("A fact that was replaced, and its history", "what was true stays known, with its time")
        self._show(results.show_history, history)
        return replacing[0]

    async def _search(self, client: AsyncMemoryClient) -> None:
        found = await client.search(QUESTION, user_id="mira", limit=3)
        _check(bool(found.hits), f"nothing was found for {QUESTION!r}")
        self._heading(f'A search: "{QUESTION}"', "by meaning and words; the replaced fact is not in it")
        self._show(results.show_search, found)

    async def _confirm_pending(self, client: AsyncMemoryClient) -> None:
        pending = await client.pending(user_id="priya")
        _check(bool(pending), "no change is pending")
        self._heading("A pending change, confirmed", "one denial does not end a sure fact; then Priya confirms it")
        self._show(results.show_pending, pending)
        command = await client.confirm(pending[0].fact.fact_id, user_id="priya", actor="Priya")
        self._show(show_end, await self._wait_until_done(client, command, "priya"))

    async def _undo_and_reinstate(self, client: AsyncMemoryClient, fact_id: UUID) -> None:
        explained = await client.explain(fact_id)
        self._heading("A decision explained, undone and reinstated", "each is a commit like any other")
        self._show(results.show_explanation, explained)
        user_id = explained.fact.user_id
        undo = await client.undo(turn_id=explained.fact.source_id, user_id=user_id)
        self._show(show_end, await self._wait_until_done(client, undo, user_id))
        again = await client.undo(turn_id=undo.command_id, user_id=user_id)
        self._show(show_end, await self._wait_until_done(client, again, user_id))

    async def _wait_until_done(
        self, client: AsyncMemoryClient, command: CommandReceipt, user_id: str | None
    ) -> WriteResult:
        end = await client.wait(command.command_id, timeout=END_TIMEOUT_SECONDS, user_id=user_id)
        _check(end.status == "done", f"the command failed: {end.error}")
        return end

    async def _diff(self, client: AsyncMemoryClient) -> None:
        today = self._began.replace(hour=0, minute=0, second=0, microsecond=0)
        changes = await client.diff(today, self._began + timedelta(days=1), user_id="jonas")
        self._heading("What changed today in what is known of Jonas")
        self._show(results.show_diff, changes)

    async def _dead_letter(self) -> None:
        topic = topic_name(DEAD_LETTERS, self._settings.topic_prefix)
        servers = self._settings.kafka
        consumer = AIOKafkaConsumer(topic, bootstrap_servers=servers, auto_offset_reset="earliest")
        await consumer.start()
        try:
            async with asyncio.timeout(END_TIMEOUT_SECONDS):
                letter = DeadLetter.from_record(await consumer.getone())
        finally:
            await consumer.stop()
        self._heading("An invalid record in dead_letters", "kept with its bytes and the reason; its status is `failed`")
        self._show(show_dead_letter, letter)

    async def _rebuild(self, source: Source) -> None:
        with ProgressBars() as progress:
            report = await rebuild(self._settings, source, verify_only=False, on_progress=progress)
        self._heading(f"All tables rebuilt from the log ({source})", "no model was called; both digests of each table")
        self._show(admin.show_rebuild, report)
        _check(report.equal, "the rebuilt tables differ from the live ones")

    def _heading(self, what: str, why: str = "") -> None:
        self._step += 1
        if self._as_json:
            return
        stdout().print(f"\n[bold cyan]{self._step}. {escape(what)}[/]" + (f"  [dim]{escape(why)}[/]" if why else ""))

    def _show(self, show: Callable[[T], None], result: T) -> None:
        """Show a result as its command would, or as one line of JSON."""
        print_result({"step": self._step, "result": result}, lambda _: show(result), as_json=self._as_json)


def shifted_records(last_day: date) -> Iterator[bytes]:
    """The conversation: three people, one week, in its order, moved in time so that the last ones are of `last_day`.

    One line is not JSON, as of a client that was cut off while writing; it stays as it is.
    """
    shift = timedelta(days=(last_day - LAST_DAY).days)
    text = files("mnemolog.cli.demo").joinpath("conversation.jsonl").read_bytes()
    for line in text.splitlines():
        try:
            turn = orjson.loads(line)
        except orjson.JSONDecodeError:
            yield line
        else:
            moved = datetime.fromisoformat(turn["occurred_at"]) + shift
            yield orjson.dumps({**turn, "occurred_at": moved.isoformat()})


def show_end(result: WriteResult) -> None:
    """One turn's end in a few lines."""
    if not result.memories:
        stdout().print(f"  {escape(result.turn_id):<24} {result.status}", markup=False)
    for one in result.memories:
        what = f"{one.action} of {one.text}" if one.event == "decision_undone" else one.text
        stdout().print(f"  {escape(result.turn_id):<24} {one.event:<10} {what}", markup=False)


def show_dead_letter(letter: DeadLetter) -> None:
    shown = (letter.value or b"").decode(errors="replace")
    stdout().print(f"  {escape(shown)}\n  from {letter.origin}, stage {letter.stage}: [red]{letter.reason}[/]")
    stdout().print(f"  {escape(letter.detail)}")


def _check(condition: bool, failure: str) -> None:
    if not condition:
        raise DemoError(f"{failure}: look at the logs in the data folder (`mnemolog demo --keep DIR` keeps it)")
