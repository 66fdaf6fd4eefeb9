"""From a turn to its facts without a model: each sentence that states something, in its own words."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from mnemolog.schemas.entities import MAX_ENTITIES, NamedEntity
from mnemolog.schemas.facts import IMPORTANCE_OF_CATEGORY, Certainty, ExtractedFact
from mnemolog.schemas.policy import is_single_valued
from mnemolog.schemas.stored import EarlierMessage
from mnemolog.schemas.turn import Turn
from mnemolog.streams.llm.evidence import with_questions
from mnemolog.streams.llm.extract_reply import names_of_value
from mnemolog.streams.offline import sentences as read
from mnemolog.streams.offline.names import sentence_entities
from mnemolog.streams.offline.sentences import FILLS, SLOTS, WORDS, Sentence, SlotStatement, plain, slot_statements
from mnemolog.streams.text.short_answers import sentences_of, short_answer
from mnemolog.streams.text.times import find_times, noted
from mnemolog.streams.text.tokens import comparable_text, without_texts

UNKNOWN_SPEAKER: Final = "The user"
MAX_FACTS: Final = 100  # of a turn
_MAX_ANSWER: Final = 8  # words of an answer that is kept with its question


def read_turn(turn: Turn, earlier: Sequence[EarlierMessage] = ()) -> tuple[list[ExtractedFact], list[Sentence]]:
    """The facts that the user's messages state, each text once, and the sentences that became none.

    `earlier` is what was said before the turn, the oldest first: its last message may ask what the turn answers.
    """
    facts: dict[str, ExtractedFact] = {}
    omitted: list[Sentence] = []
    recalled = [text for text in map(comparable_text, turn.recalled) if text]
    for message, asked in with_questions(turn, earlier):
        speaker = " ".join((message.name or turn.speaker or UNKNOWN_SPEAKER).split())
        may_fill = not WORDS["unsure"].search(plain(message.content))
        for place, sentence in enumerate(read.sentences(message.content, speaker) if message.role == "user" else ()):
            words, is_short = comparable_text(sentence.text), bool(short_answer(sentence.text))
            reason = sentence.omitted or ("quotation" if without_texts(words, recalled) != words else None)
            may_answer = asked and not place and (not reason or is_short)
            if may_answer and (answer := _answer(asked, sentence.text, speaker, turn.occurred_at)):
                facts.setdefault(answer.text, answer)
            elif reason or is_short:
                omitted.append(Sentence(text=sentence.text, omitted=reason or "undecided"))
            else:
                for fact in _read_sentence(sentence.text, speaker, turn.occurred_at, may_fill=may_fill):
                    facts.setdefault(fact.text, fact)
    kept = list(facts.values())
    omitted += [Sentence(text=fact.excerpt, omitted="too_long") for fact in kept[MAX_FACTS:]]
    return kept[:MAX_FACTS], omitted


def _answer(asked: str, said: str, speaker: str, at: datetime) -> ExtractedFact | None:
    """A short answer with its question; None for other sentences, which say something themselves."""
    questions = [one.rpartition(": ")[2] for one in sentences_of(plain(asked)) if "?" in one]
    question = questions[-1].strip(" ?!.\"'") if questions else ""
    words, kind = plain(said), short_answer(said)
    is_long = len(words.split()) > _MAX_ANSWER or WORDS["self"].search(words) or read.reason_not_stated(words)
    is_open = kind == "open" or "?" in said or (kind is None and is_long)
    if is_open or not WORDS["asks_the_user"].match(question):
        return None
    text = f'{speaker}, asked "{question}?": {said}'
    read_as = {"text": text, "search_text": text, "action_hint": "retract" if kind == "no" else "new"}
    return _kept_fact(said, speaker, at, ()).model_copy(update=read_as)


def _read_sentence(said: str, speaker: str, at: datetime, *, may_fill: bool) -> Iterator[ExtractedFact]:
    """The slots that a sentence fills, and where it says more than these the sentence in its own words."""
    statements = slot_statements(said, at) if may_fill and read.is_english(said) else ()
    kept = _kept_fact(said, speaker, at, statements)
    fills = [one for one in statements if one.act in FILLS]
    for one in fills:
        (key,), act, value = one.keys, one.act, one.value
        written = {field: form.format(s=kept.subject, v=value, key=key) for field, form in SLOTS[key].items()}
        entities, relations = names_of_value(key, value, kept.subject)
        is_home = (act, key) == ("states", "home_city")  # which may be a part of another one
        fields = {
            "key": key,
            "value": value,
            "single_valued": is_single_valued(key),
            "importance": IMPORTANCE_OF_CATEGORY[written["importance_category"]],
            "certainty": "weak" if act == "suggests" else "strong" if is_home else "explicit",
            "action_hint": "update" if act == "changes" else "new",
            "valid_until": None,
            "entities": entities,
            "relations": relations,
        }
        yield kept.model_copy(update=written | fields)
    if not fills or not all(one.is_whole and one in fills for one in statements):
        yield kept


def _kept_fact(said: str, speaker: str, at: datetime, statements: Sequence[SlotStatement]) -> ExtractedFact:
    """A sentence as a transcript has it, with the dates that its words for times mean, its names, and what it ends.

    It holds from the time that it names, be it past or ahead, and until a time only where it says "until".
    """
    words, times, is_english = plain(said), find_times(plain(said), at), read.is_english(said)
    at_times = [one for one in times if one.role != "until" and not one.first <= at.date() <= one.last]
    begins = [one.start(at) for one in at_times if one.last < at.date() or "," not in said[: one.span[0]]]
    ends = [one.end(at) for one in times if one.role == "until" and one.last >= at.date()]
    acts = [one for one in statements if one.act not in FILLS]
    is_over = bool(acts) or (is_english and bool(WORDS["ended"].search(words)))
    certainty: Certainty = "weak" if WORDS["doubt"].search(words) else "explicit"
    ended = [(min(one.keys), one.value) for one in acts if one.act == "ends" and len(one.keys) == 1]
    over = [one for key, value in ended for one in names_of_value(key, value, speaker)[1]]
    named = sentence_entities(words, speaker) if is_english else ()
    missing = {one.object for one in over} - {one.name for one in named}
    text = f"{speaker}: {noted(said, times)}"
    return ExtractedFact(
        text=text,
        excerpt=said,
        search_text=text,
        category="health" if WORDS["health"].search(words) else "other",
        certainty=certainty,
        importance_category="specific_event",
        importance=IMPORTANCE_OF_CATEGORY["specific_event"],
        subject=speaker,
        action_hint="retract" if is_over else "new",
        event_time=begins[0] if begins else None,
        valid_until=ends[-1] if ends and (not begins or begins[0] < ends[-1]) else None,
        entities=(*named, *(NamedEntity(name=name) for name in sorted(missing)))[:MAX_ENTITIES],
        relations=tuple(over),
    )
