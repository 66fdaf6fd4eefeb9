"""From a turn to its facts without a model: each sentence that states something, in its own words."""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from mnemolog.schemas.entities import MAX_ENTITIES, MAX_NAME, EntityType, NamedEntity, Role
from mnemolog.schemas.facts import ExtractedFact
from mnemolog.schemas.stored import EarlierMessage
from mnemolog.schemas.turn import Turn
from mnemolog.streams.entities import names
from mnemolog.streams.llm.evidence import with_questions
from mnemolog.streams.llm.extract_reply import MAX_FACTS, names_of_value
from mnemolog.streams.offline import sentences as read
from mnemolog.streams.text.differences import is_user_word
from mnemolog.streams.text.short_answers import sentences_of, short_answer
from mnemolog.streams.text.times import find_times, noted
from mnemolog.streams.text.tokens import (
    DATES,
    PLACES,
    SENTENCE_STARTERS,
    SMALL_WORDS,
    comparable_text,
    typewriter_quotes,
    without_texts,
)

_INTRODUCED: Final = re.compile(
    rf"(?<!\w)(?i:{names.WORDS['my']}) (?P<tie>(?i:{names.TIE})) "
    rf"(?:(?P<called>{names.WORDS['called']})|{names.WORDS['is']}) "
    rf"(?P<name>(?P<title>(?:{names.WORDS['titles']})\.? )?{names.NAME}(?: {names.NAME})?)"
)
_OWNED: Final = re.compile(rf"(?<!\w){names.NAME}(?:'s|(?<=s)') (?i:{names.TIE})(?!\w|'s)(?: {names.NAME})?")
_MARK: Final = rf"(?:(?i:{names.WORDS['another']})|(?:{names.WORDS['titles']})\.?) "
_BARE: Final = re.compile(rf"(?:^\W*|(?<=[\w,] ))(?P<name>(?P<mark>{_MARK})?{names.NAME}(?: {names.NAME}){{0,2}})")
_NO_NAMES: Final = SMALL_WORDS | SENTENCE_STARTERS | names.PRONOUNS | {*DATES, *names.WORDS["no_names"].split("|")}
UNKNOWN_SPEAKER: Final = "The user"


def read_turn(turn: Turn, earlier: Sequence[EarlierMessage] = ()) -> tuple[list[ExtractedFact], list[read.Sentence]]:
    """The facts that the user's messages state, each text once, and the sentences that became none.

    `earlier` is what was said before the turn, the oldest first: the turn may answer it, or take it back.
    """
    facts: dict[str, ExtractedFact] = {}
    omitted: list[read.Sentence] = []
    at, sitting, again = turn.occurred_at, timedelta(hours=1), {one.content for one in turn.messages}
    talk: list[Any] = [*(one for one in earlier if at - one.at <= sitting and one.content not in again), *turn.messages]
    shown = ["", *(one.content if one.role == "assistant" else "" for one in talk)]
    frames = [read.may_give_voice(one.role, one.content, before) for one, before in zip(talk, shown, strict=False)]
    recalled = [text for text in map(comparable_text, turn.recalled) if text]
    for message, asked in with_questions(turn, earlier):
        speaker = " ".join((message.name or turn.speaker or UNKNOWN_SPEAKER).split())
        found = read.sentences(message.content, speaker) if message.role == "user" else []
        said = [() if one.omitted else read.slot_statements(one.text, at) for one in found]
        place = [one is message for one in talk].index(True)
        is_about_text = bool(read.WORDS["wording"].search(message.content))
        is_of_user = not (is_about_text or any(frames[:place] + frames[place + 1 :]))
        is_plain = is_of_user and read.are_plain(message.content, found, said)
        own = [one.content for one in talk[:place] if one.role == "user" and (one.name or speaker) == speaker]
        for sentence, statements in zip(found, said, strict=True):
            words, is_short = comparable_text(sentence.text), short_answer(sentence.text) is not None
            reason = sentence.omitted or ("quotation" if without_texts(words, recalled) != words else None)
            about, fields = _reference(sentence.text, reason, asked, own) if sentence is found[0] else ("", {})
            if (reason or is_short) and not about:
                omitted.append(read.Sentence(sentence.text, reason or "undecided"))
                continue
            does = statements if is_plain else read.doubts(sentence.text, at) if is_of_user and not about else ()
            if not (does or about) and (is_about_text or any(one.keys for one in statements)):
                fields = {"certainty": "weak", "action_hint": "new"}
            for fact in _slot_facts(_kept_fact(sentence.text, speaker, about, at, does), does):
                facts.setdefault(fact.text, fact.model_copy(update=fields))
    kept = list(facts.values())
    return kept[:MAX_FACTS], [*omitted, *(read.Sentence(one.excerpt, "too_long") for one in kept[MAX_FACTS:])]


