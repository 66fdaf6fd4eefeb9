"""Rules on who somebody is, on health and on family."""

from mnemolog.streams.offline.rule import NAME, Rule, rule
from mnemolog.streams.offline.vocabulary import ANIMAL, DIET, ILLNESS, KIN, PET, PLACE, TONGUE, TONGUES

IDENTITY: tuple[Rule, ...] = (
    rule(
        rf"my (?:full |first )?name is (?P<v>{NAME})|I am called (?P<v2>{NAME})|(?:please )?call me (?P<v3>{NAME})"
        rf"|(?:people|friends|everyone) calls? me (?P<v4>{NAME})",
        "{s} is called {v}.",
        "identity",
        "biographical_milestone",
        key="name",
        about="name",
        deniable=True,
    ),
    rule(
        r"I (?:am|turned) (?P<v>\d{1,3})(?: years old)?|I am (?P<v3>[\w-]+(?: and [\w-]+)?) years old"
        r"|my age is (?P<v2>\d{1,3})",
        "{s} is {v} years old.",
        "identity",
        "biographical_milestone",
        key="age",
        about="age",
    ),
    rule(
        r"my birthday is (?:on )?(?P<v>.+)|I was born (?P<v2>(?:on|in) .*\d.*)",
        "{p} birthday is {v}.",
        "identity",
        "biographical_milestone",
        key="birthday",
        about="date of birth",
    ),
    rule(
        rf"I was born in (?P<v>{NAME}.*)",
        "{s} was born in {v}.",
        "identity",
        "biographical_milestone",
        key="birth_place",
        about="birth place",
    ),
    rule(
        rf"I (?:have )?(?:moved|relocated|settled) (?:back )?(?:from (?P<old>.+?) )?(?:to"
        rf"|in) {PLACE}(?P<v>.+?)(?: from (?P<old2>.+))?",
        "{s} lives in {v}.",
        "identity",
        "biographical_milestone",
        key="home_city",
        about="home city, moved to {v}",
        hint="update",
    ),
    rule(
        r"I live with (?P<v>.+)",
        "{s} lives with {v}.",
        "relationship",
        "stable_preference",
        key="household",
        about="household",
        deniable=True,
    ),
    rule(
        rf"I (?:live|am living|reside|am based) (?:in|near|at) {PLACE}(?P<v>.+)|my home is in {PLACE}(?P<v2>.+)",
        "{s} lives in {v}.",
        "identity",
        "biographical_milestone",
        key="home_city",
        about="home city",
        deniable=True,
    ),
    rule(
        r"I (?:live|am living) in (?P<v>.+)",
        "{s} lives in {v}.",
        "identity",
        "stable_preference",
        key="home",
        about="home",
        deniable=True,
    ),
    rule(
        rf"I (?:am|come) (?:originally )?from (?P<v>{NAME}.*)|I grew up in (?P<v2>.+)",
        "{s} is from {v}.",
        "identity",
        "biographical_milestone",
        key="home_town",
        about="home town",
        deniable=True,
    ),
    rule(
        rf"my (?:native language|mother tongue|first language) is (?P<v>{TONGUE})",
        "{p} native language is {v}.",
        "identity",
        "biographical_milestone",
        key="native_language",
        about="language",
    ),
    rule(
        rf"I (?:can )?speak {TONGUES}(?: fluently)?",
        "{s} speaks {v}.",
        "identity",
        "stable_preference",
        about="language",
        deniable=True,
    ),
    rule(
        rf"I (?:am learning|am studying|learn) {TONGUES}",
        "{s} is learning {v}.",
        "task_context",
        "routine_activity",
        about="language",
        deniable=True,
    ),
)

HEALTH: tuple[Rule, ...] = (
    rule(
        r"I am (?:severely |very |deathly )?allergic to (?P<v>.+)|I have an? (?P<v2>.+?) allergy",
        "{s} is allergic to {v}.",
        "health",
        "stable_preference",
        key="allergy",
        about="allergy",
        deniable=True,
    ),
    rule(
        rf"I am (?:an? )?(?P<v>{DIET})|I (?:have become|became|turned|went) (?P<v2>{DIET})",
        "{s} is {v}.",
        "hard_preference",
        "stable_preference",
        key="diet",
        about="diet",
        deniable=True,
    ),
    rule(
        rf"I (?:have|suffer from|was diagnosed with|have been diagnosed with|got) (?P<v>{ILLNESS})",
        "{s} has {v}.",
        "health",
        "biographical_milestone",
        about="health",
        deniable=True,
    ),
    rule(
        r"I am (?P<v>pregnant|diabetic|asthmatic|colou?r-?blind|left-handed|short-sighted|deaf)",
        "{s} is {v}.",
        "health",
        "biographical_milestone",
        about="health",
        deniable=True,
    ),
    rule(
        r"I take (?P<v>[\w -]+?) (?:for|against) (?P<x>.+)",
        "{s} takes {v} for {x}.",
        "health",
        "stable_preference",
        about="medication",
        deniable=True,
    ),
    rule(
        r"I (?:have )?(?:broke|broken|injured|sprained|hurt|twisted|torn|tore) my (?P<v>.+)",
        "{s} {rest}.",
        "health",
        "specific_event",
        about="injury",
    ),
)

FAMILY: tuple[Rule, ...] = (
    rule(
        rf"my (?P<x>{KIN}|{ANIMAL})(?:'s name is| is called| is named| is) (?P<v>{NAME})",
        "{p} {x} is called {v}.",
        "relationship",
        "relationship_change",
        key="{x}",
        about="name of the {x}",
        whom="{p} {x}",
    ),
    rule(
        r"I (?:am|got) (?P<v>married|engaged|divorced|single|widowed)(?: to (?P<x>.+))?",
        "{s} is {v}{to_x}.",
        "relationship",
        "relationship_change",
        key="marital_status",
        about="marital status",
        deniable=True,
    ),
    rule(
        r"I have (?P<a>an?|no|one|two|three|four|five|six|\d+) (?P<v>(?:older |younger |little |big )?"
        r"(?:kids?|child(?:ren)?))"
        rf"(?: (?:called|named) (?P<x>{NAME}(?: and {NAME})?))?",
        "{s} has {a} {v}{called_x}.",
        "relationship",
        "relationship_change",
        key="children",
        single=True,
        value="{a} {v}",
        about="family",
    ),
    rule(
        r"I have (?P<a>an?|no|one|two|three|four|five|six|\d+) (?P<v>(?:older |younger |little |big )?"
        r"(?:sons?|daughters?|brothers?|sisters?|siblings?|grandchildren))"
        rf"(?: (?:called|named) (?P<x>{NAME}(?: and {NAME})?))?",
        "{s} has {a} {v}{called_x}.",
        "relationship",
        "relationship_change",
        value="{a} {v}",
        about="family",
    ),
    rule(
        rf"I (?:have got|have|got|adopted|own|bought|rescued) {PET}(?: (?:called|named) (?P<v>{NAME}))?",
        "{s} has {a} {x}{many}{called_v}.",
        "other",
        "stable_preference",
        key="{x}",
        value="{v_or_x}",
        about="pet",
        deniable=True,
    ),
)
