"""Commands that read: what is known, where it comes from, and what storing a text would do; files of facts."""

import json
import sys
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer

from mnemolog.cli import show
from mnemolog.cli.errors import FAILED
from mnemolog.cli.options import (
    ANY_SCOPE,
    EXACT_SCOPE,
    NO_SCOPE,
    WHOLE_TENANT,
    AsJson,
    BelievedAt,
    FactArgument,
    Limit,
    ListFilter,
    Query,
    Tenant,
    TrueAt,
    Wait,
    id_option,
    parse_object,
    query_command,
    time_option,
    whole_turn_id,
)
from mnemolog.cli.output import announce_input, print_note, print_result, progress_bars
from mnemolog.cli.runtime import call_client

if TYPE_CHECKING:
    from mnemolog.client.async_client import AsyncMemoryClient
    from mnemolog.client.files import ImportReport
    from mnemolog.client.search import SearchArgs
    from mnemolog.projections.queries.write_result import WhyNot
    from mnemolog.projections.search.search import Fusion

TurnOwner = Annotated[str | None, typer.Option("--user", "-u", help="user id, if several users have this turn id")]
FilterOption = Annotated[
    dict[str, Any] | None,
    typer.Option("--filter", parser=parse_object, metavar="JSON", help='such as \'{"categories": "health"}\''),
]
After = Annotated[str | None, typer.Option("--after", metavar="ID", help="go on after this id, the last one before")]
TurnArgument = Annotated[str, typer.Argument(help="the id of the turn, or its first characters")]


@query_command(show.show_search)
def search(
    *,
    query: Annotated[str, typer.Argument(help="a question, or some words")],
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100, help="hits at the most")] = 20,
    threshold: Annotated[
        float | None,
        typer.Option(
            min=0, max=1, help="cosine similarity that a fact without a word in common needs; 0 for none; by model"
        ),
    ] = None,
    filters: FilterOption = None,
    state: Annotated[
        list[str] | None, typer.Option("--state", help="facts in this state; several times for several")
    ] = None,
    believed_at: BelievedAt = None,
    true_at: TrueAt = None,
    with_run: Annotated[
        list[str] | None, typer.Option("--with-run", metavar="RUN", help="search the facts of this run as well")
    ] = None,
    fusion: Annotated[str | None, typer.Option(help="how the signals are joined: rrf or weighted")] = None,
    when: Annotated[
        Literal["boost", "narrow", "ignore"], typer.Option(help="what the time does that the query names")
    ] = "boost",
    rerank: Annotated[bool, typer.Option("--rerank", help="let a model order the hits")] = False,
    variants: Annotated[int, typer.Option(min=0, max=5, help="other wordings of the query that a model adds")] = 0,
    include: Annotated[
        list[str] | None, typer.Option("--include", help="facts or turns: what people said; both if given twice")
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="show the parts of each score, and how many others are no hits and why")
    ] = False,
) -> Query:
    """Find the facts nearest to a query in meaning and in words; those of a run only when --run names it."""
    asked: SearchArgs = {"limit": limit, "threshold": threshold, "filters": filters, "state": cast("Any", state)}
    asked |= {"believed_at": believed_at, "true_at": true_at, "when": when, "rerank": rerank, "variants": variants}
    asked["explain"] = explain
    if fusion:
        asked["fusion"] = cast("Fusion", fusion)
    if with_run:
        asked["any"] = [{}, *({"run_id": run} for run in with_run)]
    if include:
        asked["include"] = cast("Any", include)
    return lambda client: client.search(query, **asked)


@query_command(show.show_context, scope=EXACT_SCOPE)
def context(
    *,
    query: Annotated[
        str | None, typer.Argument(help="what the next prompt is about; nothing is searched without")
    ] = None,
    budget: Annotated[int, typer.Option(min=1, metavar="TOKENS", help="tokens at the most, as estimated")] = 800,
    form: Annotated[
        Literal["markdown", "xml", "json"], typer.Option("--format", help="how it is written")
    ] = "markdown",
    certain: Annotated[bool, typer.Option("--certain", help="leave out what is pending, unsure or old")] = False,
    summaries: Annotated[bool, typer.Option("--summaries", help="add summaries of entities behind the facts")] = False,
) -> Query:
    """Write what is known of one scope and matters to a query, as a text for a prompt."""
    return lambda client: client.context(
        query, budget_tokens=budget, format=form, doubtful=not certain, summaries=summaries
    )


