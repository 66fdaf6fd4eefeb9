"""From a turn to its facts without a model: each sentence that states something, in its own words."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any, Final

from mnemolog.schemas.entities import NamedRelation
from mnemolog.schemas.facts import IMPORTANCE_OF_CATEGORY, ActionHint, Certainty, ExtractedFact
from mnemolog.schemas.policy import is_single_valued
from mnemolog.schemas.stored import EarlierMessage
from mnemolog.schemas.turn import Turn
from mnemolog.streams.entities.names import forms_of, name_key
from mnemolog.streams.llm.extract_reply import with_questions
from mnemolog.streams.offline.names_in_text import (
    aliases_told,
    ended_relations,
    ended_values,
    is_another_name,
    names_heard,
    relations_of_others,
    same_as,
    sentence_entities,
    stated_in_text,
    value_entities,
    value_relations,
    with_workplaces_and_homes,
    workplaces_and_homes,
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
from mnemolog.streams.offline.slots import FILLS, SLOTS, SlotStatement, read_clauses, slot_statements, without_fillers
from mnemolog.streams.text.patterns import compiled, tables
from mnemolog.streams.text.short_answers import sentences_of, short_answer
from mnemolog.streams.text.times import find_times, is_ahead, noted
from mnemolog.streams.text.tokens import CITIES, COUNTRIES, DATES, REGIONS, SENTENCE_STARTERS, SMALL_WORDS

UNKNOWN_SPEAKER: Final = "The user"
MAX_FACTS: Final = 100  # of a turn
_SHORTEST_REST: Final = 3  # words of a clause that is kept without its sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerReading:
    """What an answer states: values of slots, or itself, asked `question`; or nothing."""

    question: str
    statements: tuple[SlotStatement, ...] = ()
    is_kept: bool = False
    denies: bool = False


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
    says_end = WORDS["ended"].search(words) or WORDS["sold"].fullmatch(without_fillers(words))
    is_over = not may_move and bool(acts or says_end)
    hint: ActionHint = "update" if may_move else "retract" if is_over else "new"
    certainty: Certainty = "weak" if WORDS["doubt"].search(words) else "strong" if may_move else "explicit"
    ended = [one for one in acts if one.act == "ends"]
    pets = [f"pet {one.value}" for one in ended if one.keys <= {*PETS}]
    ended_names = {name_key(one.value).partition(" ")[0] for one in ended}
    entities = sentence_entities(words, speaker, named={*named, *ended_names})
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


MAX_BEFORE: Final = 3
"""Sentences in which the person was named."""
_FEMALE: Final = "sister|mother|mom|mum|wife|girlfriend|daughter|aunt|grandmother|grandma|granny|niece|stepsister"
_MALE: Final = "brother|father|dad|husband|boyfriend|son|uncle|grandfather|grandpa|nephew|stepbrother"
_EITHER: Final = (
    "friend|cousin|boss|colleague|neighbou?r|partner|roommate|flatmate|doctor|teacher|coach|manager|therapist|dentist|"
    "landlord|landlady|ex|twin|kid|child|baby"
)
_NAME: Final = r"(?-i:[A-Z\u00c0-\u00de][\w'-]*(?: [A-Z\u00c0-\u00de][\w'-]*)?)"
_RELATIVE: Final = re.compile(
    rf"\b(?P<whose>my|your) (?:(?:little|big|older|younger|elder|twin|dear|best|new|old|other) )*"
    rf"(?P<kind>{_FEMALE}|{_MALE}|{_EITHER})\b"
    rf"(?:,? (?P<name>{_NAME})| is (?P<is_called>called |named )?(?P<called>{_NAME}))?",
    re.IGNORECASE,
)
_CAPITAL: Final = re.compile(r"(?<![\w'])[A-Z\u00c0-\u00de][\w]*")
_COMMON: Final = frozenset(
    {
        *("my", "your", "he", "she", "how", "what", "where", "when", "who", "why", "is", "are", "did", "does", "has"),
        *("oh", "ah", "ok", "okay", "yes", "no", "nice", "great", "good", "wow", "cool", "lovely", "sorry", "thanks"),
        *("that", "and", "but", "so", "well", "guess", "also", "then"),
    }
)
_SUBJECT: Final = re.compile(
    r"^\W*(?:(?:and|but|so|yesterday|today|now|also|then|well|oh|yes|last \w+),? )?(?P<who>she|he)\b", re.IGNORECASE
)
_CALLED: Final = re.compile(
    rf"^\W*(?:(?:everyone|everybody|most people) (?:just |always )?calls|(?:we|they|i) (?:all |just |always )?call) "
    rf"(?P<who>her|him) [\"']?(?P<alias>{_NAME})[\"']?(?: for short)?\W*$",
    re.IGNORECASE,
)


def person_meant(sentence: str, before: Sequence[str], speaker: str) -> str | None:
    """The person whom the pronoun in `sentence` means ("Alice's sister Ana"), by the sentences `before` it.

    None where the sentence neither begins with "he" or "she" nor gives her or him a name, and where nobody, or more
    than one person, may be meant.
    """
    match = _SUBJECT.match(plain(sentence)) or _CALLED.match(plain(sentence))
    if match is None:
        return None
    excluded = _MALE if match["who"].casefold() in ("she", "her") else _FEMALE
    people: dict[str, str] = {}
    for said in map(plain, before[-MAX_BEFORE:]):
        relatives = list(_RELATIVE.finditer(said))
        for found in relatives:
            kind, name = found["kind"].casefold(), _name_of(found)
            if re.fullmatch(excluded, kind):
                continue
            if people.get(kind) and name and people[kind] != name:
                return None
            people[kind] = people.get(kind) or name
        known = (*map(_name_of, relatives), *workplaces_and_homes(said))
        names = {word for name in known for word in name.split()}
        if any(_may_be_person(word, names | {*speaker.split()}) for word in _CAPITAL.findall(said)):
            return None
    if len(people) != 1 or re.fullmatch(_EITHER, next(iter(people))):
        return None
    ((kind, name),) = people.items()
    return f"{speaker}'s {kind} {name}".strip()


def named_in_place(sentence: str, person: str, speaker: str) -> str:
    """A sentence that begins with a pronoun, with the person in its place: "My sister Ana moved to Bern."."""
    whom = person.removeprefix(f"{speaker}'s ")
    return _SUBJECT.sub(lambda _: f"My {whom}", plain(sentence), count=1)


def name_given(sentence: str) -> str | None:
    """The other name that a sentence gives the person of its pronoun: "Everyone calls her Bee"."""
    match = _CALLED.match(plain(sentence))
    return match["alias"] if match and is_another_name(match["alias"]) else None


def with_person(text: str, person: str) -> str:
    """A text whose first pronoun is explained: "She (Alice's sister Ana) moved to Bern."."""
    return re.sub(r"\b(she|he|her|him)\b", lambda found: f"{found[0]} ({person})", text, count=1, flags=re.IGNORECASE)


def _name_of(relative: re.Match[str]) -> str:
    """The name that a relative has; after "is" stands a name only where it is a common one: "my wife is German"."""
    called = relative["called"] or ""
    is_name = relative["is_called"] or forms_of(name_key(called).partition(" ")[0])
    return relative["name"] or (called if is_name else "")


def _may_be_person(word: str, known: set[str]) -> bool:
    """Whether a word with a capital may name somebody else."""
    small = word.casefold()
    is_common = small in SENTENCE_STARTERS or small in SMALL_WORDS or small in _COMMON
    return not (word in known or is_common or small in DATES or small in CITIES | COUNTRIES | REGIONS)


_MAX_QUESTION: Final = 200  # characters
_MAX_VALUE: Final = 6
_MAX_FRAGMENT: Final = 8  # words
_RULES: Final = tables(Path(__file__).with_name("questions.toml"))
_BEFORE: Final = r"(?:(?:so|and|ok|okay|oh|great|nice|got it|thanks?|hm+|well|by the way)\b[,.!:]?\s+)*"
_LEADS: Final = re.compile(
    r"^(?:(?:it|that)(?:'s| is) |i(?:'m| am) (?:in|at|called) |(?:in|at|to|from|near|on) )", re.IGNORECASE
)
_POINTS_BACK: Final = re.compile(
    r"^\W*(?:(?:is|was) (?:that|this|it) (?:right|correct|true|so)|(?:am i|are we) right|right|correct|"
    r"did i get (?:that|it) right|"
    r"(?:shall|should|may|can) i (?:note|remember|save|store) (?:that|this|it)(?: down)?)\W*$",
    re.IGNORECASE,
)
_OPEN_QUESTION: Final = re.compile(
    r"^\W*(?:what|which|who|where|when|how (?!are you|is it going|do you do|can i|may i))\b.*\b(?:you|your)\b",
    re.IGNORECASE,
)
_PERSONS: Final = (
    (re.compile(r"\byou(?:'re| are)\b", re.IGNORECASE), "I am"),
    (re.compile(r"\byou(?:'ve| have)\b", re.IGNORECASE), "I have"),
    (re.compile(r"\byou were\b", re.IGNORECASE), "I was"),
    (re.compile(r"\byourself\b", re.IGNORECASE), "myself"),
    (re.compile(r"\byour\b", re.IGNORECASE), "my"),
    (re.compile(r"\byou\b", re.IGNORECASE), "I"),
)


def answer_text(speaker: str, question: str, said: str) -> str:
    """An answer with its question, as a transcript has them."""
    return f'{speaker}, asked "{question}?": {said}'


def own_words(text: str, excerpt: str) -> str:
    """The words by which a fact is compared: its excerpt, or for an answer that says little alone the whole text."""
    return text if ', asked "' in text else excerpt


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A form of a question, and the sentence that its answer states."""

    asks: re.Pattern[str]
    states: str
    is_proposal: bool = False

    def sentence(self, question: str, **values: str) -> str | None:
        """What the answer to a question states; None where the question has another form."""
        match = self.asks.fullmatch(question)
        if match is None:
            return None
        found = {name.rstrip("0123456789"): said for name, said in match.groupdict().items() if said}
        return self.states.format(**found, **values)


