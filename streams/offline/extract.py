"""From a turn to its facts without a model: each sentence that states something, in its own words."""

import re
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any, Final

from mnemolog.schemas.entities import MAX_ENTITIES, NamedEntity, NamedRelation
from mnemolog.schemas.facts import IMPORTANCE_OF_CATEGORY, ActionHint, Certainty, ExtractedFact
from mnemolog.schemas.policy import is_single_valued
from mnemolog.schemas.stored import EarlierMessage
from mnemolog.schemas.turn import Turn
from mnemolog.streams.llm.extract_reply import with_questions
from mnemolog.streams.offline.names import (
    ended_relations,
    ended_values,
    names_heard,
    sentence_entities,
    stated_aliases,
    stated_members,
    value_entities,
    value_relations,
)
from mnemolog.streams.offline.sentences import (
    PETS,
    WORDS,
    Sentence,
    is_english,
    plain,
    reason_not_stated,
    sentences,
    without_margins,
)
from mnemolog.streams.offline.slots import (
    FILLS,
    SLOTS,
    SlotStatement,
    is_known_value,
    read_clauses,
    slot_statements,
    without_fillers,
)
from mnemolog.streams.text.patterns import compiled, tables
from mnemolog.streams.text.short_answers import sentences_of, short_answer
from mnemolog.streams.text.times import find_times, noted
from mnemolog.streams.text.tokens import comparable_text, without_texts

UNKNOWN_SPEAKER: Final = "The user"
MAX_FACTS: Final = 100  # of a turn
_SHORTEST_REST: Final = 3  # words of a clause that is kept without its sentence
_MAX_QUESTION: Final = 200  # characters
_MAX_ANSWER: Final = 8  # words of an answer that is kept with its question

_QUESTIONS: Final = [
    (compiled(asks, {}), states)
    for asks, states in (
        line.split(" => ") for line in tables(Path(__file__).with_name("questions.toml"))["value"].splitlines()
    )
]
_LEADS: Final = re.compile(r"^(?:(?:it|that)(?:'s| is) |i(?:'m| am) (?:in|at) |(?:in|at|to|from|on) )", re.IGNORECASE)
_OPEN_QUESTION: Final = re.compile(
    r"^\W*(?:what|which|who|where|when|how (?!are you|is it going|do you do|can i|may i))\b.*\b(?:you|your)\b|"
    r"^(?:.*, )?\W*(?:so )?(?:are |do |have |is |did |were |was |shall i note (?:that )?)?(?:you|your)\b"
    r"(?! (?:there|ready|sure|ok|okay|busy|done|serious|kidding|joking)\b)",
    re.IGNORECASE,
)


def read_turn(turn: Turn, earlier: Sequence[EarlierMessage] = ()) -> tuple[list[ExtractedFact], list[Sentence]]:
    """The facts that the user's messages state, each text once, and the sentences that became none.

    `earlier` is what was said before the turn, the oldest first: its last message may ask what the turn answers.
    """
    facts: dict[str, ExtractedFact] = {}
    omitted: list[Sentence] = []
    before = [one for message in earlier for one in sentences_of(message.content)]
    heard = {name for one in map(plain, before) if is_english(one) for name in names_heard(one)}
    recalled = [text for text in map(comparable_text, turn.recalled) if text]
    for message, asked in with_questions(turn, earlier):
        heard.update(names_heard(plain(asked)))
        speaker = " ".join((message.name or turn.speaker or UNKNOWN_SPEAKER).split())
        for place, sentence in enumerate(sentences(message.content, speaker) if message.role == "user" else ()):
            words = comparable_text(sentence.text)
            reason = sentence.omitted or ("quotation" if without_texts(words, recalled) != words else None)
            is_answer = asked and not place and "?" not in sentence.text and (not reason or short_answer(sentence.text))
            question = _question_of(asked) if is_answer else None
            if question and (answer := _answer(question, sentence.text, speaker, turn.occurred_at)):
                facts.setdefault(answer.text, answer)
            elif reason or short_answer(sentence.text):
                omitted.append(Sentence(text=sentence.text, omitted=reason or "undecided"))
            else:
                if is_english(sentence.text):
                    heard.update(names_heard(plain(sentence.text)))
                for fact in _read_sentence(sentence.text, speaker, turn.occurred_at, heard):
                    corrected, wrong = _corrected(fact, facts, turn.occurred_at)
                    if wrong:
                        omitted.append(Sentence(text=facts.pop(wrong.text).excerpt, omitted="taken_back"))
                    facts.setdefault(corrected.text, corrected)
    kept = list(facts.values())
    omitted += [Sentence(text=fact.excerpt, omitted="too_long") for fact in kept[MAX_FACTS:]]
    return kept[:MAX_FACTS], omitted


