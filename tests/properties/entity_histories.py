"""Random histories of turns, commands about entities and undos, through the real stages, held to the oracle."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from uuid import UUID

from mnemolog.schemas.commit import Commit
from mnemolog.schemas.entities.commands import (
    AliasEntity,
    EntityCommand,
    ForgetEntity,
    MergeEntities,
    RenameEntity,
    SplitEntity,
)
from mnemolog.schemas.entities.events import EntityRegistered, FactLinked
from tests.properties.entity_oracle import (
    Called,
    Forgotten,
    Merged,
    Renamed,
    Said,
    Seen,
    Split,
    Step,
    Undone,
    world_after,
)
from tests.support.harnesses.named_people import NamedPeople

NAMES = ("Ana", "Bruno", "Cleo", "Dora", "Emil", "Fritz", "Greta", "Hugo")
"""None is a part or a short form of another one."""
MOVES = 0.8
"""How often a name that is to move is one that can."""
SEEN = """
SELECT e.entity_id, e.name,
    ARRAY(SELECT DISTINCT n.alias FROM current_entity_names n WHERE n.entity_id = e.entity_id AND n.kind = 'name'),
    ARRAY(
        SELECT DISTINCT f.text FROM current_entity_links l JOIN facts f USING (fact_id)
        WHERE l.entity_id = e.entity_id AND f.status = 'active'
    )
FROM entities e
WHERE e.status = 'active' AND e.user_id = 'alice'
    AND NOT EXISTS (SELECT FROM current_entity_names n WHERE n.entity_id = e.entity_id AND n.kind = 'user')
"""


@dataclass
class History:
    """A history so far: its steps for the oracle, and the commits that the product made of them."""

    people: NamedPeople
    random: Random
    steps: list[Step] = field(default_factory=list)
    commits: list[Commit] = field(default_factory=list)

    async def grow(self) -> None:
        """One more step."""
        known = sorted(self._seen())
        kinds = ["say", "say", "undo"] + (["rename", "call", "split", "forget"] if known else [])
        match self.random.choice([*kinds, "merge"] if len(known) > 1 else kinds):
            case "say":
                await self._say()
            case "undo":
                await self._undo()
            case kind:
                await self._command(kind, known)

    async def read(self) -> dict[str, Seen]:
        """What readers see now."""
        rows = await self.people.rows(SEEN)
        return {str(entity_id): Seen(name, set(names), set(facts)) for entity_id, name, names, facts in rows}

    def expected(self) -> dict[str, Seen]:
        return self._seen()

    def _seen(self) -> dict[str, Seen]:
        return world_after(self.steps).seen()

    async def _say(self) -> None:
        name = self.random.choice(NAMES)
        called = [entity for entity, seen in self._seen().items() if name in seen.names]
        text = f"Note {len(self.steps)} is about {name}"
        commit = await self.people.say(text, (name, "person"))
        registered = [
            str(e.entity_id) for e in commit.entity_events if isinstance(e, EntityRegistered) and e.name == name
        ]
        links = [link for e in commit.entity_events if isinstance(e, FactLinked) for link in e.links]
        (entity,) = [str(link.entity_id) for link in links if link.role == "object"]
        assert called == [entity] if len(called) == 1 else registered == [entity], (name, called)
        self._note(Said(fact=text, name=name, entity=entity, is_new=bool(registered)), commit)

    async def _undo(self) -> None:
        undoable = [place for place, step in enumerate(self.steps) if _is_last_word(step, self.steps)]
        if not undoable:
            return
        place = self.random.choice(undoable)
        commit = await self.people.undo(self.commits[place])
        assert commit.outcome == "done", commit.detail
        target = self.steps[place]
        target.holds = False
        original = target
        while isinstance(original, Undone):
            original = original.target
        original.holds = isinstance(target, Undone)
        self._note(Undone(target=original), commit)

    async def _command(self, kind: str, known: Sequence[str]) -> None:
        seen = self._seen()
        entity, other = self.random.choice(known), self.random.choice(known)
        name = self.random.choice(NAMES)
        holders = [one for one, what in seen.items() if name in what.names]
        match kind:
            case "rename":
                payload: EntityCommand = RenameEntity(entity_id=UUID(entity), name=name)
                step: Step = Renamed(entity=entity, name=name)
                fits = not set(holders) - {entity}
            case "call":
                loser = self.random.choice([None, other, other])
                if loser is not None and self.random.random() < MOVES:
                    name = self.random.choice(sorted(seen[loser].names))
                    holders = [one for one, what in seen.items() if name in what.names]
                payload = AliasEntity(entity_id=UUID(entity), name=name, moved_from=UUID(loser) if loser else None)
                step = Called(entity=entity, name=name, loser=loser)
                fits = not set(holders) - {entity}
                if loser is not None:
                    fits = loser != entity and loser in holders and seen[loser].name != name
            case "merge":
                payload = MergeEntities(entity_ids=(UUID(entity),), into=UUID(other))
                step, fits = Merged(entities=[entity], into=other), entity != other
            case "forget":
                payload, step, fits = ForgetEntity(entity_id=UUID(entity)), Forgotten(entity=entity), True
            case _:
                await self._split(entity, name, seen, holders)
                return
        commit = await self.people.order(payload)
        assert commit.outcome == ("done" if fits else "rejected"), (payload, commit.detail)
        if commit.entity_events:
            self._note(step, commit)

    async def _split(self, entity: str, name: str, seen: dict[str, Seen], holders: Sequence[str]) -> None:
        mine = seen[entity]
        facts = [fact for fact in sorted(mine.facts) if self.random.random() < 0.5]
        names = [one for one in sorted(mine.names) if one != mine.name and self.random.random() < 0.5]
        if not facts and not names:
            return
        rows = await self.people.rows("SELECT text, fact_id FROM facts WHERE text = ANY(%s)", facts)
        ids: dict[str, UUID] = dict(rows)
        commit = await self.people.order(
            SplitEntity(
                entity_id=UUID(entity), name=name, fact_ids=tuple(ids[fact] for fact in facts), names=tuple(names)
            )
        )
        fits = not holders or name in names
        assert commit.outcome == ("done" if fits else "rejected"), commit.detail
        if fits:
            new = str(commit.entity_events[0].new_id)  # type: ignore[union-attr]
            rest = [one for one in names if one != name]
            self._note(Split(entity=entity, new=new, name=name, facts=facts, names=rest), commit)

    def _note(self, step: Step, commit: Commit) -> None:
        self.steps.append(step)
        self.commits.append(commit)


def _is_last_word(step: Step, steps: Sequence[Step]) -> bool:
    """Whether a step can be undone: it holds, and an undo is the last one of what it undid."""
    if not isinstance(step, Undone):
        return step.holds
    turned = [one for one in steps if isinstance(one, Undone) and one.target is step.target]
    return turned[-1] is step and not step.target.holds
