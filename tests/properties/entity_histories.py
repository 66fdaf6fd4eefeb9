"""Random histories of turns, commands about entities and undos, through the real stages, held to the oracle."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from uuid import UUID

from hypothesis.strategies import SearchStrategy, integers

from mnemolog.projections.queries.entities import entities, relations, summary_of
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.projections.rebuild.rebuild import rebuild
from mnemolog.projections.rebuild.replay import TableLogSource
from mnemolog.schemas.command import (
    AliasEntity,
    Confirm,
    Delete,
    EntityCommand,
    ForgetEntity,
    MergeEntities,
    Reject,
    RenameEntity,
    SplitEntity,
    SummariseEntity,
)
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.entity_events import EntitySplit, EntitySummarised, MergeProposed
from mnemolog.schemas.scope import Scope
from tests.properties.entity_naming import given_names, has_name, holders_of, meant, said_by
from tests.properties.entity_oracle import Name, Seen, World, key_of, world_after
from tests.properties.entity_steps import (
    Called,
    Deleted,
    Forgotten,
    Merged,
    Rejected,
    Renamed,
    Said,
    Split,
    Step,
    Summarised,
    Undone,
)
from tests.properties.entity_themes import TIES, Theme, drawn_theme
from tests.properties.harness import Harness
from tests.support.builders.commits import ALICE, BOB
from tests.support.harnesses.named_people import NamedPeople, named_people

MOVES = 0.8
"""How often a name that is to move is one that can."""
RETURNS = 0.5
"""How often what is said again was taken back, and what is undone is something that a person decided on later."""
UNTIED = 0.5
"""How often a tie of somebody without a name is told of one who has a name and no tie, if there are both."""
NAMELESS = 0.5
"""How often what is split is somebody without a name, if there is one."""
STEPS = 60
"""Of both together."""
REBUILDS = 0.03
"""How often the tables are rebuilt between two steps."""
NAMED = """
SELECT l.current_id, f.fact_id, f.text FROM fact_entities l JOIN facts f USING (fact_id)
WHERE f.user_id = %s AND f.status = 'active' AND l.current_id IS NOT NULL
"""


@dataclass
class History:
    """A history so far: its steps for the oracle, and the commits that the product made of them."""

    people: NamedPeople
    random: Random
    scope: Scope
    theme: Theme
    steps: list[Step] = field(default_factory=list)
    commits: list[Commit] = field(default_factory=list)
    strangers: list[str] = field(default_factory=list)
    """Entities of another scope: no command may name them."""
    proposals: dict[int, UUID] = field(default_factory=dict)
    """The events of the proposed merges, each by its step."""

    async def grow(self) -> None:
        """One more step."""
        known = sorted(self._world().known())
        match self.random.choice(self.theme.kinds(len(known))):
            case "say":
                await self._say(self.random.choice(self.theme.names))
            case "say tie":
                await self._say(self._tied_words())
            case "again":
                await self._say(self._words_again())
            case "undo":
                await self._undo()
            case "settle":
                await self._settle()
            case "delete":
                await self._delete()
            case "summarise":
                await self._summarise(self.random.choice(known))
            case kind:
                await self._command(kind, known)

    async def read(self) -> dict[str, Seen]:
        """What readers see now."""
        seen = {}
        has_summaries = any(isinstance(step, Summarised) for step in self.steps)
        async with self.people.pipeline.pool.connection() as conn:
            for one in await entities(conn, ScopeFilter.of_scope(self.scope)):
                if not one.is_user:
                    summary = await summary_of(conn, one.entity_id) if has_summaries else None
                    shown = (summary.version, summary.changed) if summary else None
                    seen[str(one.entity_id)] = Seen(one.name, {one.name, *one.aliases}, summary=shown)
        texts = {}
        for entity, fact, text in await self.people.rows(NAMED, self.scope.user_id):
            texts[fact] = text
            if str(entity) in seen:
                seen[str(entity)].facts.add(text)
        for (other, predicate), evidence in (await self._ties()).items():
            seen[other].ties[predicate] = {texts[fact] for fact in evidence}
        pending = "SELECT merged, into_id FROM merge_proposals WHERE is_pending AND user_id = %s"
        for one, other in await self.people.rows(pending, self.scope.user_id):
            for mine, theirs in ((one, other), (other, one)):
                if str(mine) in seen:
                    seen[str(mine)].pending.add(str(theirs))
        return {entity: what for entity, what in seen.items() if entity not in self._world().unclear()}

    async def _ties(self) -> dict[tuple[str, str], list[UUID]]:
        """Per entity and predicate the evidence that it is this to the user, which readers see from both sides."""
        found: tuple[dict[tuple[str, str], list[UUID]], ...] = ({}, {})
        async with self.people.pipeline.pool.connection() as conn:
            for one in await relations(conn, ScopeFilter.of_scope(self.scope), mirrors=True):
                other = one.subject_id if one.is_mirror else one.object_id
                found[one.is_mirror][str(other), one.predicate] = one.evidence
        stated, mirrored = found
        assert stated == mirrored, self.told([f"{stated} is {mirrored} from the other side"])
        return stated

    def expected(self) -> dict[str, Seen]:
        world = self._world()
        seen = {entity: what for entity, what in world.seen().items() if entity not in world.unclear()}
        for one in seen.values():
            one.names.add(one.name)
        return seen

    def told(self, first: Sequence[str]) -> str:
        """The history in words, behind some lines."""
        return "\n".join([*first, f"history of {self.scope.user_id}, {self.theme}:", *map(str, self.steps)])

    def _world(self) -> World:
        return world_after(self.steps)

    async def _say(self, words: str) -> None:
        world = self._world()
        told = world.told()
        known = {
            head: [one for one in names if not one.is_tie or one in told[head]] for head, names in world.known().items()
        }
        tie, name = words if words in TIES else key_of(words), words.rsplit(maxsplit=1)[-1]
        called = holders_of(name, known) if words not in TIES else []
        tied = holders_of(tie, known) if tie in TIES else []
        expected = meant(words, known, called, tied)
        text = f"Note {len(self.steps)} is about {words}"
        commit = await self.people.say(text, (words, "person"), scope=self.scope)
        step = said_by(commit, text)
        entity = step.entity if step.is_new else world.heads[step.entity]
        assert expected == (None if step.is_new else entity), self.told([f"{words} is {expected}: {step}"])
        assert step.gives == given_names(words, told.get(entity), told), (words, step)
        nameless = [one for one in tied if all(other.is_tie for other in known[one])]
        fits = words not in TIES and not step.is_new and len(nameless) == 1 and entity not in nameless
        fits = fits and not world.is_decided(nameless[0], entity)
        assert step.proposed == ((nameless[0], entity) if fits else None), (words, nameless, step)
        for event in commit.entity_events:
            if isinstance(event, MergeProposed):
                self.proposals[len(self.steps)] = event.event_id
        self._note(step, commit)

    def _tied_words(self) -> str:
        """Somebody who is something to the user, with a name or without."""
        known = self._world().known().values()
        untied = {name.text for names in known if not any(one.is_tie for one in names) for name in names}
        nameless = {one.key for names in known if all(one.is_tie for one in names) for one in names}
        if untied and nameless and self.random.random() < UNTIED:
            return f"{self.random.choice(sorted(nameless))} {self.random.choice(sorted(untied))}"
        name = self.random.choice(["", "", *self.theme.names])
        return f"{self.random.choice(self.theme.ties)} {name}".strip()

    def _words_again(self) -> str:
        """What was said before, often what was taken back, first what a person has decided on."""
        said = [one for one in self.steps if isinstance(one, Said)]
        undone = [one for one in said if not one.holds]
        decided = [one for one in undone if self._was_decided_on(one)]
        if undone and self.random.random() < RETURNS:
            return self.random.choice(decided or undone).words
        return self.random.choice([one.words for one in said] or self.theme.names)

    async def _undo(self) -> None:
        undoable = [place for place, step in enumerate(self.steps) if self._is_undoable(step)]
        if not undoable:
            return
        decided = [place for place in undoable if self._was_decided_on(self.steps[place])]
        place = self.random.choice(decided if decided and self.random.random() < RETURNS else undoable)
        commit = await self.people.undo(self.commits[place])
        assert commit.outcome == "done", commit.detail
        target = self.steps[place]
        target.holds = False
        original = target
        while isinstance(original, Undone):
            original = original.target
        original.holds = isinstance(target, Undone)
        self._note(Undone(target=original), commit)

    def _is_undoable(self, step: Step) -> bool:
        """Whether a step is the last word: no deletion is between a fact and its turn."""
        original = step.target if isinstance(step, Undone) else step
        match original:
            case Said(fact=fact):
                is_free = fact not in self._world().deleted
            case Deleted(facts=facts) | Forgotten(facts=facts):
                said = [one for one in self.steps if isinstance(one, Said) and one.fact in facts]
                deleted = self._world().deleted
                is_free = all(one.holds for one in said) and (original.holds or not facts & deleted)
            case _:
                is_free = True
        return is_free and _is_last_word(step, self.steps)

    def _was_decided_on(self, step: Step) -> bool:
        """Whether a person decided on what the step proposed, or had split off."""
        later = [one for one in self.steps if one.holds]
        if isinstance(step, Split):
            return any(isinstance(one, Merged | Forgotten) and step.new in one.concerned for one in later)
        return any(isinstance(one, Merged | Rejected) and one.of is step for one in later)

    async def _settle(self) -> None:
        """Confirm or reject a proposed merge, mostly one that waits."""
        pending = self._world().pending()
        places = sorted(pending) * 5 + sorted(self.proposals)
        if not places:
            return
        place = self.random.choice(places)
        named, of = (self.proposals[place],), self.steps[place]
        assert isinstance(of, Said)
        is_confirmed = self.random.random() < 0.5
        payload = Confirm(fact_ids=named) if is_confirmed else Reject(fact_ids=named)
        commit = await self.people.order(payload, self.scope)
        assert commit.outcome == ("done" if place in pending else "rejected"), commit.detail
        if place in pending:
            merged, into = pending[place]
            rejected = Rejected(of=of, named={merged, into})
            self._note(Merged(entities=[merged], into=into, of=of) if is_confirmed else rejected, commit)

    async def _delete(self) -> None:
        world = self._world()
        facts = sorted(world.facts.keys() - world.deleted)
        if facts:
            fact = self.random.choice(facts)
            ids = await self._ids([fact])
            commit = await self.people.order(Delete(fact_ids=tuple(ids.values())), self.scope)
            assert commit.outcome == "done", commit.detail
            self._note(Deleted(facts={fact}), commit)

    async def _summarise(self, entity: str) -> None:
        world = self._world()
        facts = world.facts_of(entity) - world.deleted
        commit = await self.people.order(SummariseEntity(entity_id=UUID(entity)), self.scope)
        assert commit.outcome == ("done" if facts else "rejected"), commit.detail
        for event in commit.entity_events:
            assert isinstance(event, EntitySummarised)
            assert set(event.facts) == set((await self._ids(sorted(facts))).values())
            self._note(Summarised(entity=entity, facts=facts, version=event.version), commit)

    async def _command(self, kind: str, known: Sequence[str]) -> None:
        world = self._world()
        names = world.told()
        entity, other = self._two_of(known, names, is_split=kind == "split")
        name = self.random.choice([*self.theme.names, *(self.theme.ties if kind == "call" else ())])
        holders = set(holders_of(name, names))
        facts: set[str] = set()
        match kind:
            case "rename":
                payload: EntityCommand = RenameEntity(entity_id=UUID(entity), name=name)
                step: Step = Renamed(entity=entity, name=name)
                fits = not holders - {entity}
            case "call":
                loser = self.random.choice([None, other, other]) if other not in world.unclear() else None
                if loser is not None and names[loser] and self.random.random() < MOVES:
                    name = self.random.choice(sorted(one.text for one in names[loser]))
                payload = AliasEntity(entity_id=UUID(entity), name=name, moved_from=UUID(loser) if loser else None)
                step = Called(entity=entity, name=name, loser=loser)
                fits = not set(holders_of(key_of(name), names)) - {entity}
                if loser is not None:
                    fits = (
                        loser != entity
                        and has_name(names[loser], name)
                        and (name in TIES or world.shown_name(loser) != name)
                    )
            case "merge":
                payload = MergeEntities(entity_ids=(UUID(entity),), into=UUID(other))
                step, fits = Merged(entities=[entity], into=other), entity != other
            case "forget":
                with_facts = self.random.random() < 0.3
                facts = world.facts_of(entity) - world.deleted if with_facts else set()
                payload = ForgetEntity(entity_id=UUID(entity), facts=with_facts)
                step, fits = Forgotten(entity=entity, facts=facts), True
            case "foreign":
                if not self.strangers:
                    return
                strange = UUID(self.random.choice(self.strangers))
                payload = MergeEntities(entity_ids=(strange,), into=UUID(entity))
                step, fits = Merged(entities=[str(strange)], into=entity), False
            case _:
                await self._split(entity, name, world, names)
                return
        commit = await self.people.order(payload, self.scope)
        assert commit.outcome == ("done" if fits else "rejected"), (payload, commit.detail)
        if commit.entity_events:
            self._note(step, commit)

    def _two_of(self, known: Sequence[str], names: Mapping[str, Sequence[Name]], *, is_split: bool) -> tuple[str, str]:
        """Whom a command is about, often somebody without a name where that is split, and anybody."""
        entity, other = self.random.choice(known), self.random.choice(known)
        nameless = [one for one in known if all(name.is_tie for name in names[one])]
        if is_split and nameless and self.random.random() < NAMELESS:
            entity = self.random.choice(nameless)
        return entity, other

    async def _split(self, entity: str, name: str, world: World, known: Mapping[str, Sequence[Name]]) -> None:
        facts = [one for one in sorted(world.facts_of(entity) - world.deleted) if self.random.random() < 0.5]
        others = {one.text for one in known[entity]} - {world.shown_name(entity)}
        names = [one for one in sorted(others) if self.random.random() < 0.5]
        if not facts and not names:
            return
        ids = tuple((await self._ids(facts)).values())
        split = SplitEntity(entity_id=UUID(entity), name=name, fact_ids=ids, names=tuple(names))
        commit = await self.people.order(split, self.scope)
        fits = not holders_of(name, known) or name in names
        assert commit.outcome == ("done" if fits else "rejected"), commit.detail
        if fits:
            (new,) = [str(event.new_id) for event in commit.entity_events if isinstance(event, EntitySplit)]
            rest = list({key_of(one): one for one in names if one != name}.values())
            self._note(Split(entity=entity, new=new, name=name, facts=facts, names=rest), commit)

    async def _ids(self, facts: Sequence[str]) -> dict[str, UUID]:
        query = "SELECT text, fact_id FROM facts WHERE text = ANY(%s) AND user_id = %s"
        return dict(await self.people.rows(query, list(facts), self.scope.user_id))

    def _note(self, step: Step, commit: Commit) -> None:
        self.steps.append(step)
        self.commits.append(commit)


def _is_last_word(step: Step, steps: Sequence[Step]) -> bool:
    """Whether a step can be undone: it holds, and an undo is the last one of what it undid."""
    if not isinstance(step, Undone):
        return step.holds
    turned = [one for one in steps if isinstance(one, Undone) and one.target is step.target]
    return turned[-1] is step and not step.target.holds


def seeds() -> SearchStrategy[Random]:
    """What histories are drawn from; a seed of it gives the same history always."""
    return integers(0, 2**32).map(Random)


async def check_entities(harness: Harness, random: Random) -> None:
    """Two people tell of their circles, a step of one at a time: whom each knows is what the oracle says of each."""
    await harness.clean()
    database = str(harness.settings.postgres)
    async with named_people(database, entity_summary="on_demand") as people:
        histories = [History(people, random, scope, drawn_theme(random)) for scope in (ALICE, BOB)]
        for place in range(STEPS):
            grown, other = random.sample(histories, 2)
            grown.strangers = sorted(other.expected())
            await grown.grow()
            for one in histories:
                seen, expected = await one.read(), one.expected()
                assert seen == expected, one.told(_differences(seen, expected))
            assert await people.rows("TABLE rejections") == []
            if place == STEPS - 1 or random.random() < REBUILDS:
                report = await rebuild(
                    str(harness.settings.postgres), TableLogSource(people.pipeline.pool), verify_only=True
                )
                assert report.equal, f"{report}\n{histories[0].told([])}\n{histories[1].told([])}"


def _differences(seen: Mapping[str, Seen], expected: Mapping[str, Seen]) -> list[str]:
    return [
        f"{entity}: {seen.get(entity)} instead of {expected.get(entity)}"
        for entity in sorted({*seen, *expected})
        if seen.get(entity) != expected.get(entity)
    ]
