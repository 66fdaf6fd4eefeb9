-- name: projections_promotions
-- An event that a promoted statement led to names the fact of another scope that it was.

ALTER TABLE memory_events ADD COLUMN promoted_from uuid;

CREATE INDEX memory_events_promoted ON memory_events (promoted_from) WHERE promoted_from IS NOT NULL;
