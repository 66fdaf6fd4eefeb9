"""What only repeats memory: an application put it into the prompt, so it comes back and proves nothing."""

from collections.abc import Sequence

from mnemolog.schemas.facts import ExtractedFact
from mnemolog.schemas.provenance import DroppedStatement
from mnemolog.schemas.turn import Turn
from mnemolog.streams.llm.reply_parser import comparable_text


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
    echoes = [_is_echo(comparable_text(fact.excerpt), said, recalled) for fact in facts]
    kept = tuple(fact for fact, echo in zip(facts, echoes, strict=True) if not echo)
    dropped = tuple(
        DroppedStatement(text=fact.text, reason="recalled") for fact, echo in zip(facts, echoes, strict=True) if echo
    )
    return kept, dropped


def _is_echo(excerpt: str, user_messages: Sequence[str], recalled: Sequence[str]) -> bool:
    return any(excerpt in text for text in recalled) or not any(excerpt in content for content in user_messages)
