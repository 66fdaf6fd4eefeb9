"""How faults of entities are put back by hand, as those of decisions are in `patches`."""

from typing import Any
from uuid import UUID

from psycopg.sql import SQL

from mnemolog.projections.queries import entities
from mnemolog.projections.sql import queries
from mnemolog.projections.stores.entities import EntityStore
from mnemolog.projections.write import entity_writer, projector
from mnemolog.schemas.entity_events import EntitySplit
from mnemolog.schemas.entity_state import CurrentState
from mnemolog.streams.commands.entities import EntityContext
from tests.properties.faults.patches import PatchedPlaces


def rejections_are_forgotten() -> PatchedPlaces:
    return [_changed_query(EntityStore, "decided_pairs", "'merge_rejected', ", "")]


def splits_are_forgotten() -> PatchedPlaces:
    return [_changed_query(EntityStore, "decided_pairs", ", 'entity_split'", "")]


def undone_splits_leave_their_merges() -> PatchedPlaces:
    def left_out(self: CurrentState, event: Any) -> None:
        self._undone.add(event.event_id)
        if isinstance(event, EntitySplit):
            self._join(event.new_id, event.entity_id)

    return [(CurrentState, "_leave_out", left_out)]


def names_outlive_deleted_facts() -> PatchedPlaces:
    async def hide_none(*_: Any) -> list[UUID]:
        return []

    return [(projector, "hide_facts", hide_none)]


def summaries_outlive_their_facts() -> PatchedPlaces:
    def read(file: str) -> Any:
        text = queries(file)["summary_of_entity"].as_string(None)
        newest = """
            (SELECT s.event_id, s.source_id, (s.payload ->> 'version')::integer AS version,
                s.payload ->> 'text' AS summary, s.payload ->> 'language' AS language, '' AS model,
                '' AS prompt_version, '{}'::uuid [] AS fact_ids,
                0 AS left_out, 0 AS input_tokens, 0 AS output_tokens, s.decided_at AS written_at, 0 AS changed
            FROM entity_changes AS s
            WHERE s.event = 'entity_summarised' AND s.entity_ids[1] = %(entity_id)s AND s.undone_by IS NULL
            ORDER BY s.log_offset DESC LIMIT 1) AS newest"""
        return {"summary_of_entity": SQL(text.replace("summary_of_entity(%(entity_id)s)", newest))}

    return [(entities, "queries", read)]


def undone_turns_leave_their_entities() -> PatchedPlaces:
    return [(entity_writer, "_undone_facts", lambda _: [])]


def merged_names_outlive_forgotten_entities() -> PatchedPlaces:
    def is_forgotten(self: CurrentState, entity_id: UUID) -> bool:
        return entity_id in self._forgotten

    return [(CurrentState, "_is_forgotten", is_forgotten)]


def commands_reach_other_scopes() -> PatchedPlaces:
    right = EntityContext.fault

    def unscoped(self: EntityContext, entity_id: Any) -> Any:
        fault = right(self, entity_id)
        return None if fault and fault[0] == "foreign_entity" else fault

    return [(EntityContext, "fault", unscoped)]


def _changed_query(store: Any, name: str, was: str, becomes: str) -> tuple[Any, str, Any]:
    text = store.QUERIES[name].as_string(None)
    assert was in text
    return store, "QUERIES", {**store.QUERIES, name: SQL(text.replace(was, becomes))}
