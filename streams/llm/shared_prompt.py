"""One call about several turns of a conversation: which turns share it, its prompt, and each turn's part of the reply.

`turns_together` chooses the turns, `divide_reply` gives each turn the facts of its own messages
with a share of the tokens.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import accumulate
from typing import Any, Final

from mnemolog.common.tokens import estimate_tokens
from mnemolog.schemas.base import normalise
from mnemolog.schemas.policy import EffectivePolicy, exceeded_turn_size
from mnemolog.schemas.stored import Background
from mnemolog.schemas.turn import Overrides, Turn
from mnemolog.streams.llm.ask import find_object
from mnemolog.streams.llm.background import best_shown, in_turn
from mnemolog.streams.llm.evidence import Evidence, evidence_messages, shown_messages
from mnemolog.streams.llm.extract_reply import fact_line, numbered_lines
from mnemolog.streams.llm.ports import ExtractionTask, Reply, Usage
from mnemolog.streams.text.differences import WORDS_FOR_USER
from mnemolog.streams.text.readings import read

_NO_OVERRIDES = Overrides()


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTurn:
    """A turn, the broker's time, position and offset of its record, and its size in bytes."""

    turn: Turn
    published_at: datetime
    position: str
    offset: int
    size: int

    @property
    def place(self) -> tuple[datetime, int]:
        return self.published_at, self.offset


def turns_together(first: CallTurn, waiting: Iterable[CallTurn | None], rules: EffectivePolicy) -> tuple[CallTurn, ...]:
    """`first`, and the later turns that are asked about in the same call.

    None in `waiting` is another record, a command for instance: the turns after it come later. Turns of other scopes
    are passed over, and so are turns that no call asks about, or a call with settings of its own.
    """
    found, tokens, turn_ids = [first], message_tokens(first.turn), {first.turn.turn_id}
    until = first.turn.occurred_at + timedelta(seconds=rules.conversation_age)
    for one in waiting:
        if one is None or len(found) >= most_turns(rules):
            break
        if one.turn.scope != first.turn.scope or not may_share(one, rules):
            continue
        tokens += message_tokens(one.turn)
        in_order = found[-1].turn.occurred_at <= one.turn.occurred_at <= until
        if tokens > rules.call_tokens or one.turn.turn_id in turn_ids or not in_order:
            break
        found.append(one)
        turn_ids.add(one.turn.turn_id)
    return tuple(found)


def may_share(one: CallTurn, rules: EffectivePolicy) -> bool:
    """Whether a turn may share its call: it needs one, has no settings of its own, and may be shown to others."""
    turn = one.turn
    shows_conversation = rules.conversation_messages > 0 and rules.conversation_tokens > 0
    is_asked = turn.infer and bool(evidence_messages(turn)) and turn.overrides == _NO_OVERRIDES
    return is_asked and shows_conversation and exceeded_turn_size(rules, one.size) is None


def most_turns(rules: EffectivePolicy) -> int:
    """How many turns a call may ask about: no more than are accepted in a minute."""
    limits = (limits.turns_per_minute for limits in rules.limits.values())
    return max(1, min([rules.call_turns, *(limit for limit in limits if limit is not None)]))


def message_tokens(turn: Turn) -> int:
    return sum(map(estimate_tokens, (*(message.content for message in shown_messages(turn)), *turn.recalled)))


Part = dict[str, Any]
"""What a reply says of one turn, in the form that the reply to the question of this turn has."""
_LINES: Final = 40
"""Tokens of a turn in the prompt besides its messages: its number, id, time and speaker."""


def divide_reply(reply: Reply, tasks: Sequence[ExtractionTask]) -> list[Reply | None]:
    """The part of each turn as the reply that it would get alone, with its share of the tokens; None without a part.

    A fact is part of the turn that it follows from. A part with a name or a word that only a later turn says is none,
    and so is one behind the last fact of a reply that was cut off. Where no turn has a part the first one gets all of
    the reply, in a form that is no valid reply: it is asked about again alone, and has what the call took.
    """
    said = reply.text.encode("utf-8", "replace").decode()  # half a sign is no JSON
    parts = _without_later(_move_facts(_parts(said, tasks), tasks), tasks)
    texts = [None if part is None else json.dumps(part) for part in parts]
    if all(text is None for text in texts):
        texts[0] = json.dumps({"undivided": f"reply: {said}"})
    asked = [_LINES + message_tokens(task.turn) for task in tasks]
    weights = [0 if text is None else weight for text, weight in zip(texts, asked, strict=True)]
    usages = divide_usage(reply.usage, weights, [len(text or "") for text in texts])
    return [
        None if text is None else Reply(text=text, model=reply.model, usage=usage)
        for text, usage in zip(texts, usages, strict=True)
    ]


def _parts(said: str, tasks: Sequence[ExtractionTask]) -> list[Part | None]:
    """The facts that a reply states of each turn, by their lines and excerpts, and the turn's mood."""
    found = find_object(said, "facts")
    if isinstance(found, str) or not isinstance(found["facts"], list):
        return [None] * len(tasks)
    of_turns = [numbered_lines(task.turn) for task in tasks]
    places = [place for place, lines in enumerate(of_turns) for _ in lines]
    lines = [line for own in of_turns for line in own]
    parts: list[Part] = [{"facts": []} for _ in tasks]
    last = 0
    for name in ("facts", "omitted"):
        for item in found.get(name) or ():
            at = fact_line(item, lines) if isinstance(item, dict) else None
            last = last if at is None else places[at]
            # The line is one of the call, and not of the turn.
            fields = {key: value for key, value in item.items() if key != "line"} if isinstance(item, dict) else None
            own = {} if at is None else {"excerpt": lines[at]}
            parts[last].setdefault(name, []).append(item if fields is None else own | fields)
    for part, mood in zip(parts, found.get("moods") or (), strict=False):
        part["moods"] = [mood]
    is_whole = said.count("{") == said.count("}")
    return [part if is_whole or place <= last else None for place, part in enumerate(parts)]


