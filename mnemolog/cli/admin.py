"""Commands of operators: failed turns and dead letters, audit, rebuild, restore-log, index-scopes, and set-up."""

import asyncio
import shlex
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from mnemolog.cli import options
from mnemolog.cli.errors import FAILED
from mnemolog.cli.options import WHOLE_TENANT, Query, exit_for_ends, query_command, time_option, whole_turn_id
from mnemolog.cli.output import (
    print_json,
    print_labelled,
    print_line,
    print_result,
    print_text,
    program_name,
    progress_bars,
    without_password,
)
from mnemolog.cli.runtime import call_client, cli_settings, discovered_settings, run_async
from mnemolog.cli.show import show_status
from mnemolog.cli.tables import (
    Entry,
    ShortIds,
    ago,
    cell,
    counted,
    ends_by_status,
    moment,
    owner_of,
    print_entries,
    print_table,
    turn_options,
)

if TYPE_CHECKING:
    from mnemolog.client.async_client import AsyncMemoryClient
    from mnemolog.projections.queries.audit import FailedTurn
    from mnemolog.projections.queries.results import Result
    from mnemolog.schemas.turn import Turn
    from mnemolog.settings import Settings
    from mnemolog.streams.kafka.dead_letters import DeadLetter

Limit = Annotated[int, typer.Option("--limit", "-n", min=1, max=1000, help="how many at the most, the newest")]
Reason = Annotated[str | None, typer.Option("--reason", help="those with this reason, as it is listed")]
Since = Annotated[datetime | None, time_option("those that ended at this time or later", "--since")]
FailedTurnId = Annotated[str | None, typer.Argument(help="a turn that failed, or was rejected for a limit")]
_DIGEST_CHARACTERS = 12
_REBUILD_STOPPED = (
    "the live tables are as they were, unless all had been compared already and they were being swapped: "
    "`mnemolog audit` tells, and the next rebuild removes what this one left"
)


def show_failed(found: "Sequence[FailedTurn]", _: ShortIds) -> None:
    """The turns, why each failed, and how to publish one again."""
    if not found:
        print_text("no turn failed or was rejected")
        return
    now = datetime.now(UTC)
    entries = []
    for turn in found:
        attempts = f", attempt {turn.attempt}" if turn.attempt > 1 else ""
        details = [
            turn.detail,
            owner_of(turn) or "of no scope",
            f"{ago(turn.decided_at, now)} ({moment(turn.decided_at)}){attempts}",
            "" if turn.can_retry else "the same turn would end so again: mend it and publish it under a new id",
        ]
        entries.append(Entry(turn.turn_id, f"{turn.status}: {turn.reason or 'no reason'}", details))
    print_entries(f"{counted(len(found), 'turn')} failed or rejected, the newest first", entries)
    again = next((turn for turn in found if turn.can_retry), None)
    if again is not None:
        print_line(
            f"publish one again: {program_name()} retry {shlex.quote(again.turn_id)}{turn_options(again)} --wait"
        )


@query_command(show_failed, scope=WHOLE_TENANT)
def failed(*, limit: Limit = 20, reason: Reason = None, since: Since = None) -> Query:
    """List turns that ended failed or rejected, with the reason, and how to publish them again."""
    return lambda client: client.admin.failed_turns(limit=limit, reason=reason, since=since)


def retry(
    *,
    turn_id: FailedTurnId = None,
    reason: Reason = None,
    unended: Annotated[
        bool, typer.Option("--unended", help="those that were received 15 minutes ago or earlier and never ended")
    ] = False,
    user: Annotated[str | None, typer.Option("--user", "-u", help="user id; all users unless given")] = None,
    limit: Limit = 1000,
    wait: options.Wait = None,
    tenant: options.Tenant = None,
    as_json: options.AsJson = False,
) -> None:
    """Publish again, as they were received, a failed turn, all that failed for a reason, or all that never ended."""
    if sum((turn_id is not None, reason is not None, unended)) != 1:
        raise typer.BadParameter("name one of TURN_ID, --reason and --unended")

    async def work(client: "AsyncMemoryClient") -> "list[Result]":
        if turn_id is not None:
            chosen = [await _failed_turn(client, turn_id, user)]
        elif reason is not None:
            chosen = await _turns_that_failed(client, reason, user, limit)
        else:
            from mnemolog.admin import unended_turns  # noqa: PLC0415 - loads the drivers

            settings = discovered_settings(tenant=tenant)
            chosen = [(turn, 1) for turn in await unended_turns(settings, settings.tenant, user, limit=limit)]
        sent = await client.add_many([turn for turn, _ in chosen])
        if not wait:
            return sent
        ends = (
            client.wait(turn.turn_id, timeout=wait, user_id=turn.scope.user_id, attempt=attempt)
            for turn, attempt in chosen
        )
        return await asyncio.gather(*ends)

    ends = call_client(work, tenant=tenant)
    if turn_id is not None:
        print_result(ends[0], show_status, as_json=as_json)
    elif as_json:
        print_json(ends)
    else:
        print_text(f"{counted(len(ends), 'turn')} published again")
        if wait and ends:
            print_text(f"ends by status: {ends_by_status(Counter(end.status for end in ends))}")
    exit_for_ends(ends)


