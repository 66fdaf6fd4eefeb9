"""The demonstration: embedded servers and its steps, each by what any application would use.

What a step shows is a few lines of 80 columns, without ids.
"""

import asyncio
import io
import shlex
import tempfile
import textwrap
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, date, datetime, timedelta
from importlib.resources import files
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import orjson
from rich.text import Text

from mnemolog.admin import Source, audit, rebuild
from mnemolog.all_in_one import StopRequested, cancel_on_stop, run_all_in_one
from mnemolog.cli.errors import INTERRUPTED
from mnemolog.cli.output import print_json, program_name, progress_bars, stdout
from mnemolog.cli.runtime import stop_on_signals
from mnemolog.cli.servers import StartSteps
from mnemolog.cli.show import relation_words
from mnemolog.cli.tables import counted
from mnemolog.client.async_client import AsyncMemoryClient
from mnemolog.client.discovery import ServerAddresses
from mnemolog.client.turn_files import TurnFilePublisher
from mnemolog.errors import MnemologError
from mnemolog.logs import configure_logs
from mnemolog.projections.queries.diff import CHANGE_KINDS
from mnemolog.projections.queries.facts import PROFILE_SECTIONS
from mnemolog.projections.queries.pending import PendingFact
from mnemolog.projections.queries.results import Result
from mnemolog.settings import Settings, load_settings
from mnemolog.streams.kafka import connected_consumer
from mnemolog.streams.kafka.dead_letters import DeadLetter
from mnemolog.streams.kafka.topics import DEAD_LETTERS, topic_name
from mnemolog.texts import OFFLINE_NOTICE

LAST_DAY: Final = date(2026, 3, 7)  # of the conversation
END_TIMEOUT_SECONDS: Final = 60.0  # for one turn or command
QUESTION: Final = "Where does Mira live?"
CONVERSATION: Final = (
    "Hi! I live in Zurich. I work at Nestle.",
    "I'm vegetarian, and I'm allergic to shrimp.",
    "I have a cat called Miso.",
)
NEXT_QUESTION: Final = "What shall I cook tonight?"
NEW_JOB: Final = "I work at Roche now."
DENIAL: Final = "I'm not allergic to shrimp after all."
COLUMNS: Final = 80
FACTS_OF_A_PERSON: Final = 3
CHANGES: Final = 8
EXCERPT_CHARACTERS: Final = 70


class DemoError(MnemologError):
    """A step of the demonstration did not show what it should."""


