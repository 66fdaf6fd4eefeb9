"""What the model of a chaos run answers: the home that a statement names; a new home takes the place of the old."""

import re
from typing import Any, Final

from tests.support.builders.model_replies import decision_json, decisions_reply, fact_json, facts_reply
from tests.support.servers.canned_replies import ChatRequest

SPEAKER: Final = re.compile(r"^speaker: (.+)$", re.MULTILINE)
HOME: Final = re.compile(r"I (?:live in|moved from \w+ to) (\w+)\.")
KNOWN: Final = re.compile(r"^K(\d+) \((.*?)\): (.+)$", re.MULTILINE)
NEW: Final = re.compile(r"^N(\d+) \(.*?\): (.+)$", re.MULTILINE)


def home_reply(request: ChatRequest) -> str:
    if request.turn_id is None:
        return _decisions(request.question)
    speaker, home = SPEAKER.search(request.question), HOME.search(request.question)
    if speaker is None or home is None:
        return facts_reply()
    text = f"{speaker[1]} lives in {home[1]}."
    slot: dict[str, Any] = {"key": "home_city", "value": home[1], "single_valued": True}
    return facts_reply(fact_json(text, excerpt=home[0], subject=speaker[1], **slot))


def _decisions(question: str) -> str:
    current = [int(number) for number, notes, _ in KNOWN.findall(question) if "ended" not in notes]
    new = [int(number) for number, _ in NEW.findall(question)]
    return decisions_reply(
        *(decision_json(number, "REPLACE", current[-1]) if current else decision_json(number, "ADD") for number in new)
    )
