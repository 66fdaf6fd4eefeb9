"""Import of facts from a file: each line of JSON, as `export` writes it, becomes a command."""

import asyncio
import codecs
import hashlib
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from os import PathLike
from typing import IO, Any, Final, Unpack, get_args

import orjson

from mnemolog.client.base import Order
from mnemolog.client.commands import CommandBase, CommandDraft, build_command
from mnemolog.client.inputs import BoundArgs, Wait, check_file, path_of, scope_ids
from mnemolog.errors import InvalidCommandError
from mnemolog.projections.queries.results import MEMORY_NAMES
from mnemolog.schemas.command import Command, ImportedFact
from mnemolog.schemas.facts import FactStatus, ranked_categories
from mnemolog.schemas.scope import SCOPE_FIELDS

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
_FOREIGN_NAMES: Final = frozenset({"hash", "score", "actor_id", "role", "event", "owner", "organization"})
"""Fields of exports of mem0 that say nothing of the fact itself."""
_BEFORE_ALL: Final = datetime.min.replace(tzinfo=UTC)


@dataclass(slots=True, kw_only=True)
class ImportReport:
    """What became of the lines: those that were sent, and why others were not, by line number.

    `not_active` are facts that do not hold now, which an export of all versions has: they are passed over, and so are
    fields of other programs that say nothing of a fact, in `passed_over` with the number of their lines. Where the
    ends were waited for, `added` counts the facts that this import, or an earlier one of the same line, has added,
    `known` those that the scope had already, and `rejected` says by the ids of commands why they did nothing. Of both
    the first `MAX_NAMED` are named, and all are counted.
    """

    read: int = 0
    sent: int = 0
    added: int = 0
    known: int = 0
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
    """Makes commands of lines; `ids` go before the ids of a line, and the tenant is never that of a line."""

    ids: Mapping[str, str | None]
    issued_at: datetime
    actor: str | None
    passed_over: Counter[str] = field(default_factory=Counter)

    def check(self, stream: IO[bytes]) -> ImportReport:
        """What would become of the lines: nothing is sent."""
        report = ImportReport()
        for number, found in self.commands(stream):
            report.read += 1
            if found is None:
                report.not_active += 1
            elif isinstance(found, str):
                report.name_damaged(number, found)
        report.passed_over = dict(sorted(self.passed_over.items()))
        return report

    def commands(self, stream: IO[bytes]) -> Iterator[tuple[int, Command | str | None]]:
        """The number of each line that is not empty, with its command, or with what is wrong with it.

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
                    yield number, self._command(line)
                except InvalidCommandError as error:
                    yield number, str(error).removesuffix(": nothing was published")

    def _command(self, line: bytes) -> Command | None:
        fact = _read_fact(line)
        self.passed_over.update(fact.keys() - MEMORY_NAMES - _OWN_NAMES)
        if fact.get("status", "active") != "active":
            return None
        given = {name: value for name, value in self.ids.items() if value is not None or name == "tenant"}
        ids = {name: fact.get(name) for name in SCOPE_FIELDS} | given
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
            own, other = place[1], _OTHER_NAMES.get(place[1])
            return other if other in fact and own not in fact else own

        try:
            return build_command(draft)
        except InvalidCommandError as error:
            raise InvalidCommandError(_FIELD.sub(as_the_line_names_it, str(error))) from error


def _read_fact(line: bytes) -> dict[str, Any]:
    """The fields of a line, of its two ends the earlier; an end without a zone is left to the command's checks."""
    if len(line) > MAX_LINE_BYTES:
        raise InvalidCommandError(f"it has more than {MAX_LINE_BYTES} bytes")
    try:
        fact = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise InvalidCommandError(f"it is not valid JSON ({error})") from error
    if not isinstance(fact, dict):
        raise InvalidCommandError("it is not a JSON object")
    said = {name for name, value in fact.items() if value not in (None, False)}
    if unknown := said - MEMORY_NAMES - _OWN_NAMES - _FOREIGN_NAMES:
        raise InvalidCommandError(f"{min(unknown)} is not a known field")
    if (status := fact.get("status", "active")) not in get_args(FactStatus):
        known = ", ".join(get_args(FactStatus))
        raise InvalidCommandError(f"status is not one of {known}: {str(status)[:_MAX_QUOTED]}")
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
    """Facts of an export, or of another program."""

    @Order
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
            report = await asyncio.to_thread(reader.check, stream)
            if report.damaged and not skip_damaged:
                faults = [f"line {number}: {what}" for number, what in islice(report.damaged.items(), _MAX_SHOWN)]
                if (hidden := report.damaged_count - len(faults)) > 0:
                    faults.append(f"and {hidden} more lines")
                raise InvalidCommandError(f"{'; '.join(faults)}: nothing was imported")
            stream.seek(start)
            if wait:
                self._connections.read_pool()  # raises before anything is published where nothing says where it is
            commands = (found for _, found in reader.commands(stream) if isinstance(found, Command))
            while batch := await asyncio.to_thread(lambda: list(islice(commands, IMPORT_BATCH))):
                sent = await self._publish(batch)
                for end in await self._wait_for_all(sent, wait) if wait else ():
                    if end.success:
                        report.added += end.facts_added
                        report.known += not end.facts_added
                    else:
                        report.name_rejected(end.turn_id, end.error or end.status)
                report.sent += len(batch)
        return report


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
