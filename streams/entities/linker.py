"""Looks up the entities that the facts of a source may name, and makes the events that link the facts to them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any
from uuid import UUID

from mnemolog.schemas import ids
from mnemolog.schemas.command import Update
from mnemolog.schemas.entities import MAX_UNLINKED, Alias, UnlinkedName
from mnemolog.schemas.entity_events import (
    AnyEntityEvent,
    EntityAliasAdded,
    EntityRegistered,
    FactLinked,
    MergeProposed,
    RelationEnded,
    RelationStated,
)
from mnemolog.schemas.envelopes import MatchedFacts
from mnemolog.schemas.events import MemoryEvent
from mnemolog.schemas.facts import ExtractedFact
from mnemolog.schemas.provenance import DecidedBy, Decision, answered_by
from mnemolog.streams.entities.known_names import text_keys
from mnemolog.streams.entities.links import (
    FactLinks,
    TurnEntities,
    said_again,
    source_ids,
    sources_of,
    subject_of_sources,
)
from mnemolog.streams.entities.names import read_name
from mnemolog.streams.entities.questions import SHOWN_FACTS, DoubtfulNames, as_shown, doubtful_names, without_decided
from mnemolog.streams.entities.resolver import (
    NameContext,
    NameVectors,
    ProposedMerge,
    lookup_keys,
    named_entities,
)

if TYPE_CHECKING:
    from mnemolog.projections.stores.entities import EntityStore
    from mnemolog.projections.stores.facts import FactStore


@dataclass(frozen=True, slots=True)
class EntityLinker:
    """Finds the entities of a source by what is known when it is decided.

    Names with a cosine of at least `name_twin` may mean the same; 0 switches this off.
    """

    entities: "EntityStore"
    facts: "FactStore"
    name_twin: float

    async def find(
        self,
        envelope: MatchedFacts,
        facts: Sequence[ExtractedFact],
        texts: Iterable[str] = (),
        in_run: Mapping[str, frozenset[str]] | None = None,
    ) -> TurnEntities | None:
        """The entities that `facts` of this source name, looked up by their names and by the words of `texts`.

        Of promoted facts, `in_run` has all names that the run knows of each name. None for a source without scope, and
        for one without facts and texts.
        """
        words = text_keys((*texts, *(fact.text for fact in facts if not envelope.infer)))
        if envelope.scope is None or not (facts or words.heads):
            return None
        reader = next((step for step in envelope.steps if step.stage == "extract"), None)
        context = NameContext(
            owner=envelope.owner,
            source_id=envelope.id_source,
            speaker=envelope.speaker,
            user_names=envelope.user_names,
            model=reader.model if reader else None,
            prompt_version=reader.prompt_version if reader else None,
            in_run=in_run,
        )
        asked = lookup_keys(facts, context) | words
        named = envelope.name_vectors if self.name_twin else ()
        vectors = NameVectors({one.key: one.vector for one in named}, self.name_twin)
        known = await self.entities.known_entities(
            envelope.scope,
            heads=asked.heads,
            keys=asked.keys,
            ends=asked.ends,
            fact_ids=dict.fromkeys(known.fact_id for matched in envelope.facts for known in matched.candidates),
            meant=vectors.queries(entity for fact in facts for entity in named_entities(fact, context)),
            near_from=self.name_twin,
        )
        return TurnEntities.of_facts(facts, known, context, vectors)

    async def find_promoted(self, turn: MatchedFacts) -> tuple[MatchedFacts, TurnEntities | None]:
        """The promoted facts of a turn with the names that their originals know, and the entities of these names."""
        origins = [one.original.promoted_from.fact_id for one in turn.facts if one.original is not None]
        originals = await self.facts.linked_facts(origins)
        facts, in_run = [], dict[str, frozenset[str]]()
        for one, fact_id in zip(turn.facts, origins, strict=True):
            fact, known = said_again(one.fact, originals[fact_id]) if fact_id in originals else (one.fact, {})
            facts.append(fact)
            in_run |= known
        named = [one.model_copy(update={"fact": fact}) for one, fact in zip(turn.facts, facts, strict=True)]
        turn = turn.model_copy(update={"facts": tuple(named)})
        return turn, await self.find(turn, facts, [fact.text for fact in facts], in_run)

    async def names_to_ask(self, found: TurnEntities) -> DoubtfulNames | None:
        """The names of a source that a model is asked about; None where no name is in doubt."""
        names = doubtful_names(found)
        possible = ((*(one.entity_id for one in name.twins), *name.tied) for name in names)
        pairs = {pair for meant in possible for pair in combinations(meant, 2)}
        names = without_decided(names, await self.entities.decided_pairs(pairs) if pairs else ())
        if not names:
            return None
        twins = dict.fromkeys(twin.entity_id for name in names for twin in name.twins)
        shown = await self.entities.shown(tuple(twins), most=SHOWN_FACTS)
        known_facts = {entity_id: one.facts for entity_id, one in shown.items()}
        return DoubtfulNames(found=found, names=as_shown(names, shown), known_facts=known_facts)

    async def events_of(
        self, envelope: MatchedFacts, events: Sequence[MemoryEvent], found: TurnEntities | None
    ) -> tuple[AnyEntityEvent, ...]:
        """The entity events of a turn or a command, whose names mean the `found` entities.

        Without these, the names of the new facts that a command makes are looked up. A merge that was proposed before,
        or that a person has rejected, is not proposed again.
        """
        is_command, is_edit = envelope.source_kind == "command", isinstance(envelope.order, Update)
        fact_ids = {fact_id for event in events for fact_id in source_ids(event, is_edit=is_edit)}
        if found is not None:  # and known facts that statements repeat which name others than the user
            repetitions = [(event, event.told_id) for event in events if event.new_fact is None]
            fact_ids |= {
                fact_id
                for event, fact_id in repetitions
                if fact_id is not None and any(link.step != "user" for link in found.statement_of(event).links)
            }
        sources = await self.facts.linked_facts(fact_ids) if fact_ids else {}
        new = [(event, event.new_fact) for event in events if event.new_fact is not None]
        if found is None and is_command and new:
            unread = [
                fact for event, fact in new if not subject_of_sources(fact, sources_of(event, sources, is_edit=is_edit))
            ]
            found = await self.find(envelope, unread, [fact.text for _, fact in new])
        if found is None:
            return ()
        reads_texts = is_command or not envelope.infer
        proposed = found.resolver.proposed
        for pair in await self.entities.decided_pairs(proposed) if proposed else ():
            del proposed[pair]
        return entity_events(FactLinks(found, sources, reads_texts=reads_texts, is_edit=is_edit), events)


def entity_events(facts: FactLinks, events: Sequence[MemoryEvent]) -> tuple[AnyEntityEvent, ...]:
    """The events about the entities that the facts of `events` name; other entities of the source stay unregistered.

    The ordinals go on after those of `events`.
    """
    facts.read(events)
    found, needed = facts.found, _entities_of(facts)
    context = found.resolver.context
    made: list[AnyEntityEvent] = []

    def add(event_class: Callable[..., AnyEntityEvent], **fields: Any) -> None:
        ordinal = len(events) + len(made)
        event_id = ids.event_id(context.owner, context.source_id, ordinal)
        made.append(event_class(event_id=event_id, ordinal=ordinal, **fields))

    for entity, _ in found.new.values():
        if entity.entity_id in needed:
            fields = entity.model_dump(include={"entity_id", "name", "type", "possible_twins"})
            add(EntityRegistered, **fields, aliases=_as_said(found, entity.aliases))
    for one in found.resolver.added:
        if one.entity_id in needed:
            step, compared = one.finding.step, one.finding.compared_ids
            entity_id = found.registry.bearer(one.entity_id, one.said) or one.entity_id
            (alias,) = _as_said(found, [one.alias])
            add(EntityAliasAdded, entity_id=entity_id, alias=alias, step=step, compared=compared)
    for fact_id, links in facts.links.items():
        if links:
            said = [one.model_copy(update={"entity_id": facts.bearer(fact_id, one.entity_id)}) for one in links]
            add(FactLinked, fact_id=fact_id, links=tuple(said))
    for fact_id, relation in facts.each_relation():
        is_over = relation.ended_at is not None
        add(
            RelationEnded if is_over else RelationStated,
            fact_id=fact_id,
            subject_id=facts.bearer(fact_id, relation.subject_id),
            predicate=relation.predicate,
            object_id=facts.bearer(fact_id, relation.object_id),
            inverse=relation.inverse,
            **({"ended_at": relation.ended_at} if is_over else {"strength": relation.strength}),
        )
    for merge, decision in _merges_to_propose(found, needed):
        add(MergeProposed, decision=decision, merged=merge.merged.entity_id, into=merge.into.entity_id)
    return tuple(made)


def _entities_of(facts: FactLinks) -> set[UUID]:
    """The entities in these links and relations, the owners of their new ties, the owners of the owners' ties, ..."""
    found = facts.found
    complete = {link.entity_id for links in facts.links.values() for link in links}
    complete |= {end for _, relation in facts.each_relation() for end in (relation.subject_id, relation.object_id)}
    aliases: dict[UUID, list[Alias]] = {entity_id: list(entity.aliases) for entity_id, (entity, _) in found.new.items()}
    for one in found.resolver.added:
        aliases.setdefault(one.entity_id, []).append(one.alias)
    waiting = list(complete)
    while waiting:
        for alias in aliases.get(waiting.pop(), ()):
            if (owner_id := _owner_of_tie(alias)) is not None and owner_id not in complete:
                complete.add(owner_id)
                waiting.append(owner_id)
    return complete