@query_command(show.show_facts)
def facts(
    *,
    all_versions: Annotated[bool, typer.Option("--all", help="include all versions")] = False,
    filters: FilterOption = None,
    limit: Limit = None,
    after: Annotated[str | None, id_option("go on after this fact, the last one of the page before")] = None,
    believed_at: BelievedAt = None,
    true_at: TrueAt = None,
) -> Query:
    """List the current facts of a scope, or those that were known at the time --believed to be true at --true."""
    page: dict[str, Any] = {"all_versions": all_versions, "filters": filters, "limit": limit, "after": after}
    return lambda client: client.facts(**page, believed_at=believed_at, true_at=true_at)


@query_command(show.show_profile, scope=EXACT_SCOPE)
def profile() -> Query:
    """Show what is known of one scope, by section."""
    return lambda client: client.profile()


@query_command(show.show_pending)
def pending() -> Query:
    """List changes that wait for a confirmation: the new fact, the known facts, and the guard that holds it."""
    return lambda client: client.pending()


@query_command(show.show_unresolved)
def unresolved() -> Query:
    """List facts that were added beside others because their conflict could not be decided."""
    return lambda client: client.unresolved()


@query_command(show.show_quality, scope=WHOLE_TENANT)
def quality(
    *,
    since: Annotated[datetime | None, time_option("a day, or ISO 8601; 30 days ago unless given")] = None,
    until: Annotated[datetime | None, time_option("the same; now unless given")] = None,
) -> Query:
    """Show how often memory was overwritten, how often wrongly, what is pending, and what models cost."""
    return lambda client: client.admin.quality(since, until)


@query_command(show.show_history, scope=NO_SCOPE)
def history(*, fact_id: FactArgument) -> Query:
    """Show a fact's versions, and every event that made or touched them, with the reasons."""
    return lambda client: client.history(fact_id)


@query_command(show.show_explanation, scope=NO_SCOPE)
def explain(*, fact_id: FactArgument) -> Query:
    """Explain a fact: where it comes from, how it was extracted and decided, and what happened to it since."""
    return lambda client: client.explain(fact_id)


@query_command(show.show_why_not, scope=NO_SCOPE)
def why_not(*, turn_id: TurnArgument, user: TurnOwner = None) -> Query:
    """Show which statements of a turn were not stored, and why."""

    async def query(client: "AsyncMemoryClient") -> "WhyNot":
        return await client.why_not(await whole_turn_id(client, turn_id, user=user), user_id=user)

    return query


@query_command(show.show_diff)
def diff(
    *,
    since: Annotated[datetime, time_option("a day, or ISO 8601; UTC unless it names a zone")],
    until: Annotated[datetime | None, time_option("the same; now unless given")] = None,
    axis: Annotated[
        Literal["believed", "true"],
        typer.Option(help="order changes by decision time (believed) or by the time they became true (true)"),
    ] = "believed",
) -> Query:
    """Show what changed between two times, and what was known at the end and not at the start."""
    return lambda client: client.diff(since, until, axis=axis)


@query_command(show.show_status, scope=EXACT_SCOPE)
def dry_run(
    *,
    text: Annotated[str, typer.Argument(help="what a user says")],
    at: Annotated[datetime | None, time_option("when it was said: a day, or ISO 8601")] = None,
    speaker: Annotated[str | None, typer.Option(help="the user's name")] = None,
    raw: Annotated[bool, typer.Option("--raw", help="store the text as it is, without a model")] = False,
    override: Annotated[list[str] | None, typer.Option(help="name=value, for this turn; several times")] = None,
) -> Query:
    """Show what storing a text would do and cost. Nothing is stored."""
    overrides: dict[str, Any] = {}
    for given in override or ():  # `conflict=0.5` is a number, `add_only=true` a truth value, and all else is text
        name, sign, value = given.partition("=")
        if not sign:
            raise typer.BadParameter(f"{given!r} is not a valid override: write name=value")
        try:
            overrides[name] = json.loads(value)
        except ValueError:
            overrides[name] = value

    def show_wait(reason: str) -> None:
        print_note(f"waiting for {reason}")

    return lambda client: client.dry_run(
        text, occurred_at=at, speaker=speaker, infer=not raw, overrides=overrides, on_wait=show_wait
    )