def _reference(said: str, reason: str | None, asked: str, own: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """What the first sentence of a message refers to, as its fact says it: a question, or what the user takes back.

    The last of `own` is taken back: surely if it makes one statement and nothing else, and nobody has spoken since.
    """
    words, kind = typewriter_quotes(said), short_answer(said)
    if own and read.WORDS["takes_back"].match(words):
        before = [one for one in read.sentences(own[-1]) if one.omitted != "greeting"]
        if stated := " ".join(one.text for one in before if not one.omitted)[: read.MAX_SENTENCE]:
            is_sure = len(before) == 1 and not asked
            return f', after "{stated}"', {"action_hint": "retract", "certainty": "explicit" if is_sure else "weak"}
    question = next((one for one in reversed([*sentences_of(typewriter_quotes(asked))]) if "?" in one), "")
    question = question.rpartition(": ")[2].strip(" ?!.\"'")
    says_itself = reason or len(words.split()) > read.MAX_ANSWER or read.WORDS["self"].search(words) or "?" in said
    if kind == "open" or (kind is None and says_itself) or not read.WORDS["asks_the_user"].match(question):
        return "", {}
    return f', asked "{question}?"', {"action_hint": "retract" if kind == "no" else "new"}


def _slot_facts(kept: ExtractedFact, does: Sequence[read.SlotStatement]) -> Iterator[ExtractedFact]:
    """The slots that a sentence fills, and where it says more than these the sentence in its own words."""
    fills = [one for one in does if one.act in read.FILLS]
    for one in fills:
        key, (form, words, kind) = min(one.keys), read.SLOTS[min(one.keys)]
        text = form.format(s=kept.subject, v=one.value, key=key)
        entities, relations = names_of_value(key, one.value, kept.subject)
        fields = {
            "text": text,
            "search_text": f"{text} {words}",
            **kind,
            "key": key,
            "value": one.value,
            "certainty": "strong" if (one.act, key) == ("states", "home_city") else "explicit",  # may be a part
            "action_hint": "update" if one.act == "changes" else "new",
            "entities": entities,
            "relations": relations,
        }
        yield kept.model_copy(update=fields)
    if len(fills) < len(does) or not does:
        yield kept


def _kept_fact(said: str, speaker: str, about: str, at: datetime, does: Sequence[read.SlotStatement]) -> ExtractedFact:
    """A sentence as a transcript has it, with the dates that its words for times mean, and its names.

    It holds from the time that it names, be it past or ahead, and until a time only where it says "until".
    """
    words, times, is_english = typewriter_quotes(said), find_times(typewriter_quotes(said), at), read.is_english(said)
    at_times = [one for one in times if one.role != "until" and not one.first <= at.date() <= one.last]
    begins = [one.start(at) for one in at_times if one.last < at.date() or "," not in said[: one.span[0]]]
    ends = [one.end(at) for one in times if one.role == "until" and one.last >= at.date()]
    acts = [one for one in does if one.keys and one.act not in read.FILLS]
    is_over = bool(acts) or (is_english and bool(read.WORDS["ended"].search(words)))
    is_in_doubt = read.WORDS["doubt"].search(words) or any(one.act == "doubts" for one in acts)
    ended = [(min(one.keys), one.value) for one in acts if one.act == "ends" and len(one.keys) == 1]
    over = [relation for key, value in ended for relation in names_of_value(key, value, speaker)[1]]
    named = sentence_entities(words, speaker) if is_english else ()
    missing = {one.object for one in over} - {one.name for one in named}
    text = f"{speaker}{about}: {noted(said, times)}"
    known = {read.SLOTS[key][0].format(s=speaker, v=one.value, key=key) for one in acts for key in (min(one.keys),)}
    return ExtractedFact(
        text=text,
        excerpt=said,
        search_text=" ".join([text, *sorted(known)]),  # finds what it ends
        category="health" if read.WORDS["health"].search(words) else "other",
        certainty="weak" if is_in_doubt else "explicit",
        importance_category="specific_event",
        subject=speaker,
        action_hint="retract" if is_over else "new",
        event_time=begins[0] if begins else None,
        valid_until=ends[-1] if ends and (not begins or begins[0] < ends[-1]) else None,
        entities=(*named, *(NamedEntity(name=name) for name in sorted(missing)))[:MAX_ENTITIES],
        relations=tuple(over),
    )


def sentence_entities(said: str, subject: str | None) -> tuple[NamedEntity, ...]:
    """The entities that a sentence names, each once: those with a tie, an origin or a title, then bare names."""
    rest, tied = said, list[tuple[str, str, EntityType]]()
    for match in _INTRODUCED.finditer(said):
        tie, is_sure = names.tie_of(match), match["called"] or match["title"]  # "my boss is German"
        if names.TIE_TYPES[tie] != "group" and (is_sure or _is_first_name(match["name"].partition(" ")[0])):
            whose = f"{subject}'s" if subject else "my"
            tied.append((match[0], f"{whose} {match['tie']} {match['name']}", names.TIE_TYPES[tie]))
            rest = rest.replace(match[0], " , ")
    tied += [(words, names.with_owner(words, subject), names.TIE_TYPES[tie]) for tie, words in names.ties_in(rest)]
    tied += [(one[0], one[0], names.TIE_TYPES[names.tie_of(one)]) for one in _OWNED.finditer(rest)]
    tied += [
        (one, one, "person") for one in names.names_with_origin(rest) if one.split()[0].casefold() not in _NO_NAMES
    ]
    for words, _, _ in tied:
        rest = rest.replace(words, " , ")  # the words after it stand inside the sentence
    found: dict[str, NamedEntity] = {}
    for name, kind, role in (*((name, kind, "object") for _, name, kind in tied), *_bare(rest)):
        if len(name) <= MAX_NAME:
            found.setdefault(name, NamedEntity(name=name, type=kind, role=role))
    return tuple(found.values())[:MAX_ENTITIES]


def _bare(said: str) -> Iterator[tuple[str, EntityType, Role]]:
    """Names inside a sentence; at its beginning a known first name, or two words with capitals that no verb is of."""
    for match in _BARE.finditer(said):
        first, *others = words = match["name"].split()
        if not (match["mark"] or said[: match.start("name")].strip(" \"'(") or _is_first_name(first)):
            is_verb = first.casefold() in _NO_NAMES or first.endswith(("ed", "ing"))
            words = words if others and not is_verb and not _is_first_name(others[0]) else others
        name = " ".join(words)
        if name and not is_user_word(name) and DATES.keys().isdisjoint(name.casefold().split()):
            is_person = len(words) > 1 and _is_first_name(words[0])  # "Rex" alone may be a dog
            yield name, "place" if name.casefold() in PLACES else "person" if is_person else "other", "mention"


def _is_first_name(word: str) -> bool:
    return word.casefold() not in _NO_NAMES and bool(names.forms_of(names.name_key(word)))