async def _failed_turn(client: "AsyncMemoryClient", turn_id: str, user: str | None) -> "tuple[Turn, int]":
    """A turn to publish again, and the number of its next attempt."""
    before = await client.status(await whole_turn_id(client, turn_id, user=user), user_id=user)
    turn = await client.admin.received_turn(before.turn_id, user_id=user)
    if before.success or before.status == "pending":
        raise _refused(f"turn {before.turn_id} is {before.status}: there is nothing to try again")
    if turn is None:
        raise _refused(f"the journal has no valid turn {before.turn_id}: mend it and publish it under a new id")
    return turn, before.attempt + 1


async def _turns_that_failed(
    client: "AsyncMemoryClient", reason: str, user: str | None, limit: int
) -> "list[tuple[Turn, int]]":
    """The turns of a reason that may have another end, in the order in which they were published first."""
    found = await client.admin.failed_turns(limit=limit, reason=reason, user_id=user or "**")
    chosen = []
    for one in sorted(found, key=lambda one: one.published_at):
        turn = await client.admin.received_turn(one.turn_id, user_id=one.user_id) if one.can_retry else None
        chosen += [(turn, one.attempt + 1)] if turn else []
    return chosen


def drop(
    *,
    turn_id: FailedTurnId = None,
    reason: Reason = None,
    why: Annotated[str, typer.Option("--why", help="why nobody is to try them again (stored)")],
    actor: Annotated[str, typer.Option("--actor", help="who says so (free text, stored)")],
    user: Annotated[str | None, typer.Option("--user", "-u", help="user id; all users unless given")] = None,
    limit: Limit = 1000,
    tenant: options.Tenant = None,
    as_json: options.AsJson = False,
) -> None:
    """Give up a failed turn, or all that failed for a reason: they are listed no more, and their ends stay."""
    if (turn_id is None) == (reason is None):
        raise typer.BadParameter("name one of TURN_ID and --reason")

    async def work(client: "AsyncMemoryClient") -> "list[FailedTurn]":
        from mnemolog.admin import drop_turns  # noqa: PLC0415 - loads the drivers

        whole = None if turn_id is None else await whole_turn_id(client, turn_id, user=user)
        given_up = await client.admin.failed_turns(limit=limit, turn_id=whole, reason=reason, user_id=user or "**")
        if whole and not given_up:
            raise _refused(f"turn {whole} is none that failed or was rejected, or it was given up before")
        await drop_turns(discovered_settings(tenant=tenant), given_up, actor=actor, why=why)
        return given_up

    given_up = call_client(work, tenant=tenant)
    print_result(given_up, lambda _: print_text(f"{counted(len(given_up), 'turn')} given up"), as_json=as_json)


def _refused(why: str) -> typer.Exit:
    print_labelled("error:", why, style="bold red")
    return typer.Exit(FAILED)


