"""The recorded LoCoMo dialogues: messages, sentences that state what they tell, and questions with their evidence."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import orjson

CHOOSING: Final = ("conv-26", "conv-30", "conv-41")
"""What a search does by default may be chosen on these dialogues: the first three by name."""
REPORTING: Final = ("conv-42", "conv-43")
"""Nothing was chosen on these."""
CATEGORIES: Final = {1: "several messages", 2: "time", 3: "world knowledge", 4: "one message"}
"""The data set's categories 1 to 4. Those of category 5 ask for what was not said, so nothing is evidence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedTurn:
    """One message of a dialogue; `image` is the caption of a picture sent with it."""

    conversation: str
    session: int
    turn_id: str
    speaker: str
    text: str
    occurred_at: datetime
    image: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedFact:
    """A sentence of an annotator about one speaker, and the turns that it rests on."""

    conversation: str
    fact_id: str
    subject: str
    text: str
    evidence: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question, and the ids of the turns that answer it together."""

    conversation: str
    category: int
    text: str
    evidence: frozenset[str]

    def restricted_to(self, turns: frozenset[str]) -> "Question":
        """The same with these of its evidence alone."""
        return replace(self, evidence=self.evidence & turns)


@dataclass(frozen=True)
class Dialogues:
    """All dialogues; questions without any evidence among the messages are left out."""

    turns: Sequence[RecordedTurn]
    facts: Sequence[RecordedFact]
    questions: Sequence[Question]

    @cached_property
    def times(self) -> Mapping[str, datetime]:
        """When each turn was said."""
        return {turn.turn_id: turn.occurred_at for turn in self.turns}

    def said_at(self, fact: RecordedFact) -> datetime:
        """When the last of the messages was said that a fact rests on."""
        return max(self.times[turn_id] for turn_id in fact.evidence)

    def asked_at(self, conversation: str) -> datetime:
        """Its questions are asked at its end."""
        return max(turn.occurred_at for turn in self.turns if turn.conversation == conversation)


def load_dialogues(folder: Path) -> Dialogues:
    """Read turns.jsonl, observations.jsonl and questions.jsonl."""

    def lines(name: str) -> list[dict[str, Any]]:
        return [orjson.loads(line) for line in (folder / f"{name}.jsonl").read_bytes().splitlines()]

    turns = [
        RecordedTurn(
            conversation=line["conversation"],
            session=line["session"],
            turn_id=line["turn_id"],
            speaker=line["speaker"],
            text=line["text"],
            occurred_at=datetime.fromisoformat(line["occurred_at"]),
            image=line.get("image_caption"),
        )
        for line in lines("turns")
    ]
    known = frozenset(turn.turn_id for turn in turns)
    facts = [
        RecordedFact(
            conversation=line["conversation"],
            fact_id=f"fact-{number}",
            subject=line["subject"],
            text=line["fact"],
            evidence=known.intersection(line["evidence"]),
        )
        for number, line in enumerate(lines("observations"))
    ]
    questions = [
        Question(
            conversation=line["conversation"],
            category=line["category"],
            text=line["question"],
            evidence=known.intersection(line["evidence"]),
        )
        for line in lines("questions")
        if line["category"] in CATEGORIES
    ]
    return Dialogues(
        turns=turns,
        facts=[fact for fact in facts if fact.evidence],
        questions=[question for question in questions if question.evidence],
    )
