"""Import of a file: each fact, as `export` writes it, becomes a command, each exchange of a conversation a turn."""

import asyncio
import codecs
import hashlib
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from os import PathLike
from typing import IO, Any, Final, Unpack, cast, get_args

import orjson

from mnemolog.client.base import Order
from mnemolog.client.commands import CommandBase, CommandDraft, build_command
from mnemolog.client.exports import as_lines
from mnemolog.client.inputs import BoundArgs, TurnArgs, Wait, check_file, path_of, scope_ids
from mnemolog.client.turn_files import ProgressCallback
from mnemolog.client.turns import as_messages, build_turn
from mnemolog.errors import InvalidArgumentError, InvalidCommandError
from mnemolog.projections.queries.results import MEMORY_NAMES, Result
from mnemolog.schemas.command import Command, ImportedFact
from mnemolog.schemas.facts import FactStatus, ranked_categories
from mnemolog.schemas.scope import SCOPE_FIELDS
from mnemolog.schemas.turn import Turn

MAX_LINE_BYTES: Final = 1 << 21
"""A line of `export` has the text of a fact three times at the most: as a record of the log, which is of a megabyte."""
MAX_NAMED: Final = 1000
"""How many lines a report names: a file of any size has one of a few hundred kilobytes."""
IMPORT_BATCH: Final = 500
"""How many commands are on their way at a time."""
_MAX_REASON: Final = 300
_MAX_QUOTED: Final = 40
_MAX_SHOWN: Final = 5
_DIGEST_CHARACTERS: Final = 32
_FIELD: Final = re.compile(r"\bimport\.(?:fact\.)?(\w+)")
"""A field of an `import`, as an error names its place."""
_OWN_NAMES: Final = frozenset(ImportedFact.model_fields)
_OTHER_NAMES: Final = {
    "text": "memory",
    "true_from": "created_at",
    "category": "categories",
    "valid_until": "true_to",
}
"""What an export calls a field of an `import`."""
_TURN_NAMES: Final = frozenset({"messages", "turn_id", "occurred_at", "metadata", *SCOPE_FIELDS})
_SAYS_NOTHING: Final[Sequence[Any]] = (None, False, "", [], {})
_NOTHING_LEFT: Final = ("nothing_to_undo", "already_undone")
_BEFORE_ALL: Final = datetime.min.replace(tzinfo=UTC)


@dataclass(slots=True, kw_only=True)
class ImportReport:
    """What became of the lines: those that were sent, and why others were not, by line number.

    Of a document the items count as lines: memories, or the exchanges of conversations, which are `turns`. `not_active`
    are facts that do not hold now, which an export of all versions has: they are passed over, and so are fields and
    messages that are not read, and ids of lines in whose place one of the call is, in `passed_over` with their number.
    Where the ends were waited for, `added` counts the facts that this import has added, `known` the lines that brought
    none or were imported before, and `rejected` says by the ids of commands and turns why they did
    nothing. Of both the first `MAX_NAMED` are named, and all are counted. Of an import that is undone `undone` counts
    the lines of which something was taken back, and `known` those of which nothing was left.
    """

    read: int = 0
    turns: int = 0
    sent: int = 0
    added: int = 0
    known: int = 0
    undone: int = 0
    not_active: int = 0
    passed_over: dict[str, int] = field(default_factory=dict)
    damaged_count: int = 0
    damaged: dict[int, str] = field(default_factory=dict)
    rejected_count: int = 0
    rejected: dict[str, str] = field(default_factory=dict)

    def name_damaged(self, number: int, reason: str) -> None:
        self.damaged_count += 1
        if len(self.damaged) < MAX_NAMED:
            self.damaged[number] = reason[:_MAX_REASON]

    def name_rejected(self, command_id: str, reason: str) -> None:
        self.rejected_count += 1
        if len(self.rejected) < MAX_NAMED:
            self.rejected[command_id] = reason[:_MAX_REASON]


