"""Files of facts and turns: import of an export, and publishing of JSON lines."""

import asyncio
import codecs
import hashlib
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from os import PathLike
from typing import IO, Any, Final, Unpack, get_args

import orjson

from mnemolog.client.base import checked
from mnemolog.client.commands import CommandBase
from mnemolog.client.inputs import BoundArgs, Wait, check_file, path_of, scope_ids
from mnemolog.client.records import CommandDraft, build_command
from mnemolog.errors import InvalidCommandError
from mnemolog.projections.queries.results import MEMORY_NAMES, WriteResult
from mnemolog.schemas.command import Command, ImportedFact
from mnemolog.schemas.facts import FactStatus
from mnemolog.schemas.scope import SCOPE_FIELDS

MAX_LINE_BYTES: Final = 1 << 21
"""A line of `export` has the text of a fact three times at the most: as a record of the log, which is of a megabyte."""
MAX_NAMED: Final = 1000
"""How many lines a report names: a file of any size has one of a few hundred kilobytes."""
_MAX_REASON: Final = 300
_DIGEST_CHARACTERS: Final = 32
_MAX_QUOTED: Final = 40
_FIELD: Final = re.compile(r"\bimport\.(?:fact\.)?(\w+)")
"""A field of an `import`, as an error names its place."""
_OTHER_NAMES: Final = {
    "text": ("memory",),
    "true_from": ("created_at",),
    "category": ("categories",),
    "valid_until": ("true_to",),
}
"""Under what names a line may have given a field."""
_ENDS: Final = ("true_to", "valid_until")
_BEFORE_ALL: Final = datetime.min.replace(tzinfo=UTC)
_OWN_NAMES: Final = frozenset(ImportedFact.model_fields)


@dataclass(slots=True, kw_only=True)
class ImportReport:
    """What became of the lines: those that were sent, and why others were not, by line number.

    `not_active` are facts that do not hold now, which an export of all versions has: they are passed over. Where the
    ends were waited for, `added` counts the facts that this import, or an earlier one of the same line, has added,
    `known` those that the scope had already, and `rejected` says by the ids of commands why they did nothing. Of both
    the first `MAX_NAMED` are named, and all are counted.
    """

    read: int = 0
    sent: int = 0
    added: int = 0
    known: int = 0
    not_active: int = 0
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
    """Makes commands of lines; `ids` go before those that a line names, and `tenant` is never that of a line."""

    ids: Mapping[str, str | None]
    issued_at: datetime
    actor: str | None

    def commands(self, stream: IO[bytes]) -> Iterator[tuple[int, Command | str | None]]:
        """The number of each line that is not empty, with its command, or with what is wrong with it.

        None for a fact that is not active.
        """
        for number, line in enumerate(_lines(stream), start=1):
            if line.strip():
                try:
                    yield number, self._command(line)
                except InvalidCommandError as error:
                    yield number, str(error).removesuffix(": nothing was published")

    def _command(self, line: bytes) -> Command | None:
        fact = _with_one_end(_parsed(line))
        if fact.get("status", "active") != "active":
            return None
        named = {name: fact.get(name) for name in SCOPE_FIELDS} | {
            name: value for name, value in self.ids.items() if value is not None or name == "tenant"
        }
        given = {name: fact[name] for name in _OWN_NAMES if name in fact}
        same = {"text": fact.get("memory"), "true_from": fact.get("created_at"), "category": _category(fact)}
        same["valid_until"] = fact.get("true_to")
        stated = {name: value for name, value in same.items() if value is not None} | given
        metadata = fact.get("metadata")
        draft = CommandDraft(
            command_id=_command_id(fact, named, stated),
            scope_ids=named,
            issued_at=self.issued_at,
            payload={"kind": "import", "fact": stated, "metadata": {} if metadata is None else metadata},
            actor=self.actor,
        )
        try:
            return build_command(draft)
        except InvalidCommandError as error:
            raise InvalidCommandError(_FIELD.sub(partial(_as_named, fact), str(error))) from error


def _as_named(fact: Mapping[str, Any], place: re.Match[str]) -> str:
    """The field at fault, as the line names it."""
    return next((name for name in (place[1], *_OTHER_NAMES.get(place[1], ())) if name in fact), place[1])


def _parsed(line: bytes) -> dict[str, Any]:
    if len(line) > MAX_LINE_BYTES:
        raise InvalidCommandError(f"it has more than {MAX_LINE_BYTES} bytes")
    try:
        fact = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise InvalidCommandError(f"it is not valid JSON ({error})") from error
    if not isinstance(fact, dict):
        raise InvalidCommandError("it is not a JSON object")
    if unknown := fact.keys() - MEMORY_NAMES - _OWN_NAMES - {"score"}:
        raise InvalidCommandError(f"{min(unknown)} is not a known field")
    if (status := fact.get("status", "active")) not in get_args(FactStatus):
        known = ", ".join(get_args(FactStatus))
        raise InvalidCommandError(f"status is not one of {known}: {str(status)[:_MAX_QUOTED]}")
    return fact


