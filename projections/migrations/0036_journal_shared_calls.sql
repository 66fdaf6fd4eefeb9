-- name: journal_shared_calls
-- The call that a reply is one turn's part of, where several turns were asked about together; NULL for a turn alone.

ALTER TABLE mnemolog_journal.model_replies ADD COLUMN shared jsonb;
