"""The method of the client that imports facts."""

import asyncio
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from os import PathLike
from typing import IO, Final, Unpack

from mnemolog.client.base import checked
from mnemolog.client.commands import CommandBase
from mnemolog.client.files.fact_files import ImportReport, LineReader
from mnemolog.client.inputs.arguments import BoundArgs, scope_ids
from mnemolog.client.inputs.checks import Wait
from mnemolog.client.inputs.files import check_file, path_of
from mnemolog.errors import InvalidCommandError
from mnemolog.projections.queries.results import WriteResult
from mnemolog.schemas.command import Command

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