def _move_facts(parts: Sequence[Part | None], tasks: Sequence[ExtractionTask]) -> list[Part | None]:
    """The parts, with each fact in the turn that it follows from: the stated one, else the nearest.

    Where a fact follows from several turns ("Rome." to two questions), and one of them gets no fact with its excerpt,
    they have no part: the fact may be of any of them.
    """
    evidence = [Evidence(task) for task in tasks]
    moved: list[Part | None] = [None if part is None else {**part, "facts": []} for part in parts]
    excerpts: list[set[str]] = [set() for _ in tasks]  # of the facts that each turn has
    claims: dict[str, set[int]] = {}  # the turns that facts with an excerpt follow from
    facts = ((place, fact) for place, part in enumerate(parts) if part is not None for fact in part["facts"])
    for place, fact in facts:
        stated = (fact.get(name) if isinstance(fact, dict) else None for name in ("text", "excerpt"))
        text, excerpt = (one if isinstance(one, str) else "" for one in stated)
        nearest = sorted(range(len(tasks)), key=lambda other: abs(other - place))
        said_in = [one for one in nearest if evidence[one].messages_of(text, excerpt)]
        if len(said_in) > 1:
            said_in = [one for one in said_in if evidence[one].support(text, excerpt)[0]] or said_in
        own = next((one for one in said_in if moved[one] is not None), place)
        excerpts[own].add(excerpt)
        claims.setdefault(excerpt, set()).update(said_in)
        target = moved[own]
        if target is not None and fact not in target["facts"]:
            target["facts"].append(fact)
    for excerpt, claimed in claims.items():
        if any(excerpt not in excerpts[one] for one in claimed):
            moved = [None if place in claimed else part for place, part in enumerate(moved)]
    return moved


def _without_later(parts: Sequence[Part | None], tasks: Sequence[ExtractionTask]) -> list[Part | None]:
    """The parts, with None for a part that has words of what is said after its turn, and of nothing before it."""
    shown: list[str] = []  # of each turn, with who speaks, and recalled memory
    said: list[frozenset[str]] = []
    for task in tasks:
        messages = shown_messages(task.turn)
        texts = [text for message in messages for text in (message.name, message.content)]
        shown.append("\n".join(filter(None, (task.turn.speaker, *texts, *task.turn.recalled))))
        said.append(read("\n".join(message.content for message in messages)).told)
    kept: list[Part | None] = []
    before = frozenset[str]()
    for place, (part, task) in enumerate(zip(parts, tasks, strict=True)):
        before |= read(shown[place]).told
        told = read("\n".join(_told(part["facts"]))).told if part is not None else frozenset()
        if (strange := (told - before) & frozenset().union(*said[place + 1 :])) and part is not None:
            background = task.background
            known = [*(message.content for message in background.messages), *background.names]
            known += [text for entity in background.entities for text in (entity.name, *entity.names, *entity.ties)]
            known += [text for one in background.facts for text in (one.text, one.value, one.subject) if text]
            kept.append(part if strange <= read("\n".join(known)).told else None)
        else:
            kept.append(part)
    return kept


def _told(facts: Sequence[Any]) -> Iterator[str]:
    """The texts of facts, and what is written as a name in their values, subjects and entities."""
    for fact in (one for one in facts if isinstance(one, dict)):
        entities = fact.get("entities")
        named = [one.get("name") for one in entities if isinstance(one, dict)] if isinstance(entities, list) else []
        names = (fact.get("value"), fact.get("subject"), fact.get("about"), fact.get("names"), *named)
        words = (word for name in names if isinstance(name, str) for word in name.split())
        yield from (word for word in words if word[0].isupper() and normalise(word) not in WORDS_FOR_USER)
        if isinstance(text := fact.get("text"), str):
            yield text


def divide_usage(usage: Usage, asked: Sequence[int], said: Sequence[int]) -> list[Usage]:
    """Shares whose sum is `usage`: of the input in proportion to what was `asked`, of the output to what was `said`."""
    cached = min(usage.cached_tokens or 0, usage.input_tokens)
    fresh = divide(usage.input_tokens - cached, asked)
    inputs = zip(fresh, divide(cached, asked), divide(usage.cached_tokens or 0, asked), strict=True)
    outputs = divide(usage.output_tokens, said)
    return [
        Usage(
            input_tokens=own_fresh + own_cached,
            output_tokens=own_output,
            cached_tokens=None if usage.cached_tokens is None else told,
        )
        for (own_fresh, own_cached, told), own_output in zip(inputs, outputs, strict=True)
    ]


def divide(total: int, weights: Sequence[int]) -> list[int]:
    """Whole shares of `total` in proportion to the weights, without loss; what rounding leaves goes to the first."""
    whole = sum(weights)
    if not whole:
        return [total, *(0 for _ in weights[1:])]
    ends = [total * seen // whole for seen in accumulate(weights)]
    return [end - begin for begin, end in zip([0, *ends], ends, strict=False)]


def known_together(tasks: Sequence[ExtractionTask], *, tokens: int) -> Background:
    """What turns are shown together, within the tokens that one turn has for it: the best of each first."""
    names = dict.fromkeys(name for task in tasks for name in task.background.names)
    entities, facts = best_shown(
        in_turn(*(task.background.entities for task in tasks)),
        in_turn(*(task.background.facts for task in tasks)),
        tokens=tokens,
    )
    return Background(names=tuple(names), entities=entities, facts=facts)
