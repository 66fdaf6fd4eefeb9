"""From a turn to its facts without a model: each sentence that states something, in its own words."""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from mnemolog.schemas.entities import MAX_ENTITIES, MAX_NAME, EntityType, NamedEntity
from mnemolog.schemas.facts import IMPORTANCE_OF_CATEGORY, Certainty, ExtractedFact
from mnemolog.schemas.policy import is_single_valued
from mnemolog.schemas.stored import EarlierMessage
from mnemolog.schemas.turn import Message, Turn
from mnemolog.streams.entities import names
from mnemolog.streams.llm.evidence import with_questions
from mnemolog.streams.llm.extract_reply import names_of_value
from mnemolog.streams.offline import sentences as read
from mnemolog.streams.text.differences import is_user_word
from mnemolog.streams.text.short_answers import sentences_of, short_answer
from mnemolog.streams.text.times import find_times, noted
from mnemolog.streams.text.tokens import DATES, SENTENCE_STARTERS, SMALL_WORDS, comparable_text, without_texts

_INTRODUCED: Final = re.compile(
    rf"(?<!\w)(?i:{names.WORDS['my']}) (?P<tie>(?i:{names.TIE})) "
    rf"(?:(?P<called>{names.WORDS['called']})|{names.WORDS['is']}) "
    rf"(?P<name>(?P<title>(?:{names.WORDS['titles']})\.? )?{names.NAME}(?: {names.NAME})?)"
)
_OWNED: Final = re.compile(rf"(?<!\w){names.NAME}(?:'s|(?<=s)') (?i:{names.TIE})(?!\w|'s)(?: {names.NAME})?")
_MARK: Final = rf"(?:(?i:{names.WORDS['another']})|(?:{names.WORDS['titles']})\.?) "
_BARE: Final = re.compile(rf"(?:^\W*|(?<=[\w,] ))(?P<name>(?P<mark>{_MARK})?{names.NAME}(?: {names.NAME}){{0,2}})")
_NO_NAMES: Final = (
    SMALL_WORDS | SENTENCE_STARTERS | names.PRONOUNS | DATES.keys() | frozenset(names.WORDS["no_names"].split("|"))
)
_Found = tuple[str, str, EntityType]  # the words that name somebody or something, and the name
UNKNOWN_SPEAKER: Final = "The user"
MAX_FACTS: Final = 100  # of a turn
_MAX_FOLLOW_UP: Final = 3  # words of a question that asks the one before it again: "And seriously?"
_MAX_ANSWER: Final = 8  # words of an answer that is kept with its question


def read_turn(turn: Turn, earlier: Sequence[EarlierMessage] = ()) -> tuple[list[ExtractedFact], list[read.Sentence]]:
    """The facts that the user's messages state, each text once, and the sentences that became none.

    `earlier` is what was said before the turn, the oldest first: its last message may ask what the turn answers.
    """
    facts: dict[str, ExtractedFact] = {}
    omitted: list[read.Sentence] = []
    before = "\n".join(one.content for one in earlier if one.role == "assistant")
    recalled = [text for text in map(comparable_text, turn.recalled) if text]
    for message, asked in with_questions(turn, earlier):
        speaker = " ".join((message.name or turn.speaker or UNKNOWN_SPEAKER).split())
        found = read.sentences(message.content, speaker) if message.role == "user" else []
        is_in_doubt = bool(read.WORDS["wording"].search(message.content))
        is_other = is_in_doubt or _is_in_frame([*earlier, *turn.messages], message)
        plain = None if is_other else read.message_statements(message.content, found, turn.occurred_at)
        before = f"{before}\n{asked}"
        for place, sentence in enumerate(found):
            words, is_short = comparable_text(sentence.text), bool(short_answer(sentence.text))
            reason = sentence.omitted or ("quotation" if without_texts(words, recalled) != words else None)
            may_answer = "?" in asked and not place and (not reason or is_short)
            if may_answer and (answer := _answer(before, sentence.text, speaker, turn.occurred_at)):
                facts.setdefault(answer.text, answer)
            elif reason or is_short:
                omitted.append(read.Sentence(text=sentence.text, omitted=reason or "undecided"))
            else:
                is_held = is_in_doubt or (plain is None and read.slot_statements(sentence.text, turn.occurred_at))
                ended = () if plain or is_other else read.doubts(sentence.text, turn.occurred_at)
                for fact in _read_sentence(sentence.text, speaker, turn.occurred_at, plain[place] if plain else ended):
                    held = {"certainty": "weak", "action_hint": "new"} if is_held and not ended else {}
                    facts.setdefault(fact.text, fact.model_copy(update=held))
    kept = list(facts.values())
    omitted += [read.Sentence(text=fact.excerpt, omitted="too_long") for fact in kept[MAX_FACTS:]]
    return kept[:MAX_FACTS], omitted


