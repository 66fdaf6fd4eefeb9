"""One wording for what can be said in several orders: "Acme is my employer", "it is in Rome that I live"."""

import re
from typing import Final

from mnemolog.streams.offline.english import from_gerund
from mnemolog.streams.offline.rule import NAME
from mnemolog.streams.offline.vocabulary import MEETING

_DWELLING = "home|place|flat|apartment|house"
_TIRED = "over(?! (?:the moon|here|there|\\d))|done with|sick of|tired of|fed up with"
_POINTER = r"(?:it|that|this|these|those|here|there|he|she|they|what|who|which|everyone|nobody|today)\b"
_NOUN = r"[a-z][\w-]*(?: [a-z][\w-]*){0,2}?"


def _rewrite(pattern: str, wording: str) -> tuple[re.Pattern[str], str]:
    return re.compile(rf"^(?:{pattern})$", re.IGNORECASE), wording


_REWRITES: Final = (
    _rewrite(r"(?:it|that) is (?P<what>.+?) that (?P<rest>I .+)", r"\g<rest> \g<what>"),
    _rewrite(r"I do (?P<rest>(?!not\b)(?:[a-z]+) .+)", r"I \g<rest>"),
    _rewrite(r"I (?P<how>like|love|enjoy|hate) to go (?P<what>[a-z]+ing\b.*)", r"I \g<how> \g<what>"),
    _rewrite(r"my (?P<what>[\w -]+)'s name is not (?P<rest>.+)", r"my \g<what> is not called \g<rest>"),
    _rewrite(r"my (?P<what>[\w -]+)'s name is (?P<rest>.+)", r"my \g<what> is called \g<rest>"),
    _rewrite(rf"(?P<name>(?!{_POINTER}){NAME}) is where I live", r"I live in \g<name>"),
    _rewrite(
        rf"(?P<name>(?!{_POINTER}){NAME}) is (?:my )?home(?: city| town)?(?: from)?(?P<rest> .+)?",
        r"I live in \g<name>\g<rest>",
    ),
    _rewrite(
        rf"(?P<name>(?!{_POINTER})(?:(?:mr|mrs|ms|dr)\.? )?{NAME}) is my (?P<what>{_NOUN})", r"my \g<what> is \g<name>"
    ),
    _rewrite(rf"my (?:new )?(?:{_DWELLING})(?: city| town)? is (?:in )?(?P<where>{NAME}.*)", r"I live in \g<where>"),
    _rewrite(r"my (?:new |current )?(?:employer|company) is (?P<who>.+)", r"I work at \g<who>"),
    _rewrite(r"my (?:birthplace|place of birth) is (?P<where>.+)", r"I was born in \g<where>"),
    _rewrite(
        r"I (?:rent|have rented|have bought|have found) (?:a|an|my own) (?:room|flat|apartment|house|place|studio)"
        rf" in (?P<where>{NAME}.*)",
        r"I moved to \g<where>",
    ),
    _rewrite(
        rf"(?P<name>{NAME}) and I (?P<what>broke up|have broken up|split up|have split up|separated|got divorced)",
        r"I broke up with \g<name>",
    ),
    _rewrite(r"(?:I have )?lost (?:all |any )?interest in (?P<what>.+)", r"I no longer like \g<what>"),
    _rewrite(
        rf"I (?:am (?:{_TIRED})|have gone off|went off) (?P<what>.+)",
        r"I no longer like \g<what>",
    ),
    _rewrite(
        r"(?P<what>[a-z]+ing(?: .+)?) is (?:my|a|one of my) (?:\w+ )?(?:passion|hobby|joy|love)s?(?: of mine)?",
        r"I love \g<what>",
    ),
    _rewrite(
        r"there is no (?P<kind>[\w ]+?) I like (?:better"
        r"|more) than (?P<what>.+)",
        r"my favourite \g<kind> is \g<what>",
    ),
    _rewrite(
        rf"the (?P<what>{MEETING}) (?:for"
        rf"|of) my (?P<of>{_NOUN}) (?P<rest>is .+)",
        r"my \g<of> \g<what> \g<rest>",
    ),
    _rewrite(
        rf"I (?:had to |have )?(?:move|postpone|reschedule|push|shift)d? (?:the|my"
        rf"|our) (?P<what>{_NOUN}) (?:back )?to"
        r" (?P<when>.+)",
        r"my \g<what> is moved to \g<when>",
    ),
    _rewrite(
        rf"my (?P<what>{_NOUN}) (?:has |was |has been |is |got )?(?:moved|postponed|rescheduled|extended|pushed"
        rf"|put off)"
        r"(?: back)? (?:to|until|till) (?P<when>(?:the )?\d.*|(?-i:[A-Z])\w+day.*)",
        r"my \g<what> is on \g<when>",
    ),
)
_ENDED_DOING = re.compile(
    r"^I (?:have |finally )?(?:given up|gave up|quit|stopped|ceased|left|am off) (?P<what>[a-z]+ing\b.*)$",
    re.IGNORECASE,
)


_NOT_THAT = re.compile(r", (?:and )?not (?!only\b)[\w' -]+$", re.IGNORECASE)
_FRONTED = re.compile(
    r"^(?P<time>(?:while|every|each|on|in|at|since|for|from|after|before|during|with|as of|starting) [^,]+?),? "
    r"(?P<rest>(?:I|my) .+)$",
    re.IGNORECASE,
)
_NOT_BUT = re.compile(r"^(?P<start>.*?\b)not (?P<wrong>.+?),? but (?:rather |actually )?(?P<true>.+)$", re.IGNORECASE)
_PREPOSITION = re.compile(r"\b(?:in|at|on|from|with|for|to|by|of|as)\b", re.IGNORECASE)


def _affirmed(put_right: re.Match[str]) -> str:
    """Of "was not born in Zurich but in Bern" it is "was born in Bern"."""
    start, wrong, true = put_right["start"], put_right["wrong"], put_right["true"]
    shared = _PREPOSITION.match(true)
    place = re.search(rf"\b{shared[0]}\b", wrong, re.IGNORECASE) if shared else None
    said = f"{start}{wrong[: place.start()] if place else ''}{true}"
    return re.sub(r"^(I|my .+?) (?:do|does) (?=[a-z])", r"\1 ", said)


def rephrased(words: str) -> str:
    """The clause in the order that the rules read: who, what, when."""
    if ended := _ENDED_DOING.match(words):
        did = from_gerund(ended["what"])
        return f"I no longer {did}" if did else words
    words = _NOT_THAT.sub("", words)
    if fronted := _FRONTED.match(words):
        time = fronted["time"]
        words = f"{fronted['rest']} {time[0].lower()}{time[1:]}"
    if put_right := _NOT_BUT.match(words):
        words = _affirmed(put_right)
    for pattern, wording in _REWRITES:
        if match := pattern.match(words):
            words = " ".join(match.expand(wording).split())
    return words
