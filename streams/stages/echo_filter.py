"""Drops extracted facts that only repeat recalled memory, which an application put into the prompt."""

from collections.abc import Sequence

from mnemolog.schemas.facts import ExtractedFact
from mnemolog.schemas.provenance import DroppedStatement
from mnemolog.schemas.turn import Turn
from mnemolog.streams.text.differences import texts_equivalent
from mnemolog.streams.text.normalise import comparable_text, has_words, without_texts


def drop_recalled_echoes(
    facts: Sequence[ExtractedFact], turn: Turn
) -> tuple[tuple[ExtractedFact, ...], tuple[DroppedStatement, ...]]:
    """The facts that the user states, and those that echo `turn.recalled`, dropped as `recalled`.

    A fact is an echo if no user says its excerpt, but for copies of whole recalled texts, or if it says just what a
    recalled text says, by words, and its excerpt is a part of that. A short answer ("No", "2", "Berlin") is none, even
    where the memory has that word. Without recalled texts all facts are kept.
    """
    recalled = tuple(filter(None, map(comparable_text, turn.recalled)))
    if not recalled:
        return tuple(facts), ()
    said = tuple(comparable_text(message.content) for message in turn.messages if message.role == "user")
    kept: list[ExtractedFact] = []
    dropped: list[DroppedStatement] = []
    for fact in facts:
        excerpt = comparable_text(fact.excerpt)
        hiding = [text for text in recalled if excerpt in text]
        is_said = any(has_words(without_texts(content, hiding), excerpt) for content in said)
        repeats = any(has_words(text, excerpt) and texts_equivalent(fact.text, text) for text in turn.recalled)
        if is_said and not repeats:
            kept.append(fact)
        else:
            dropped.append(DroppedStatement(text=fact.text, reason="recalled", excerpt=fact.excerpt))
    return tuple(kept), tuple(dropped)
