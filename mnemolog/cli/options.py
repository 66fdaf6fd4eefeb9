"""Options that several commands have, and the decorators that add them to a command."""

import inspect
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import wraps
from inspect import Parameter
from typing import TYPE_CHECKING, Annotated, Any, Final

import orjson
import typer
from typer.core import TyperCommand

from mnemolog.cli.errors import FAILED
from mnemolog.cli.output import NOTHING_CHANGED, print_result
from mnemolog.cli.runtime import call_client
from mnemolog.cli.show import show_results
from mnemolog.cli.tables import ShortIds, shown_ids

if TYPE_CHECKING:
    from mnemolog.client.async_client import AsyncMemoryClient
    from mnemolog.projections.queries.results import Result

Query = Callable[["AsyncMemoryClient"], Awaitable[Any]]
Change = Callable[["AsyncMemoryClient"], "Awaitable[Result]"]

WAIT_SECONDS: Final = 60.0
"""How long `--wait` without a number waits."""
_WAIT: Final = f"wait for the end, at most SECONDS ({WAIT_SECONDS:g} unless given)"

AsJson = Annotated[bool, typer.Option("--json", help="write JSON instead of text for people")]
FullIds = Annotated[bool, typer.Option("--full-ids", help="show ids of facts and events whole")]
Tenant = Annotated[str | None, typer.Option("--tenant", help="MNEMOLOG_TENANT unless given")]
Wait = Annotated[float | None, typer.Option("--wait", metavar="[SECONDS]", min=0, help=_WAIT)]
WaitByDefault = Annotated[
    float, typer.Option("--wait", metavar="[SECONDS]", min=0, show_default=False, help=f"{_WAIT}; 0: do not wait")
]
Actor = Annotated[str | None, typer.Option("--actor", help="who sends the command (free text, stored)")]
_WILDCARDS: Final = "; '*' for any, '**' for any or none"
_FLAGS: Final = {"user_id": ("--user", "-u"), "agent_id": ("--agent",), "app_id": ("--app",), "run_id": ("--run",)}


class CliCommand(TyperCommand):
    """A command whose `--wait` may stand alone, wherever it stands."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Give a `--wait` that no number follows its default."""
        end = args.index("--") if "--" in args else len(args)
        given = []
        for place, argument in enumerate(args[:end]):
            alone = argument == "--wait" and not any(map(_is_number, args[place + 1 : place + 2]))
            given.append(f"--wait={WAIT_SECONDS:g}" if alone else argument)
        return super().parse_args(ctx, given + args[end:])


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


AddedOptions = Mapping[str, tuple[Any, Any]]
"""Options by the names of their parameters, each with its default."""


def scope_options(suffix: str = "", default: str | None = None) -> AddedOptions:
    """The options that name a scope."""
    return {
        name: (
            Annotated[str | None, typer.Option(*flags, help=f"{flags[0].strip('-')} id{suffix}", show_default=False)],
            default,
        )
        for name, flags in _FLAGS.items()
    }


EXACT_SCOPE: Final = scope_options()
ANY_SCOPE: Final = scope_options(_WILDCARDS)
WHOLE_TENANT: Final = scope_options(_WILDCARDS, "**")
NO_SCOPE: Final[AddedOptions] = {}
WAIT_OPTION: Final[AddedOptions] = {"wait": (Wait, None)}
OUTPUT_OPTIONS: Final[AddedOptions] = {
    "tenant": (Tenant, None),
    "full_ids": (FullIds, False),
    "as_json": (AsJson, False),
}


def parse_time(text: str) -> datetime:
    """Read a time as people write it: a day, or ISO 8601; UTC where it names no zone."""
    from mnemolog.client.inputs import in_utc  # noqa: PLC0415 - loads pydantic

    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} is not a valid time: write 2026-01-31 or 2026-01-31T09:30+01:00") from error
    return in_utc(time)


def parse_id(text: str) -> str:
    """Check what is given as the id of a fact or event, or as its first characters."""
    if not re.fullmatch(r"[0-9a-fA-F-]{4,36}", text):
        raise typer.BadParameter(f"{text!r} is not an id: give all of it, or its first characters, at least 4")
    return text


def parse_object(text: str) -> dict[str, Any]:
    """Read a JSON object."""
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise typer.BadParameter(f"it is not valid JSON ({error}): put it into single quotes") from error
    if not isinstance(found, dict):
        raise typer.BadParameter("it must be a JSON object")
    return found


FactArgument = Annotated[
    str, typer.Argument(parser=parse_id, metavar="ID", help="the id of the fact, or its first characters")
]
FactsArgument = Annotated[
    list[str], typer.Argument(parser=parse_id, metavar="ID", help="ids of facts: all change, or none")
]


ListFilter = Annotated[
    dict[str, Any] | None,
    typer.Option("--filter", parser=parse_object, metavar="JSON", help="only what `mnemolog facts` lists with it"),
]


def id_option(meaning: str, *flags: str) -> Any:
    """An option that takes the id of a fact or event, or its first characters."""
    return typer.Option(*flags, parser=parse_id, metavar="ID", help=meaning)


