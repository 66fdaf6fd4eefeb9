"""The demonstration: embedded servers and its steps, each by what any application would use."""

import asyncio
import io
import shlex
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, date, datetime, timedelta
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, TypeVar
from uuid import UUID

import orjson
from aiokafka import AIOKafkaConsumer  # type: ignore[import-untyped] # aiokafka ships no types

from mnemolog.admin import Source, audit, rebuild
from mnemolog.all_in_one import StopRequested, cancel_on_stop, run_all_in_one
from mnemolog.cli import demo_results as results
from mnemolog.cli.errors import INTERRUPTED
from mnemolog.cli.output import ProgressBars, print_json, program_name
from mnemolog.cli.runtime import stop_on_signals
from mnemolog.cli.servers import StartSteps
from mnemolog.client.async_client import AsyncMemoryClient
from mnemolog.client.discovery import ServerAddresses
from mnemolog.client.turn_files import TurnFilePublisher
from mnemolog.errors import MnemologError
from mnemolog.logs import configure_logs
from mnemolog.projections.queries.pending import PendingFact
from mnemolog.projections.queries.results import FactChange, Result
from mnemolog.settings import Settings, load_settings
from mnemolog.streams.kafka.dead_letters import DeadLetter
from mnemolog.streams.kafka.topics import DEAD_LETTERS, topic_name
from mnemolog.texts import OFFLINE_NOTICE

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
        async with AsyncMemoryClient(settings=self._settings) as client:
            self._heading("Kafka, Postgres and all stages run", "as `mnemolog up` runs them")
            notices = [OFFLINE_NOTICE] if self._settings.provider == "offline" else []
            self._show(lambda _: results.print_lines(*notices), self._servers)
            turns = await self._publish()
            memories = await self._wait_for_facts(client, turns)
            replaced = [one.fact_id for one in memories if one.event == "fact_replaced" and one.fact_id]
            _check(bool(replaced), "no fact was replaced")
            history = await client.history(replaced[0])
            self._heading("A fact is replaced", "what was true stays known, with its time")
            self._show(results.show_versions, history)
            found = await client.search(QUESTION, user_id="mira", limit=3)
            _check(bool(found.hits), f"nothing was found for {QUESTION!r}")
            self._heading(f'A search: "{QUESTION}"', "by meaning and by words; what is no longer true is not found")
            self._show(results.show_hits, found)
            await self._confirm_pending(client)
            await self._undo_and_reinstate(client, replaced[0])
            today = self._began.replace(hour=0, minute=0, second=0, microsecond=0)
            changes = await client.diff(today, self._began + timedelta(days=1), user_id="jonas")
            self._heading("What changed today in what is known of Jonas", "")
            self._show(results.show_changes, changes)
            await self._dead_letter()
            self._heading("The profile of Mira", "made of what is believed of her")
            self._show(results.show_profile, await client.profile(user_id="mira"))
            await self._entities(client)
        await self._rebuild("kafka")
        await self._rebuild("table")
        report = await audit(self._settings)
        self._heading("Audit", "from the tables alone: no turn is lost, none is counted twice")
        self._show(results.show_audit, report)
        _check(report.ok, "the audit found errors")

    async def _publish(self) -> list[Result]:
        records = list(shifted_records(self._began.date() - timedelta(days=1)))
        file = TurnFilePublisher(self._settings, raw=True, progress=lambda *_: None)
        turns = await file.publish(io.BytesIO(b"\n".join(records)))
        _check(len(turns) == len(records), f"{len(turns)} of {len(records)} records were acknowledged")
        self._heading("A week of three people is published", "a turn is safe once the broker has acknowledged it")
        self._show(results.show_published, file.report)
        return turns

    async def _wait_for_facts(self, client: AsyncMemoryClient, turns: list[Result]) -> list[FactChange]:
        self._heading("Turns become facts", "each turn has exactly one end")
        ends: list[tuple[str | None, Result]] = []
        for turn in turns:
            end = await client.wait(turn.turn_id, timeout=END_TIMEOUT_SECONDS, user_id=turn.user_id, tenant=turn.tenant)
            ends.append((turn.user_id, end))
            self._show(lambda _: None, end)
        if not self._as_json:
            results.show_ends(ends)
        memories = [memory for _, end in ends for memory in end.changes]
        _check(bool(memories), "no turn became a fact")
        return memories

    async def _confirm_pending(self, client: AsyncMemoryClient) -> None:
        pending = [one for one in await client.pending(user_id="priya") if isinstance(one, PendingFact)]
        _check(bool(pending), "no change is pending")
        self._heading("A risky change waits, and is confirmed", "one denial does not end a sure fact: Priya is asked")
        self._show(lambda held: results.show_held(held[0]), pending)
        command = await client.confirm(pending[0].fact.fact_id, user_id="priya", actor="Priya")
        self._show(results.show_command, await self._wait_until_done(client, command, "priya"))

    async def _undo_and_reinstate(self, client: AsyncMemoryClient, fact_id: UUID) -> None:
        explained = await client.explain(fact_id)
        self._heading("A decision is explained, undone, and the undo undone", "each is a commit in the log")
        self._show(results.show_explanation, explained)
        user_id = explained.fact.user_id
        source_id = explained.fact.source_id
        for what in ("undone", "undo undone"):
            undo = await client.undo(turn_id=source_id, user_id=user_id)
            self._show(lambda _: None, await self._wait_until_done(client, undo, user_id))
            if not self._as_json:
                results.show_believed(what, await client.history(fact_id))
            source_id = undo.turn_id

    async def _wait_until_done(self, client: AsyncMemoryClient, command: Result, user_id: str | None) -> Result:
        end = await client.wait(command.turn_id, timeout=END_TIMEOUT_SECONDS, user_id=user_id)
        _check(end.status == "done", f"the command failed: {end.error}")
        return end

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
        self._heading("A record that is no turn", "it is kept in the topic dead_letters, with its bytes and the reason")
        self._show(results.show_dead_letter, letter)

    async def _entities(self, client: AsyncMemoryClient) -> None:
        self._heading("Whom and what Jonas names", "one entity by all its names; two of one name stay two")
        self._show(results.show_entities, await client.entities.list(user_id="jonas"))
        wife = await client.entities.get("my wife", user_id="jonas")
        self._heading('Who is "my wife"?', "`mnemolog entity`; facts name her in one way or another")
        self._show(results.show_entity, wife)
        _check(bool(wife.facts), "no fact names her")
        relations = await client.entities.relations(user_id="jonas", all_versions=True)
        self._heading("What they are to each other", "relations hold as long as the facts that say so")
        self._show(results.show_relations, relations)
        _check(any(not one.is_active for one in relations), "no relation has ended")
        graph = await client.entities.graph(user_id="jonas")
        self._heading("The same as a diagram", "`mnemolog graph`, for any viewer of Mermaid")
        self._show(results.show_graph, graph)

    async def _rebuild(self, source: Source) -> None:
        with ProgressBars() as progress:
            report = await rebuild(self._settings, source, verify_only=False, on_progress=progress)
        origin = "Kafka" if source == "kafka" else "the table of commits"
        self._heading(f"All tables are rebuilt from {origin}", "without a model; then rows are compared by digests")
        self._show(results.show_rebuild, report)
        _check(report.equal, "the rebuilt tables differ from the live ones")

    def _heading(self, what: str, why: str) -> None:
        self._step += 1
        if not self._as_json:
            results.show_heading(self._step, what, why)

    def _show(self, show_result: Callable[[T], None], result: T) -> None:
        """Show a result in a few lines, or as one line of JSON."""
        print_json({"step": self._step, "result": result}) if self._as_json else show_result(result)


