"""The keyword arguments that many methods share, as typed bundles, and the check of what a caller wrote."""

import difflib
import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final, TypedDict, get_args

from mnemolog.client.inputs.checks import When
from mnemolog.errors import UnknownArgumentError
from mnemolog.schemas.scope import SCOPE_FIELDS
from mnemolog.schemas.turn import Overrides


class ScopeArgs(TypedDict, total=False):
    """Whose memory: an id that is not given is not set; where a method says so, "*" is any value, "**" also none."""

    tenant: str | None
    user_id: str | None
    agent_id: str | None
    app_id: str | None
    run_id: str | None


class TurnArgs(ScopeArgs, total=False):
    """What a turn may say besides its messages.

    `infer=False` stores the user's messages as they are, without a model. `occurred_at` is now unless given; a time has
    a zone, and may be a text (2026-01-31T09:30:00+01:00; 2026-01-31 begins at 00:00 UTC). `speaker` is the name of the
    user. `valid_until` ends the facts of the turn. `recalled` is memory that was in the prompt: context, never
    evidence. `immutable` keeps the facts of the turn from being ended, merged or changed by anything but a human's
    command (`correct`, `delete`, `confirm`, `resolve`, `undo`). `overrides` hold for this turn only (`Overrides` names
    them). An own `turn_id` must be new for the user over all agents, apps and runs: the first turn of an id counts.
    """

    infer: bool
    occurred_at: When | None
    metadata: Mapping[str, Any] | None
    turn_id: str | None
    speaker: str | None
    valid_until: When | None
    recalled: Sequence[str]
    immutable: bool
    overrides: Overrides | Mapping[str, Any] | None


class BoundArgs(ScopeArgs, total=False):
    """What a bound client can have: a scope, and the `actor`, free text that says who sends its commands."""

    actor: str | None


class CommandArgs(BoundArgs, total=False):
    """Whose memory a command is about, and who sends it.

    An own `command_id` must be new for the user, among turns too; the same command under the same id is carried out
    once.
    """

    command_id: str | None


_SYNONYMS: Final = {
    "limit": "top_k",
    "k": "top_k",
    "max_results": "top_k",
    "session_id": "run_id",
    "thread_id": "run_id",
    "timestamp": "occurred_at",
    "created_at": "occurred_at",
    "memory_id": "fact_id",
    "id": "fact_id",
}
"""What other memory layers call an argument."""
WHOLE_TENANT: Final[ScopeArgs] = {"user_id": "**", "agent_id": "**", "app_id": "**", "run_id": "**"}


def scope_ids(arguments: Mapping[str, object]) -> dict[str, Any]:
    """The five ids among `arguments`, None where one is not given."""
    return {name: arguments.get(name) for name in SCOPE_FIELDS}


def argument_names(method: Callable[..., object]) -> frozenset[str]:
    """The arguments of a method, those of its bundle (`**scope: Unpack[ScopeArgs]`) among them."""
    names: set[str] = set()
    for parameter in inspect.signature(method).parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            (bundle,) = get_args(parameter.annotation)
            names |= bundle.__annotations__.keys()
        else:
            names.add(parameter.name)
    return frozenset(names - {"self"})


def refuse_positional(given: Sequence[object], known: Iterable[str], method: str) -> None:
    """Raise `UnknownArgumentError` where a method that takes keywords alone is given anything else."""
    if given:
        raise UnknownArgumentError(f"{method}() takes its arguments by name: {', '.join(sorted(known))}")


def refuse_unknown(given: Iterable[str], known: Collection[str], method: str) -> None:
    """Raise `UnknownArgumentError` for a keyword that a method does not have: a TypedDict lets any through."""
    for name in given:
        if name not in known:
            near = [_SYNONYMS[name]] if _SYNONYMS.get(name) in known else difflib.get_close_matches(name, known, n=1)
            advice = f"did you mean {near[0]!r}?" if near else f"it takes {', '.join(sorted(known))}"
            raise UnknownArgumentError(f"{method}() has no argument {name!r}: {advice}")
