"""Ask all questions of the dialogues in every way to search, and measure what each finds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.recall.asking import AskedQuestion, Asker
from tests.recall.dialogues import Dialogues, Question
from tests.recall.measures import Measures, Ranking, measure
from tests.recall.stored import KINDS, Kind, StoredDialogues, user_of
from tests.recall.variations import VARIATIONS, Variation


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The measures of every question of some dialogues, by the name of the variation, in the order of `questions`."""

    kind: Kind
    questions: Sequence[Question]
    measures: Mapping[str, Sequence[Measures]]


async def measure_all(
    dialogues: Dialogues, stored: StoredDialogues, asker: Asker, variations: Sequence[Variation] = VARIATIONS
) -> list[Figures]:
    """The figures of facts, without and with excerpts, and those of raw messages."""
    return [await _measure(kind, dialogues, stored, asker, variations) for kind in KINDS]


async def _measure(
    kind: Kind, dialogues: Dialogues, stored: StoredDialogues, asker: Asker, variations: Sequence[Variation]
) -> Figures:
    questions = list(answerable(dialogues, kind))
    asked = [
        AskedQuestion(
            text=question.text,
            user_id=user_of(kind, question.conversation),
            at=dialogues.asked_at(question.conversation),
        )
        for question in questions
    ]
    measures = {}
    for variation in variations:
        if variation.kind not in (None, kind):
            continue
        found = await asker.sources_found(asked, variation)
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
