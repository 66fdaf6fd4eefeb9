"""What is said of people whose names change, with a model that takes all that it is shown for what has changed.

What is said of one ends nothing of another; of one and a key one value holds, whatever name was used.
"""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final
from uuid import UUID

from mnemolog.schemas.command import AliasEntity, EntityCommand, MergeEntities, RenameEntity, SplitEntity
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.entity_events import EntitySplit, FactLinked
from mnemolog.schemas.events import ConflictResolved
from mnemolog.streams.llm.ports import NumberedConflict
from tests.properties.harness import Harness
from tests.support.builders.model_replies import decision_json
from tests.support.harnesses.named_people import NamedPeople, named_people

STEPS: Final = 20
NAMES: Final = ("Ana", "Bruno", "Cleo", "Dora", "Emil")
PLACES: Final = {"home_city": ("Bern", "Rome", "Oslo"), "employer": ("Acme", "Initech", "Hooli")}
ACTIVE: Final = "SELECT text, key, value FROM facts WHERE status = 'active' AND user_id = 'alice'"


@dataclass
class Known:
    """Whose each name is, whose fact each text is, and what entities were merged into."""

    holders: dict[str, str] = field(default_factory=dict)
    facts: dict[str, str] = field(default_factory=dict)
    merged: dict[str, str] = field(default_factory=dict)

    def head(self, entity: str | None) -> str | None:
        while entity in self.merged:
            entity = self.merged[entity]
        return entity

    def heads(self) -> list[str]:
        return sorted({str(self.head(one)) for one in self.holders.values()})

    def names_of(self, head: str) -> list[str]:
        return sorted(name for name, holder in self.holders.items() if self.head(holder) == head)

    def free_names(self) -> list[str]:
        return [name for name in NAMES if name not in self.holders]


@dataclass
class History:
    """Steps so far in words; `before` is what was known before the last one, where that was a command."""

    people: NamedPeople
    random: Random
    known: Known = field(default_factory=Known)
    steps: list[str] = field(default_factory=list)
    texts: dict[UUID, str] = field(default_factory=dict)
    before: tuple[Commit, Known] | None = None

    async def grow(self) -> None:
        kinds = ["say", "say", "say", "say", "undo"]
        kinds += ["rename", "call", "move", "split"] if self.known.heads() else []
        kinds += ["merge"] if len(self.known.heads()) > 1 else []
        kind = self.random.choice(kinds)
        if kind == "say":
            await self._say(self.random.choice(NAMES))
        elif kind == "undo":
            await self._undo()
        elif (payload := await self._payload(kind)) is not None:
            before = deepcopy(self.known)
            commit = await self.people.order(payload)
            assert commit.outcome == "done", self._told(commit.detail)
            self._note(payload, commit)
            self.before = commit, before
            self.steps.append(str(payload))

    async def _say(self, name: str) -> None:
        key = self.random.choice(tuple(PLACES))
        value = self.random.choice(PLACES[key])
        text = f"Note {len(self.steps)} about {name}: {value}"
        self.steps.append(text)
        before = {one for one, _, _ in await self.people.rows(ACTIVE)}
        person = [{"name": name, "type": "person", "role": "subject"}]
        kept: dict[str, Any] = {
            "key": key,
            "value": value,
            "single_valued": True,
            "category": "other",
            "search_text": "the same",
        }
        commit = await self.people.say(text, subject=name, entities=person, **kept)
        self._link(name, text, commit)
        whose = self.known.head(self.known.holders[name])
        after = {one: (place, held) for one, place, held in await self.people.rows(ACTIVE)}
        settled: dict[str, str] = {}  # a question that a merge has asked, and this turn's call has answered
        for event in commit.events:
            if isinstance(event, ConflictResolved):
                settled |= dict.fromkeys((self.texts[one] for one in event.targets), self.texts[event.target])
        for ended in before - after.keys():
            ender = settled.get(ended)
            assert self._whose(ended) == (self._whose(ender) if ender else whose), self._told(f"{ended} has ended")
        held = [held for one, (place, held) in after.items() if (self._whose(one), place) == (whose, key)]
        assert held == [value], self._told(f"{key} of {name} is {held}")
        self.before = None

    def _link(self, name: str, text: str, commit: Commit) -> None:
        self.texts |= {fact.fact_id: fact.text for event in commit.events if (fact := event.new_fact) is not None}
        linked = [link for e in commit.entity_events if isinstance(e, FactLinked) for link in e.links]
        for entity in (str(link.entity_id) for link in linked if link.role == "subject"):
            holder = self.known.head(self.known.holders.setdefault(name, entity))
            assert self.known.head(entity) == holder, self._told(f"{name} is {entity}")
            self.known.facts[text] = entity

    def _whose(self, text: str) -> str | None:
        return self.known.head(self.known.facts[text])

    async def _payload(self, kind: str) -> EntityCommand | None:
        """A command that can be done; None where there is none."""
        known = self.known
        head = self.random.choice(known.heads())
        others = [one for one in known.heads() if one != head]
        free = known.free_names()
        entity = await self._entity(head)
        spare = [name for name in known.names_of(head) if name != entity]
        match kind:
            case "rename" if free:
                return RenameEntity(entity_id=UUID(head), name=self.random.choice(free))
            case "call" if free:
                return AliasEntity(entity_id=UUID(head), name=self.random.choice(free))
            case "move" if others and spare:
                to = UUID(self.random.choice(others))
                return AliasEntity(entity_id=to, name=self.random.choice(spare), moved_from=UUID(head))
            case "merge":
                return MergeEntities(entity_ids=(UUID(head),), into=UUID(self.random.choice(others)))
            case "split" if spare:
                name = self.random.choice(spare)
                facts = [fact for fact, text in self.texts.items() if self._whose(text) == head]
                moved = tuple(one for one in facts if self.random.random() < 0.5)
                return SplitEntity(entity_id=UUID(head), name=name, fact_ids=moved, names=(name,))
        return None

    async def _entity(self, head: str) -> str:
        ((name,),) = await self.people.rows("SELECT name FROM entities WHERE entity_id = %s", head)
        return str(name)

    def _note(self, payload: EntityCommand, commit: Commit) -> None:
        known = self.known
        match payload:
            case RenameEntity(entity_id=entity, name=name) | AliasEntity(entity_id=entity, name=name):
                known.holders[name] = str(entity)
            case MergeEntities(entity_ids=(entity,), into=into):
                known.merged[str(entity)] = str(into)
            case SplitEntity(name=name):
                (event,) = [one for one in commit.entity_events if isinstance(one, EntitySplit)]
                known.holders[name] = str(event.new_id)
                known.facts |= dict.fromkeys((self.texts[one] for one in payload.fact_ids), str(event.new_id))

    async def _undo(self) -> None:
        if self.before is not None:
            commit, self.known = self.before
            assert (await self.people.undo(commit)).outcome == "done"
            self.steps.append("undone")
            self.before = None

    def _told(self, fault: str) -> str:
        return "\n".join([fault, *self.steps])


def replace_all(conflict: NumberedConflict) -> Mapping[str, Any]:
    return decision_json(conflict.number, "REPLACE", *(label for label, _ in conflict.candidates))


async def check_subjects(harness: Harness, random: Random) -> None:
    await harness.clean()
    async with named_people(str(harness.settings.postgres), replace_all) as people:
        history = History(people, random)
        for _ in range(STEPS):
            await history.grow()