def time_option(meaning: str, *flags: str) -> Any:
    """An option that takes a day or a time."""
    return typer.Option(*flags, parser=parse_time, metavar="TIME", help=meaning)


def show_answer(
    call: Query,
    show: Callable[[Any, ShortIds], None],
    *,
    tenant: str | None,
    as_json: bool,
    full_ids: bool,
    interrupted: Callable[[], str] = lambda: NOTHING_CHANGED,
) -> Any:
    """Call a client and show its answer, in which ids are as short as they are unique now; returns the answer."""

    async def work(client: "AsyncMemoryClient") -> tuple[Any, ShortIds]:
        answer = await call(client)
        return answer, await shown_ids(client, answer, whole=as_json or full_ids)

    answer, ids = call_client(work, tenant=tenant, interrupted=interrupted)
    print_result(answer, lambda _: show(answer, ids), as_json=as_json)
    return answer


Limit = Annotated[int | None, typer.Option("--limit", "-n", min=1, help="how many at the most; all unless given")]
BelievedAt = Annotated[datetime | None, time_option("what was known at this time", "--believed")]
TrueAt = Annotated[
    datetime | None, time_option("what was true at this time; the same as --believed unless given", "--true")
]


def query_command(
    show: Callable[[Any, ShortIds], None],
    *,
    scope: AddedOptions = ANY_SCOPE,
) -> Callable[[Callable[..., Query]], Callable[..., None]]:
    """Make a command of a function that returns a query; `show` writes its result for people.

    The query gets a client that is bound to the scope of the options.
    """

    def execute(query: Query, *, tenant: str | None, as_json: bool, full_ids: bool, **ids: Any) -> None:
        show_answer(lambda client: query(client.scope(**ids)), show, tenant=tenant, as_json=as_json, full_ids=full_ids)

    return with_options(execute, {**scope, **OUTPUT_OPTIONS})


CHANGE_OPTIONS: Final[AddedOptions] = {"actor": (Actor, None), "wait": (WaitByDefault, WAIT_SECONDS)}


def change_command(
    scope: AddedOptions = EXACT_SCOPE,
    own: AddedOptions = CHANGE_OPTIONS,
    show: Callable[[Any, ShortIds], None] = show_results,
) -> Callable[[Callable[..., Change]], Callable[..., None]]:
    """Make a command of a function that returns a change of memory: publish it, wait for its end and show that.

    The exit code is 1 where the change was rejected or failed.
    """

    def execute(
        change: Change, *, tenant: str | None, wait: float | None, as_json: bool, full_ids: bool, **ids: Any
    ) -> None:
        sent: list[Result] = []

        async def publish(client: "AsyncMemoryClient") -> "Result | list[Result]":
            published = await change(client.scope(**ids))
            sent.extend(published.parts or [published])
            ends = [await client.wait(one, timeout=wait) if wait and not one.success else one for one in sent]
            return ends[0] if len(ends) == 1 else ends

        end = show_answer(
            publish,
            show,
            tenant=tenant,
            as_json=as_json,
            full_ids=full_ids,
            interrupted=lambda: state_of_sent(sent),
        )
        exit_for_ends(end if isinstance(end, list) else [end])

    return with_options(execute, {**scope, **own, **OUTPUT_OPTIONS})


def exit_for_ends(ends: "Iterable[Result]") -> None:
    """End the command with exit code 1 where something was rejected or failed, or is the result of another turn."""
    if any(end.status in ("rejected", "failed") or end.reused for end in ends):
        raise typer.Exit(FAILED)


async def whole_turn_id(client: "AsyncMemoryClient", given: str, *, user: str | None = None) -> str:
    """The whole id of a turn or command whose first characters are given; the given text where no known id has them."""
    from mnemolog.errors import UnknownTurnError  # noqa: PLC0415 - loads pydantic

    try:
        return await client.admin.find_turn_id(given, user_id=user)
    except UnknownTurnError:
        return given


def state_of_sent(sent: "Sequence[Result]") -> str:
    """What an interrupted command leaves behind."""
    if not sent:
        return NOTHING_CHANGED
    return f"it was sent and will be carried out; its result: mnemolog status {sent[-1].turn_id} --wait"


def with_options(
    execute: Callable[..., None], added: AddedOptions
) -> Callable[[Callable[..., Any]], Callable[..., None]]:
    """Make a command of a function: `execute` gets what the function returns, and the values of the `added` options."""

    def make(build: Callable[..., Any]) -> Callable[..., None]:
        @wraps(build)
        def command(**given: Any) -> None:
            shared = {name: given.pop(name) for name in added}
            execute(build(**given), **shared)

        parameters = [
            *inspect.signature(build).parameters.values(),
            *(
                Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=option)
                for name, (option, default) in added.items()
            ),
        ]
        # typer reads both.
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # as `inspect` documents it
        command.__annotations__ = {one.name: one.annotation for one in parameters}
        return command

    return make
