-- name: journal_readers
-- SQL users find turns by what the view memory.turns shows: an id that is not set is NULL there.

CREATE INDEX turn_journal_user ON turn_journal (nullif(user_id, ''), tenant, published_at);
