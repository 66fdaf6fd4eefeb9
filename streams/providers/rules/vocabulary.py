"""The words that the rules know, as parts of patterns."""

KIN = (
    "wife|husband|partner|girlfriend|boyfriend|fiancee?|spouse|son|daughter|mother|father|mom|mum|dad|brother|sister"
    "|grandmother|grandfather|grandma|grandpa|aunt|uncle|cousin|niece|nephew|(?:best |old )?friend|boss|manager|mentor"
    "|colleague|coworker|roommate|flatmate|neighbou?r|doctor|dentist|therapist|teacher"
)
ANIMAL = "dog|cat|puppy|kitten|rabbit|hamster|parrot|horse|guinea pig|turtle|tortoise|goldfish|fish|snake|bird|pony"
PET = rf"(?P<a>(?:an?|two|three|four|\d+)(?: [\w-]+)??) (?P<x>{ANIMAL})(?P<many>s?)"
JOB = (
    r"(?:[\w-]+ ){0,3}?(?:engineer|developer|programmer|teacher|nurse|doctor|student|designer|manager|lawyer|accountant"
    r"|architect|artist|writer|author|journalist|scientist|researcher|chef|cook|baker|waiter|waitress|driver|pilot"
    r"|electrician|plumber|carpenter|farmer|librarian|consultant|analyst|musician|photographer|dentist|pharmacist"
    r"|therapist|psychologist|counsel+or|translator|editor|director|founder|entrepreneur|professor|lecturer|mechanic"
    r"|veterinarian|vet|surgeon|physicist|chemist|biologist|mathematician|economist|actor|actress|dancer|singer|painter"
    r"|paramedic|firefighter|police officer|soldier|secretary|assistant|salesperson|freelancer|gardener|hairdresser)"
)
ILLNESS = (
    r"(?:[\w-]+ )?(?:diabetes|asthma|migraines?|arthritis|epilepsy|hypertension|high blood pressure|depression|anxiety"
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
    "time ?zone|shoe size|e-?mail(?: address)?|phone(?: number)?|address|job|job title|profession|team"
    "|major|car|company"
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
    r"|headache|thought|favou?r|go|great|good|nice|bad|blast|hard|point|couple|few|little|chance|different)|some|so|fun"
    r"|enough|time|good|great|nothing|something|a)\b(?! (?:dog|cat)))"
)
