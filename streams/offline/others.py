"""Statements about somebody else: "my brother Tom lives in Rome" is "I live in Rome" of Ana's brother Tom."""

import re
from dataclasses import dataclass
from typing import Final

from mnemolog.streams.offline.english import first_person
from mnemolog.streams.offline.vocabulary import HABITS

_NAME: Final = r"(?-i:[A-Z][\w-]+(?: [A-Z][\w-]+)?)"
_TITLED: Final = rf"(?:(?:Mr|Mrs|Ms|Dr)\.? )?{_NAME}"
_HABIT: Final = "|".join(f"{verb}(?:e?s)?|{verb[:-1]}ies" for verb in sorted(HABITS))
_REST: Final = (
    r"(?P<rest>(?:no longer|never|always|usually|often|sometimes|only|is|are|has|have|does|do|goes|was|were|cannot"
    r"|will|moved|settled|relocated|left|quit|sold"
    rf"|retired|died|passed away|started|stopped|joined|became|got|bought|adopted|switched|meets|starts|ends"
    rf"|{_HABIT})\b.*)"
)
_NOUN: Final = r"(?-i:[a-z][\w-]*(?: [a-z][\w-]*){0,2}?)"
_FORMS: Final = tuple(
    re.compile(rf"^{pattern},? {_REST}$", re.IGNORECASE)
    for pattern in (
        rf"(?:my|our) (?P<noun>{_NOUN})(?:,? (?P<name>{_NAME}))?",
        rf"(?:my|our) (?P<thing>{_NAME})",
        rf"(?P<name>{_NAME}), (?:my|our) (?P<noun>{_NOUN})",
        rf"(?P<name>{_TITLED}) (?P<of>(?:from|at|in) [\w ]+?|next door)",
        rf"(?P<noun>grandpa|grandma|granny|aunt|auntie|uncle|cousin) (?P<name>{_NAME})",
        rf"(?P<name>{_TITLED})",
    )
)
_NO_NAMES: Final = re.compile(
    r"^(?:I|It|He|She|They|We|You|There|This|That|These|Those|What|Which|Who|Here|Everything|Everyone|Someone|Nobody"
    r"|No"
    r"|Today|Yesterday|Tomorrow|Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday|The|A|An|My|Our|Your|Only"
    r"|[A-Z]\w*ing)\b"
)
_OWNED: Final = re.compile(r"\b(?:my|our)\b", re.IGNORECASE)
_MANY: Final = re.compile(r"\b(?:children|people|twins|[a-z]{3,}(?<![su])s)$")
_PRONOUN: Final = re.compile(rf"^(?:he|she|it|they),? {_REST}$", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Other:
    """Whose statement it is, as facts name them; `noun` is what they are to the speaker, "" for a bare name."""

    subject: str
    noun: str
    named: bool
    known: bool

    @property
    def plural(self) -> bool:
        return bool(_MANY.search(self.noun))


def about_other(words: str, speaker: str, last: Other | None) -> tuple[Other, str] | None:
    """Who a clause is about and what it says of them in the first person; None where it is about nobody else.

    "he", "she" and "it" are the last one that was spoken of.
    """
    if last and (match := _PRONOUN.match(words)):
        said = first_person(match["rest"])
        return (last, said) if said else None
    for form in _FORMS:
        match = form.match(words)
        if match and not _NO_NAMES.match(match.groupdict().get("name") or ""):
            said = first_person(match["rest"])
            return (_other(match, speaker), said) if said else None
    return None


def _other(match: re.Match[str], speaker: str) -> Other:
    said = {
        "noun": "",
        "thing": "",
        "name": "",
        "of": "",
        **{key: text or "" for key, text in match.groupdict().items()},
    }
    noun = said["noun"].lower() or said["thing"]
    whose = f"{speaker}'s {noun}" if noun else ""
    of = _OWNED.sub(f"{speaker}'s", said["of"])
    return Other(
        subject=" ".join(f"{whose} {said['name']} {of}".split()),
        noun=noun,
        named=bool(said["name"]),
        known=bool(noun or of),
    )