def shifted_records(last_day: date) -> Iterator[bytes]:
    """The conversation: three people, one week, in its order, moved in time so that the last ones are of `last_day`.

    One line is not JSON, as of a client that was cut off while writing; it stays as it is.
    """
    shift = timedelta(days=(last_day - LAST_DAY).days)
    text = files("mnemolog.cli").joinpath("demo.jsonl").read_bytes()
    for line in text.splitlines():
        try:
            turn = orjson.loads(line)
        except orjson.JSONDecodeError:
            yield line
        else:
            moved = datetime.fromisoformat(turn["occurred_at"]) + shift
            yield orjson.dumps({**turn, "occurred_at": moved.isoformat()})


def _check(condition: bool, failure: str) -> None:
    if not condition:
        raise DemoError(f"{failure}: look at the logs in the data folder (`mnemolog demo --keep DIR` keeps it)")


async def run_demo(keep: Path | None, *, as_json: bool) -> int:
    """Run all steps; the exit code. Raises `DemoError` and what a step fails with."""
    with data_folder(keep) as folder:
        settings = load_settings(kafka=None, postgres=None, topic_prefix="", data_dir=folder, metrics_port=0)
        configure_logs("error", settings.log_format)
        try:
            async with stop_on_signals() as stop, all_in_one(settings, stop, kept=bool(keep)) as servers:
                await cancel_on_stop(stop, Demo(settings, servers, as_json=as_json).run())
        except StopRequested:
            return INTERRUPTED
    if as_json:
        return 0
    mnemolog = program_name()
    results.print_lines("", "Done. What to do next:", indent=0)
    if keep:
        results.print_lines("run it over the data of this conversation, and see what to type there:")
        results.print_lines(f"{mnemolog} up --data {shlex.quote(str(keep))}", indent=4)
    else:
        results.print_lines("run it over data of your own, and see what to type there:")
        results.print_lines(f"{mnemolog} up", indent=4)
        results.print_lines("show this again and keep its data, to look at it closely:")
        results.print_lines(f"{mnemolog} demo --keep demo-data", indent=4)
    return 0


@asynccontextmanager
async def all_in_one(settings: Settings, stop: asyncio.Event, *, kept: bool) -> AsyncIterator[ServerAddresses]:
    """Everything that `mnemolog up` runs. Raises `StopRequested` when `stop` is set before it is ready.

    Data that is not `kept` is not made safe against a loss of power, which takes seconds.
    """
    ready: asyncio.Future[ServerAddresses] = asyncio.get_running_loop().create_future()
    ending = asyncio.Event()
    with StartSteps() as progress:
        running = asyncio.create_task(
            run_all_in_one(settings, stop=ending, announce=ready.set_result, progress=progress, test=not kept)
        )
        try:
            first: set[asyncio.Future[Any]] = {ready, running}
            await cancel_on_stop(stop, asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED))
            progress.close()
            if ready.done():
                yield ready.result()
        finally:
            ending.set()
            await running


@contextmanager
def data_folder(keep: Path | None) -> Iterator[Path]:
    if keep:
        yield keep
        return
    with tempfile.TemporaryDirectory(prefix="mnemolog-demo-", ignore_cleanup_errors=True) as folder:
        # Postgres may run under another user, who has to traverse it.
        Path(folder).chmod(0o711)
        yield Path(folder) / "data"