@dataclass(frozen=True, slots=True, kw_only=True)
class LineReader:
    """Makes commands and turns of lines; `ids` go before the ids of a line, and the tenant is never that of a line."""

    ids: Mapping[str, str | None]
    issued_at: datetime
    actor: str | None
    max_turn_bytes: int
    passed_over: Counter[str] = field(default_factory=Counter)

    def check(self, stream: IO[bytes]) -> ImportReport:
        """What would become of the lines: nothing is sent."""
        report = ImportReport()
        for number, found in self.records(stream):
            report.read += 1
            report.turns += isinstance(found, Turn)
            if found is None:
                report.not_active += 1
            elif isinstance(found, str):
                report.name_damaged(number, found)
        report.passed_over = dict(sorted(self.passed_over.items()))
        return report

    def records(self, stream: IO[bytes]) -> Iterator[tuple[int, Command | Turn | str | None]]:
        """The number of each line that is not empty, with its command or turn, or with what is wrong with it.

        None for a fact that is not active.
        """
        number, mark = 0, codecs.BOM_UTF8  # which some programs write at the start of a file
        while line := stream.readline(MAX_LINE_BYTES + 1):
            number += 1
            rest = line
            while not rest.endswith(b"\n") and len(rest) > MAX_LINE_BYTES:
                rest = stream.readline(MAX_LINE_BYTES + 1)
            line, mark = line.removeprefix(mark), b""
            if line.strip():
                try:
                    item = _read_object(line)
                    yield number, self._turn(item) if "messages" in item else self._command(_read_fact(item))
                except InvalidArgumentError as error:
                    yield number, str(error).removesuffix(": nothing was published")

    def _turn(self, item: dict[str, Any]) -> Turn:
        self.passed_over.update(name for name in item.keys() - _TURN_NAMES if item[name] not in _SAYS_NOTHING)
        given: dict[str, Any] = {name: item.get(name) for name in ("turn_id", "occurred_at", "metadata")}
        arguments = cast("TurnArgs", given | self._ids(item))
        return build_turn(as_messages(item["messages"])[0], arguments, max_bytes=self.max_turn_bytes)

    def _ids(self, item: Mapping[str, Any]) -> dict[str, Any]:
        given = {name: value for name, value in self.ids.items() if value is not None or name == "tenant"}
        self.passed_over.update(name for name, value in given.items() if item.get(name) not in (None, value))
        return {name: item.get(name) for name in SCOPE_FIELDS} | given

    def _command(self, fact: dict[str, Any]) -> Command | None:
        others = fact.keys() - MEMORY_NAMES - _OWN_NAMES
        self.passed_over.update(name for name in others if fact[name] not in _SAYS_NOTHING)
        if fact.get("status", "active") != "active":
            return None
        ids = self._ids(fact)
        exported = {own: fact.get(other) for own, other in _OTHER_NAMES.items()}
        stated = {own: value for own, value in exported.items() if value is not None}
        stated |= {name: fact[name] for name in _OWN_NAMES if name in fact}
        if isinstance(categories := exported["category"], list) and all(isinstance(one, str) for one in categories):
            stated |= ranked_categories(categories)
        metadata = fact.get("metadata")
        try:
            content = orjson.dumps([ids, stated, metadata], option=orjson.OPT_SORT_KEYS)
        except orjson.JSONEncodeError as error:
            raise InvalidCommandError(f"it cannot be written as JSON again ({error})") from error
        # The id of the fact in its file, and a digest of its scope and content: an equal line is the same command.
        digest = hashlib.sha256(content).hexdigest()[:_DIGEST_CHARACTERS]
        known = fact.get("id") or fact.get("fact_id")
        draft = CommandDraft(
            command_id=f"import/{known}/{digest}" if known else f"import/{digest}",
            scope_ids=ids,
            issued_at=self.issued_at,
            payload={"kind": "import", "fact": stated, "metadata": {} if metadata is None else metadata},
            actor=self.actor,
        )

        def as_the_line_names_it(place: re.Match[str]) -> str:
            own = place[1]
            other = _OTHER_NAMES.get(own, own)
            return other if other in fact and own not in fact else own

        try:
            return build_command(draft)
        except InvalidCommandError as error:
            raise InvalidCommandError(_FIELD.sub(as_the_line_names_it, str(error))) from error


def _read_object(line: bytes) -> dict[str, Any]:
    if len(line) > MAX_LINE_BYTES:
        raise InvalidCommandError(f"it has more than {MAX_LINE_BYTES} bytes")
    try:
        item = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise InvalidCommandError(f"it is not valid JSON ({error})") from error
    if not isinstance(item, dict):
        raise InvalidCommandError("it is not a JSON object")
    return item


def _read_fact(fact: dict[str, Any]) -> dict[str, Any]:
    """The fields of a fact, of its two ends the earlier; an end without a zone is left to the command's checks."""
    if (status := fact.get("status", "active")) not in get_args(FactStatus):
        known = ", ".join(get_args(FactStatus))
        raise InvalidCommandError(f"status is not one of {known}: {str(status)[:_MAX_QUOTED]}")
    if day := str(fact.pop("expiration_date", None) or ""):  # mem0's, a day
        fact.setdefault("valid_until", day if "T" in day else f"{day}T00:00:00Z")
    ends: dict[str, datetime] = {}
    for name in ("true_to", "valid_until"):
        if fact.get(name) is not None:
            try:
                end = datetime.fromisoformat(str(fact[name]))
            except ValueError:
                end = _BEFORE_ALL
            ends[name] = end if end.tzinfo else _BEFORE_ALL
    if not ends:
        return fact
    first = min(ends, key=ends.__getitem__)
    return {name: value for name, value in fact.items() if name not in ("true_to", "valid_until") or name == first}


