"""What one fact has of several: of all that are merged into it, or of a known one that goes on with a repetition.

Turns, promotions, questions that are asked again, persons and imports ask here alike.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from mnemolog.schemas.base import normalise
from mnemolog.schemas.facts import Authority, Candidate, ExtractedFact, NewFact, ranked_categories
from mnemolog.schemas.stored import StoredFact

_OF_FACT: Final = Candidate.model_fields.keys() & {*ExtractedFact.model_fields, "content_hash"}


def known_candidate(fact: ExtractedFact, **fields: Any) -> Candidate:
    """A fact as a candidate, with `fields` for its state; its distance is not measured."""
    return Candidate(similarity=0.0, **{name: getattr(fact, name) for name in _OF_FACT}, **fields)


def candidate_of(stored: StoredFact) -> Candidate:
    """A stored fact as a candidate. One without an event time was said when it began."""
    fact, state = stored.fact, stored.state
    last_said = [time for time in (state.last_confirmed_at, None if fact.event_time else stored.true_from) if time]
    return known_candidate(
        fact,
        fact_id=stored.fact_id,
        confidence=state.confidence,
        true_from=stored.true_from,
        true_to=state.true_to,
        authority=stored.authority,
        unresolved=state.unresolved,
        said_at=max(last_said, default=None),
        metadata=dict(stored.metadata),
    )


def says_more(
    fact: ExtractedFact | Candidate, authority: Authority, metadata: Mapping[str, Any], known: Candidate
) -> bool:
    """Whether a repetition of a known fact says more beyond its words and its times.

    That a human vouches for it, its key, its value, or metadata under names that it lacks. The metadata beside a
    human's word belong to the turn alone.
    """
    if known.authority != "human" and (authority == "human" or not metadata.keys() <= known.metadata.keys()):
        return True
    if fact.value_json is not None and known.value_json is None:
        return True
    if fact.key is None or known.key not in (None, fact.key):
        return False
    return known.key is None or (known.value is None and fact.value is not None)


def fill_one_slot(facts: Iterable[ExtractedFact | Candidate]) -> bool:
    """Whether one fact can have the keys and values of all of them: it has one of each."""
    facts = tuple(facts)
    keyed = [fact for fact in facts if fact.key is not None]
    found = (
        {fact.key for fact in keyed},
        {normalise(fact.value) for fact in keyed if fact.value},
        {json.dumps(fact.value_json, sort_keys=True) for fact in facts if fact.value_json is not None},
    )
    return all(len(different) <= 1 for different in found)


def merged(fact: NewFact, parents: Sequence[Candidate], *, worded_by: Candidate | None = None) -> NewFact:
    """The fact with all that its parents have: it is in its own words, or in those of the parent that is named.

    It is true since the first of all was, as certain as the most certain, and as important as the most important.
    With a human's word in it, it is a human's word. Of the parents it has the categories, key, value and subject that
    it lacks itself, and metadata under names that it lacks, the first parent's before others'.
    """
    every: list[NewFact | Candidate] = [fact, *parents]
    if worded_by is not None:
        every.sort(key=lambda one: one is not worded_by)
    first = min(every, key=lambda one: one.true_from)
    most = max(every, key=lambda one: one.importance)
    keyed = [one for one in every if one.key is not None] or [fact]
    metadata = {name: value for one in reversed(every) for name, value in (one.metadata or {}).items()}
    return fact.model_copy(
        update={
            "text": fact.text if worded_by is None else worded_by.text,
            "key": keyed[0].key,
            "value": next((one.value for one in keyed if one.value), None),
            "value_json": next((one.value_json for one in every if one.value_json is not None), None),
            **ranked_categories([*(name for one in parents for name in one.categories), *fact.categories]),
            "subject": next((one.subject for one in every if one.subject), None),
            "event_time": fact.event_time or first.event_time,
            "true_from": first.true_from,
            "confidence": max(one.confidence for one in every),
            "importance": most.importance,
            "importance_category": most.importance_category,
            "authority": "human" if any(one.authority == "human" for one in every) else "extracted",
            "single_valued": any(one.single_valued for one in every),
            "action_hint": "retract" if any(one.action_hint == "retract" for one in every) else fact.action_hint,
            "metadata": metadata or None,
        }
    )
