"""Ask all questions of the dialogues in every way to search, and measure what each finds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mnemolog.streams.llm.ports import Embedder
from mnemolog.streams.text.asked_period import asked_period
from tests.recall.dialogues import Dialogues, Question
from tests.recall.measures import Measures, Ranking, measure
from tests.recall.stored import KINDS, Kind, StoredDialogues, user_of
from tests.recall.variations import VARIATIONS, AskedQuestion, sources_found


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The measures of every question of some dialogues, by the name of the variation, in the order of `questions`."""

    kind: Kind
    questions: Sequence[Question]
    measures: Mapping[str, Sequence[Measures]]


async def measure_all(dialogues: Dialogues, stored: StoredDialogues, embedder: Embedder) -> list[Figures]:
    """The figures of facts, and those of raw messages."""
    return [await _measure(kind, dialogues, stored, embedder) for kind in KINDS]


async def _measure(kind: Kind, dialogues: Dialogues, stored: StoredDialogues, embedder: Embedder) -> Figures:
    questions = list(answerable(dialogues, kind))
    vectors = (await embedder.embed([question.text for question in questions])).vectors
    asked = [
        AskedQuestion(
            text=question.text,
            vector=vector,
            user_id=user_of(kind, question.conversation),
            at=(at := dialogues.asked_at(question.conversation)),
            period=asked_period(question.text, at),
        )
        for question, vector in zip(questions, vectors, strict=True)
    ]
    measures = {}
    for variation in VARIATIONS:
        found = await sources_found(stored.pool, asked, variation)
        measures[variation.name] = [
            measure(Ranking(hits=[stored.evidence[source] for source in sources], evidence=question.evidence))
            for question, sources in zip(questions, found, strict=True)
        ]
    return Figures(kind=kind, questions=questions, measures=measures)


def answerable(dialogues: Dialogues, kind: Kind) -> list[Question]:
    """The questions with the evidence that can be found at all: of facts, the turns that some fact rests on."""
    if kind == "turns":
        return list(dialogues.questions)
    covered = frozenset().union(*(fact.evidence for fact in dialogues.facts))
    found = (question.restricted_to(covered) for question in dialogues.questions)
    return [question for question in found if question.evidence]