def _is_in_frame(messages: Sequence[EarlierMessage | Message], message: Message) -> bool:
    """Whether another message of the conversation may give the words of `message` to somebody else."""
    answers_of = zip(
        messages, ["", *(one.content if one.role == "assistant" else "" for one in messages)], strict=False
    )
    return any(
        read.WORDS["wording"].search(one.content)
        or (
            one.role == "user"
            and not ("?" in before and len(one.content.split()) <= _MAX_ANSWER)
            and read.may_give_voice(one.content)
        )
        for one, before in answers_of
        if one is not message
    )


def _answer(asked: str, said: str, speaker: str, at: datetime) -> ExtractedFact | None:
    """A short answer with its question; None for other sentences, which say something themselves."""
    asks = read.WORDS["asks_the_user"].match
    questions = [one.rpartition(": ")[2] for one in sentences_of(read.plain(asked)) if "?" in one]
    while len(questions) > 1 and len(questions[-1].split()) <= _MAX_FOLLOW_UP and not asks(questions[-1]):
        questions.pop()
    question = questions[-1].strip(" ?!.\"'") if questions else ""
    words, kind = read.plain(said), short_answer(said)
    is_long = len(words.split()) > _MAX_ANSWER or read.WORDS["self"].search(words) or read.reason_not_stated(words)
    is_open = kind == "open" or "?" in said or (kind is None and is_long)
    if is_open or not asks(question):
        return None
    text = f'{speaker}, asked "{question}?": {said}'
    read_as = {"text": text, "search_text": text, "action_hint": "retract" if kind == "no" else "new"}
    return _kept_fact(said, speaker, at, ()).model_copy(update=read_as)


def _read_sentence(
    said: str, speaker: str, at: datetime, statements: Sequence[read.SlotStatement]
) -> Iterator[ExtractedFact]:
    """The slots that a sentence fills, and where it says more than these the sentence in its own words."""
    kept = _kept_fact(said, speaker, at, statements)
    fills = [one for one in statements if one.act in read.FILLS]
    for one in fills:
        (key,) = one.keys
        form, words, category, importance = read.SLOTS[key]
        text = form.format(s=kept.subject, v=one.value, key=key)
        entities, relations = names_of_value(key, one.value, kept.subject)
        is_home = (one.act, key) == ("states", "home_city")  # which may be a part of another one
        fields = {
            "text": text,
            "search_text": f"{text} {words}",
            "category": category,
            "importance_category": importance,
            "importance": IMPORTANCE_OF_CATEGORY[importance],
            "key": key,
            "value": one.value,
            "single_valued": is_single_valued(key),
            "certainty": "strong" if is_home else "explicit",
            "action_hint": "update" if one.act == "changes" else "new",
            "valid_until": None,
            "entities": entities,
            "relations": relations,
        }
        yield kept.model_copy(update=fields)
    if not fills or not all(one.is_whole and one in fills for one in statements):
        yield kept


