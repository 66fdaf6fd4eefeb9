"""The facts that feedback names: what a search or a context gave, facts, or their ids."""

from collections.abc import Iterable, Mapping
from typing import cast
from uuid import UUID

from mnemolog.client.inputs.arguments import CommandArgs
from mnemolog.client.inputs.checks import kind_of
from mnemolog.client.inputs.fact_ids import whole_id
from mnemolog.client.inputs.record_builder import names_owner
from mnemolog.client.queries.search_result import SearchResult
from mnemolog.errors import InvalidCommandError
from mnemolog.projections.context.result import Context, ContextFact
from mnemolog.projections.queries.results import Fact
from mnemolog.projections.search.hits import Hit
from mnemolog.schemas.scope import SCOPE_FIELDS

ShownFact = Hit | Fact | ContextFact | UUID | str
Shown = SearchResult | Context | Iterable[ShownFact] | ShownFact
"""What was shown or used: a result, a fact or a whole id, or several of these."""


def shown_ids(name: str, given: Shown) -> list[UUID]:
    """The whole ids, each once, in their order. Raises `InvalidCommandError` that names what is none."""
    return list(dict.fromkeys(_id_of(f"{name}.{place}", one) for place, one in enumerate(all_shown(name, given))))


def scope_of_shown(given: Shown, arguments: CommandArgs) -> CommandArgs:
    """The scope of the first fact whose scope is known, where the arguments name nobody."""
    if names_owner(arguments):
        return {}
    facts = (one.fact if isinstance(one, Hit) else one for one in all_shown("shown", given))
    scope = next((fact.scope for fact in facts if isinstance(fact, Fact | ContextFact)), None)
    return cast("CommandArgs", {name: getattr(scope, name) for name in SCOPE_FIELDS}) if scope else {}


def all_shown(name: str, given: Shown) -> list[ShownFact]:
    """What was shown, one by one. Raises `InvalidCommandError` for what cannot have been."""
    if isinstance(given, Context):
        return list(given.facts)
    if isinstance(given, ShownFact):
        return [given]
    if isinstance(given, bytes | Mapping) or not isinstance(given, Iterable):
        raise InvalidCommandError(f"{name} must be a result, facts or whole ids, not {kind_of(given)}")
    return list(given)


def _id_of(name: str, one: object) -> UUID:
    if isinstance(one, Hit):
        return one.fact.fact_id
    if isinstance(one, Fact | ContextFact):
        return one.fact_id
    if isinstance(one, UUID | str) and (found := whole_id(one)) is not None:
        return found
    raise InvalidCommandError(f"{name} must be a fact or its whole id, not {kind_of(one)}")