class Demo:
    """The steps, one after another; each writes a heading and what it shows, or lines of JSON."""

    def __init__(self, settings: Settings, servers: ServerAddresses, *, as_json: bool) -> None:
        self._servers = servers
        self._settings = settings.model_copy(update={"kafka": servers.kafka, "postgres": servers.postgres})
        self._as_json = as_json
        self._began = datetime.now(UTC)
        self._step = 0

    async def run(self) -> None:
        """Four steps of one screen: a conversation, the next prompt, two changes, all tables rebuilt."""
        async with AsyncMemoryClient(settings=self._settings) as client:
            notice = OFFLINE_NOTICE if self._settings.provider == "offline" else ""
            self.heading("A conversation becomes facts", notice)
            for said in CONVERSATION:
                await self._say(client, said)
            context = await client.context(NEXT_QUESTION, user_id="priya")
            _check(bool(context.text), "nothing is known for the next question")
            self.heading("The prompt of her next question", "without and with memory")
            asked = f"user: {NEXT_QUESTION}"
            remembered = [f"  {line}" for line in context.text.splitlines() if line]
            self.show(context, f"without: {asked}", "with: system:", *remembered, f"  {asked}")
            self.heading("Two changes", "a plain one replaces; one that could do harm waits until she confirms it")
            changed = await self._say(client, NEW_JOB)
            replaced = [one.fact_id for one in changed.changes if one.event == "fact_replaced" and one.fact_id]
            _check(bool(replaced), "no fact was replaced")
            explained = await client.explain(replaced[0])
            decision = explained.decision
            self.show(explained, f"  why: {decision.reason}")
            held = (await self._say(client, DENIAL)).held
            _check(bool(held), "no change is pending")
            pending = [one for one in await client.pending(user_id="priya") if isinstance(one, PendingFact)]
            self.show(pending, *(f"  why: {one.reason}" for one in pending))
            command = await client.confirm(held[0].fact_id, user_id="priya", actor="Priya")
            end = await self._wait_until_done(client, command, "priya")
            self.show(end, *(f"confirmed: {one.text}" for one in end.changes))
        await self._rebuild("kafka", "Kafka")

    async def _say(self, client: AsyncMemoryClient, said: str) -> Result:
        end = await client.add(said, user_id="priya", speaker="Priya", wait=END_TIMEOUT_SECONDS)
        _check(end.success and bool(end.changes), f"nothing became of {said!r}: {end.error}")
        self.show(end, f'Priya: "{said}"', *(f"  {_plain(one.event)}: {one.text}" for one in end.changes))
        return end

    async def run_all(self) -> None:
        """All that a memory does, with a week of three people."""
        async with AsyncMemoryClient(settings=self._settings) as client:
            self.heading("Kafka, Postgres and all stages run", "as `mnemolog up` runs them")
            self.show(self._servers, *([OFFLINE_NOTICE] if self._settings.provider == "offline" else []))
            replaced = await self._turns_become_facts(client)
            self.heading("A fact is replaced", "what was true stays known, with its time")
            history = await client.history(replaced)
            ends = [f" to {fact.true_to:%Y-%m-%d}" if fact.true_to else "" for fact in history.versions]
            self.show(
                history,
                *(
                    f"{fact.text}  ({fact.status}, true from {fact.true_from:%Y-%m-%d}{end})"
                    for fact, end in zip(history.versions, ends, strict=True)
                ),
            )
            found = await client.search(QUESTION, user_id="mira", limit=3)
            _check(bool(found.hits), f"nothing was found for {QUESTION!r}")
            self.heading(f'A search: "{QUESTION}"', "by meaning and by words; what is no longer true is not found")
            self.show(found, *(f"{hit.score.total:.2f}  {hit.fact.text}" for hit in found.hits))
            await self._confirm_pending(client)
            await self._undo_and_reinstate(client, replaced)
            today = self._began.replace(hour=0, minute=0, second=0, microsecond=0)
            changes = await client.diff(today, self._began + timedelta(days=1), user_id="jonas")
            self.heading("What changed today in what is known of Jonas", "")
            lines = []
            for kind in CHANGE_KINDS:
                for one in getattr(changes, kind) if kind != "added" else ():
                    known = " ".join(old.text for old in one.old) if kind == "replaced" else ""
                    lines.append(f"{kind}: {one.text}{f'  (before: {known})' if known else ''}")
            self.show(changes, *lines[:CHANGES], f"and {counted(len(changes.added), 'fact')} added")
            await self._dead_letter()
            profile = await client.profile(user_id="mira")
            self.heading("The profile of Mira", "made of what is believed of her")
            lines = []
            for section in PROFILE_SECTIONS:
                if section != "recent_changes" and (entries := getattr(profile, section)):
                    lines += [f"{_plain(section)}:", *(f"  {entry.get('text')}" for entry in entries)]
            self.show(profile, *lines)
            await self._entities(client)
        await self._rebuild("kafka", "Kafka")
        await self._rebuild("table", "the table of commits")
        books = await audit(self._settings)
        self.heading("Audit", "from the tables alone: no turn is lost, none is counted twice")
        sum_of = f"{sum(books.ends.values())} ended + {books.in_flight} in flight"
        passed = "the audit passed" if books.ok else "the audit failed"
        self.show(books, f"{counted(books.accepted, 'turn')} accepted = {sum_of}: {passed}")
        _check(books.ok, "the audit found errors")

    async def _turns_become_facts(self, client: AsyncMemoryClient) -> UUID:
        """Publish the conversation and wait for all ends; a fact that replaced another one."""
        records = list(shifted_records(self._began.date() - timedelta(days=1)))
        file = TurnFilePublisher(self._settings, raw=True, progress=lambda *_: None)
        turns = await file.publish(io.BytesIO(b"\n".join(records)))
        _check(len(turns) == len(records), f"{len(turns)} of {len(records)} records were acknowledged")
        self.heading("A week of three people is published", "a turn is safe once the broker has acknowledged it")
        sent = file.report
        self.show(sent, f"{counted(sent.read, 'record')} sent, {sent.acknowledged} acknowledged")
        self.heading("Turns become facts", "each turn has exactly one end")
        ends: Counter[str] = Counter()
        texts: dict[str, list[str]] = defaultdict(list)
        replaced: list[UUID] = []
        for turn in turns:
            end = await client.wait(turn.turn_id, timeout=END_TIMEOUT_SECONDS, user_id=turn.user_id, tenant=turn.tenant)
            ends[end.status] += 1
            if turn.user_id:
                texts[turn.user_id] += [one.text or "" for one in end.changes]
            replaced += [one.fact_id for one in end.changes if one.event == "fact_replaced" and one.fact_id]
            self.show(end)
        _check(any(texts.values()), "no turn became a fact")
        if not self._as_json:
            print_lines(
                f"{counted(ends['stored'], 'turn')} became facts, {ends['nothing_stored']} had nothing to keep, "
                f"{ends['failed']} was no valid record"
            )
            for person, own in sorted(texts.items()):
                more = [f"  and {len(own) - FACTS_OF_A_PERSON} more"] if len(own) > FACTS_OF_A_PERSON else []
                print_lines(f"{person}:", *(f"  {text}" for text in own[:FACTS_OF_A_PERSON]), *more)
        _check(bool(replaced), "no fact was replaced")
        return replaced[0]

    async def _confirm_pending(self, client: AsyncMemoryClient) -> None:
        pending = [one for one in await client.pending(user_id="priya") if isinstance(one, PendingFact)]
        _check(bool(pending), "no change is pending")
        self.heading("A risky change waits, and is confirmed", "one denial does not end a sure fact: Priya is asked")
        held = pending[0]
        known = ", ".join(one.text for one in held.challenged)
        self.show(pending, f'"{held.fact.excerpt}"', f"known: {known}", f"held back: {held.reason}")
        command = await client.confirm(held.fact.fact_id, user_id="priya", actor="Priya")
        end = await self._wait_until_done(client, command, "priya")
        self.show(end, *(f"{_plain(one.event)}: {one.text}" for one in end.changes))

    async def _undo_and_reinstate(self, client: AsyncMemoryClient, fact_id: UUID) -> None:
        explained = await client.explain(fact_id)
        fact, decision = explained.fact, explained.decision
        self.heading("A decision is explained, undone, and the undo undone", "each is a commit in the log")
        self.show(
            explained,
            f'{fact.speaker or "it"} said: "{fact.excerpt}"',
            f"decided: {_plain(decision.event)}, because {decision.reason}",
        )
        source_id = fact.source_id
        for what in ("undone", "undo undone"):
            undo = await client.undo(turn_id=source_id, user_id=fact.user_id)
            self.show(await self._wait_until_done(client, undo, fact.user_id))
            if not self._as_json:
                versions = (await client.history(fact_id)).versions
                active = [one.text for one in versions if one.status == "active"]
                print_lines(f"{what}: {' '.join(active) or 'nothing'} is believed")
            source_id = undo.turn_id

    async def _wait_until_done(self, client: AsyncMemoryClient, command: Result, user_id: str | None) -> Result:
        end = await client.wait(command.turn_id, timeout=END_TIMEOUT_SECONDS, user_id=user_id)
        _check(end.status == "done", f"the command failed: {end.error}")
        return end

    async def _dead_letter(self) -> None:
        topic = topic_name(DEAD_LETTERS, self._settings.topic_prefix)
        async with connected_consumer(self._settings.kafka_address, auto_offset_reset="earliest") as consumer:
            consumer.subscribe([topic])
            async with asyncio.timeout(END_TIMEOUT_SECONDS):
                letter = DeadLetter.from_record(await consumer.getone())
        self.heading("A record that is no turn", "it is kept in the topic dead_letters, with its bytes and the reason")
        record = (letter.value or b"").decode(errors="replace")
        self.show(letter, f"{record[:EXCERPT_CHARACTERS]} ...", f"refused: {letter.detail}")

    async def _entities(self, client: AsyncMemoryClient) -> None:
        entities = await client.entities.list(user_id="jonas")
        self.heading("Whom and what Jonas names", "one entity by all its names; two of one name stay two")
        lines = []
        for entity in entities:
            also = f" (also {', '.join(entity.aliases)})" if entity.aliases else ""
            kind = "the user" if entity.is_user else entity.type
            lines.append(f"{entity.name}{also}: {kind}, in {counted(entity.facts, 'fact')}")
        self.show(entities, *lines)
        wife = await client.entities.get("my wife", user_id="jonas")
        self.heading('Who is "my wife"?', "`mnemolog entity`; facts name her in one way or another")
        names = " = ".join(name.name for name in wife.names)
        self.show(wife, f"{names}, in:", *(f"  {linked.fact.text}" for linked in wife.facts))
        _check(bool(wife.facts), "no fact names her")
        relations = await client.entities.relations(user_id="jonas", all_versions=True)
        self.heading("What they are to each other", "relations hold as long as the facts that say so")
        ends = [f"  (until {one.until:%Y-%m-%d})" if one.until else "" for one in relations]
        self.show(relations, *(f"{relation_words(one)}{end}" for one, end in zip(relations, ends, strict=True)))
        _check(any(not one.is_active for one in relations), "no relation has ended")
        graph = await client.entities.graph(user_id="jonas")
        self.heading("The same as a diagram", "`mnemolog graph`, for any viewer of Mermaid")
        self.show(graph, *graph.mermaid.splitlines())

    async def _rebuild(self, source: Source, origin: str) -> None:
        with progress_bars() as progress:
            report = await rebuild(self._settings, source, verify_only=False, on_progress=progress)
        self.heading(f"All tables are rebuilt from {origin}", "without a model; then rows are compared by digests")
        tables, rows = counted(len(report.tables), "table"), sum(one.rebuilt_rows for one in report.tables)
        equal = "all digests are equal" if report.equal else "digests differ"
        self.show(report, f"{tables}, {counted(rows, 'row')}: {equal}")
        _check(report.equal, "the rebuilt tables differ from the live ones")

    def heading(self, what: str, why: str) -> None:
        """Begin the next step."""
        self._step += 1
        if not self._as_json:
            print_lines("")
            print_lines(f"{self._step}. {what}", indent=0, style="bold cyan")
            if why:
                print_lines(why, style="dim")

    def show(self, result: object, *lines: str) -> None:
        """Show a result by these lines, or as one line of JSON."""
        print_json({"step": self._step, "result": result}) if self._as_json else print_lines(*lines)


