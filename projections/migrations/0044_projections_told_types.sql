-- name: projections_told_types
-- What entities are, where a fact told it of one that was known before without a type.

ALTER TABLE entities ADD COLUMN registered_type text;
UPDATE entities SET registered_type = type;
ALTER TABLE fact_entities ADD COLUMN type text;
CREATE INDEX fact_entities_types ON fact_entities (entity_id) WHERE type IS NOT NULL;
COMMENT ON TABLE fact_entities IS
'Which entities a fact names: whom it is about (subject), what it says of them (object), or named besides (mention). A '
'split has moved the fact to moved_to. told_by is the event of a repetition that told it. type is what the fact told '
'that the entity is, where nobody had told it.';
