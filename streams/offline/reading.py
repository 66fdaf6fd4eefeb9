"""Reading a turn by the rules: its clauses, their times and denials, and the facts that come of them."""

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from mnemolog.schemas.facts import IMPORTANCE_OF_CATEGORY, Certainty, ExtractedFact
from mnemolog.schemas.policy import is_single_valued
from mnemolog.schemas.turn import Message, Turn
from mnemolog.streams.offline.clauses import Clause, clauses, plain
from mnemolog.streams.offline.dates import When, find_time
from mnemolog.streams.offline.english import (
    affirmed,
    denied,
    in_plural,
    others_pronouns,
    slug,
    third_person,
    tool_slot,
)
from mnemolog.streams.offline.others import Other, about_other
from mnemolog.streams.offline.patterns.general import GENERAL, ITSELF
from mnemolog.streams.offline.patterns.grammar import APPOSITION, OF_PEOPLE, OF_STRANGERS, OF_THINGS, OWN
from mnemolog.streams.offline.phrasing import rephrased
from mnemolog.streams.offline.rule import Rule
from mnemolog.streams.offline.vocabulary import ANIMAL, KIN

UNKNOWN_SPEAKER = "The user"
_AHEAD = re.compile(
    r"\bI (?:am|will|need|have|want|must|plan|intend|hope)\b(?! (?:been|had|moved|left|started|bought))|\bremind me\b"
    r"|^(?:my|our|the) [\w' -]+ (?:is|ends?|expires?|runs?|finish(?:es)?|terminates?)\b",
    re.IGNORECASE,
)
_TAIL = re.compile(r",| and ")
_DATED = re.compile(r"^(?:my birthday|I was born)\b", re.IGNORECASE)
_REPEATED = re.compile(r"\b(?:every|each)\b", re.IGNORECASE)
_ASIDE = re.compile(r",? (?:with|because|near|where|which|who|when|since|until|as of|for (?!the\b))\b.*$")
_TO_SOMEBODY = re.compile(r"\byou(?:r|rs|rself)?\b", re.IGNORECASE)
_PERSON = re.compile(
    rf"\b(?:{KIN}|{ANIMAL}|parents?|kids?|children|eldest|youngest|baby|twins?|family)\b", re.IGNORECASE
)
_CLOSING = frozenset({"until", "till", "by", "before"})
_NEEDS = {"need": "needs to", "have": "has to", "have got": "has to", "want": "wants to", "must": "must"}
_ENDED = {"given away": "gave away", "given up": "gave up", "canceled": "cancelled", "cancelled": "cancelled"}
_LIKES = {"fond": "is fond of", "fan": "likes", "cannot stand": "hates"}


def read_turn(turn: Turn) -> tuple[ExtractedFact, ...]:
    """The facts that the user's messages state, in their order, each text once."""
    facts: dict[str, ExtractedFact] = {}
    for message in turn.messages:
        if message.role == "user":
            for fact in _read_message(message, turn):
                facts.setdefault(fact.text, fact)
    return tuple(facts.values())


def _read_message(message: Message, turn: Turn) -> Iterator[ExtractedFact]:
    last: Other | None = None
    for clause in clauses(message.content):
        speaker = " ".join((clause.speaker or message.name or turn.speaker or UNKNOWN_SPEAKER).split())
        words = rephrased(clause.words)
        other = about_other(words, speaker, last)
        last = other[0] if other else last
        yield from read_clause(replace(clause, words=words), speaker, turn.occurred_at, other)


def read_clause(clause: Clause, speaker: str, at: datetime, other: tuple[Other, str] | None) -> Iterator[ExtractedFact]:
    """At most two facts: the name of a relative in passing ("my wife Ana"), and what the clause itself says."""
    named_already = other is not None and other[0].noun and other[0].named
    if not named_already and (match := APPOSITION.pattern.search(clause.excerpt)):
        yield _fact(APPOSITION, match, clause, speaker, None)
    if own := tuple(_stated(OWN, clause, speaker, at)):
        yield from own
    elif other:
        about, said = other
        for fact in _stated(_rules_of(about), replace(clause, words=rephrased(said)), about.subject, at):
            yield _of_other(fact, about)
    else:
        yield from _stated(GENERAL, clause, speaker, at)