def _question_of(asked: str) -> str | None:
    """The last question of a message, without its mark."""
    questions = [one for one in sentences_of(plain(asked)) if "?" in one]
    question = without_margins(questions[-1].rpartition(": ")[2]) if questions else ""
    return question if 0 < len(question) <= _MAX_QUESTION else None


def _answer(question: str, said: str, speaker: str, at: datetime) -> ExtractedFact | None:
    """The slot that an answer of known words fills, or a short answer with its question; None for other sentences."""
    words, kind = without_margins(plain(said)), short_answer(said)
    if kind == "open" or not words or (kind is None and reason_not_stated(words)):
        return None
    kept = _kept_fact(said, speaker, at)
    value = _LEADS.sub("", words, count=1)
    for asks, states in _QUESTIONS if kind is None else ():
        if asks.search(question):
            for one in slot_statements(states.format(v=value), at):
                if one.is_whole and is_known_value(one):
                    (key,) = one.keys
                    return _slot_fact(key, one, kept)
    is_fragment = len(words.split()) <= _MAX_ANSWER and not WORDS["self"].search(words)
    if (kind is None and not is_fragment) or not _OPEN_QUESTION.match(question):
        return None
    text = answer_text(speaker, question, said)
    hint: ActionHint = "retract" if kind == "no" else "new"
    return kept.model_copy(update={"text": text, "search_text": text, "action_hint": hint})


def answer_text(speaker: str, question: str, said: str) -> str:
    """An answer with its question, as a transcript has them."""
    return f'{speaker}, asked "{question}?": {said}'


def own_words(text: str, excerpt: str) -> str:
    """The words by which a fact is compared: its excerpt, or for an answer that says little alone the whole text."""
    return text if ', asked "' in text else excerpt


def _corrected(
    fact: ExtractedFact, earlier: dict[str, ExtractedFact], at: datetime
) -> tuple[ExtractedFact, ExtractedFact | None]:
    """A fact; or, where it corrects one of the same turn, the slot filled with its value, and the corrected fact."""
    for statement in slot_statements(fact.excerpt, at):
        for wrong in earlier.values() if "correct" in statement.act else ():
            if wrong.key and wrong.value == statement.old and wrong.subject == fact.subject:
                return _slot_fact(wrong.key, statement, fact), wrong
    return fact, None


def _read_sentence(sentence: str, speaker: str, at: datetime, heard: Collection[str]) -> Iterator[ExtractedFact]:
    """The slots that a sentence fills, and in its own words all else: clauses that can stand alone, or all of it."""
    if not is_english(sentence):
        yield _quoted_fact(sentence, speaker, at)
        return
    parts = read_clauses(sentence, at)
    is_divisible = all(_stands_alone(part, statements) for part, statements in parts)
    for part, statements in parts:
        kept = _kept_fact(part, speaker, at, heard)
        fills = [one for one in statements if one.act in FILLS]
        for one in fills:
            (key,) = one.keys
            yield _slot_fact(key, one, kept)
        if is_divisible and not fills:
            yield kept
    if not is_divisible:
        yield _kept_fact(sentence, speaker, at, heard)


