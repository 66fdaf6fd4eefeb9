-- name: journal_conversation
-- An extraction is shown what its scope said before the turn: the last turns of an owner by when they were said.

CREATE INDEX turn_journal_conversation ON turn_journal (owner, occurred_at, log_offset)
WHERE refusal IS NULL AND body IS NOT NULL;
