"""What a search may ask of models, and of the time that its question names."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field, StrictBool, StrictInt, ValidationError

from mnemolog.errors import QueryError
from mnemolog.schemas.base import Record
from mnemolog.schemas.errors import describe_faults

MAX_VARIANTS: Final = 5
WhenAsked = Literal["boost", "narrow", "ignore"]


class SearchAids(Record):
    """`rerank` lets a model order the hits, `variants` is how many other wordings of the question it adds.

    `when` is what becomes of the time that the question names: what happened in it counts more, or alone, or it is
    ignored.
    """

    when: WhenAsked = "boost"
    rerank: StrictBool = False
    variants: Annotated[StrictInt, Field(ge=0, le=MAX_VARIANTS)] = 0

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> Self:
        """What is named of it among arguments. Raises `QueryError` that names the place of each fault."""
        try:
            return cls.model_validate({name: given[name] for name in cls.model_fields if given.get(name) is not None})
        except ValidationError as error:
            raise QueryError(describe_faults(error)) from error