def _as_said(found: TurnEntities, aliases: Iterable[Alias]) -> tuple[Alias, ...]:
    """Aliases with each tie to the entity that its words name, whatever that was merged into."""
    said = []
    for alias in aliases:
        owner_id, name = _owner_of_tie(alias), read_name(alias.text)
        bearer = found.registry.bearer(owner_id, name.owner) if owner_id and name else None
        key = alias.key.replace(str(owner_id), str(bearer)) if bearer else alias.key
        said.append(alias.model_copy(update={"key": key}))
    return tuple(said)


def _owner_of_tie(alias: Alias) -> UUID | None:
    """The entity to which an alias is a tie: its id ends the key."""
    return UUID(alias.key.rpartition(" ")[2]) if alias.kind == "tie" else None


def _merges_to_propose(found: TurnEntities, needed: set[UUID]) -> Iterator[tuple[ProposedMerge, Decision]]:
    """The merges of which a fact of the events names an entity, and both entities are registered by now."""
    context = found.resolver.context
    for merge in found.resolver.proposed.values():
        pair = {merge.into.entity_id, merge.merged.entity_id}
        if not merge.is_stated:
            if merge.into.entity_id in needed:
                reason = (
                    f'"{merge.words}" was said of {merge.into.name}, and {merge.merged.name} was known without a name'
                )
                yield merge, Decision(by="rule", reason=reason)
        elif pair & needed and pair <= needed | (pair - found.new.keys()):
            reason = f'"{merge.words}" says that {merge.merged.name} is {merge.into.name}'
            by: DecidedBy = "rule" if context.model is None else answered_by(context.model)
            yield merge, Decision(by=by, reason=reason, model=context.model, prompt_version=context.prompt_version)


def unlinked_names(found: TurnEntities | None, events: Sequence[AnyEntityEvent]) -> tuple[UnlinkedName, ...]:
    """The first `MAX_UNLINKED` names of a source that link no fact in these entity events, each with the reason.

    An entity that the source would have added is not registered, so that its id is left out.
    """
    if found is None:
        return ()
    linked = {link.entity_id for event in events if isinstance(event, FactLinked) for link in event.links}
    without_fact = (
        UnlinkedName(
            name=link.name,
            reason="no_new_fact",
            step=link.step,
            entity_id=None if link.entity_id in found.new else link.entity_id,
            compared=tuple(one for one in link.compared if one not in found.new),
        )
        for link in found.links
        if link.name is not None
        and linked.isdisjoint((link.entity_id, found.registry.bearer(link.entity_id, link.name)))
    )
    names = {(one.name, one.reason): one for one in (*found.resolver.unlinked, *without_fact)}
    return tuple(names.values())[:MAX_UNLINKED]