def dead_letters(
    *,
    limit: Limit = 20,
    stage: Annotated[str | None, typer.Option("--stage", help="those of this stage")] = None,
    reason: Reason = None,
    user: Annotated[str | None, typer.Option("--user", "-u", help="those of this user")] = None,
    since: Since = None,
    show: Annotated[
        str | None, typer.Option("--show", metavar="POSITION", help="write the bytes of this one to stdout")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """List the newest records that could not be processed: stage, reason, time and position."""
    if show is not None:
        from mnemolog.admin import dead_letter  # noqa: PLC0415 - loads the drivers

        _, _, place = show.rpartition("dead_letters/")
        partition, _, offset = place.partition("/")
        if not (partition.isdecimal() and offset.isdecimal()):
            raise typer.BadParameter(f"{show!r} is not a position: `mnemolog dead-letters` lists them")
        stored = run_async(dead_letter(discovered_settings(), int(partition), int(offset)))
        if stored is None:
            raise _refused(f"no dead letter is at {show}: perhaps it is older than the topic keeps them")
        sys.stdout.buffer.write((stored.letter.value or b"") + b"\n")
        sys.stdout.flush()
        return
    from mnemolog.admin import dead_letters as newest  # noqa: PLC0415 - loads the drivers

    def is_wanted(letter: "DeadLetter") -> bool:
        owner = (letter.key or b"").partition(b"/")[2].decode(errors="replace")
        pairs = ((stage, letter.stage), (reason, letter.reason), (user, owner))
        return all(wanted in (None, found) for wanted, found in pairs) and (since is None or letter.at >= since)

    is_filtered = any(one is not None for one in (stage, reason, user, since))
    wanted = is_wanted if is_filtered else None  # a filter reads the whole topic
    found = run_async(newest(discovered_settings(), limit=limit, wanted=wanted))
    if as_json or not found:
        print_result(found, lambda _: print_text("no dead letters"), as_json=as_json)
        return
    now = datetime.now(UTC)
    entries = []
    for one in found:
        letter = one.letter
        size = "no value" if letter.size < 0 else counted(letter.size, "byte")
        cut = " (cut)" if letter.value is not None and letter.size > len(letter.value) else ""
        details = [
            letter.detail,
            f"turn {letter.source_id}" if letter.source_id else "",
            f"{size}{cut} of {letter.origin}, {counted(letter.tries, 'try', 'tries')}",
            f"{ago(letter.at, now)} ({moment(letter.at)})",
        ]
        entries.append(Entry(one.position, f"{letter.stage}: {letter.reason}", details))
    print_entries(f"{counted(len(entries), 'dead letter')}, the newest first", entries)
    program, position = program_name(), found[0].position
    print_line(f"its bytes, to mend:  {program} dead-letters --show {position} > mended.jsonl")
    print_line(f"then:                {program} publish mended.jsonl --wait")


def audit(*, as_json: options.AsJson = False) -> None:
    """Check from the tables that no turn was lost: accepted = ended + in flight. Exit code 1 if that does not hold.

    What Kafka still holds unread is not accepted yet: it is counted as a warning.
    """
    from mnemolog.admin import audit as audit_tables  # noqa: PLC0415 - loads the drivers

    report = run_async(audit_tables(discovered_settings()))
    if as_json:
        print_json({"ok": report.ok, "audit": report})
    else:
        ended = sum(report.ends.values())
        print_text(f"{counted(report.accepted, 'turn')} accepted = {ended} ended + {report.in_flight} in flight")
        print_text(f"ends by status: {ends_by_status(report.ends)}")
        for finding in report.findings:
            print_text(f"{finding.severity}: {finding.what}: {finding.advice}")
        print_text("audit passed" if report.ok else "audit failed")
    if not report.ok:
        raise typer.Exit(FAILED)


def rebuild(
    *,
    source: Annotated[
        Literal["kafka", "table"], typer.Option("--from", help="the log to read: the topic, or its copy in the tables")
    ] = "kafka",
    verify_only: Annotated[bool, typer.Option("--verify-only", help="compare only")] = False,
    full: Annotated[
        bool, typer.Option("--full", help="write commits and memory_events too, even where they are sound")
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """Rebuild all tables from the log, beside the live ones, compare both, and swap.

    commits and memory_events are copies of the log: they are verified, and kept where they are sound.
    No model is called. Exit code 1 where a table differed.
    """
    from mnemolog.admin import rebuild as rebuild_tables  # noqa: PLC0415 - loads the drivers

    with progress_bars() as progress:
        work = rebuild_tables(discovered_settings(), source, verify_only=verify_only, on_progress=progress, full=full)
        report = run_async(work, interrupted=lambda: _REBUILD_STOPPED)
    rows = []
    for one in report.tables:
        live, rebuilt = (digest[:_DIGEST_CHARACTERS] for digest in (one.live_digest, one.rebuilt_digest))
        found = "verified, kept" if one.kept else "equal" if one.equal else f"{counted(one.differing, 'row')} differ"
        rows.append((one.table, one.live_rows, live, one.rebuilt_rows, rebuilt, found))
    columns = ("table", "rows", "live", "rows", "rebuilt", "")

    def show(_: object) -> None:
        print_table("live and rebuilt", columns, rows)
        for name in report.objects:
            print_text(f"missing or changed in the live schema: {name}")

    print_result({"equal": report.equal, "report": report}, show, as_json=as_json)
    if not report.equal:
        raise typer.Exit(FAILED)


def restore_log(
    *,
    verify_only: Annotated[bool, typer.Option("--verify-only", help="show what is missing, append nothing")] = False,
    as_json: options.AsJson = False,
) -> None:
    """Append to memory_events the commits that it has lost and the tables still hold, after a power cut of Kafka.

    All workers have to be stopped. Exit code 1 where commits are missing and `--verify-only` is set.
    """
    from mnemolog.restore import restore_log as restore  # noqa: PLC0415 - loads the drivers

    with progress_bars() as progress:
        report = run_async(restore(cli_settings(), verify_only=verify_only, on_progress=progress))
    if as_json:
        print_json(report)
    elif not report.losses:
        print_text("the log holds everything that the tables were built from")
    else:
        rows = []
        for loss in report.losses:
            offsets = "the same" if loss.same_offsets else "behind others"
            rows.append((loss.partition, loss.log_end, loss.table_end, loss.missing, offsets))
        print_table("lost commits", ("partition", "log ends", "tables end", "missing", "offsets"), rows)
        done = f"{counted(report.missing, 'commit')} appended and compared"
        print_text(done if report.appended else "nothing was appended")
        if report.rebuilt is not None:
            print_text("the tables were rebuilt from the log, because commits have other offsets than before")
        elif not report.appended and not all(one.same_offsets for one in report.losses):
            print_text("other commits were written after the loss: the tables will be rebuilt from the log")
    if report.losses and not report.appended:
        raise typer.Exit(FAILED)


def index_scopes(
    *,
    least: Annotated[
        int | None, typer.Option("--facts", min=1, help="the least facts of a scope with indexes; 10000 unless given")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Give large scopes indexes of their own, so that a search need not scan them; drop those of scopes that shrank.

    Everything goes on meanwhile. Run it daily where scopes grow that large.
    """
    from mnemolog.admin import index_scopes as make_indexes  # noqa: PLC0415 - loads the drivers

    with progress_bars() as progress:
        given = {} if least is None else {"least": least}
        report = run_async(make_indexes(discovered_settings(), on_progress=progress, **given))
    if as_json:
        print_json(report)
        return
    columns = ("user", "agent", "app", "run", "tenant", "facts")
    rows = [
        (*(cell(value or None) for value in (one.user_id, one.agent_id, one.app_id, one.run_id)), one.tenant, one.facts)
        for one in report.scopes
    ]
    print_table("indexed scopes", columns, rows) if rows else print_text("no scope has enough facts")
    print_text(f"{counted(report.made, 'index', 'indexes')} made, {report.dropped} dropped")


def migrate(*, as_json: options.AsJson = False) -> None:
    """Bring the tables to the newest version; does nothing if they are current."""
    from mnemolog.admin import migrate_tables  # noqa: PLC0415 - loads the drivers

    run_async(migrate_tables(discovered_settings()))
    print_result({"migrated": True}, lambda _: print_text("the tables are up to date"), as_json=as_json)


def topics(
    *,
    create: Annotated[bool, typer.Option("--create", help="create those that are missing")] = False,
    as_json: options.AsJson = False,
) -> None:
    """Show the topics as declared and as the broker has them. Exit code 1 where one is missing."""
    from mnemolog.admin import create_topics, topic_states  # noqa: PLC0415 - loads the drivers

    settings = discovered_settings()
    if create:
        run_async(create_topics(settings))
    states = run_async(topic_states(settings))
    entries = []
    for state in states:
        records = f"{counted(sum(state.end_offsets.values()), 'record')} in {counted(state.partitions, 'partition')}"
        kept = f"kept {cell(state.retention) or 'for ever'}"
        flow = f"from {', '.join(state.topic.producers)} to {', '.join(state.topic.consumers) or 'people'}"
        missing = "missing: create it with `mnemolog topics --create`"
        entries.append(Entry(state.name, records if state.partitions else missing, [kept, flow]))
    print_result(states, lambda _: print_entries(counted(len(entries), "topic"), entries), as_json=as_json)
    if any(state.partitions == 0 for state in states):
        raise typer.Exit(FAILED)


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingRow:
    """One setting; secrets are hidden."""

    variable: str
    value: str | None
    default: str | None
    is_set: bool
    meaning: str


def settings(*, as_json: options.AsJson = False) -> None:
    """List every setting with its value, its default and its meaning. A wrong one is named (exit code 2)."""
    rows = list(setting_rows(cli_settings()))
    entries = []
    for row in rows:
        values = [f"{row.value or 'not set'}" + ("" if row.is_set else " (default)")]
        values += [f"default: {row.default or 'not set'}"] if row.is_set and row.value != row.default else []
        entries.append(Entry(row.variable, row.meaning, values))
    print_result(rows, lambda _: print_entries(counted(len(rows), "setting"), entries), as_json=as_json)


def setting_rows(known: "Settings") -> Iterator[SettingRow]:
    """Every setting in the order of the documentation."""
    from mnemolog.settings import PREFIX  # noqa: PLC0415 - loads pydantic

    for name, field in type(known).model_fields.items():
        yield SettingRow(
            variable=PREFIX + name.upper(),
            value=_setting_value(getattr(known, name)),
            default=_setting_value(field.default),
            is_set=name in known.model_fields_set,
            meaning=field.description or "",
        )


def _setting_value(value: Any) -> str | None:
    match value:
        case None | "":
            return None
        case str():
            return without_password(value)
        case tuple():
            return ", ".join(map(str, value))
        case _:
            return str(value)  # a SecretStr shows asterisks
