"""Questions about conflicts, numbered for a prompt."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from mnemolog.schemas.facts import Candidate, ExtractedFact
from mnemolog.streams.llm.ports import KnownAs, NumberedConflicts, Question
from mnemolog.streams.llm.resolve_prompt import as_extracted_fact, number_questions


def number_conflicts(
    new: Sequence[tuple[ExtractedFact, tuple[Candidate, ...]]],
    *,
    said_at: datetime,
    retries: Sequence[tuple[Candidate, tuple[Candidate, ...]]] = (),
    later_ends: Sequence[tuple[Candidate, Candidate, KnownAs]] = (),
    **more: Any,
) -> NumberedConflicts:
    """New facts with their candidates, unresolved facts with their rivals, and ends with what they may end."""

    def about_known(known: Candidate, candidates: tuple[Candidate, ...], known_as: KnownAs) -> Question:
        return Question(fact=as_extracted_fact(known), candidates=candidates, known=known, known_as=known_as)

    questions = [
        Question(fact=fact, candidates=candidates, place=place) for place, (fact, candidates) in enumerate(new)
    ]
    questions += [about_known(known, rivals, "unresolved") for known, rivals in retries]
    questions += [about_known(end, (statement,), known_as) for end, statement, known_as in later_ends]
    return number_questions(questions, said_at=said_at, **more)
