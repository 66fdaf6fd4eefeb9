"""Whether facts are about who said them: by the tables and the recording alone, with nothing that resolves names.

A fact's words are looked up in the recorded message; the entity that the fact is about must not be another speaker.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, LiteralString
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from tests.recall.dialogues import RecordedTurn

_SUBJECTS: Final[LiteralString] = """
SELECT f.source_id, f.text, f.excerpt, link.entity_id
FROM facts AS f LEFT JOIN fact_entities AS link ON link.fact_id = f.fact_id AND link.role = 'subject'
WHERE f.user_id = %s
"""
_ENTITIES: Final[LiteralString] = "SELECT entity_id, name, type FROM entities WHERE user_id = %s"
_ALIASES: Final[LiteralString] = """
SELECT alias.entity_id, alias.kind, alias.alias, alias.key
FROM entity_aliases AS alias WHERE alias.user_id = %s
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeakerFigures:
    """Facts and entities of one dialogue.

    `of_speaker` facts are about who said them, `of_others` about somebody who does not take part; `wrong` are about
    another speaker, or about nobody, and `wrong_ties` are ties ("Ana's brother") to another one than they name.
    `speakers` is how many entities those who speak are.
    """

    facts: int
    of_speaker: int
    of_others: int
    wrong: Sequence[str]
    wrong_ties: Sequence[str]
    speakers: int
    types: Mapping[str, int]


async def check_speakers(
    connection: AsyncConnection[TupleRow], user: str, turns: Sequence[RecordedTurn], subjects: Mapping[str, str]
) -> SpeakerFigures:
    """`subjects` names whom some facts are about, by their texts; the others are about who said them."""
    facts = await _rows(connection, _SUBJECTS, user)
    entities = await _rows(connection, _ENTITIES, user)
    aliases = await _rows(connection, _ALIASES, user)
    names: dict[UUID, set[str]] = {entity_id: {name} for entity_id, name, _ in entities}
    for entity_id, kind, alias, _ in aliases:
        if kind != "tie":
            names[entity_id].add(alias)
    said = {turn.turn_id: turn for turn in turns}
    everybody = {turn.speaker for turn in turns}
    speakers = {entity_id: names[entity_id] & everybody for entity_id in names if names[entity_id] & everybody}
    verdicts = [
        (_verdict(said[source_id], excerpt, subjects.get(text), speakers.get(subject), subject), f"{source_id}: {text}")
        for source_id, text, excerpt, subject in facts
    ]
    return SpeakerFigures(
        facts=len(verdicts),
        of_speaker=sum(verdict == "speaker" for verdict, _ in verdicts),
        of_others=sum(verdict == "other" for verdict, _ in verdicts),
        wrong=[told for verdict, told in verdicts if verdict == "wrong"],
        wrong_ties=[alias for _, kind, alias, key in aliases if kind == "tie" and _is_wrong_tie(alias, key, speakers)],
        speakers=len(speakers),
        types={kind: sum(one == kind for _, _, one in entities) for kind in sorted({kind for _, _, kind in entities})},
    )


def _verdict(turn: RecordedTurn, excerpt: str, told: str | None, called: set[str] | None, subject: UUID | None) -> str:
    """Whom a fact is about: "speaker", "other" for nobody who takes part, or "wrong"."""
    if subject is None or _words(excerpt) not in _words(turn.text):
        return "wrong"
    if called is None:
        return "other" if told is None else "wrong"
    return "speaker" if called == {told or turn.speaker} else "wrong"


def _is_wrong_tie(alias: str, key: str, speakers: Mapping[UUID, set[str]]) -> bool:
    """Whether a tie that begins with the name of one who speaks is kept as that of another one."""
    owner = speakers.get(UUID(key.rpartition(" ")[2]), set[str]())
    named = {name for names in speakers.values() for name in names if alias.startswith(f"{name}'s ")}
    return bool(named) and named != owner


def _words(text: str) -> str:
    return " ".join(text.split())


async def _rows(connection: AsyncConnection[TupleRow], query: LiteralString, user: str) -> list[TupleRow]:
    return await (await connection.execute(query, [user])).fetchall()
