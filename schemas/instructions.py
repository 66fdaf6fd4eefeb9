"""Instructions of a tenant or a scope for the extraction: what to look for, and what is never stored."""

import hashlib
from typing import Annotated, Final

from pydantic import Field

from mnemolog.schemas.base import Record, Text
from mnemolog.schemas.facts import Slot

MAX_INSTRUCTIONS: Final = 4000
"""Characters: they are part of each prompt."""
_MAX_ENTRIES: Final = 50
_Line = Annotated[Text, Field(min_length=1, max_length=200, pattern=r"^[^\n\r]*\S[^\n\r]*$")]
_Word = Annotated[Text, Field(min_length=2, max_length=100, pattern=r"^[^*\s][^*]*[^*\s]\*?$")]
_Language = Annotated[str, Field(pattern=r"^[a-z]{2,3}(-[A-Za-z0-9]{2,8})*$")]


class DescribedCategory(Record):
    """A category that facts may have besides the known ones, and what belongs into it."""

    name: Slot
    description: _Line


class ForbiddenTopic(Record):
    """What is never stored: the prompt says so, and what the model replies all the same is left out.

    A reply is about the topic where it has one of the `words` (whole words; one with `*` at its end is the beginning of
    a word), or one of the `keys` or `categories`.
    """

    name: Slot
    description: _Line | None = None
    words: Annotated[tuple[_Word, ...], Field(max_length=200)] = ()
    keys: Annotated[tuple[Slot, ...], Field(max_length=_MAX_ENTRIES)] = ()
    categories: Annotated[tuple[Slot, ...], Field(max_length=_MAX_ENTRIES)] = ()


class Instructions(Record):
    """What the prompt of an extraction says for a tenant or a scope.

    `languages` are those in which facts are written, as codes like `de`: that of the conversation where it is among
    them, or else the first.
    """

    text: Annotated[Text, Field(max_length=MAX_INSTRUCTIONS)] = ""
    categories: Annotated[tuple[DescribedCategory, ...], Field(max_length=_MAX_ENTRIES)] = ()
    never_store: Annotated[tuple[ForbiddenTopic, ...], Field(max_length=_MAX_ENTRIES)] = ()
    languages: Annotated[tuple[_Language, ...], Field(max_length=20)] = ()

    @property
    def version(self) -> str:
        """The name of exactly these instructions, as the steps of turns have it."""
        return f"instructions-{hashlib.sha256(self.model_dump_json().encode()).hexdigest()[:12]}"

    def over(self, wider: "Instructions | None") -> "Instructions":
        """These of a scope in the place of its tenant's; what the tenant never stores, the scope does not either."""
        if wider is None:
            return self
        topics = (*wider.never_store, *(one for one in self.never_store if one not in wider.never_store))
        return self.model_copy(update={"never_store": topics})


INSTRUCTIONS_ADVICE: Final = (
    f"instructions have {', '.join(Instructions.model_fields)}; an entry of categories has "
    f"{', '.join(DescribedCategory.model_fields)}, one of never_store {', '.join(ForbiddenTopic.model_fields)}"
)
"""What they are made of, for error messages."""
