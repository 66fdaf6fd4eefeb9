"""Reading a turn by the rules: its clauses, their times and denials, and the facts that come of them."""

import re
from collections.abc import Iterator
from datetime import datetime

from schemas.facts import IMPORTANCE, Certainty, ExtractedFact
from schemas.turn import Message, Turn
from streams.providers.rules.clauses import Clause, clauses, plain
from streams.providers.rules.dates import When, find_time
from streams.providers.rules.english import affirmed, denied, others_pronouns, slug, third_person, tool_slot
from streams.providers.rules.grammar import APPOSITION, RULES
from streams.providers.rules.rule import Rule

UNKNOWN_SPEAKER = "The user"
_AHEAD = re.compile(
    r"\bI (?:am|will|need|have|want|must|plan|intend|hope)\b(?! (?:been|had|moved|left|started|bought))|\bremind me\b"
    r"|^my [\w' -]+ is\b",
    re.IGNORECASE,
)
_DATED = re.compile(r"^(?:my birthday|I was born)\b", re.IGNORECASE)
_REPEATED = re.compile(r"\b(?:every|each)\b", re.IGNORECASE)
_ASIDE = re.compile(r",? (?:with|because|near|where|which|who|when|since|until|as of|for (?!the\b))\b.*$")
_TO_SOMEBODY = re.compile(r"\byou(?:r|rs|rself)?\b", re.IGNORECASE)
_CLOSING = frozenset({"until", "till", "by", "before"})
_NEEDS = {"need": "needs to", "have": "has to", "have got": "has to", "want": "wants to", "must": "must"}
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
    for clause in clauses(message.content):
        subject = clause.speaker or message.name or turn.speaker or UNKNOWN_SPEAKER
        yield from read_clause(clause, " ".join(subject.split()), turn.occurred_at)


def read_clause(clause: Clause, subject: str, at: datetime) -> Iterator[ExtractedFact]:
    """At most two facts: the name of a relative in passing ("my wife Ana"), and what the clause itself says."""
    if match := APPOSITION.pattern.search(clause.excerpt):
        yield _fact(APPOSITION, match, clause, subject, None)
    words, when = _timed(clause.words, at)
    if found := _first_match(words, when):
        yield _fact(*found, clause, subject, when)
    elif denial := affirmed(words):
        positive, how = denial
        if (found := _first_match(positive, when)) and found[0].deniable:
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


def _first_match(words: str, when: When | None) -> tuple[Rule, re.Match[str]] | None:
    if _TO_SOMEBODY.search(words):
        return None
    for candidate in RULES:
        if (when or not candidate.timed) and (match := candidate.pattern.match(words)):
            return candidate, match
    return None


def _fact(rule: Rule, match: re.Match[str], clause: Clause, subject: str, when: When | None) -> ExtractedFact:
    slots = _slots(match, subject)
    text = " ".join(rule.text.format_map(slots).removesuffix(".").split())
    text = f"{text} {_time_words(rule, when)}." if when else f"{text}."
    about = rule.about.format_map(slots)
    certainty: Certainty = "weak" if "doubtful" in clause.marks else "explicit"
    return ExtractedFact(
        text=text,
        excerpt=clause.excerpt,
        search_text=f"{text} {about}".strip(),
        key=slug(rule.key.format_map(slots)) or None if rule.key else None,
        value=_ASIDE.sub("", rule.value.format_map(slots)).strip() or None,
        category=rule.category,
        importance_category=rule.importance,
        importance=IMPORTANCE[rule.importance],
        certainty=certainty,
        subject=subject,
        event_time=when.start if when and when.preposition not in _CLOSING else None,
        valid_until=when.end if when and (rule.planned or when.preposition in _CLOSING) else None,
        action_hint=rule.hint,
    )


def _time_words(rule: Rule, when: When) -> str:
    """A state began at its time and goes on; an event or a plan has its place there."""
    if rule.planned or "{rest}" in rule.text or when.preposition not in ("on", "in"):
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
        "tool": tool,
        "tool_words": tool.replace("_", " ") or "tool",
    }


def _denial(fact: ExtractedFact, clause: Clause, how: str, subject: str) -> Iterator[ExtractedFact]:
    """The fact denied. It leaves its slot: nothing fills it."""
    kind = "no longer" if "ended" in clause.marks else "never" if "never" in how else "not"
    predicate = denied(fact.text.removeprefix(subject).strip(), kind)
    if predicate is None:
        return
    text = f"{subject} {predicate}"
    yield fact.model_copy(
        update={
            "text": text,
            "search_text": text + fact.search_text.removeprefix(fact.text),
            "key": None,
            "value": f"{kind} {fact.value}" if fact.value else None,
            "action_hint": "new" if kind == "not" and "corrected" not in clause.marks else "retract",
        }
    )
