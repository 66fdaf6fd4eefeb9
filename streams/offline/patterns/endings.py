"""Rules on what has ended with nothing in its place, and on ends that are announced."""

from mnemolog.streams.offline.rule import NAME, Rule, rule

_AGREEMENT = (
    "contract|lease|tenancy|membership|subscription|internship|insurance|warranty|trial|visa|licen[cs]e|permit|pass"
    "|rental|apprenticeship|job|position|placement|course|semester|parental leave|maternity leave|sabbatical|season"
    " ticket"
)
_OF_ONE = r"(?:[\w'-]+ ){0,3}?"

OVER: tuple[Rule, ...] = (
    rule(
        rf"I (?:have )?(?:left|resigned from)(?: my job at)? (?P<v>{NAME})",
        "{s} left {v}.",
        "professional",
        "relationship_change",
        value="no longer {v}",
        about="employer, job, left",
        hint="retract",
    ),
    rule(
        rf"I (?:have )?quit(?: my job)?(?: at)? (?P<v>{NAME})"
        rf"|I (?:have been|was|got) (?:laid off|fired|let go|dismissed|made redundant) (?:by|from|at) (?P<v2>{NAME})"
        rf"|I (?:have )?lost my job (?:at|with) (?P<v3>{NAME})",
        "{s} no longer works at {v}.",
        "professional",
        "relationship_change",
        value="no longer {v}",
        about="employer, job, left",
        hint="retract",
    ),
    rule(
        r"I (?:have )?(?:retired|lost my job|quit my job|am retired|am unemployed|am out of work|got fired|was fired"
        r"|was laid off|got laid off|am between jobs|resigned)(?P<v>)",
        "{s} {rest}.",
        "professional",
        "biographical_milestone",
        key="employment_status",
        value="{rest}",
        about="job",
        hint="update",
    ),
    rule(
        r"I (?:have )?(?:broke|broken|split) up with (?P<v>.+)|I (?:have )?divorced (?P<v2>.+)"
        rf"|I (?:am|have) (?:separated|split) from (?P<v3>{NAME}|my .+)",
        "{s} broke up with {v}.",
        "relationship",
        "relationship_change",
        value="no longer {v}",
        about="relationship, separated from {v}",
        hint="retract",
    ),
    rule(
        r"I (?:have )?(?P<x>sold|cancel+ed|gave away|given away|got rid of|lost|dropped|gave up|given up|quit"
        r"|stopped) "
        r"(?P<v>(?!to\b|it\b|that\b|this\b|them\b|weight\b|touch\b|track\b|hope\b|by\b|out\b|off\b)[\w][^,]*)",
        "{s} {ended} {v}.",
        "other",
        "relationship_change",
        value="no longer {v}",
        about="no longer has {v}",
        hint="retract",
    ),
    rule(
        r"I (?:have )?(?P<v>died|passed away|broken up|split up|disbanded|closed down|shut down)",
        "{s} {rest}.",
        "relationship",
        "relationship_change",
        value="{rest}",
        about="no longer",
        hint="retract",
    ),
    rule(
        r"I (?:have )?moved (?:out of|away from) (?P<v>.+)",
        "{s} no longer lives in {v}.",
        "identity",
        "biographical_milestone",
        value="no longer {v}",
        about="home city, moved away",
        hint="retract",
    ),
)

ANNOUNCED: tuple[Rule, ...] = (
    rule(
        rf"(?:my|our|the) (?P<v>{_OF_ONE}(?:{_AGREEMENT})(?: (?:at|with|for|in|to|of) .+?)?) (?:will )?"
        r"(?P<x>ends?|expires?|runs? out|finish(?:es)?|terminates?|runs?)",
        "{p} {v} ends.",
        "task_context",
        "specific_event",
        about="end of {v}",
        hint="retract",
        planned=True,
        timed=True,
    ),
    rule(
        rf"I am (?:leaving|quitting) (?P<v>{NAME})|I will (?:leave|quit|stop working at) (?P<v2>{NAME})"
        rf"|my last (?:day|week|month) (?:at|with) (?P<v3>{NAME}) (?:is|will be)",
        "{s} is leaving {v}.",
        "task_context",
        "specific_event",
        about="employer, leaving {v}",
        hint="retract",
        planned=True,
        timed=True,
    ),
)
