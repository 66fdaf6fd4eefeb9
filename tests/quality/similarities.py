"""Similarities of labelled pairs of facts, as they are embedded: the plain text, and the search text of an extraction.

The pairs are those of `labelled_pairs` and the English cases of the labelled conflicts. For an extraction each sentence
is said by its subject ("Bob works at Bosch." becomes "I work at Bosch."), since that is what turns hold.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import product
from typing import Final, Literal

from mnemolog.schemas.facts import CATEGORIES, ExtractedFact
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Message, Turn
from mnemolog.schemas.vector import cosine_similarity
from mnemolog.streams.llm.extract_prompt import extraction_prompt
from mnemolog.streams.llm.extract_reply import parse_extraction
from mnemolog.streams.llm.ports import ChatModel, Embedder, ExtractionTask
from mnemolog.streams.text.differences import texts_equivalent
from tests.quality.cases import Case, load
from tests.support.cases.labelled_pairs import (
    COMPATIBLE,
    CONTRADICTING,
    ENDED_BY,
    SAME_MEANING,
    UNRELATED,
    Pairs,
)

Label = Literal["same", "update", "compatible", "unrelated"]
LABELS: Final[tuple[Label, ...]] = ("same", "update", "compatible", "unrelated")
PAIRS: Final[tuple[tuple[Pairs, Label], ...]] = (
    (SAME_MEANING, "same"),
    (CONTRADICTING, "update"),
    (ENDED_BY, "update"),
    (COMPATIBLE, "compatible"),
    (UNRELATED, "unrelated"),
)
SPEAKER: Final = "Alice"
SAID_AT: Final = datetime(2024, 6, 1, 12, tzinfo=UTC)
UNRELATED_DISTANCE: Final = 31
"""How many cases lie between two that are held against each other as unrelated: they are of different families."""
EMBEDDED_AT_ONCE: Final = 64
_FIRST_PERSON: Final = {"has": "have", "is": "am", "was": "was", "does": "do", "goes": "go", "studies": "study"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A known text and a new one. `ends` says that extraction took the new one for an update or a retraction."""

    label: Label
    known: str
    new: str
    similarity: float
    equivalent: bool
    ends: bool = False


Draft = tuple[Label, ExtractedFact, ExtractedFact]
"""A known fact and a new one, before they are embedded."""


async def plain_pairs(embedder: Embedder) -> list[Pair]:
    """What raw stores and commands embed: texts as they are given."""

    def fact(text: str) -> ExtractedFact:
        return ExtractedFact(text=text, search_text=text, excerpt=text)

    drafts = [(label, fact(known), fact(new)) for table, label in PAIRS for known, new in table]
    for case in _english():
        if label_of_case := _label(case):
            concerned = (case.known[place] for place in case.concerns)
            drafts += [(label_of_case, fact(known.text), fact(case.turn.text)) for known in concerned]
    return await _measured(embedder, drafts)


async def extracted_pairs(chat: ChatModel, embedder: Embedder) -> list[Pair]:
    """What a smart store embeds: the search texts of the facts that `chat` extracts. Pairs without facts are left out.

    A statement of several facts makes a pair of each with each of the other's.
    """
    drafts: list[Draft] = []
    for table, label in PAIRS:
        for sentences in table:
            known, new = [await extract(chat, *said_by_subject(sentence)) for sentence in sentences]
            drafts += product([label], known[-1:], new[-1:])
    cases = _english()
    of_known = [[await extract(chat, SPEAKER, said.text) for said in case.known] for case in cases]
    of_turn = [await extract(chat, SPEAKER, case.turn.text) for case in cases]
    unrelated: Label = "unrelated"
    for number, case in enumerate(cases):
        if label_of_case := _label(case):
            for place in case.concerns:
                drafts += product([label_of_case], of_known[number][place], of_turn[number])
        drafts += product([unrelated], of_known[number - UNRELATED_DISTANCE][0], of_turn[number])
    return await _measured(embedder, drafts)


def _english() -> list[Case]:
    return [case for case in load() if case.language == "en"]


def _label(case: Case) -> Label | None:
    """What the best outcome of a case says of its facts; None where it says nothing is stated."""
    match case.right[0]:
        case "KEEP" | "SKIP":
            return "same"
        case "REPLACE" | "CONTRADICT" | "RETRACT" | "EXPIRE":
            return "update"
        case "ADD" | "SIMILAR" | "EXTEND":
            return "compatible"
        case _:
            return None


def said_by_subject(sentence: str) -> tuple[str, str]:
    """The subject of a labelled sentence, and the sentence in the first person."""
    if match := re.match(r"(\w+)'s (.*)", sentence):
        return match[1], f"My {match[2]}"
    name, verb, rest = re.split(r"\b ", sentence, maxsplit=2) if sentence.count(" ") > 1 else (*sentence.split(), "")
    return name, f"I {_FIRST_PERSON.get(verb) or verb.removesuffix('s')} {rest}".strip()


async def extract(chat: ChatModel, speaker: str, words: str) -> tuple[ExtractedFact, ...]:
    """The facts that a model finds in one message; none where its reply is not valid."""
    turn = Turn(
        turn_id="t",
        scope=Scope(user_id="u"),
        messages=(Message(role="user", content=words),),
        occurred_at=SAID_AT,
        speaker=speaker,
    )
    task = ExtractionTask(turn=turn, categories=CATEGORIES)
    reply = await chat.complete(extraction_prompt(task))
    return parse_extraction(reply.text, task).value or ()


async def _measured(embedder: Embedder, drafts: Sequence[Draft]) -> list[Pair]:
    texts = sorted({fact.search_text for _, *both in drafts for fact in both})
    vectors = [
        vector.values
        for start in range(0, len(texts), EMBEDDED_AT_ONCE)
        for vector in (await embedder.embed(texts[start : start + EMBEDDED_AT_ONCE])).vectors
    ]
    of_text = dict(zip(texts, vectors, strict=True))
    return [
        Pair(
            label=label,
            known=known.search_text,
            new=new.search_text,
            similarity=cosine_similarity(of_text[known.search_text], of_text[new.search_text]),
            equivalent=texts_equivalent(known.text, new.text),
            ends=new.action_hint != "new",
        )
        for label, known, new in drafts
    ]