class ImportMixin(CommandBase):
    """Facts and conversations of an export, or of another program."""

    @Order
    async def import_facts(
        self,
        file: str | PathLike[str] | IO[bytes],
        *,
        skip_damaged: bool = False,
        dry_run: bool = False,
        wait: Wait = False,
        progress: ProgressCallback | None = None,
        **arguments: Unpack[BoundArgs],
    ) -> ImportReport:
        """Store the facts of a file without a model, or have the conversations of one read as turns.

        A line of JSON is a fact as `export` writes it; an export of mem0 may also be one document, those of ChatGPT and
        Claude are read as they are, or in their archive. A fact needs a `text` (or `memory`) and whose it is; ids that
        are given here go first. Each fact and each turn has an id that its content gives (`import/...`): a second
        import of the file does nothing, and one that broke off goes on. A fact that the scope has already is left as it
        is; beside another value of its key it is unresolved. Facts that are not active, as an export of all versions
        has them, are passed over. Raises `InvalidCommandError` that names damaged lines before anything is sent, or
        with `skip_damaged` sends the others; with `dry_run` it only says what it would send. `progress` is called with
        a step, how many lines are done, and of how many.
        """
        with self._opened(file, arguments) as (reader, stream, item):
            start = stream.tell()
            report = await asyncio.to_thread(reader.check, stream)
            if dry_run:
                return report
            if report.damaged and not skip_damaged:
                faults = [f"{item} {number}: {what}" for number, what in islice(report.damaged.items(), _MAX_SHOWN)]
                if (hidden := report.damaged_count - len(faults)) > 0:
                    faults.append(f"and {hidden} more {item}s")
                raise InvalidCommandError(f"{'; '.join(faults)}: nothing was imported")
            stream.seek(start)
            records = (found for _, found in reader.records(stream) if isinstance(found, Command | Turn))
            total = report.read - report.not_active - report.damaged_count
            async for end in self._sent(
                records, wait, report, lambda: progress and progress("sent", report.sent, total)
            ):
                report.added += end.facts_added
                report.known += not end.facts_added
        return report

    @Order
    async def undo_import(
        self,
        file: str | PathLike[str] | IO[bytes],
        *,
        cascade: bool = False,
        wait: Wait = False,
        progress: ProgressCallback | None = None,
        **arguments: Unpack[BoundArgs],
    ) -> ImportReport:
        """Take back all that `import_facts` of the same file and ids did, the last line first.

        Where later decisions build on a line, it is rejected with their list, or with `cascade` they are undone too.
        """
        with self._opened(file, arguments) as (reader, stream, _):
            found = await asyncio.to_thread(
                lambda: [one for _, one in reader.records(stream) if isinstance(one, Command | Turn)]
            )
        report = ImportReport(read=len(found))

        def undo(record: Command | Turn) -> Command:
            source = record.turn_id if isinstance(record, Turn) else record.command_id
            payload = {"kind": "undo", "source_id": source, "cascade": cascade}
            return build_command(
                CommandDraft(
                    command_id=self._new_id(),
                    scope_ids=record.scope.model_dump(),
                    issued_at=self._now(),
                    payload=payload,
                    actor=arguments.get("actor"),
                )
            )

        undos = map(undo, reversed(found))
        async for _ in self._sent(undos, wait, report, lambda: progress and progress("sent", report.sent, report.read)):
            report.undone += 1
        return report

    @contextmanager
    def _opened(
        self, file: str | PathLike[str] | IO[bytes], arguments: BoundArgs
    ) -> Iterator[tuple[LineReader, IO[bytes], str]]:
        """A reader, the lines for it, and what one is called."""
        reader = LineReader(
            ids=scope_ids(arguments),
            issued_at=self._now(),
            actor=arguments.get("actor"),
            max_turn_bytes=self._settings.max_turn_bytes,
        )
        with _rewindable(file) as opened, as_lines(opened, reader.passed_over) as (stream, item):
            yield reader, stream, item

    async def _sent(
        self, records: Iterator[Command | Turn], wait: float, report: ImportReport, on_batch: Callable[[], object]
    ) -> AsyncIterator[Result]:
        """Publish records a batch at a time; the ends that were successes, where they are waited for."""
        if wait:
            self._connections.read_pool()  # raises before anything is published where nothing says where it is
        while batch := await asyncio.to_thread(lambda: list(islice(records, IMPORT_BATCH))):
            sent = await self._publish(batch)
            for one, end in zip(sent, await self._wait_for_all(sent, wait), strict=True) if wait else ():
                if end.success and end.position != one.position:  # a record of the same id came first
                    report.known += 1
                elif end.success:
                    yield end
                elif (end.error or "").startswith(_NOTHING_LEFT):
                    report.known += 1
                else:
                    report.name_rejected(end.turn_id, end.error or end.status)
            report.sent += len(batch)
            on_batch()


@contextmanager
def _rewindable(file: str | PathLike[str] | IO[bytes]) -> Iterator[IO[bytes]]:
    """The file, or a copy of a stream that cannot be read twice."""
    if isinstance(file, str | PathLike):
        path = path_of(file, InvalidCommandError)
        try:
            stream = path.open("rb")
        except OSError as error:
            raise InvalidCommandError(
                f"{path} is not a file that can be read ({error.strerror}): check its name"
            ) from error
        with stream:
            yield stream
        return
    check_file(file, "read", InvalidCommandError)
    if file.seekable():
        yield file
        return
    with tempfile.TemporaryFile() as copy:
        shutil.copyfileobj(file, copy)
        copy.seek(0)
        yield copy