def _rules_of(other: Other) -> tuple[Rule, ...]:
    if not other.known:
        return OF_STRANGERS
    return OF_PEOPLE if _PERSON.search(other.noun) or not other.noun else OF_THINGS


def _of_other(fact: ExtractedFact, other: Other) -> ExtractedFact:
    """What is said of others fills none of the speaker's slots, but one of theirs."""
    key = slug(f"{other.noun or fact.subject} {fact.key}".removesuffix(f" {ITSELF}")) or None if fact.key else None
    single = fact.single_valued or is_single_valued(fact.key)
    category = "relationship" if fact.category not in ("other", "task_context") else fact.category
    text = _plural(fact.text, other) if other.plural else fact.text
    return fact.model_copy(
        update={
            "text": text,
            "search_text": text + fact.search_text.removeprefix(fact.text),
            "key": key,
            "single_valued": single and key is not None,
            "category": category,
        }
    )


def _plural(text: str, other: Other) -> str:
    """The text with its verb as many have it: "Ana's parents live"."""
    verb, _, rest = text.removeprefix(other.subject).strip().partition(" ")
    return f"{other.subject} {in_plural(verb)} {rest}"


def _stated(rules: tuple[Rule, ...], clause: Clause, subject: str, at: datetime) -> Iterator[ExtractedFact]:
    words, when = _timed(clause.words, at)
    for said in dict.fromkeys((words, _TAIL.split(words, maxsplit=1)[0])):
        facts = tuple(_read_words(rules, said, when, clause, subject))
        if facts:
            yield from facts
            return


def _read_words(
    rules: tuple[Rule, ...], words: str, when: When | None, clause: Clause, subject: str
) -> Iterator[ExtractedFact]:
    if found := _first_match(rules, words, when):
        yield _fact(*found, clause, subject, when)
    elif denial := affirmed(words):
        positive, how = denial
        if (found := _first_match(rules, positive, when)) and found[0].deniable:
            yield from _denial(_fact(*found, clause, subject, when), clause, how, subject)


def _timed(words: str, at: datetime) -> tuple[str, When | None]:
    """The clause without its words of time, and the time."""
    if _DATED.match(words) or _REPEATED.search(words):
        return words, None
    when = find_time(words, at, future=bool(_AHEAD.search(words)))
    if not when:
        return words, None
    start, end = when.span
    return plain(f"{words[:start].rstrip(' ,')} {words[end:].lstrip(' ,')}"), when


def _first_match(rules: tuple[Rule, ...], words: str, when: When | None) -> tuple[Rule, re.Match[str]] | None:
    if _TO_SOMEBODY.search(words):
        return None
    for candidate in rules:
        if (when or not candidate.timed) and (match := candidate.pattern.match(words)):
            return candidate, match
    return None


def _fact(rule: Rule, match: re.Match[str], clause: Clause, subject: str, when: When | None) -> ExtractedFact:
    slots = _slots(match, subject)
    text = " ".join(rule.text.format_map(slots).removesuffix(".").split())
    text = f"{text} {_time_words(rule, when, clause)}." if when else f"{text}."
    if clause.meanwhile:
        text = f"{text.removesuffix('.')} {others_pronouns(clause.meanwhile)}."
    about = rule.about.format_map(slots)
    certainty: Certainty = "weak" if "doubtful" in clause.marks else "explicit"
    key = slug(rule.key.format_map(slots)) or None if rule.key and not _passes(rule, clause) else None
    return ExtractedFact(
        text=text,
        excerpt=clause.excerpt,
        search_text=f"{text} {about}".strip(),
        key=key,
        value=_ASIDE.sub("", rule.value.format_map(slots)).strip() or None,
        single_valued=rule.single and key is not None,
        category=rule.category,
        importance_category=rule.importance,
        importance=IMPORTANCE_OF_CATEGORY[rule.importance],
        certainty=certainty,
        subject=rule.whom.format_map(slots),
        event_time=when.start if when and _begins(rule, when) else None,
        valid_until=when.end if when and _ceases(rule, when, clause) else None,
        action_hint=rule.hint,
    )


