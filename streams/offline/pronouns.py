"""Whom "he", "she" or "everyone calls her" means, where just one person that fits was named shortly before."""

import re
from collections.abc import Sequence
from typing import Final

from mnemolog.streams.entities.alias.aliases_in_text import is_another_name
from mnemolog.streams.entities.name_keys import name_key
from mnemolog.streams.entities.relations_in_text import workplaces_and_homes
from mnemolog.streams.entities.short_forms import forms_of
from mnemolog.streams.offline.sentences import plain
from mnemolog.streams.text.word_lists import CITIES, COUNTRIES, DATES, REGIONS, SENTENCE_STARTERS, SMALL_WORDS

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
    """Whom the pronoun means that is the subject of `sentence` ("Alice's sister Ana"), by the sentences `before` it.

    None where it begins with no "he" or "she" and gives neither a name; and where nobody, or more than one, may be
    meant.
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
    """A sentence that begins with a pronoun, as it would name whom it means: "My sister Ana moved to Bern."."""
    whom = person.removeprefix(f"{speaker}'s ")
    return _SUBJECT.sub(lambda _: f"My {whom}", plain(sentence), count=1)


def name_given(sentence: str) -> str | None:
    """The other name that a sentence gives whom its pronoun means: "Everyone calls her Bee"."""
    match = _CALLED.match(plain(sentence))
    return match["alias"] if match and is_another_name(match["alias"]) else None


def with_person(text: str, person: str) -> str:
    """A text whose first pronoun is explained: "She (Alice's sister Ana) moved to Bern."."""
    return re.sub(r"\b(she|he|her|him)\b", lambda found: f"{found[0]} ({person})", text, count=1, flags=re.IGNORECASE)


def _name_of(relative: re.Match[str]) -> str:
    """The name that a relative has; what one "is" is a name only where it is a common one: "my wife is German"."""
    called = relative["called"] or ""
    is_name = relative["is_called"] or forms_of(name_key(called).partition(" ")[0])
    return relative["name"] or (called if is_name else "")


def _may_be_person(word: str, known: set[str]) -> bool:
    """Whether a word with a capital may name somebody else."""
    small = word.casefold()
    is_common = small in SENTENCE_STARTERS or small in SMALL_WORDS or small in _COMMON
    return not (word in known or is_common or small in DATES or small in CITIES | COUNTRIES | REGIONS)
