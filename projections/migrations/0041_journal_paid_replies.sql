-- name: journal_paid_replies
-- The record for which a reply was paid, so that another attempt of its source does not count it again; NULL where that
-- is not known: then who uses it counts it. What attempts used that were refused for a limit, they have counted.

ALTER TABLE mnemolog_journal.model_replies ADD COLUMN paid_by text;
UPDATE mnemolog_journal.model_replies SET paid_by = ''
WHERE EXISTS (
    SELECT FROM mnemolog.commits AS refused
    WHERE
        refused.owner = model_replies.owner
        AND refused.source_id = model_replies.source_id
        AND refused.limit_hit IS NOT NULL
);
