"""From a turn to its facts: each sentence that states something, in its own words, and what fills a slot.

The rules read English. A sentence in another language is a fact in its own words, without key, names or relations.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import chain
from typing import Final

from mnemolog.schemas.entities.relations import NamedRelation
from mnemolog.schemas.facts import IMPORTANCE_OF_CATEGORY, ActionHint, Certainty, ExtractedFact
from mnemolog.schemas.policy import is_single_valued
from mnemolog.schemas.stored import EarlierMessage
from mnemolog.schemas.turn import Turn
from mnemolog.streams.entities.name_keys import name_key
from mnemolog.streams.entities.names_in_text import names_heard, sentence_entities, value_entities
from mnemolog.streams.entities.relations_in_text import (
    aliases_told,
    ended_relations,
    ended_values,
    relations_of_others,
    same_as,
    stated_in_text,
    value_relations,
    with_workplaces_and_homes,
)
from mnemolog.streams.llm.grounding.evidence import with_questions
from mnemolog.streams.offline.answers import AnswerReading, answer_text, read_answer
from mnemolog.streams.offline.phrases import PETS, WORDS
from mnemolog.streams.offline.pronouns import name_given, named_in_place, person_meant, with_person
from mnemolog.streams.offline.sentences import Sentence, is_english, plain, sentences
from mnemolog.streams.offline.slots import FILLS, SLOTS, SlotStatement, read_clauses, slot_statements, without_fillers
from mnemolog.streams.text.short_answers import sentences_of, short_answer
from mnemolog.streams.text.times import find_times, is_ahead, noted

UNKNOWN_SPEAKER: Final = "The user"
MAX_FACTS: Final = 100  # of a turn
_SHORTEST_REST: Final = 3  # words of a clause that is kept without its sentence


def read_turn(turn: Turn, earlier: Sequence[EarlierMessage] = ()) -> tuple[list[ExtractedFact], list[Sentence]]:
    """The facts that the user's messages state, each text once, and the sentences that became none.

    `earlier` is what was said before the turn, the oldest first: it tells what an answer states.
    """
    facts: dict[str, ExtractedFact] = {}
    omitted: list[Sentence] = []
    before = [one for message in earlier for one in sentences_of(message.content)]
    for message, asked in with_questions(turn, earlier):
        before.extend(sentences_of(asked))
        for place, sentence in enumerate(sentences(message.content) if message.role == "user" else ()):
            speaker = " ".join((sentence.speaker or message.name or turn.speaker or UNKNOWN_SPEAKER).split())
            person = person_meant(sentence.text, before, speaker)
            before.append(sentence.text)
            is_answer = bool(asked) and not place and person is None
            answer = read_answer(asked, sentence.text, turn.occurred_at) if is_answer else None
            if answer is not None:
                answered = list(_answered(answer, sentence.text, speaker, turn.occurred_at))
                facts |= {fact.text: fact for fact in answered if fact.text not in facts}
                omitted += [] if answered else [Sentence(text=sentence.text, omitted="undecided")]
                continue
            if sentence.omitted or short_answer(sentence.text):
                omitted.append(sentence if sentence.omitted else replace(sentence, omitted="undecided"))
                continue
            named = names_heard(filter(is_english, map(plain, before)))
            for read in _read_sentence(sentence.text, speaker, turn.occurred_at, named):
                fact = _about_person(read, person, speaker) if person else read
                corrected, wrong = _corrected(fact, facts, turn.occurred_at)
                if wrong:
                    omitted.append(Sentence(text=facts.pop(wrong.text).excerpt, omitted="taken_back"))
                facts.setdefault(corrected.text, corrected)
    kept = list(facts.values())
    omitted += [Sentence(text=fact.excerpt, omitted="too_long") for fact in kept[MAX_FACTS:]]
    return kept[:MAX_FACTS], omitted


def _about_person(fact: ExtractedFact, person: str, speaker: str) -> ExtractedFact:
    """A sentence whose pronoun means somebody is about that person, and says where that one works and lives."""
    if fact.key is not None:
        return fact
    text, search_text = (with_person(said, person) for said in (fact.text, fact.search_text))
    words, alias = named_in_place(fact.excerpt, person, speaker), name_given(fact.excerpt)
    is_over = fact.action_hint == "retract"
    places = () if _is_unsure(words) else relations_of_others(words, speaker, ended=is_over)
    relations = (*fact.relations, *(same_as(person, alias) if alias else ()), *places)
    entities = with_workplaces_and_homes(fact.entities, relations)
    told = {"text": text, "search_text": search_text, "subject": person, "entities": entities, "relations": relations}
    return fact.model_copy(update=told)


def _answered(answer: AnswerReading, said: str, speaker: str, at: datetime) -> Iterator[ExtractedFact]:
    """What an answer fills, or else the answer with its question, as a transcript has them."""
    kept = _kept_fact(said, speaker, at)
    for one in answer.statements:
        (key,) = one.keys
        yield _slot_fact(key, one, kept)
    if answer.is_kept:
        text = answer_text(speaker, answer.question, said)
        hint: ActionHint = "retract" if answer.denies else "new"
        yield kept.model_copy(update={"text": text, "search_text": text, "action_hint": hint})


def _corrected(
    fact: ExtractedFact, earlier: dict[str, ExtractedFact], at: datetime
) -> tuple[ExtractedFact, ExtractedFact | None]:
    """A fact; or, where it corrects one of the same turn, the slot filled with its value, and the one it corrects."""
    for statement in slot_statements(fact.excerpt, at):
        for wrong in earlier.values() if "correct" in statement.act else ():
            if wrong.key and wrong.value == statement.old and wrong.subject == fact.subject:
                return _slot_fact(wrong.key, statement, fact), wrong
    return fact, None


def _read_sentence(sentence: str, speaker: str, at: datetime, named: frozenset[str]) -> Iterator[ExtractedFact]:
    """What it fills, and in its own words what else it says: clauses that can stand alone, or all of it."""
    if not is_english(sentence):
        yield _quoted_fact(sentence, speaker, at)
        return
    parts = read_clauses(sentence, at)
    is_divisible = all(_stands_alone(part, statements) for part, statements in parts)
    for part, statements in parts:
        kept = _kept_fact(part, speaker, at, named)
        fills = [one for one in statements if one.act in FILLS]
        for one in fills:
            (key,) = one.keys
            yield _slot_fact(key, one, kept)
        if is_divisible and not fills:
            yield kept
    if not is_divisible:
        yield _kept_fact(sentence, speaker, at, named)


def _stands_alone(part: str, statements: tuple[SlotStatement, ...]) -> bool:
    is_long = len(part.split()) >= _SHORTEST_REST and not short_answer(part)
    is_own = is_long and WORDS["self"].match(plain(part))
    return all(one.is_whole for one in statements) if statements else bool(is_own)


def _quoted_fact(said: str, speaker: str, at: datetime) -> ExtractedFact:
    """A sentence as a transcript has it, with the dates that its words for times mean."""
    words = plain(said)
    times = find_times(words, at)
    begun = [when.start(at) for when in times if when.last < at.date() and when.role != "until"]
    ahead = [when for when in times if when.last > at.date() and when.role != "from"]
    ends = [when.end(at) for when in ahead if when.role == "until" or is_ahead(words)]
    text = f"{speaker}: {noted(said, times)}"
    return ExtractedFact(
        text=text,
        excerpt=said,
        search_text=text,
        category="other",
        importance_category="specific_event",
        importance=IMPORTANCE_OF_CATEGORY["specific_event"],
        subject=speaker,
        event_time=begun[0] if begun else None,
        valid_until=ends[-1] if ends and not begun else None,
    )


def _kept_fact(said: str, speaker: str, at: datetime, named: Collection[str] = ()) -> ExtractedFact:
    """An English sentence as a transcript has it, with what it names, says of them, and ends."""
    fact, words = _quoted_fact(said, speaker, at), plain(said)
    acts = [one for one in slot_statements(said, at) if one.act not in FILLS]
    may_move = any(one.act in ("moves", "may_correct") for one in acts)
    is_over = not may_move and bool(acts or _ends_something(words))
    hint: ActionHint = "update" if may_move else "retract" if is_over else "new"
    certainty: Certainty = "weak" if WORDS["doubt"].search(words) else "strong" if may_move else "explicit"
    ended = [one for one in acts if one.act == "ends"]
    pets = [f"pet {one.value}" for one in ended if one.keys <= {*PETS}]
    entities = sentence_entities(words, speaker, named={*named, *(_first_word(one.value) for one in ended)})
    names = [one.name for one in entities]
    relations = _ended(words, speaker, ended, names) if is_over else stated_in_text(words, speaker, names)
    read = {
        "search_text": " ".join((fact.text, *pets)),
        "category": "health" if WORDS["health"].search(words) else "other",
        "certainty": certainty,
        "action_hint": hint,
        "entities": with_workplaces_and_homes(entities, relations),
        "relations": (*aliases_told(words, speaker), *relations),
    }
    return fact.model_copy(update=read)


def _first_word(name: str) -> str:
    return name_key(name).partition(" ")[0]


def _ends_something(words: str) -> bool:
    return bool(WORDS["ended"].search(words) or WORDS["sold"].fullmatch(without_fillers(words)))


def _ended(
    words: str, speaker: str, acts: Sequence[SlotStatement], named: Collection[str]
) -> tuple[NamedRelation, ...]:
    """What a sentence says to be over: nothing where it is doubtful, or what somebody says or thinks."""
    if _is_unsure(words):
        return ()
    over = (*ended_relations(words, speaker), *relations_of_others(words, speaker, named, ended=True))
    return over or tuple(chain.from_iterable(ended_values(one.keys, one.value, speaker) for one in acts))


def _is_unsure(words: str) -> bool:
    return bool(WORDS["doubt"].search(words) or WORDS["no_slots"].search(words))


def _slot_fact(key: str, statement: SlotStatement, kept: ExtractedFact) -> ExtractedFact:
    """The value of a slot in the words of the registry. A home that is only stated may be a part of another one."""
    slot = SLOTS[key]
    text = slot.text.format(s=kept.subject, v=statement.value)
    home = "strong" if key == "home_city" else "explicit"
    fields = {
        "text": text,
        "search_text": f"{text} {slot.about}",
        "key": key,
        "value": statement.value,
        "single_valued": is_single_valued(key),
        "category": slot.category,
        "importance_category": slot.importance,
        "importance": IMPORTANCE_OF_CATEGORY[slot.importance],
        "certainty": {"suggests": "weak", "states": home}.get(statement.act, "explicit"),
        "action_hint": "update" if statement.act == "changes" else "new",
        "valid_until": None,
        "entities": value_entities(key, statement.value, kept.subject),
        "relations": value_relations(key, statement.value, kept.subject),
    }
    return kept.model_copy(update=fields)
