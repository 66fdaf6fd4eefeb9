"""Drops extracted facts that only repeat recalled memory, which an application put into the prompt."""

from collections.abc import Sequence

from mnemolog.schemas.facts import ExtractedFact
from mnemolog.schemas.provenance import DroppedStatement
from mnemolog.schemas.turn import Turn
from mnemolog.streams.text.normalise import comparable_text


def drop_recalled_echoes(
    facts: Sequence[ExtractedFact], turn: Turn
) -> tuple[tuple[ExtractedFact, ...], tuple[DroppedStatement, ...]]:
    """The facts that the user states, and those that echo `turn.recalled`, dropped as `recalled`.

    Where memory was recalled a fact needs words of a user that are not a part of a recalled text: what only others say
    may come from memory. Without recalled texts all facts are kept.
    """
    recalled = tuple(filter(None, map(comparable_text, turn.recalled)))
    if not recalled:
        return tuple(facts), ()
    said = tuple(comparable_text(message.content) for message in turn.messages if message.role == "user")
    kept: list[ExtractedFact] = []
    dropped: list[DroppedStatement] = []
    for fact in facts:
        excerpt = comparable_text(fact.excerpt)
        if any(excerpt in text for text in recalled) or not any(excerpt in content for content in said):
            dropped.append(DroppedStatement(text=fact.text, reason="recalled", excerpt=fact.excerpt))
        else:
            kept.append(fact)
    return tuple(kept), tuple(dropped)
