"""Rules on tastes, routines, possessions and what happened."""

from mnemolog.streams.offline.rule import Rule, rule
from mnemolog.streams.offline.vocabulary import FOOD, HABITS, POINTED, SLOT, TOO_COMMON, VAGUE

_HABIT = "|".join(sorted(HABITS))

TASTES: tuple[Rule, ...] = (
    rule(
        r"my favou?rite (?P<x>[\w ]+?) (?:is|are) (?P<v>.+)",
        "{p} favourite {x} is {v}.",
        "soft_preference",
        "stable_preference",
        key="favourite_{x}",
        about="likes, preference",
    ),
    rule(
        r"I (?:have )?switched (?:(?:my [\w ]+? )?from (?P<old>.+?) )?to (?P<v>.+?)(?: from (?P<old2>.+))?",
        "{s} {uses} {v}{switched}.",
        "soft_preference",
        "stable_preference",
        key="{tool}",
        about="{tool_words}",
        hint="update",
    ),
    rule(
        rf"I (?:only|never|cannot|do not|must not|refuse to) {FOOD} (?P<v>.+)",
        "{s} {rest}.",
        "hard_preference",
        "stable_preference",
        value="{rest}",
        about="diet, hard rule",
    ),
    rule(
        r"I (?:always|only) (?P<v>(?:want|need|like|love|fly|travel|take|sit|sleep|book|order|buy|wear)\b.+)",
        "{s} {rest}.",
        "hard_preference",
        "stable_preference",
        value="{rest}",
        about="hard rule",
    ),
    rule(
        rf"I prefer {VAGUE}(?P<v>.+?)(?: (?:to|over|rather than) (?P<old>.+))?",
        "{s} prefers {v}{over_old}.",
        "soft_preference",
        "stable_preference",
        about="likes, preference",
        deniable=True,
    ),
    rule(
        rf"I (?P<x>love|like|enjoy|adore) (?P<v4>to (?:{_HABIT})\b.*)"
        rf"|I (?P<x4>love|like|enjoy|adore) {VAGUE}(?P<v>.+)|I am (?P<x2>fond) of {VAGUE}(?P<v2>.+)"
        rf"|I am an? (?:big |huge )?(?P<x3>fan) of {VAGUE}(?P<v3>.+)",
        "{s} {likes} {v}.",
        "soft_preference",
        "stable_preference",
        about="taste, preference",
        deniable=True,
    ),
    rule(
        rf"I (?P<x>hate|dislike|detest|cannot stand) {VAGUE}(?P<v>.+)",
        "{s} {likes} {v}.",
        "soft_preference",
        "stable_preference",
        value="not {v}",
        about="taste, preference",
    ),
    rule(
        r"I (?:use|am using|started using|have started using) (?P<v>.+?)(?: (?P<how>as|for) my (?P<x>[\w ]+))?",
        "{s} uses {v}{as_x}.",
        "soft_preference",
        "stable_preference",
        key="{tool}",
        about="{tool_words}",
        deniable=True,
    ),
)

LIFE: tuple[Rule, ...] = (
    rule(
        r"my hobb(?:y|ies) (?:is|are) (?P<v>.+)",
        "{p} hobby is {v}.",
        "soft_preference",
        "stable_preference",
        about="hobby",
    ),
    rule(
        r"I play (?:the )?(?P<v>.+)",
        "{s} plays {v}.",
        "soft_preference",
        "routine_activity",
        about="hobby",
        deniable=True,
    ),
    rule(
        r"I (?P<v>[a-z]+ (?:.+ )?(?:every|each|on|once|twice)\b.*(?:day|days|week|month|year|morning|evening"
        r"|weekends?)s?\b.*)"
        r"|I (?:usually|often|always|sometimes) (?P<v2>[a-z]+ .+)",
        "{s} {rest}.",
        "other",
        "routine_activity",
        value="{v}",
        about="routine, habit",
    ),
    rule(
        r"(?P<whose>my|our) (?P<v>[\w ]+? (?:meets?|has|have|takes|goes|starts|runs|happens) .*(?:every|each|on) .+)",
        "{p} {v}.",
        "other",
        "routine_activity",
        about="routine",
    ),
    rule(
        rf"my (?P<x>{SLOT}) is (?P<v>.+)",
        "{p} {x} is {v}.",
        "identity",
        "stable_preference",
        key="{x}",
        about="",
    ),
    rule(
        r"I drive (?P<v>an? .+)",
        "{s} drives {v}.",
        "other",
        "stable_preference",
        key="car",
        about="car",
        deniable=True,
    ),
    rule(
        r"I own (?P<v>.+)",
        "{s} owns {v}.",
        "other",
        "stable_preference",
        about="possession",
        deniable=True,
    ),
    rule(
        r"I (?P<v>(?:(?:have )?(?:bought|adopted|visited|attended|finished|completed|graduated|married|won"
        r"|published|founded|sold"
        r"|lost|passed|failed|signed up|volunteered|ran|hiked|climbed|started|painted|wrote|built|learned|quit"
        r"|stopped"
        r"|gave up|became|got (?:promoted|hired|fired|accepted|engaged)))\b(?! " + POINTED + r").*)",
        "{s} {rest}.",
        "other",
        "specific_event",
        about="event",
    ),
    rule(
        r"I (?P<v>(?:went|took|met|saw|had|read|watched|made|joined|did|got|flew|drove|spent|celebrated|tried"
        r"|cooked|played"
        r"|talked|gave|came|left|planted|baked|was)\b(?! " + POINTED + r").+)",
        "{s} {rest}.",
        "other",
        "specific_event",
        about="event",
        timed=True,
    ),
    rule(
        rf"I have {TOO_COMMON}(?P<v>.+)",
        "{s} has {v}.",
        "other",
        "stable_preference",
        about="possession",
        deniable=True,
    ),
)
