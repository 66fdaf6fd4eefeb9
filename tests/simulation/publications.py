"""The records that a workload publishes, as an application writes them; and commits, for a projection alone."""

import json
import random
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from mnemolog.schemas.provenance import Origin
from mnemolog.schemas.scope import Scope
from tests.simulation.servers.broker import START_TIME
from tests.simulation.workload import Publication
from tests.support.builders.commits import added, commit, replaced

SOURCE: Final = "conversation_turns"
LOG: Final = "memory_events"
TENANT: Final = "t"
RUN: Final = "run"
PASSED_STATES: Final = 0.2
REPEATS: Final = 0.1


def source_record(one: Publication) -> tuple[bytes, bytes]:
    """Key and value of a turn or a command."""
    source: dict[str, Any] = {"scope": {"tenant": TENANT, "user_id": one.owner}}
    if one.is_in_run:
        source["scope"]["run_id"] = RUN
    at = datetime.fromtimestamp(START_TIME + one.at, UTC).isoformat()
    if one.kind == "command":
        order = {"kind": "delete_all", "key": None, "category": "health"}
        source |= {"kind": "command", "command_id": f"s{one.number}", "issued_at": at, "order": order}
    else:
        source |= {"kind": "turn", "turn_id": f"s{one.number}", "occurred_at": at, "infer": one.kind != "raw"}
        source |= {"messages": [{"role": "user", "content": f"number {one.number}"}], "metadata": {"kind": one.kind}}
    return f"{TENANT}/{one.owner}".encode(), json.dumps({"schema_version": 1, **source}).encode()


class CommitWriter:
    """Writes the commits of sources, also such as a process writes that has lost its partition and does not know it.

    Some are repeated, and some end a fact that has ended before.
    """

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._facts: dict[str, list[UUID]] = {}

    def records_of(self, one: Publication, partition: int, offset: int) -> list[bytes]:
        """The commit of a source, once or twice."""
        known = self._facts.setdefault(one.owner, [])
        draft = added(f"number {one.number}")
        if known:
            target = self._chance.choice(known) if self._chance.random() < PASSED_STATES else known[-1]
            draft = replaced(f"number {one.number}", target)
        record = commit(
            f"s{one.number}",
            draft,
            scope=Scope(tenant=TENANT, user_id=one.owner),
            at=datetime.fromtimestamp(START_TIME + one.at, UTC),
            origin=Origin(topic=SOURCE, partition=partition, offset=offset),
        )
        known.extend(event.new_fact.fact_id for event in record.events if event.new_fact)
        return [record.to_bytes()] * (2 if self._chance.random() < REPEATS else 1)
