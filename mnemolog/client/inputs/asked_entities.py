"""Reads what of a question may name entities: its words, and ties such as "my wife", "Ana's dog", "my wife's dog"."""

import re
from functools import cache
from typing import Final

from mnemolog.client.inputs.asked_names import AskedName, read_question
from mnemolog.projections.lists.entity_graph import AskedTie
from mnemolog.projections.search.asked_entities import (
    MAX_HEADS,
    MAX_PHRASES,
    NOBODY,
    AskedEntities,
    TiePhrase,
    TieStep,
)
from mnemolog.projections.search.options import SearchOptions
from mnemolog.projections.search.question import storable_question
from mnemolog.schemas.entities.relations import WORDS as PREDICATES
from mnemolog.schemas.entities.relations import name_of_predicate
from mnemolog.streams.conversation.said_names import heads_of_word
from mnemolog.streams.entities.name_keys import name_key
from mnemolog.streams.entities.spoken_names import NAME, TIE, WORDS

_PREDICATES: Final = "|".join(word.replace("_", "[ _-]") for word in sorted(PREDICATES, key=len, reverse=True))
_TIE: Final = rf"(?i:{re.sub(r'[?]P<[a-z_]+>', '?:', TIE)}|{_PREDICATES})(?!\w)"
_OF: Final = rf"(?:'s|\u2019s|(?<=s)['\u2019]) {_TIE}"
_OWNER: Final = rf"(?:(?i:{WORDS['my']}) {_TIE}|(?:{NAME}(?: {NAME}){{0,2}}|\w[\w-]{{0,40}}?){_OF})"
_WORD: Final = re.compile(r"\w+(?:['\u2019\u2018`.]\w+)*")


def entities_asked(text: str, options: SearchOptions) -> AskedEntities:
    """What of `text` is looked for as an entity; nobody where entities do not count."""
    if not options.weights.entities:
        return NOBODY
    asked = storable_question(text)
    heads = dict.fromkeys(head for word in _WORD.findall(asked) for head in heads_of_word(word))
    phrases = (phrase for match in _tied().finditer(asked) if (phrase := _phrase(match[0])) is not None)
    return AskedEntities(heads=tuple(heads)[:MAX_HEADS], ties=tuple(dict.fromkeys(phrases))[:MAX_PHRASES])


@cache  # not at import: compiling it takes a tenth of the time that the client takes to be imported
def _tied() -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){_OWNER}(?:{_OF})?(?:,? {NAME}(?: {NAME})?)?")


def _phrase(said: str) -> TiePhrase | None:
    """A tie with its owners; None where it has more than two, or is none."""
    asked = read_question(said)
    if asked is None or asked.tie is None:
        return None
    last, owner = _step(asked.tie), asked.owner
    if owner is None or owner.tie is None:
        return TiePhrase(owner_key=_key(owner), first=last)
    if owner.owner is not None and owner.owner.tie is not None:
        return None
    return TiePhrase(owner_key=_key(owner.owner), first=_step(owner.tie), then=last)


def _step(tie: AskedTie) -> TieStep:
    return TieStep(predicate=name_of_predicate(tie.predicate), tie=tie.tie or "", name_key=tie.name_key)


def _key(owner: AskedName | None) -> str:
    return "" if owner is None else name_key(owner.name)