@query_command(show.show_count, scope=ANY_SCOPE)
def count(
    *,
    all_versions: Annotated[bool, typer.Option("--all", help="count all versions")] = False,
    filters: ListFilter = None,
) -> Query:
    """Count the current facts of a scope."""
    return lambda client: client.count(all_versions=all_versions, filters=filters)


@query_command(show.show_ids, scope=WHOLE_TENANT)
def users(*, limit: Limit = None, after: After = None) -> Query:
    """List the users of whom something is known, with the number of their facts."""
    return lambda client: client.admin.users(limit=limit, after=after)


@query_command(show.show_ids, scope=WHOLE_TENANT)
def agents(*, limit: Limit = None, after: After = None) -> Query:
    """List the agents that know something, with the number of their facts."""
    return lambda client: client.admin.agents(limit=limit, after=after)


@query_command(show.show_ids, scope=WHOLE_TENANT)
def runs(*, limit: Limit = None, after: After = None) -> Query:
    """List the runs of which something is known, with the number of their facts."""
    return lambda client: client.admin.runs(limit=limit, after=after)


@query_command(show.show_exported, scope=ANY_SCOPE)
def export(
    *,
    file: Annotated[str, typer.Argument(help="the file to write; - writes to stdout")],
    all_versions: Annotated[bool, typer.Option("--all", help="write all versions")] = False,
    filters: ListFilter = None,
) -> Query:
    """Write the facts of a scope as JSON lines, however many they are."""
    target = sys.stdout.buffer if file == "-" else file
    return lambda client: client.admin.export(target, all_versions=all_versions, filters=filters)


def import_facts(
    *,
    file: Annotated[
        str, typer.Argument(help="facts as JSON lines, or an export of mem0, ChatGPT or Claude; - reads stdin")
    ],
    user: Annotated[str | None, typer.Option("--user", "-u", help="user id, of all lines")] = None,
    agent: Annotated[str | None, typer.Option("--agent", help="agent id, of all lines")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="say what would be sent, and send nothing")] = False,
    undo: Annotated[bool, typer.Option("--undo", help="take back what importing this file did")] = False,
    cascade: Annotated[bool, typer.Option("--cascade", help="with --undo, also what was built upon it since")] = False,
    skip_damaged: Annotated[
        bool, typer.Option("--skip-damaged", help="import the others where lines are wrong")
    ] = False,
    tenant: Tenant = None,
    wait: Wait = None,
    as_json: AsJson = False,
) -> None:
    """Store the facts of a file without a model, or read the conversations of an export. A second import does nothing.

    A line that is wrong is named with its number, and then nothing is imported.
    """

    async def work(client: "AsyncMemoryClient") -> "ImportReport":
        source = sys.stdin.buffer if file == "-" else file
        admin = client.scope(user_id=user, agent_id=agent).admin
        with progress_bars() as progress:
            if undo:
                return await admin.undo_import(source, cascade=cascade, wait=wait or 0.0, progress=progress)
            return await admin.import_facts(
                source, skip_damaged=skip_damaged, dry_run=dry_run, wait=wait or 0.0, progress=progress
            )

    if file == "-":
        announce_input("JSON lines, each a fact,")
    report = call_client(work, tenant=tenant, interrupted=lambda: "the same command again goes on where it stopped")
    print_result(report, partial(show.show_import, undo=undo), as_json=as_json)
    if report.damaged or report.rejected:
        raise typer.Exit(FAILED)
