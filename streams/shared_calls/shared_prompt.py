"""The question about several turns of one conversation: the prompt of one turn, with the turns in their order."""

from collections.abc import Sequence
from typing import Final

from mnemolog.schemas.stored import Background
from mnemolog.streams.conversation.background_limits import best_entities, best_facts, in_turn, tokens_of_entities
from mnemolog.streams.llm.extract_prompt import PROMPT_VERSION as ONE_TURN_VERSION
from mnemolog.streams.llm.extract_prompt import background_lines, system_text, turn_lines, turns_schema
from mnemolog.streams.llm.ports import ChatMessage, ExtractionTask, SharedPrompt

PROMPT_VERSION: Final = f"{ONE_TURN_VERSION}-turns-1"
_OPENING: Final = """\
You extract facts for a long-term memory from several turns of one conversation. \
Answer with one JSON object {"turns": [{"turn": 1, "facts": [...]}, ...]}: each turn once, by its number and in order, \
with the facts that its own messages state; the list is empty where nothing of it is worth remembering.
What stands above a turn is what was said before it: it tells what an answer or "it" means there. What stands below it \
was not yet said: a fact is as it was when its turn was said. One that is stated in two turns is a fact of both.
"""


def shared_prompt(tasks: Sequence[ExtractionTask], known: Background) -> SharedPrompt:
    """Ask for the facts of several turns of one scope and policy. What is `known` is shown once, for all of them."""
    lines = background_lines(known)
    seen: set[str] = set()
    for number, task in enumerate(tasks, 1):
        earlier = tuple(one for one in task.background.messages if one.turn_id not in seen)
        seen |= {task.turn.turn_id, *(one.turn_id for one in earlier)}
        lines += [f"turn {number}", *turn_lines(task.turn, Background(messages=earlier))]
    return SharedPrompt(
        purpose="extract",
        version=PROMPT_VERSION,
        messages=(
            ChatMessage(role="system", content=system_text(_OPENING, tasks[0])),
            ChatMessage(role="user", content="\n".join(lines)),
        ),
        schema=turns_schema(tasks[0]),
        tasks=tuple(tasks),
    )


def known_together(tasks: Sequence[ExtractionTask], *, tokens: int) -> Background:
    """What turns are shown together, within the tokens that one turn has for it: the best of each first."""
    names = dict.fromkeys(name for task in tasks for name in task.background.names)
    entities = best_entities(in_turn(*(task.background.entities for task in tasks)), tokens=tokens)
    facts = in_turn(*(task.background.facts for task in tasks))
    return Background(
        names=tuple(names),
        entities=entities,
        facts=best_facts(facts, tokens=tokens - tokens_of_entities(entities)),
    )
