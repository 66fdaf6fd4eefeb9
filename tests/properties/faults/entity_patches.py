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
from mnemolog.streams.commands import entities as entities_of_commands
from mnemolog.streams.commands import handler, status_changes
from mnemolog.streams.entities import resolver
from mnemolog.streams.entities.resolver import NameContext
from mnemolog.streams.stages import promote
from tests.properties.faults.former import PatchedPlaces, fault


@fault("a rejected merge is proposed again when its turn is undone", found_by="people")
def rejections_are_forgotten() -> PatchedPlaces:
    return [_changed_query(EntityStore, "decided_pairs", "'merge_rejected', ", "")]


@fault("two whom a person has split are proposed as one", found_by="people")
def splits_are_forgotten() -> PatchedPlaces:
    return [_changed_query(EntityStore, "decided_pairs", ", 'entity_split'", "")]


@fault("what was decided about what an undone split had made stays", found_by="people")
def undone_splits_leave_their_merges() -> PatchedPlaces:
    def left_out(self: CurrentState, event: Any) -> None:
        self._undone.add(event.event_id)
        if isinstance(event, EntitySplit):
            self._join(event.new_id, event.entity_id)

    return [(CurrentState, "_leave_out", left_out)]


@fault("a name that only a deleted fact told is shown", found_by="people")
def names_outlive_deleted_facts() -> PatchedPlaces:
    async def hide_none(*_: Any) -> list[UUID]:
        return []

    return [(projector, "hide_facts", hide_none)]


@fault("a former version is deleted without those after it, and comes back", found_by="people")
def former_versions_come_back() -> PatchedPlaces:
    def last_version(fact_id: UUID, facts: Any, former: Any = status_changes._versions_since) -> Any:
        return former(fact_id, facts)[-1:]

    return [(status_changes, "_versions_since", last_version)]


@fault("what had ended comes back when somebody is forgotten with their facts", found_by="people")
def ended_facts_outlive_their_entities() -> PatchedPlaces:
    return [_changed_query(EntityStore, "believed_facts_of_entity", "'superseded', 'retracted', 'expired'", "'undone'")]


@fault("a summary outlives a fact of it that was taken back", found_by="people")
def summaries_outlive_their_facts() -> PatchedPlaces:
    def read(file: str) -> Any:
        if file != "summaries":
            return queries(file)
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


@fault("an entity stays when the turns that named it are undone", found_by="people")
def undone_turns_leave_their_entities() -> PatchedPlaces:
    return [(entity_writer, "_undone_facts", lambda _: [])]


@fault("a name of what was merged into a forgotten entity means that one", found_by="people")
def merged_names_outlive_forgotten_entities() -> PatchedPlaces:
    def is_forgotten(self: CurrentState, entity_id: UUID) -> bool:
        return entity_id in self._forgotten and self._root(entity_id) == entity_id

    return [(CurrentState, "_is_forgotten", is_forgotten)]


@fault("a command changes an entity of another scope", found_by="people")
def commands_reach_other_scopes() -> PatchedPlaces:
    right = entities_of_commands.entity_fault

    def unscoped(*asked: Any) -> Any:
        fault = right(*asked)
        return None if fault and fault[0] == "foreign_entity" else fault

    return [(entities_of_commands, "entity_fault", unscoped)]


def _changed_query(store: Any, name: str, was: str, becomes: str) -> tuple[Any, str, Any]:
    text = store.QUERIES[name].as_string(None)
    assert was in text
    return store, "QUERIES", {**store.QUERIES, name: SQL(text.replace(was, becomes))}


@fault("a namesake of the user is the user", found_by="people")
def namesakes_are_the_user() -> PatchedPlaces:
    right = NameContext.is_user

    def is_user(self: NameContext, name: str | None, *kind: str) -> bool:
        return right(self, name and name.split()[-1], *kind)

    return [(NameContext, "is_user", is_user)]


@fault("two full first names are of one person", found_by="people")
def full_names_do_not_clash() -> PatchedPlaces:
    return [(resolver, "are_of_two", lambda *_: False)]


@fault("who is who changes, and ends and values stay", found_by="people")
def changed_identities_change_no_facts() -> PatchedPlaces:
    async def unchanged(_command: Any, _changes: Any, made: Any, rules: Any, **_: Any) -> Any:
        return tuple(made), rules

    return [(handler, "follow_changes", unchanged)]


@fault("promoted statements are decided on without their entities", found_by="people")
def promotions_look_at_no_entity() -> PatchedPlaces:
    return [(promote, "with_subject_relations", lambda turn, _: turn)]
