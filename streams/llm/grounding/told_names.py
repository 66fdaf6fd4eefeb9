"""Which names a reply tells to be of one ("everyone calls her Bee"): accepted are those that were said."""

from collections.abc import Iterable, Iterator, Sequence

from mnemolog.schemas.entities.model import MAX_NAME, UnlinkedName, UnlinkedReason
from mnemolog.schemas.entities.relations import MAX_RELATIONS, SAME_AS, NamedRelation, is_same_as
from mnemolog.schemas.turn import Turn
from mnemolog.streams.entities.name_keys import name_key
from mnemolog.streams.llm.grounding.named_entities import EntityReply, is_said
from mnemolog.streams.llm.grounding.named_relations import RelationReply
from mnemolog.streams.llm.reply_parser import shortened
from mnemolog.streams.text.subjects import is_user_word


def told_names(
    entities: Iterable[EntityReply],
    relations: Iterable[RelationReply],
    said: Sequence[str],
    turn: Turn,
    other_speaker: str | None,
) -> tuple[tuple[NamedRelation, ...], tuple[UnlinkedName, ...]]:
    """The pairs of names that a fact tells to be of one, as relations `same_as`; and the names that are left out.

    `said` are the messages of the turn and those before it, as comparable texts. Who speaks need not be named in them.
    """
    speakers = {turn.speaker, *(message.name for message in turn.messages)}
    told: dict[tuple[str, str], NamedRelation] = {}
    unsaid: dict[str, UnlinkedName] = {}
    for pair in _pairs(entities, relations):
        names = [other_speaker if other_speaker and is_user_word(name) else name for name in pair]
        left_out = [one for one in names if not (is_user_word(one) or one in speakers or _may_be_told(one, said))]
        for name in left_out:
            reason: UnlinkedReason = "too_long" if len(name) > MAX_NAME else "not_said"
            unsaid[name] = UnlinkedName(name=shortened(name, MAX_NAME), reason=reason)
        if not left_out and name_key(names[0]) != name_key(names[1]):
            told[names[0], names[1]] = NamedRelation(subject=names[0], predicate=SAME_AS, object=names[1])
    return tuple(told.values())[:MAX_RELATIONS], tuple(unsaid.values())


def _pairs(entities: Iterable[EntityReply], relations: Iterable[RelationReply]) -> Iterator[tuple[str, str]]:
    """The names of each pair, in one line each; those without a word are left out."""
    pairs = [(entity.name, alias) for entity in entities for alias in entity.aliases]
    pairs += ((relation.subject, relation.object) for relation in relations if is_same_as(relation.predicate))
    for one, other in pairs:
        if one.strip() and other.strip():
            yield " ".join(one.split()), " ".join(other.split())


def _may_be_told(name: str, said: Sequence[str]) -> bool:
    return len(name) <= MAX_NAME and is_said(name, said)