def _passes(rule: Rule, clause: Clause) -> bool:
    """Whether a state holds for a while only, so that it fills no slot. A change stays one whenever it happened."""
    return "passing" in clause.marks and rule.hint == "new"


def _begins(rule: Rule, when: When) -> bool:
    """A plan or an announced end has not happened: its statement is true from when it is said, until its time."""
    return when.preposition not in _CLOSING and not rule.planned


def _ceases(rule: Rule, when: When, clause: Clause) -> bool:
    if when.preposition in ("since", "from"):
        return False
    return (
        rule.planned or when.preposition in _CLOSING or (_passes(rule, clause) and rule.importance != "specific_event")
    )


def _time_words(rule: Rule, when: When, clause: Clause) -> str:
    """A state began at its time and goes on; an event or a plan has its place there."""
    if rule.planned and rule.hint == "retract":
        return f"{'on' if when.label[:1].isdigit() else 'in'} {when.label}"
    if (
        _passes(rule, clause)
        or rule.planned
        or rule.importance == "specific_event"
        or when.preposition not in ("on", "in")
    ):
        return when.words
    return f"since {when.label}"


def _slots(match: re.Match[str], subject: str) -> dict[str, str]:
    groups = {"v": "", "x": "", "old": "", "a": "", "many": "", "how": ""}
    for name, said in match.groupdict().items():
        if said is not None:
            groups[name.rstrip("0123456789")] = others_pronouns(said.strip())
    v, x, old = groups["v"], groups["x"], groups["old"]
    tool = slug(x) or tool_slot(v)
    return groups | {
        "s": subject,
        "p": f"{subject}'s",
        "rest": third_person(re.sub(r"^I ", "", match[0])),
        "v_or_x": v or x,
        "at_x": x and f" at {x}",
        "to_x": x and f" to {x}",
        "as_x": x and f" {groups['how']} their {x}",
        "over_old": old and f" to {old}",
        "job": f"{'an' if v[:1].lower() in set('aeiou') else 'a'} {v}",
        "called_x": x and f" called {x}",
        "called_v": v and f" called {v}",
        "needs": _NEEDS.get(x.lower(), "wants to be reminded to"),
        "likes": _LIKES.get(x.lower(), f"{x.lower()}s"),
        "uses": "uses" if tool or not old else "switched to",
        "switched": old and (f" (switched from {old})" if tool else f" from {old}"),
        "ended": _ENDED.get(x.lower(), x.lower()),
        "tool": tool,
        "tool_words": tool.replace("_", " ") or "tool",
    }


def _denial(fact: ExtractedFact, clause: Clause, how: str, subject: str) -> Iterator[ExtractedFact]:
    """The fact denied. It leaves its slot: nothing fills it."""
    kind = "no longer" if "ended" in clause.marks or "no longer" in how else "never" if "never" in how else "not"
    predicate = denied(fact.text.removeprefix(subject).removesuffix(".").strip(), kind)
    if predicate is None:
        return
    text = f"{subject} {predicate}".rstrip() + "."
    yield fact.model_copy(
        update={
            "text": text,
            "search_text": text + fact.search_text.removeprefix(fact.text),
            "key": None,
            "value": f"{kind} {fact.value}" if fact.value else None,
            "action_hint": "new" if kind == "not" and "corrected" not in clause.marks else "retract",
        }
    )