def _kept_fact(said: str, speaker: str, at: datetime, statements: Sequence[read.SlotStatement]) -> ExtractedFact:
    """A sentence as a transcript has it, with the dates that its words for times mean, its names, and what it ends.

    It holds from the time that it names, be it past or ahead, and until a time only where it says "until".
    """
    words, times, is_english = read.plain(said), find_times(read.plain(said), at), read.is_english(said)
    at_times = [one for one in times if one.role != "until" and not one.first <= at.date() <= one.last]
    begins = [one.start(at) for one in at_times if one.last < at.date() or "," not in said[: one.span[0]]]
    ends = [one.end(at) for one in times if one.role == "until" and one.last >= at.date()]
    acts = [one for one in statements if one.act not in read.FILLS]
    is_over = bool(acts) or (is_english and bool(read.WORDS["ended"].search(words)))
    certainty: Certainty = "weak" if read.WORDS["doubt"].search(words) else "explicit"
    ended = [(min(one.keys), one.value) for one in acts if one.act == "ends" and len(one.keys) == 1]
    over = [one for key, value in ended for one in names_of_value(key, value, speaker)[1]]
    named = sentence_entities(words, speaker) if is_english else ()
    missing = {one.object for one in over} - {one.name for one in named}
    text = f"{speaker}: {noted(said, times)}"
    known = {read.SLOTS[min(one.keys)][0].format(s=speaker, v=one.value, key=min(one.keys)) for one in acts}
    return ExtractedFact(
        text=text,
        excerpt=said,
        search_text=" ".join([text, *sorted(known)]),  # finds what it ends
        category="health" if read.WORDS["health"].search(words) else "other",
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


def sentence_entities(said: str, subject: str | None) -> tuple[NamedEntity, ...]:
    """The entities that a sentence names, each once: those with a tie, an origin or a title, then bare names."""
    found: dict[str, NamedEntity] = {}
    rest = said
    for find in (_tied, _bare):
        for words, name, kind in find(rest, subject):
            rest = rest.replace(words, " , ")  # the words after it stand inside the sentence
            if len(name) <= MAX_NAME:
                is_bare = find is _bare
                found.setdefault(name, NamedEntity(name=name, type=kind, role="mention" if is_bare else "object"))
    return tuple(found.values())[:MAX_ENTITIES]


def _tied(said: str, subject: str | None) -> Iterator[_Found]:
    for match in _INTRODUCED.finditer(said):
        tie, is_sure = names.tie_of(match), match["called"] or match["title"]  # "my boss is German"
        if names.TIE_TYPES[tie] != "group" and (is_sure or _is_first_name(match["name"].partition(" ")[0])):
            whose = f"{subject}'s" if subject else "my"
            said = said.replace(match[0], " , ")
            yield match[0], f"{whose} {match['tie']} {match['name']}", names.TIE_TYPES[tie]
    for tie, words in names.ties_in(said):
        yield words, names.with_owner(words, subject), names.TIE_TYPES[tie]
    for match in _OWNED.finditer(said):
        yield match[0], match[0], names.TIE_TYPES[names.tie_of(match)]
    for words in names.names_with_origin(said):
        if words.partition(" ")[0].casefold() not in _NO_NAMES:
            yield words, words, "person"


def _bare(said: str, _: str | None) -> Iterator[_Found]:
    """Names inside a sentence; at its beginning a known first name, or two words with capitals that no verb is of."""
    for match in _BARE.finditer(said):
        first, *others = words = match["name"].split()
        if not (match["mark"] or said[: match.start("name")].strip(" \"'(") or _is_first_name(first)):
            is_verb = first.casefold() in _NO_NAMES or first.endswith(("ed", "ing"))
            words = words if others and not is_verb and not _is_first_name(others[0]) else others
        name = " ".join(words)
        if name and not is_user_word(name) and DATES.keys().isdisjoint(name.casefold().split()):
            is_person = len(words) > 1 and _is_first_name(words[0])  # "Rex" alone may be a dog
            yield name, name, "place" if name.casefold() in read.PLACES else "person" if is_person else "other"


def _is_first_name(word: str) -> bool:
    return word.casefold() not in _NO_NAMES and bool(names.forms_of(names.name_key(word)))
