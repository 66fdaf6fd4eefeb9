"""What a model answered when it was asked whom a name means. It is the last step that finds the entity of a name."""

from collections.abc import Iterable, Mapping
from uuid import UUID

from mnemolog.schemas.entities.model import AnsweredName
from mnemolog.streams.entities.entity_registry import EntityRegistry
from mnemolog.streams.entities.found_entities import FoundEntity
from mnemolog.streams.entities.name_keys import name_key
from mnemolog.streams.entities.spoken_names import SpokenName

NameAnswers = Mapping[str, AnsweredName]
"""The answers about the names of one turn, by the keys of the names as they were said."""


def answers_by_name(answers: Iterable[AnsweredName]) -> NameAnswers:
    """Those that name an entity; the others change nothing."""
    return {name_key(answer.name): answer for answer in answers if answer.entity_id is not None}


def find_by_answer(
    name: SpokenName, finding: FoundEntity, answers: NameAnswers, registry: EntityRegistry
) -> FoundEntity:
    """What the model said of a name that may mean several; else `finding`, which the rules found."""
    answer = answers.get(name_key(name.text))
    if answer is None or answer.entity_id not in _meant_by(finding):
        return finding
    entity = registry[answer.entity_id]
    meant = {one.entity_id: one for one in (*finding.compared, *(registry[twin] for twin in answer.twins))}
    others = tuple(one for one in meant.values() if one.entity_id != entity.entity_id)
    return FoundEntity(entity=entity, step="model", compared=others, reason=answer.reason)


def _meant_by(finding: FoundEntity) -> set[UUID]:
    """Those that the rules found for a name, or in doubt might have found."""
    found = () if finding.entity is None else (finding.entity,)
    return {entity.entity_id for entity in (*finding.compared, *found)}
