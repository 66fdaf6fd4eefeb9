-- name: projections_feedback
-- Feedback is read by its time: it is a small part of the commits.

CREATE INDEX commits_feedback ON commits (decided_at) WHERE order_kind = 'feedback';
