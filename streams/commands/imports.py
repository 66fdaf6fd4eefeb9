"""A fact that an application imports, from the facts that are known to the event."""

from typing import Final

from mnemolog.schemas import ids
from mnemolog.schemas.command import Import
from mnemolog.schemas.events import FactAdded
from mnemolog.schemas.facts import CONFIDENCE_OF_CERTAINTY, EmbeddedFact, ExtractedFact, NewFact
from mnemolog.schemas.filters.model import Filter, parse_filter
from mnemolog.schemas.stored import StoredFact
from mnemolog.streams.commands.context import CommandContext, Events, StoredFacts
from mnemolog.streams.ends.end_rules import EndRules, same_value, slot_relation, tells_end_of

_COMPARED: Final = ("key", "value", "subject", "event_time")


def facts_to_compare(payload: Import) -> tuple[Filter, ...]:
    """The facts that an imported one may repeat, and those beside which it may stand: of its text, and of its key."""
    of_key = ({"key": {"eq": payload.fact.key}},) if payload.fact.key else ()
    return tuple(parse_filter(one) for one in ({"memory": {"eq": payload.fact.text}}, *of_key))


def import_fact(
    context: CommandContext, payload: Import, embedded: EmbeddedFact, known: StoredFacts, rules: EndRules
) -> Events:
    """The fact is added, unless the scope has one of its text from which nothing that is given differs.

    Beside another lasting value of its key it is unresolved: nobody has decided on the two.
    """
    fact = _new_fact(context, payload, embedded)
    if any(_says_no_less(stored, fact) for stored in known.values()):
        return ()
    beside = [stored for stored in known.values() if _are_rivals(fact, stored, rules)]
    decision = context.decision("application", "imported it", beside)
    shown = decision.model_copy(update={"shown": tuple(stored.fact_id for stored in beside)})
    return (FactAdded(**context.event_fields(0, shown), fact=fact, unresolved=bool(beside)),)


def _says_no_less(stored: StoredFact, fact: NewFact) -> bool:
    """Whether a fact of the scope has the text of another one, and all else that is given of that."""
    has = {name: getattr(stored.fact, name) for name in _COMPARED} | {
        "speaker": stored.speaker,
        "valid_until": stored.ends_at,
    }
    return stored.fact.text == fact.text and all(getattr(fact, name) in (None, value) for name, value in has.items())


def _are_rivals(fact: NewFact, stored: StoredFact, rules: EndRules) -> bool:
    """Whether both may be lasting values of one slot, and not the same, or the fact tells the end of the other."""
    if fact.action_hint == "retract":
        return tells_end_of(fact, stored.fact)
    if fact.valid_until or stored.ends_at or same_value(fact, stored.fact):
        return False
    return slot_relation(fact, stored.fact, rules) != "other"


def _new_fact(context: CommandContext, payload: Import, embedded: EmbeddedFact) -> NewFact:
    given = payload.fact
    stated = {name: getattr(given, name) for name in type(given).model_fields if name in ExtractedFact.model_fields}
    return NewFact(
        **stated | {"excerpt": embedded.fact.excerpt, "search_text": embedded.fact.search_text},
        fact_id=ids.fact_id(context.owner, context.source_id, 0),
        confidence=CONFIDENCE_OF_CERTAINTY[given.certainty] if given.confidence is None else given.confidence,
        true_from=given.true_from or context.issued_at,
        speaker=given.speaker,
        authority=given.authority,
        vector=embedded.vector,
    )
