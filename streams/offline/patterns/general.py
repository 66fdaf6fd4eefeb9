"""Rules of last resort: plain statements of a habit or a state, whatever they are about."""

from mnemolog.streams.offline.rule import NAME, Rule, rule
from mnemolog.streams.offline.vocabulary import HABITS, STATES

_STRICTER = {
    "have",
    "like",
    "love",
    "enjoy",
    "hate",
    "prefer",
    "do",
    "go",
    "work",
    "live",
    "own",
    "use",
    "speak",
    "keep",
    "stay",
}
_HABIT = "|".join(sorted(HABITS - _STRICTER))
_NO_STATE = (
    r"(?!(?:bit|little|lot|couple|few|huge|big|mess|wreck|total|complete|tad|fan|good mood|bad mood|hurry|rush|day"
    r"|while)\b)"
)
_IN = (
    r"in (?:an? |my )?(?:[\w-]+ )?(?:relationship|marriage|band|choir|team|club|committee|therapy|touch|contact|debt"
    r"|recovery|remission|school|college|university|retirement|twenties|thirties|forties|fifties|sixties)\b.*"
)
_ON = (
    r"on (?:an? |the |my )?(?:[\w-]+ )?(?:diet|medication|board|team|committee|waiting list|crutches|leave|insulin"
    r"|pill|antidepressants|probation)\b.*"
)

ITSELF = "itself"
"""The key of what a thing is: the slot has the thing's name."""

GENERAL: tuple[Rule, ...] = (
    rule(
        r"I (?:am )?(?P<v>\d[\d.,]* ?(?:m|cm|metres?|meters?|centimetres?|centimeters?|feet|foot)(?: \d+)?) tall",
        "{s} is {v} tall.",
        "identity",
        "stable_preference",
        key="height",
        about="height",
    ),
    rule(
        r"I weigh (?P<v>\d[\d.,]* ?\w+)",
        "{s} weighs {v}.",
        "identity",
        "stable_preference",
        key="weight",
        about="weight",
    ),
    rule(
        rf"I am (?P<v>an? {_NO_STATE}.+)|I am (?P<v2>{_IN})|I am (?P<v3>{_ON})"
        rf"|I am (?P<v4>(?:into|part of) .+|(?:{STATES})\b.*)",
        "{s} is {v}.",
        "other",
        "stable_preference",
        about="",
        deniable=True,
    ),
    rule(
        rf"I was (?P<v>an? {_NO_STATE}.+)",
        "{s} was {v}.",
        "other",
        "stable_preference",
        about="once",
    ),
    rule(
        r"I have (?P<v>no (?!idea|clue|time|doubt|problem|plan|choice|intention|regret|complaint|objection|way)\w.+)",
        "{s} has {v}.",
        "other",
        "stable_preference",
        about="",
    ),
    rule(
        rf"I (?P<v>(?:(?:always|usually|often|sometimes|only|never) )?(?:{_HABIT}|get up|get out of bed)"
        r"(?! (?:it|them|him|her|this|that|each|one|on|through|throughout)\b)(?: .+)?)",
        "{s} {rest}.",
        "other",
        "routine_activity",
        about="habit",
        deniable=True,
    ),
)
WHEREABOUTS: tuple[Rule, ...] = (
    rule(
        rf"I am (?P<v>{NAME})",
        "{s} is {v}.",
        "other",
        "stable_preference",
        key=ITSELF,
        single=True,
        about="",
    ),
    rule(
        r"I am (?P<v>(?:in|on|at|near) .+)",
        "{s} is {v}.",
        "other",
        "stable_preference",
        key="location",
        single=True,
        about="where it is",
    ),
    rule(
        r"I (?:have )?moved to (?P<v>.+)",
        "{s} is in {v}.",
        "other",
        "stable_preference",
        key="location",
        single=True,
        about="where it is, moved",
        hint="update",
    ),
    rule(
        r"I meet (?P<v>.+)",
        "{s} meets {v}.",
        "other",
        "routine_activity",
        about="when",
    ),
)
"""Of things, not of people: "my office is in Nairobi"."""