def _rules(table: str) -> tuple[Rule, ...]:
    rows = (line.split(" => ") for line in _RULES[table].splitlines())
    return tuple(
        Rule(asks=re.compile(rf"{_BEFORE}(?:{asks})", re.IGNORECASE), states=states, is_proposal=table == "proposal")
        for asks, states in rows
    )


_VALUE_RULES: Final = _rules("value")
_WHETHER_RULES: Final = (*_rules("proposal"), *_rules("whether"))


def read_answer(asked: str, said: str, at: datetime) -> AnswerReading | None:
    """What `said` states as the answer to `asked`; None where it is to be read by itself."""
    question = _question_of(asked)
    if question is None or "?" in said:
        return None
    kind = short_answer(said)
    if kind is None:
        return _read_value(question, said, at)
    if kind == "open":
        return AnswerReading(question=question)
    for rule in _WHETHER_RULES:
        if (sentence := rule.sentence(question)) is not None:
            if kind == "no":
                return AnswerReading(question=question, is_kept=not rule.is_proposal, denies=True)
            for second, first in _PERSONS:
                sentence = second.sub(first, sentence)
            statements = _whole_statements(sentence, at)
            return AnswerReading(question=question, statements=statements, is_kept=not statements)
    return None


def _question_of(asked: str) -> str | None:
    """The question that an answer is to, without its mark; where that only points back, what it points to."""
    sentences = list(sentences_of(plain(asked)))
    place = next((place for place in reversed(range(len(sentences))) if "?" in sentences[place]), None)
    if place is None:
        return None
    question = sentences[place]
    if place and _POINTS_BACK.match(question):
        question = sentences[place - 1]
    question = without_margins(question.rpartition(": ")[2])
    return question if 0 < len(question) <= _MAX_QUESTION else None


