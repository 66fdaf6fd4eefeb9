"""Fields of requests: the arguments of the client's methods, which check them, in the types that JSON has for them."""

import inspect
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import datetime
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, SkipValidation, create_model

from mnemolog.client.async_client import AsyncMemoryClient

Time = Annotated[str, Field(description="a day (2026-01-31, from 00:00 UTC), or a time with its zone")]
MAX_TURNS: Final = 1000
"""Of a batch."""
_OWN: Final = Field(default=None, json_schema_extra=lambda schema: schema.__delitem__("default"))
"""The default of an argument that is the method's own."""
_DEFAULTS: Final[Mapping[Any, Any]] = {inspect.Parameter.empty: ..., ...: _OWN, (): []}
"""The default of a field, by that of an argument which JSON cannot have."""


class Body(BaseModel):
    """Whose memory it is about. Unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")

    user_id: str | None = None
    agent_id: str | None = None
    app_id: str | None = None
    run_id: str | None = None

    @property
    def ids(self) -> dict[str, str | None]:
        return {name: getattr(self, name) for name in Body.model_fields}

    @property
    def arguments(self) -> dict[str, Any]:
        """The fields that are given, without the ids."""
        return {name: getattr(self, name) for name in self.model_fields_set if name not in Body.model_fields}


def json_type(hint: Any) -> Any:
    """What JSON has in place of an argument: ids and times are texts, and of one or several it is a list."""
    kinds = {get_origin(one) or one for one in get_args(hint)}
    if str not in kinds or get_origin(hint) not in (Union, UnionType):
        return hint
    plain: Any = list[str] if Iterable in kinds else Time if datetime in kinds else str
    return plain | None if NoneType in kinds else plain


def fields_of(method: Callable[..., Any], *, beside: Collection[str] = ()) -> Iterator[tuple[str, Any, Any]]:
    """The name, type and default of each argument but those of the scope, `wait`, and those that stand elsewhere."""
    elsewhere = {"self", "tenant", "actor", "wait", *Body.model_fields, *beside}
    for one in inspect.signature(method).parameters.values():
        if one.name not in elsewhere:
            yield one.name, json_type(one.annotation), _DEFAULTS.get(one.default, one.default)


def body_of(name: str, method: Callable[..., Any], *, beside: Collection[str] = (), **fields: Any) -> type[Body]:
    """A body with the arguments of a method; the types of `fields` go before its own."""
    types: dict[str, Any] = {
        argument: (SkipValidation[fields.get(argument, kind)], default)  # type: ignore[misc] # a type that is computed
        for argument, kind, default in fields_of(method, beside=beside)
    }
    return create_model(f"{name}Body", __base__=Body, __doc__=inspect.getdoc(method), **types)


class SaidMessage(BaseModel):
    """A message with its text, in the form of OpenAI's API; what is no text is left out, and a note says so."""

    model_config = ConfigDict(extra="allow")

    role: str
    content: str | list[dict[str, Any]] | None = None
    name: str | None = None


_Turn: Any = body_of("Turn", AsyncMemoryClient.add, messages=str | list[SaidMessage])
_Search: Any = body_of("Search", AsyncMemoryClient.search)
_Context: Any = body_of("Context", AsyncMemoryClient.context, beside=("count_tokens",))


class TurnBody(_Turn):  # type: ignore[misc] # a base that is computed
    """A turn: `messages` is what the user says, or a list of messages. A second one of a `turn_id` does nothing."""


class BatchBody(BaseModel):
    """Turns in their order, each with whose it is."""

    model_config = ConfigDict(extra="forbid")

    turns: Annotated[list[TurnBody], Field(min_length=1, max_length=MAX_TURNS)]


class SearchBody(_Search):  # type: ignore[misc] # a base that is computed
    """A search; `docs/search.md` says what each field does."""


class ContextBody(_Context):  # type: ignore[misc] # a base that is computed
    """A context for a prompt; without a `query` nothing is searched."""

    query: SkipValidation[str | None] = None
