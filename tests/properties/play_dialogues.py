"""Plays dialogues through the real stages with the rules of the offline provider in the place of a language model."""

import re
from collections.abc import Awaitable, Iterator
from random import Random
from typing import Any, Final

from mnemolog.projections.queries.facts import facts
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.schemas.turn import Message, Turn
from mnemolog.streams.llm.ports import Prompt, Reply
from mnemolog.streams.offline.model import RuleModel
from tests.properties.dialogues import NAME, SINGLE, VALUES, Dialogue, Told, drawn_dialogue, told_by
from tests.properties.harness import Harness
from tests.properties.play import smallest
from tests.properties.steps import on_day

LAST_DAY: Final = 55
"""When all that lies ahead has begun."""


class RuleReader:
    def __init__(self) -> None:
        self._rules = RuleModel()

    def reply(self, _source_id: str, prompt: Prompt, _attempt: int) -> Awaitable[Reply]:
        return self._rules.complete(prompt)


async def check_dialogues(harness: Harness, random: Random) -> None:
    await smallest(drawn_dialogue(random), lambda dialogue: _check(harness, dialogue))


async def _check(harness: Harness, dialogue: Dialogue) -> None:
    owner = await harness.start_history(RuleReader())
    for day, line in enumerate(dialogue.steps):
        asked = (Message(role="assistant", content=line.asked),) if line.asked else ()
        turn = Turn(
            turn_id=f"t{day}",
            scope=owner.scope,
            messages=(*asked, Message(role="user", content=line.text.replace("|", ""))),
            occurred_at=on_day(day),
            speaker=NAME,
            recalled=line.recalled,
        )
        await owner.publish_turn(turn, now=on_day(day))
    now = on_day(LAST_DAY)
    await owner.run_timer(now=now)
    async with harness.pool.connection() as conn:
        listed = await facts(conn, ScopeFilter(user_id=owner.scope.user_id), at=now)
    told = told_by(dialogue.steps)
    faults = [*_value_faults(listed, told), *_sentence_faults(listed, told)]
    shown = [f"{one.text} {one.key or ''}{' unresolved' if one.unresolved else ''}" for one in listed]
    assert not faults, "\n  ".join([*faults, str(dialogue), *(f"-> {one}" for one in shown)])


def _value_faults(listed: list[Any], told: Told) -> Iterator[str]:
    """Values that are certain and were not told, or two where one can be; and those that are missing."""
    certain = [one for one in listed if not one.unresolved]
    values = {(one.key, one.value) for one in certain if one.key in VALUES or one.key in ("cat", "brother")}
    if wrong := values - told.values:
        yield f"nobody has told {sorted(wrong)}"
    if missing := {one for one in told.values - values if one[0] not in told.doubtful}:
        yield f"{sorted(missing)} are missing"
    for key in SINGLE:
        if len(found := sorted(value for of, value in values if of == key)) > 1:
            yield f"{key} is {found}"


def _sentence_faults(listed: list[Any], told: Told) -> Iterator[str]:
    """Sentences that are missing, stay although they were taken back, or have half of their days."""
    certain = [one for one in listed if not one.unresolved]
    texts = [one.text.removeprefix(f"{NAME}: ") for one in certain]
    for words in told.listed:
        if not any(text.startswith(words) for text in texts):
            yield f"{words!r} is not listed"
    for words, days in told.spans.items():
        for text in (one for one in texts if one.startswith(words)):
            if (noted := {*re.findall(r"\d{4}-\d\d-\d\d", text)}) - days or len(noted) == 1:
                yield f"{text!r} is of {sorted(days)}"
    for words in told.gone:
        if words in texts:
            yield f"{words!r} is still listed"
