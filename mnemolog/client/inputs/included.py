"""What a search looks for: facts, turns, or both."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BeforeValidator, Field, ValidationError

from mnemolog.errors import QueryError
from mnemolog.projections.search.turn_hits import SHOWN_STATUSES, TurnStatus
from mnemolog.schemas.base import Record
from mnemolog.schemas.errors import describe_faults
from mnemolog.schemas.filters.model import BRANCHES, Filter

Include = Literal["facts", "turns"]
_FACT_ARGUMENTS: Final = (
    "threshold",
    "state",
    "true_at",
    "per_matter",
    "fusion",
    "rrf_k",
    "ranks",
    "rerank",
    "neighbours",
)
_TURN_FIELDS: Final = frozenset(
    {*BRANCHES, "user_id", "agent_id", "app_id", "run_id", "source_id", "speaker", "metadata"}
    | {"created_at", "event_time", "structured_attributes"}
)


def _as_list(value: object) -> object:
    return (value,) if isinstance(value, str) else value


class Included(Record):
    """`include` is what is looked for: facts unless given. `turn_status` is how turns ended that are found.

    Turns that were rejected are found only where it says so.
    """

    include: Annotated[tuple[Include, ...], Field(min_length=1, max_length=2), BeforeValidator(_as_list)] = ("facts",)
    turn_status: Annotated[tuple[TurnStatus, ...], Field(min_length=1, max_length=4), BeforeValidator(_as_list)] = (
        SHOWN_STATUSES
    )

    @property
    def facts(self) -> bool:
        return "facts" in self.include

    @property
    def turns(self) -> bool:
        return "turns" in self.include

    @classmethod
    def read(cls, given: Mapping[str, Any], wanted: Filter) -> Self:
        """What is named of it among arguments.

        Raises `QueryError` that names the place of each fault, and where turns alone are looked for by what only facts
        have.
        """
        try:
            asked = cls.model_validate({name: given[name] for name in cls.model_fields if given.get(name) is not None})
        except ValidationError as error:
            raise QueryError(describe_faults(error)) from error
        if not asked.facts:
            _refuse_fact_arguments(given, wanted)
        if not asked.turns and given.get("turn_status") is not None:
            raise QueryError("turn_status is about turns: add include=['facts', 'turns'], or leave it out")
        return asked


def _refuse_fact_arguments(given: Mapping[str, Any], wanted: Filter) -> None:
    named = [name for name in _FACT_ARGUMENTS if given.get(name) not in (None, False)]
    if found := named or [f"filters.{name}" for name in sorted(_names(wanted) - _TURN_FIELDS)]:
        verb = "is" if len(found) == 1 else "are"
        raise QueryError(
            f"{', '.join(found)} {verb} about facts, and only turns are searched: include facts too, or leave it out"
        )


def _names(wanted: Filter) -> set[str]:
    inner = (part for name in BRANCHES for part in getattr(wanted, name) or ())
    return set(wanted.model_fields_set).union(*map(_names, inner))
