"""All rules, most special first: the first one that fits a clause makes its fact.

A clause comes without contractions, fillers and time words, in the first person.
"""

import re

from mnemolog.streams.offline.patterns.endings import ANNOUNCED, OVER
from mnemolog.streams.offline.patterns.general import GENERAL, WHEREABOUTS
from mnemolog.streams.offline.patterns.habits import LIFE, TASTES
from mnemolog.streams.offline.patterns.occupations import MONEY, PLANS, WORK
from mnemolog.streams.offline.patterns.persons import FAMILY, HEALTH, IDENTITY
from mnemolog.streams.offline.rule import NAME, Rule
from mnemolog.streams.offline.vocabulary import ANIMAL, KIN

OWN: tuple[Rule, ...] = (*OVER, *ANNOUNCED, *IDENTITY, *WORK, *HEALTH, *FAMILY, *MONEY, *PLANS, *TASTES, *LIFE)
OF_PEOPLE: tuple[Rule, ...] = (*OWN, *GENERAL)
OF_THINGS: tuple[Rule, ...] = (*OVER, *WHEREABOUTS, *OF_PEOPLE)
OF_STRANGERS: tuple[Rule, ...] = (*OVER, *IDENTITY, *WORK, *HEALTH, *FAMILY)
"""A bare name at the beginning of a sentence may be anything: of it only what people do is read."""
APPOSITION = Rule(
    pattern=re.compile(rf"\b(?:my|our) (?P<x>{KIN}|{ANIMAL}),? (?P<v>{NAME})", re.IGNORECASE),
    text="{p} {x} is called {v}.",
    category="relationship",
    importance="relationship_change",
    key="{x}",
    value="{v}",
    about="name of the {x}",
    hint="new",
    deniable=False,
    planned=False,
    timed=False,
    whom="{p} {x}",
)
"""The name of a relative, a friend or a pet that a clause mentions in passing: "my wife Ana"."""