def _command_id(fact: Mapping[str, Any], named: Mapping[str, Any], stated: Mapping[str, Any]) -> str:
    """The id of the fact in its file, and a digest of its scope and of what it says: the same line is one command."""
    try:
        said = orjson.dumps([named, stated, fact.get("metadata")], option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError as error:
        raise InvalidCommandError(f"it cannot be written as JSON again ({error})") from error
    digest = hashlib.sha256(said).hexdigest()[:_DIGEST_CHARACTERS]
    known = fact.get("id") or fact.get("fact_id")
    return f"import/{known}/{digest}" if known else f"import/{digest}"


def _with_one_end(fact: dict[str, Any]) -> dict[str, Any]:
    """The line with the earlier of its ends; one that is none, or has no zone, is left to the command's checks."""
    ends = {name: _moment(fact[name]) for name in _ENDS if fact.get(name) is not None}
    first = min(ends, key=lambda name: ends[name] or _BEFORE_ALL, default=None)
    return {name: value for name, value in fact.items() if name not in _ENDS or name == first or not ends}


def _moment(time: object) -> datetime | None:
    try:
        moment = datetime.fromisoformat(str(time))
    except ValueError:
        return None
    return moment if moment.tzinfo else None


def _category(fact: Mapping[str, Any]) -> object:
    match fact.get("categories"):
        case [category, *_]:
            return category
        case []:
            return None
        case given:
            return given


def _lines(stream: IO[bytes]) -> Iterator[bytes]:
    """The lines, of one that is too long the beginning; without the mark that some programs write at a file's start."""
    mark = codecs.BOM_UTF8
    while line := stream.readline(MAX_LINE_BYTES + 1):
        yield line.removeprefix(mark)
        mark = b""
        while not line.endswith(b"\n") and len(line) > MAX_LINE_BYTES:
            line = stream.readline(MAX_LINE_BYTES + 1)


IMPORT_BATCH: Final = 500
"""How many commands are on their way at a time."""
_MAX_SHOWN: Final = 5


@checked(InvalidCommandError)
class ImportMixin(CommandBase):
    """Facts of an export, or of another program."""

    async def import_facts(
        self,
        file: str | PathLike[str] | IO[bytes],
        *,
        skip_damaged: bool = False,
        wait: Wait = False,
        **arguments: Unpack[BoundArgs],
    ) -> ImportReport:
        """Store the facts of a file, each a line of JSON as `export` writes it, without a model.

        A line needs a `text` (or `memory`) and whose it is; ids that are given here go first. Each is a command under
        the id `import/ID/DIGEST`, so a second import of the file does nothing. A fact that the scope has already is
        left as it is; beside another value of its key it is unresolved. Facts that are not active, as an export of all
        versions has them, are passed over. Raises `InvalidCommandError` that names damaged
        lines before anything is sent, or with `skip_damaged` sends the others.
        """
        reader = LineReader(ids=scope_ids(arguments), issued_at=self._now(), actor=arguments.get("actor"))
        with _rewindable(file) as stream:
            start = stream.tell()
            report = await asyncio.to_thread(_checked_lines, reader, stream)
            if report.damaged and not skip_damaged:
                raise InvalidCommandError(f"{_in_words(report)}: nothing was imported")
            stream.seek(start)
            commands = (found for _, found in reader.commands(stream) if isinstance(found, Command))
            while batch := await asyncio.to_thread(_next_batch, commands):
                _count(report, await self._publish(batch, wait))
                report.sent += len(batch)
        return report


@contextmanager
def _rewindable(file: str | PathLike[str] | IO[bytes]) -> Iterator[IO[bytes]]:
    """The file, or a copy of a stream that cannot be read twice."""
    if not isinstance(file, str | PathLike):
        check_file(file, "read", InvalidCommandError)
        if file.seekable():
            yield file
            return
        with tempfile.TemporaryFile() as copy:
            shutil.copyfileobj(file, copy)
            copy.seek(0)
            yield copy
        return
    path = path_of(file, InvalidCommandError)
    try:
        stream = path.open("rb")
    except OSError as error:
        raise InvalidCommandError(
            f"{path} is not a file that can be read ({error.strerror}): check its name"
        ) from error
    with stream:
        yield stream


def _checked_lines(reader: LineReader, stream: IO[bytes]) -> ImportReport:
    report = ImportReport()
    for number, found in reader.commands(stream):
        report.read += 1
        if found is None:
            report.not_active += 1
        elif isinstance(found, str):
            report.name_damaged(number, found)
    return report


def _next_batch(commands: Iterator[Command]) -> list[Command]:
    return list(islice(commands, IMPORT_BATCH))


def _count(report: ImportReport, ends: object) -> None:
    for end in ends if isinstance(ends, list) else ():
        if isinstance(end, WriteResult) and end.success:
            report.added += end.facts_added
            report.known += not end.facts_added
        elif isinstance(end, WriteResult):
            report.name_rejected(end.turn_id, end.error or end.status)


def _in_words(report: ImportReport) -> str:
    shown = [f"line {number}: {what}" for number, what in islice(report.damaged.items(), _MAX_SHOWN)]
    hidden = report.damaged_count - len(shown)
    more = [f"and {hidden} more lines"] if hidden else []
    return "; ".join([*shown, *more])
