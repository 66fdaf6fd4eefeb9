"""Two names of one, as a fact tells them: "everyone calls her Bee", "Anna and Annie are the same person"."""

from collections.abc import Sequence

from mnemolog.schemas.entities.model import EntityType, KnownEntity
from mnemolog.schemas.facts import ExtractedFact
from mnemolog.streams.entities.doubtful.name_answers import find_by_answer
from mnemolog.streams.entities.entity_registry import names_of
from mnemolog.streams.entities.found_entities import FoundEntity
from mnemolog.streams.entities.source.source_names import NameMeaning, SourceNames
from mnemolog.streams.entities.spoken_names import SpokenName, read_name
from mnemolog.streams.entities.stated_relations import name_forms


def tell_same(names: SourceNames, fact: ExtractedFact, pair: tuple[str, str]) -> None:
    """Make the one name that of whom the other one means. Where both are known, apart, a merge is proposed.

    What is known counts first, then whom the fact is about. A name that somebody else has stays theirs. Where one name
    may mean several, the other one is given to none of them: who is called so is a possible twin of each.
    """
    kind = _type_of(fact, pair)
    meant = [one for name in _in_order(fact, pair) if (one := _meant(names, name, kind)) is not None]
    meant.sort(key=lambda one: not _is_known(one))
    if len(meant) < len(pair) or (taken := names.take_name(meant[0])) is None:
        return
    other = meant[1]
    if _is_known(other):
        other_id = names.take_name(other)
        if other_id is not None and other_id != taken:
            names.propose_told(taken, other_id, fact.excerpt)
    elif holders := names.registry.shown_of_name(other.name.key):
        names.tell_taken(other.name.text, holders)
    elif possible := _may_mean(meant[0].finding):
        doubt = find_by_answer(other.name, FoundEntity(compared=possible), names.answers, names.registry)
        names.tell_doubt(other.name.text, doubt)
        names.take_name(other._replace(finding=doubt))
    else:
        names.take_name(other._replace(finding=FoundEntity(entity=names.registry[taken], step="alias")))


def _may_mean(finding: FoundEntity) -> tuple[KnownEntity, ...]:
    """The known ones of which a name may mean each, where no model was asked; none where it means one."""
    if finding.entity is None or finding.step == "model" or not finding.compared:
        return ()
    return (finding.entity, *finding.compared)


def _in_order(fact: ExtractedFact, pair: tuple[str, str]) -> Sequence[str]:
    """Whom the fact is about first, then whom it names first."""
    named = [key for name in (fact.subject, *(one.name for one in fact.entities)) for key in name_forms(name or "")]
    places = {name: [named.index(key) for key in name_forms(name) if key in named] for name in pair}
    return sorted(pair, key=lambda name: min(places[name], default=len(named)))


def _type_of(fact: ExtractedFact, pair: tuple[str, str]) -> EntityType:
    """The first type that the fact tells of one of the names."""
    types = {key: entity.type for entity in reversed(fact.entities) for key in name_forms(entity.name)}
    told = (types.get(key, "other") for name in pair for key in name_forms(name))
    return next((kind for kind in told if kind != "other"), "other")


def _meant(names: SourceNames, name: str, kind: EntityType) -> NameMeaning | None:
    """What a name means; where that is nobody, that is told."""
    if names.context.is_user(name):
        return NameMeaning(SpokenName(text=name), kind, None, FoundEntity(entity=names.user(), step="user"))
    spoken = read_name(name)
    if spoken is None:
        names.leave_out(name, is_name=False)
        return None
    return names.find(spoken, kind)


def _is_known(meaning: NameMeaning) -> bool:
    """Whether a name means a known entity; one that has the name hidden from readers is called so no more."""
    entity = meaning.finding.entity
    return entity is not None and meaning.name.key not in names_of(entity) - names_of(entity.as_shown)