def print_lines(*lines: str, indent: int = 2, style: str = "") -> None:
    """Write lines within 80 columns, indented by this and by the spaces that they begin with."""
    out = stdout()
    for line in lines:
        space = " " * (indent + len(line) - len(line.lstrip(" ")))
        text = textwrap.fill(line.lstrip(" "), COLUMNS, initial_indent=space, subsequent_indent=space)
        out.print(Text(text, style=style), soft_wrap=True)


def _plain(name: str) -> str:
    return name.replace("_", " ")


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


async def run_demo(keep: Path | None, *, everything: bool, as_json: bool) -> int:
    """Run all steps; the exit code. Raises `DemoError` and what a step fails with."""
    with data_folder(keep) as folder:
        settings = load_settings(kafka=None, postgres=None, topic_prefix="", data_dir=folder, metrics_port=0)
        configure_logs("error", settings.log_format)
        try:
            async with stop_on_signals() as stop, all_in_one(settings, stop, kept=bool(keep)) as servers:
                steps = Demo(settings, servers, as_json=as_json)
                await cancel_on_stop(stop, steps.run_all() if everything else steps.run())
        except StopRequested:
            return INTERRUPTED
    if as_json:
        return 0
    mnemolog = program_name()
    again = f"{mnemolog} up --data {shlex.quote(str(keep))}" if keep else f"{mnemolog} up"
    print_lines("", f"Next: `{again}` runs it over {'this' if keep else 'your own'} data,", indent=0)
    print_lines(f"`{mnemolog} demo --all` shows everything else.", indent=6)
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
