"""A batch is folded in one state, however long it is."""

import pytest

from mnemolog.projections.write import projector
from mnemolog.projections.write.fold import FoldState, fold
from mnemolog.projections.write.projector import ParsedRecord, fold_batch
from mnemolog.projections.write.rows import Changes, LogPosition, merge_changes
from mnemolog.schemas.commit import Commit
from tests.support.builders.sample_logs import every_decision_log

LOG = every_decision_log()
RECORDS = [
    ParsedRecord(position=LogPosition(partition=0, offset=offset), value=one.to_bytes(), commit=one)
    for offset, one in enumerate(LOG)
]


def test_a_batch_changes_what_its_commits_change_one_after_another() -> None:
    state, parts = FoldState(), []
    for record, commit in zip(RECORDS, LOG, strict=True):
        parts.append(fold(state, commit, record.position, record.value))
        state = state.apply(parts[-1])
    assert fold_batch(FoldState(), RECORDS) == merge_changes(parts)


def test_no_commit_of_a_batch_copies_the_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy for each commit would make long batches slower for each commit than short ones."""
    seen: set[int] = set()

    def spy(state: FoldState, commit: Commit, position: LogPosition, record: bytes) -> Changes:
        seen.update((id(state), id(state.facts), id(state.applied)))
        return fold(state, commit, position, record)

    monkeypatch.setattr(projector, "fold", spy)
    state = FoldState()
    fold_batch(state, RECORDS)
    assert seen == {id(state), id(state.facts), id(state.applied)}
