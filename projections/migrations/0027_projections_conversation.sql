-- name: projections_conversation
-- What was said before a person's deletion is shown to no later extraction: the last one of an owner.

CREATE INDEX commits_taken_back ON commits (owner, published_at)
WHERE order_kind IN ('delete', 'delete_all', 'reject', 'undo');