def _stands_alone(part: str, statements: tuple[SlotStatement, ...]) -> bool:
    is_long = len(part.split()) >= _SHORTEST_REST and not short_answer(part)
    is_own = is_long and WORDS["self"].match(plain(part))
    return all(one.is_whole for one in statements) if statements else bool(is_own)


def _quoted_fact(said: str, speaker: str, at: datetime) -> ExtractedFact:
    """A sentence as a transcript has it, with the dates that its words for times mean.

    It holds from the time that it names, be it past or ahead, and until a time only where it says "until".
    """
    times = find_times(plain(said), at)
    begins = [
        when.start(at)
        for when in times
        if when.role != "until"
        and (when.last < at.date() or (when.first > at.date() and "," not in said[: when.span[0]]))
    ]
    ends = [when.end(at) for when in times if when.role == "until" and when.last >= at.date()]
    text = f"{speaker}: {noted(said, times)}"
    return ExtractedFact(
        text=text,
        excerpt=said,
        search_text=text,
        category="other",
        importance_category="specific_event",
        importance=IMPORTANCE_OF_CATEGORY["specific_event"],
        subject=speaker,
        event_time=begins[0] if begins else None,
        valid_until=ends[-1] if ends and (not begins or begins[0] < ends[-1]) else None,
    )


def _kept_fact(said: str, speaker: str, at: datetime, heard: Collection[str] = ()) -> ExtractedFact:
    """An English sentence as a transcript has it, with the names that it has, and the values that it ends."""
    fact, words = _quoted_fact(said, speaker, at), plain(said)
    acts = [one for one in slot_statements(said, at) if one.act not in FILLS]
    may_move = any(one.act in ("moves", "may_correct") for one in acts)
    says_end = WORDS["ended"].search(words) or WORDS["sold"].fullmatch(without_fillers(words))
    is_over = not may_move and bool(acts or says_end)
    is_doubtful = bool(WORDS["doubt"].search(words))
    ended = [one for one in acts if one.act == "ends"]
    over: tuple[NamedRelation, ...] = ()
    if is_over and not (is_doubtful or WORDS["no_slots"].search(words)):
        values = chain.from_iterable(ended_values(one.keys, one.value, speaker) for one in ended)
        over = ended_relations(words, speaker) or tuple(values)
    entities = sentence_entities(words, speaker, heard)
    missing = {one.object for one in over} - {one.name for one in entities}
    members = () if is_over else stated_members(words, speaker)
    hint: ActionHint = "update" if may_move else "retract" if is_over else "new"
    certainty: Certainty = "weak" if is_doubtful else "strong" if may_move else "explicit"
    read = {
        "search_text": " ".join((fact.text, *(f"pet {one.value}" for one in ended if one.keys <= {*PETS}))),
        "category": "health" if WORDS["health"].search(words) else "other",
        "certainty": certainty,
        "action_hint": hint,
        "entities": (*entities, *(NamedEntity(name=name) for name in sorted(missing)))[:MAX_ENTITIES],
        "relations": (*stated_aliases(words, speaker), *members, *over),
    }
    return fact.model_copy(update=read)


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


_MOODS: Final = tables(Path(__file__).with_name("moods.toml"))
_EMOTIONS: Final = {name: compiled(text, {}) for name, text in _MOODS["emotions"].items()}
_SIGNS: Final = {name: re.compile(text) for name, text in _MOODS["signs"].items()}


def read_mood_of(turn: Turn) -> dict[str, Any]:
    """The mood as a model's reply has it: neutral where no word of the user names a feeling that is not denied."""
    said = " ".join(message.content for message in turn.messages if message.role == "user")
    words = plain(said)
    felt = (
        name
        for name, pattern in _EMOTIONS.items()
        if any(not _SIGNS["not"].search(words[: found.start()]) for found in pattern.finditer(words))
    )
    emotion = next(felt, "neutral")
    intensity = 0.0 if emotion == "neutral" else 0.8 if _SIGNS["strong"].search(words) else 0.5
    energy = next((name for name in ("high", "low") if _SIGNS[name].search(said)), "medium")
    return {"emotion": emotion, "intensity": intensity, "energy": energy}
