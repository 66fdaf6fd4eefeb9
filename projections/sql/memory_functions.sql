-- name: facts_as_of
-- The client's query of the same name.
CREATE OR REPLACE FUNCTION memory.facts_as_of(
    believed_at timestamptz DEFAULT now(),
    true_at timestamptz DEFAULT NULL,
    {scope_parameters}
) RETURNS SETOF memory.facts LANGUAGE plpgsql STABLE ROWS 100
{settings}
AS $$
#variable_conflict use_column
BEGIN
    PERFORM memory.check_scope({{scope_ids}});
    PERFORM memory.check_given('believed_at', believed_at IS NOT NULL);
    true_at := coalesce(true_at, believed_at);
    RETURN QUERY
    SELECT known.*, memory.state_at(facts_as_of.true_at, known.status, known.true_from, known.true_to, known.valid_until)
    FROM ({query}) AS known;
END
$$;
COMMENT ON FUNCTION memory.facts_as_of IS
'What was known at believed_at to be true at true_at, each fact with its state of that time, in the order in which it was '
'learned. Without believed_at it is what is known now, and true_at is believed_at where it is not given.';

-- name: changes_between
-- The client's query of changes, with the word for each.
CREATE OR REPLACE FUNCTION memory.changes_between(
    since timestamptz,
    until timestamptz DEFAULT now(),
    {scope_parameters}
) RETURNS TABLE (
    at timestamptz,
    kind text,
    event text,
    fact_id uuid,
    text text,
    old jsonb,
    reason text,
    decided_by text,
    stale boolean,
    undone boolean,
    reverted jsonb,
    moved jsonb
) LANGUAGE plpgsql STABLE ROWS 100
{settings}
AS $$
#variable_conflict use_column
BEGIN
    PERFORM memory.check_scope({{scope_ids}});
    PERFORM memory.check_given('since', since IS NOT NULL);
    PERFORM memory.check_given('until', until IS NOT NULL);
    IF since > until THEN
        RAISE EXCEPTION 'since (%) is after until (%)', since, until
        USING ERRCODE = 'invalid_parameter_value', HINT = 'Give an earlier since, or a later until.';
    END IF;
    RETURN QUERY
    SELECT
        happened.at,
        CASE
            WHEN happened.event IN ('pending_confirmed', 'conflict_resolved') THEN
                CASE happened.action
                    WHEN 'merge' THEN 'merged'
                    WHEN 'replace' THEN 'replaced'
                    WHEN 'contradict' THEN 'contradicted'
                    WHEN 'retract' THEN 'retracted'
                    WHEN 'expire' THEN 'expired'
                    ELSE 'resolved'
                END
            WHEN happened.event = 'fact_skipped' THEN 'end_moved'
            ELSE split_part(happened.event, '_', 2)
        END,
        happened.event, happened.fact_id, happened.text, happened.old, happened.reason, happened.decided_by,
        happened.stale, happened.undone, happened.reverted, happened.moved
    FROM ({query}) AS happened;
END
$$;
COMMENT ON FUNCTION memory.changes_between IS
'What was decided from since on and before until, in order: the new fact, and in old the facts that it ended or touched. '
'Of an undo, reverted has every fact with its status from then on; moved has the facts whose end the event moved.';

-- name: profile
-- The client's query of a profile, a row for each entry.
CREATE OR REPLACE FUNCTION memory.profile(
    {scope_parameters}
) RETURNS TABLE (
    section text,
    place bigint,
    key text,
    value text,
    text text,
    category text,
    confidence double precision,
    at timestamptz,
    valid_until timestamptz,
    fact_id uuid,
    unresolved boolean,
    event text,
    old jsonb
) LANGUAGE plpgsql STABLE ROWS 100
{settings}
AS $$
#variable_conflict use_column
BEGIN
    PERFORM memory.check_scope({{scope_ids}});
    IF ARRAY[user_id, agent_id, app_id, run_id] && ARRAY['*', '**'] THEN
        RAISE EXCEPTION 'a profile belongs to one scope, and this one has a wildcard'
        USING ERRCODE = 'invalid_parameter_value', HINT = 'Name each id, or leave it out, instead of ''*''.';
    END IF;
    RETURN QUERY
    SELECT
        shown.section,
        row_number() OVER (
            PARTITION BY shown.number
            ORDER BY CASE WHEN shown.section = 'upcoming' THEN shown.at END, shown.place, shown.fact_id
        ),
        shown.entry ->> 'key',
        shown.entry ->> 'value',
        shown.entry ->> 'text',
        shown.entry ->> 'category',
        (shown.entry ->> 'confidence')::double precision,
        shown.at, shown.valid_until, shown.fact_id,
        (shown.entry ->> 'unresolved')::boolean,
        shown.entry ->> 'event',
        shown.entry -> 'old'
    FROM (
        SELECT
            CASE WHEN dated.at > now() AND NOT dated.is_change THEN 'upcoming' ELSE sections.section END AS section,
            CASE WHEN dated.at > now() AND NOT dated.is_change THEN 0 ELSE sections.number END AS number,
            entries.place, entries.entry, dated.at, dated.valid_until,
            (entries.entry ->> 'fact_id')::uuid AS fact_id
        FROM ({query}) AS stored
        CROSS JOIN unnest(ARRAY[
            'identity', 'work', 'relationships', 'sensitive_topics', 'hard_preferences', 'soft_preferences',
            'current_tasks', 'other', 'recent_changes'
        ]) WITH ORDINALITY AS sections (section, number)
        CROSS JOIN LATERAL jsonb_array_elements(to_jsonb(stored) -> sections.section)
            WITH ORDINALITY AS entries (entry, place)
        CROSS JOIN LATERAL (
            SELECT
                (entries.entry ->> 'at')::timestamptz AS at,
                (entries.entry ->> 'valid_until')::timestamptz AS valid_until,
                sections.section = 'recent_changes' AS is_change
        ) AS dated
        WHERE dated.valid_until IS NULL OR dated.valid_until > now()
    ) AS shown
    ORDER BY shown.number = 0, shown.number, 2;
END
$$;
COMMENT ON FUNCTION memory.profile IS
'What is known of exactly one scope in brief, a row for each entry, by section: identity, work, relationships, '
'sensitive_topics, hard_preferences, soft_preferences, current_tasks, other, recent_changes, and upcoming for what begins '
'later. No row where nothing is known.';
