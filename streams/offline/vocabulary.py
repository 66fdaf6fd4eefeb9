"""The words that the rules know, as parts of patterns."""

# ruff: noqa: SIM905 -- a list of words is best read as words

HABITS = frozenset(
    "eat drink smoke vape wear sleep run swim cycle walk teach tutor support collect grow keep sing dance paint draw"
    " write"
    " cook bake garden knit climb ski surf sail fish hunt hike volunteer coach manage lead own rent lease share"
    " commute"
    " travel fly ride drive train exercise meditate pray believe vote earn weigh carry use attend belong study sit"
    " stay"
    " spend practise practice read watch subscribe pay owe save invest suffer snore fast skip avoid play feed breed"
    " raise"
    " host edit code program develop build design blog stream require depend work live speak like love enjoy hate"
    " prefer"
    " take learn do go have skate row box jog".split()
)
"""Verbs of habits and states: "I" and one of them tells something that lasts."""
STATES = (
    "religious|single|retired|self-employed|freelance|unemployed|pregnant|left-handed|right-handed|bilingual|trans"
    "|gay"
    "|straight|lesbian|bisexual|jewish|muslim|catholic|protestant|buddhist|hindu|christian|atheist|insomniac|teetotal"
    "|homeless|disabled|blind|deaf|adopted|childless|insured|vaccinated|sober"
)
KIN = (
    "wife|husband|partner|girlfriend|boyfriend|fiancee?|spouse|son|daughter|mother|father|mom|mum|dad|brother|sister"
    "|grandmother|grandfather|grandma|grandpa|aunt|uncle|cousin|niece|nephew|(?:best |old )?friend|boss|manager"
    "|mentor"
    "|colleague|coworker|roommate|flatmate|neighbou?r|landlord|landlady|hairdresser|stepmother|stepfather|stepson"
    "|stepdaughter|grandson"
    "|granddaughter|godmother|godfather|(?:mother|father|brother|sister)-in-law|ex-(?:wife|husband|boyfriend"
    "|girlfriend)|pen pal|doctor|dentist|therapist|teacher"
)
ANIMAL = "dog|cat|puppy|kitten|rabbit|hamster|parrot|horse|guinea pig|turtle|tortoise|goldfish|fish|snake|bird|pony"
PET = rf"(?P<a>(?:an?|two|three|four|\d+)(?: [\w-]+)??) (?P<x>{ANIMAL})(?P<many>s?)"
JOB = (
    r"(?:[\w-]+ ){0,3}?(?:engineer|developer|programmer|teacher|nurse|doctor|student|designer|manager|lawyer"
    r"|accountant"
    r"|architect|artist|writer|author|journalist|scientist|researcher|chef|cook|baker|waiter|waitress|driver|pilot"
    r"|electrician|plumber|carpenter|farmer|librarian|consultant|analyst|musician|photographer|dentist|pharmacist"
    r"|therapist|psychologist|counsel+or|translator|editor|director|founder|entrepreneur|professor|lecturer|mechanic"
    r"|veterinarian|vet|surgeon|physicist|chemist|biologist|mathematician|economist|actor|actress|dancer|singer"
    r"|painter"
    r"|paramedic|firefighter|police officer|soldier|secretary|assistant|salesperson|freelancer|gardener|hairdresser)"
)
ILLNESS = (
    r"(?:[\w-]+ )?(?:diabetes|asthma|migraines?|arthritis|epilepsy|hypertension|high blood pressure|depression"
    r"|anxiety"
    r"|adhd|celiac disease|hay fever|insomnia|cancer|eczema|back pain|covid|the flu)"
)
DIET = r"vegetarian|vegan|pescatarian|lactose intolerant|gluten[- ]free|halal|kosher|celiac"
FOOD = r"(?:eat|drink|smoke|consume)"
TONGUE = (
    "english|german|french|spanish|italian|portuguese|dutch|polish|russian|ukrainian|turkish|arabic|hebrew|hindi|urdu"
    "|bengali|chinese|mandarin|cantonese|japanese|korean|vietnamese|thai|swedish|norwegian|danish|finnish|greek|czech"
    "|romanian|hungarian|swahili|latin|catalan|persian|farsi"
)
TONGUES = rf"(?P<v>(?:(?:some|fluent|a little|a bit of) )?(?:{TONGUE})(?:(?:, | and |, and )(?:{TONGUE}))*)"
MEETING = (
    "meeting|appointment|call|interview|exam|test|flight|class|lesson|date|dinner|lunch|deadline|presentation|concert"
    "|party|wedding|trip|checkup|check-up|surgery|session|conference|workshop|rehearsal|train|holiday|vacation"
)
SLOT = (
    "time ?zone|shoe size|e-?mail(?: address)?|phone(?: number)?|address|job title|team|major"
    "|blood type|height|weight|nationality|religion|hobby|zodiac sign|username|hometown|editor"
    "|operating system|university"
    "|school|budget|rent|native language|mother tongue|first language"
)
PLACE = r"(?!(?:an?|my|our|another|new|the (?:country|city|suburbs))\b)"
VAGUE = r"(?!(?:it|that|this|them|you|him|her|to|the idea|a lot|how|what|when|your|these|those|everything|all)\b)"
POINTED = r"(?:it|this|that|these|those|them|so)\b"
TOO_COMMON = (
    r"(?!(?:\w+ed|heard|read|felt|known|found|come|faith|been|had|done|got|to|no|never|not|always|seen"
    r"|made|gone|an? (?:question|idea|feeling|problem|lot|bit|look"
    r"|headache|thought|favou?r|go|great|good|nice|bad|blast|hard|point|couple|few|little|chance|different)|some|so"
    r"|fun"
    r"|enough|time|good|great|nothing|something|a)\b(?! (?:dog|cat)))"
)
