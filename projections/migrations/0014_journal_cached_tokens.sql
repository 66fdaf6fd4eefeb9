-- name: journal_cached_tokens
-- How much of a prompt the model's server had in its cache; NULL where it does not tell.

ALTER TABLE mnemolog_journal.model_replies ADD COLUMN cached_tokens integer;
