"""A fact that an application imports, from the facts that are known to the event."""

from mnemolog.schemas import ids
from mnemolog.schemas.command import Import
from mnemolog.schemas.events import FactAdded
from mnemolog.schemas.facts import CONFIDENCE_OF_CERTAINTY, EmbeddedFact, ExtractedFact, NewFact
from mnemolog.schemas.filters.model import Filter, parse_filter
from mnemolog.streams.commands.context import CommandContext, Events, StoredFacts
from mnemolog.streams.ends.end_rules import EndRules, same_value, slot_relation


def facts_to_compare(payload: Import) -> tuple[Filter, ...]:
    """The facts that an imported one may repeat, and those beside which it may stand: of its text, and of its key."""
    of_key = ({"key": payload.fact.key},) if payload.fact.key else ()
    return tuple(parse_filter(one) for one in ({"memory": payload.fact.text}, *of_key))


def import_fact(
    context: CommandContext, payload: Import, embedded: EmbeddedFact, known: StoredFacts, rules: EndRules
) -> Events:
    """The fact is added, unless the scope has one of its text, or its key and value, about the same subject.

    Beside another value of its key it is unresolved: nobody has decided on the two.
    """
    fact = _new_fact(context, payload, embedded)
    of_slot = [stored for stored in known.values() if slot_relation(fact, stored.fact, rules) != "other"]
    if any(stored.fact.text == fact.text for stored in known.values()):
        return ()
    if any(same_value(fact, stored.fact) and slot_relation(fact, stored.fact, rules) == "same" for stored in of_slot):
        return ()
    beside = [stored for stored in of_slot if not same_value(fact, stored.fact)]
    decision = context.decision("application", "imported it", beside)
    shown = decision.model_copy(update={"shown": tuple(stored.fact_id for stored in beside)})
    return (FactAdded(**context.event_fields(0, shown), fact=fact, unresolved=bool(beside)),)


def _new_fact(context: CommandContext, payload: Import, embedded: EmbeddedFact) -> NewFact:
    given = payload.fact
    stated = {name: getattr(given, name) for name in type(given).model_fields if name in ExtractedFact.model_fields}
    return NewFact(
        **stated | {"excerpt": given.text, "search_text": embedded.fact.search_text},
        fact_id=ids.fact_id(context.owner, context.source_id, 0),
        confidence=CONFIDENCE_OF_CERTAINTY[given.certainty] if given.confidence is None else given.confidence,
        true_from=given.true_from or context.issued_at,
        speaker=given.speaker,
        authority=given.authority,
        vector=embedded.vector,
    )