def _read_value(question: str, said: str, at: datetime) -> AnswerReading | None:
    words = without_margins(plain(said))
    if not words or reason_not_stated(words) or WORDS["doubt"].search(words) or WORDS["negation"].search(words):
        return None
    value = _LEADS.sub("", words, count=1)
    if len(value.split()) <= _MAX_VALUE:
        for rule in _VALUE_RULES:
            sentence = rule.sentence(question, v=value)
            if sentence is not None and (statements := _whole_statements(sentence, at)):
                return AnswerReading(question=question, statements=statements)
    is_fragment = len(words.split()) <= _MAX_FRAGMENT and not WORDS["self"].search(words)
    return AnswerReading(question=question, is_kept=True) if is_fragment and _OPEN_QUESTION.match(question) else None


def _whole_statements(sentence: str, at: datetime) -> tuple[SlotStatement, ...]:
    """The values that a sentence states, if it states nothing else."""
    found = slot_statements(sentence, at)
    return found if found and all(one.act in FILLS and one.is_whole for one in found) else ()


_TABLES: Final = tables(Path(__file__).with_name("moods.toml"))
_EMOTIONS: Final = {name: compiled(text, {}) for name, text in _TABLES["emotions"].items()}
_NOT: Final = compiled(_TABLES["signs"]["not"], {})
_STRONG: Final = compiled(_TABLES["signs"]["strong"], {})
_ENERGIES: Final = {name: re.compile(_TABLES["signs"][name]) for name in ("high", "low")}


def read_mood_of(turn: Turn) -> dict[str, Any]:
    """The mood as a model's reply has it: neutral where no word of the user names a feeling."""
    said = " ".join(message.content for message in turn.messages if message.role == "user")
    words = plain(said)
    felt = (
        name
        for name, pattern in _EMOTIONS.items()
        if any(not _NOT.search(words[: found.start()]) for found in pattern.finditer(words))  # named, and not denied
    )
    emotion = next(felt, "neutral")
    intensity = 0.0 if emotion == "neutral" else 0.8 if _STRONG.search(words) else 0.5
    energy = next((name for name, pattern in _ENERGIES.items() if pattern.search(said)), "medium")
    return {"emotion": emotion, "intensity": intensity, "energy": energy}
