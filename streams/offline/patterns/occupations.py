"""Rules on work, money and plans."""

from mnemolog.streams.offline.rule import NAME, Rule, rule
from mnemolog.streams.offline.vocabulary import JOB, MEETING

WORK: tuple[Rule, ...] = (
    rule(
        rf"I work as (?:an?|the) (?P<v>{JOB}[^,]*?)(?: (?:at|for) (?P<x>.+))|I am an? (?P<v2>{JOB}) at (?P<x2>.+)"
        r"|I (?:work|started working|started) (?:at|for|with) (?P<x3>.+?) as (?:an?|the) (?P<v3>.+)",
        "{s} works at {x} as {job}.",
        "professional",
        "biographical_milestone",
        key="employer",
        value="{x}",
        about="employer, job: {v}",
        deniable=True,
    ),
    rule(
        rf"I (?:work as|am|became|have become) (?:an?|the) (?P<v>{JOB})(?: by (?:trade|profession))?"
        rf"|I (?:was|got|have been) promoted to (?P<v3>{JOB})|my (?:job|profession) is (?P<v2>.+)|I work as (?:an?"
        rf"|the) (?P<v4>.+)",
        "{s} works as {job}.",
        "professional",
        "biographical_milestone",
        key="job_title",
        about="job, profession",
        deniable=True,
    ),
    rule(
        r"I (?:work|am working|am employed) (?:at|for|with) (?P<v>.+)",
        "{s} works at {v}.",
        "professional",
        "biographical_milestone",
        key="employer",
        about="employer, job",
        deniable=True,
    ),
    rule(
        r"I (?:have )?(?:started|begun|joined|got an? (?:new )?job|moved to a job)(?: (?:an? (?:new )?job|work"
        r"|working))?(?: (?:at|with|for))?"
        rf" (?P<v>{NAME})|I (?:was|have been|got) hired (?:by|at) (?P<v2>.+)"
        r"|I changed jobs and (?:I )?work (?:at|for) (?P<v3>.+)",
        "{s} works at {v}.",
        "professional",
        "biographical_milestone",
        key="employer",
        about="employer, job, started",
        hint="update",
    ),
    rule(
        r"I (?:study|am studying|major in) (?P<v>[\w ]+?)(?: at (?P<x>.+))?",
        "{s} studies {v}{at_x}.",
        "professional",
        "stable_preference",
        key="field_of_study",
        about="studies, university",
        deniable=True,
    ),
)

MONEY: tuple[Rule, ...] = (
    rule(
        r"my salary is (?P<v>.+)|I (?:earn|make) (?P<v2>.*\d.*)",
        "{p} salary is {v}.",
        "finance",
        "stable_preference",
        key="salary",
        about="income",
    ),
    rule(
        r"my bank is (?P<v>.+)|I bank (?:with|at) (?P<v2>.+)|my (?:bank )?account is (?:with|at) (?P<v3>.+)",
        "{p} bank is {v}.",
        "finance",
        "stable_preference",
        key="bank",
        about="bank account",
    ),
    rule(
        r"my (?P<x>rent|budget|mortgage) is (?P<v>.*\d.*)|I pay (?P<v2>.*\d.*) (?:in|of|for) (?P<x2>rent)",
        "{p} {x} is {v}.",
        "finance",
        "stable_preference",
        key="{x}",
        about="money",
    ),
    rule(
        r"I (?:have an? (?P<v>(?:[\w-]+ )?(?:mortgage|loan|debt))|owe (?P<v2>.+))",
        "{s} has a {v}.",
        "finance",
        "stable_preference",
        about="money",
        deniable=True,
    ),
)

PLANS: tuple[Rule, ...] = (
    rule(
        r"I (?:am planning|plan|intend|hope|am hoping) (?:to|on) (?P<v>(?!be\b).+)",
        "{s} plans to {v}.",
        "task_context",
        "specific_event",
        about="plan",
        planned=True,
    ),
    rule(
        r"I am (?:going|about) to (?P<v>(?!(?:be|say|need|an?|the|my|our)\b)(?-i:[a-z]).+)",
        "{s} plans to {v}.",
        "task_context",
        "specific_event",
        about="plan",
        planned=True,
    ),
    rule(
        r"I will (?P<v>(?!say\b|be\b|have to\b|not\b|never\b|always\b).+)",
        "{s} plans to {v}.",
        "task_context",
        "specific_event",
        about="plan",
        planned=True,
        timed=True,
    ),
    rule(
        r"(?:I (?P<x>need|have|have got|want) to|I (?P<x2>must)|(?P<x3>remind me) to)"
        r" (?P<v>(?!say\b|admit\b|know\b|thank\b|ask\b|be honest|not\b).+)",
        "{s} {needs} {v}.",
        "task_context",
        "specific_event",
        about="task",
        planned=True,
    ),
    rule(
        rf"I am (?P<x>flying|travel+ing|moving|going) (?P<v>to {NAME}.*)",
        "{s} is {x} {v}.",
        "task_context",
        "specific_event",
        value="{x} {v}",
        about="plan",
        planned=True,
    ),
    rule(
        r"I am (?P<x>flying|travel+ing|moving|visiting|meeting|starting|going|leaving|hosting|throwing|taking"
        r"|seeing|having"
        r"|getting|driving|running|joining) (?P<v>.+)",
        "{s} is {x} {v}.",
        "task_context",
        "specific_event",
        value="{x} {v}",
        about="plan",
        planned=True,
        timed=True,
    ),
    rule(
        rf"I have (?P<v>(?:an?|my|the) (?:[\w'-]+ ){{0,3}}?(?:{MEETING})\b.*)",
        "{s} has {v}.",
        "task_context",
        "specific_event",
        about="appointment",
        planned=True,
        timed=True,
    ),
    rule(
        rf"(?:my|our|the) (?P<x>(?:[\w'-]+ ){{0,2}}?(?:{MEETING})) (?:is|will be)(?: due)?(?P<v>.*)",
        "{p} {x} is{v}.",
        "task_context",
        "specific_event",
        value="{x}",
        about="appointment",
        planned=True,
        timed=True,
    ),
    rule(
        r"I am (?P<v>(?:[a-z]+ing|[a-z]+ed (?:to|at|in|with)|in|at|on|with|off|away|back in) (?!(?:it|that|to)\b).+)",
        "{s} is {v}.",
        "task_context",
        "specific_event",
        about="for a while",
        planned=True,
        timed=True,
    ),
    rule(
        r"I am (?P<v>(?:staying (?:at|in|with|near|over)|spending .+ (?:at|in|with|on)) .+)",
        "{s} is {v}.",
        "task_context",
        "specific_event",
        about="for a while",
        planned=True,
    ),
    rule(
        r"I have (?P<v>an? (?:[\w-]+ )?(?:rental|rented|loan|temporary|replacement|hire|courtesy|spare"
        r"|borrowed)\b.*)",
        "{s} has {v}.",
        "task_context",
        "specific_event",
        about="for a while",
        planned=True,
    ),
    rule(
        r"I am (?:working on|building|writing|preparing(?: for)?|training for|looking for) (?P<v>.+)",
        "{s} {rest}.",
        "task_context",
        "specific_event",
        about="current task",
        deniable=True,
    ),
)
