"""What is said and not meant: questions, suppositions, irony, tales, and what others are said to think."""

import re
from typing import Final

_HYPOTHESIS: Final = re.compile(
    r"\b(?:if|would|could|should|might|wish|imagine|imagining|suppose|supposed|pretend|pretending|unless|whether"
    r"|as though"
    r"|what if|hypothetically|in theory|let's say|say i|were i|had i|(?:almost|nearly) (?:\w+ed|got|went|became"
    r"|bought|had|quit|left)|it is not that|it's not that|not that i|someday|some day|one day i|maybe one day"
    r"|thinking (?:of|about)|think(?:ing)? i may|considering|toying with|dream(?:s|ing|ed|t)? (?:of|about|that|i)"
    r"|in (?:a|my|another) (?:dream|life)|in a parallel|in the (?:game|novel|book|story|film|movie|play)"
    r"|my character|role-?play|fantasi[sz])\b",
    re.IGNORECASE,
)
_REPORTED: Final = re.compile(
    r"\b(?:he|she|they|people|everyone|everybody|someone|somebody|(?:my|our) [\w ]+?|(?-i:[A-Z])\w+)(?: (?:always"
    r"|still|just|keeps?))?"
    r" (?:says?|said|saying|thinks?|thought|claims?|claimed|believes?|believed|assumes?|assumed|insists?|insisted"
    r"|tells?"
    r"|told \w+|jokes?|joked|wrote|writes)(?: that)? (?:i|i'm|i've|we|he|she|they|it)\b",
    re.IGNORECASE,
)
_OWN_WORDS: Final = re.compile(r"^\W*(?:as|like) (?:i|we) (?:said|told|wrote|mentioned)", re.IGNORECASE)
_IRONY: Final = re.compile(
    r"^\W*(?:oh|yeah|yes|sure|right|well|wow|ah)?\W*(?:(?:oh|yeah|yes),? (?:sure|great|joy|yeah|right|wonderful"
    r"|fantastic|perfect"
    r"|because)|sure, (?:i|we|my|because)|great, (?:another|now|just)|lucky me|what a joy|just what i needed|as if\b)"
    r"|\byeah,? right\b|\bha(?:ha)+\b|\bha,? ha\b|\blol\b|\b(?:just|only) (?:kidding|joking)\b|\b(?:said no one"
    r"|not!)|/s\s*$|\U0001f644"
    r"|\b(?:just |so |absolutely |simply |really )?(?:love|adore|enjoy|like) (?:it (?:so much )?when|how (?:my|the"
    r"|they|it)"
    r"|being (?:stuck|ignored|woken|yelled|late|lied)|nothing (?:more|better) than|waiting|paying)\b"
    r"|\bnothing better than\b|\bof course i\b.*\bbecause who\b|\bwho (?:doesn't|does not|wouldn't)\b"
    r"|\bmy (?:absolute )?dream\b.*\.\.\."
    r"|\b(?:any more|anymore) (?:and|or) i(?:'ll| will)\b|\bfor the (?:hundredth|thousandth|millionth) time\b"
    r"|\b(?:a|one|ten|hundred|thousand|million)(?: thousand)? (?:years|times) old\b",
    re.IGNORECASE,
)
_UNDONE: Final = re.compile(
    r"^\W*(?:(?:just|only) (?:kidding|joking)|kidding|jk|yeah,? right|as if|not|joke|said no one ever)\W*$"
    r"|\b(?:just|only) (?:kidding|joking)\b|\bi was joking\b|\bthat was a joke\b|/s\s*$|\U0001f644",
    re.IGNORECASE,
)


def is_meant(sentence: str) -> bool:
    """Whether a sentence states something as a fact. In doubt it does not."""
    asked = sentence.rstrip("\"')").endswith("?")
    if asked or _HYPOTHESIS.search(sentence) or _IRONY.search(sentence):
        return False
    return bool(_OWN_WORDS.match(sentence)) or not _REPORTED.search(sentence)


def is_taken_back(line: str, sentences: tuple[str, ...]) -> bool:
    """Whether a line ends by saying that it was a joke."""
    return bool(_UNDONE.search(line)) or any(_UNDONE.match(sentence) for sentence in sentences)
