-- Views, and functions that read tables. A view or function stands below those that it uses.

-- Facts and turns that people took back.

CREATE OR REPLACE FUNCTION is_taken_back(fact uuid) RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE
RETURN EXISTS (
    WITH RECURSIVE standing AS (
        SELECT is_taken_back.fact AS fact_id
        UNION
        SELECT part.superseded_by
        FROM standing
        INNER JOIN facts AS part ON standing.fact_id = part.fact_id
        WHERE part.status = 'superseded' AND part.believed_to IS NOT NULL AND part.superseded_by IS NOT NULL
    )
    SELECT
    FROM standing
    INNER JOIN facts ON standing.fact_id = facts.fact_id
    INNER JOIN former_states AS former ON facts.fact_id = former.fact_id
    INNER JOIN memory_events AS taking ON former.event_id = taking.event_id
    WHERE facts.status NOT IN ('active', 'pending_confirmation')
        AND taking.decided_by = 'person'
        AND taking.event NOT IN ('decision_undone', 'subjects_changed') -- other events say whether the fact stands
        AND (
            facts.fact_id = ANY(taking.targets)
            OR (facts.fact_id = taking.fact_id AND taking.event IN ('fact_retracted', 'pending_rejected', 'conflict_resolved'))
        )
        AND NOT ( -- a person settled that it was true and ended
            taking.event IN ('pending_confirmed', 'conflict_resolved')
            AND facts.believed_from IS NOT NULL
            AND facts.believed_to IS NULL
        )
        AND NOT EXISTS (SELECT FROM undone WHERE undone.event_id = taking.event_id)
);
COMMENT ON FUNCTION is_taken_back IS
'Whether a command ended a fact, or what it was merged or corrected into: it deleted, replaced, corrected or rejected it, '
'or settled that it never was true.';

CREATE OR REPLACE FUNCTION fact_is_hidden(fact uuid) RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE
RETURN coalesce(
    (
        SELECT
            CASE
                WHEN said.status IN ('active', 'pending_confirmation') THEN false
                WHEN said.status = 'undone' THEN true
                ELSE EXISTS (
                    WITH RECURSIVE standing AS (
                        SELECT said.fact_id
                        UNION
                        SELECT part.superseded_by
                        FROM standing
                        CROSS JOIN LATERAL (SELECT * FROM facts WHERE facts.fact_id = standing.fact_id OFFSET 0) AS part
                        WHERE part.status = 'superseded' AND part.superseded_by IS NOT NULL
                    )
                    SELECT FROM standing WHERE is_taken_back(standing.fact_id)
                )
            END
        FROM facts AS said
        WHERE said.fact_id = fact_is_hidden.fact
    ),
    true
);
COMMENT ON FUNCTION fact_is_hidden IS
'Whether a fact tells readers nothing any more: it was undone, or a command took it back, or what it was merged into or '
'replaced by.';

CREATE OR REPLACE FUNCTION status_of_shown_turn(of_owner text, of_source text) RETURNS text LANGUAGE sql STABLE PARALLEL SAFE
RETURN (
    SELECT ending.outcome
    FROM (
        SELECT commits.outcome, commits.provenance
        FROM commits
        WHERE commits.owner = of_owner AND commits.source_id = of_source
        ORDER BY commits.attempt DESC
        LIMIT 1
    ) AS ending
    WHERE NOT jsonb_path_exists(ending.provenance, '$.steps[*].dropped[*] ? (@.reason == "recalled")')
        AND NOT EXISTS (
            SELECT
            FROM memory_events AS told
            WHERE told.owner = of_owner
                AND told.source_id = of_source
                AND (
                    EXISTS (SELECT FROM undone WHERE undone.event_id = told.event_id)
                    OR EXISTS (
                        SELECT FROM unnest(told.fact_id || told.targets) AS named (fact_id) WHERE is_taken_back(named.fact_id)
                    )
                )
        )
);
COMMENT ON FUNCTION status_of_shown_turn IS
'How a turn ended, where a search may show it: nothing that it told or changed was taken back since, none of its decisions '
'is undone, and it repeats no recalled memory. NULL for any other.';

CREATE OR REPLACE VIEW turns AS
SELECT
    journal.owner, journal.source_id,
    journal.tenant, journal.user_id, journal.agent_id, journal.app_id, journal.run_id,
    journal.topic, journal.partition, journal.log_offset, journal.published_at, journal.occurred_at, journal.infer,
    journal.body, journal.refusal, journal.detail, journal.received_at,
    coalesce(ending.outcome, 'pending') AS status,
    ending.reason AS end_reason,
    ending.detail AS end_detail,
    ending.decided_at, ending.mood
FROM mnemolog_journal.turn_journal AS journal
LEFT JOIN LATERAL (
    SELECT
        commits.outcome, commits.reason, commits.detail, commits.decided_at,
        jsonb_path_query_first(commits.provenance, '$.steps[*].mood') AS mood
    FROM commits
    WHERE commits.owner = journal.owner AND commits.source_id = journal.source_id
    ORDER BY commits.attempt DESC
    LIMIT 1
) AS ending ON true;
COMMENT ON VIEW turns IS 'Every turn with its end, or pending, and its mood where one was asked for.';

-- Facts: what was known when, and what pending decisions are about.

CREATE OR REPLACE FUNCTION fact_known_at(fact uuid, believed_at timestamptz) RETURNS TABLE (
    status text,
    superseded_by uuid,
    true_from timestamptz,
    true_to timestamptz,
    believed_to timestamptz,
    is_believed boolean,
    mention_count integer
) LANGUAGE sql STABLE PARALLEL SAFE ROWS 1
BEGIN ATOMIC
SELECT
    known.status, known.superseded_by, known.true_from,
    least(known.true_to, known.valid_until),
    known.believed_to,
    coalesce(known.believed_from <= coalesce(fact_known_at.believed_at, 'infinity'), false)
    AND coalesce(known.believed_to > fact_known_at.believed_at, known.believed_to IS NULL),
    known.mention_count
FROM (
    SELECT
        f.status, f.superseded_by, f.true_from, f.true_to, f.valid_until, f.believed_from, f.believed_to, f.mention_count
    FROM facts AS f
    WHERE f.fact_id = fact_known_at.fact AND f.state_since <= coalesce(fact_known_at.believed_at, 'infinity')
    UNION ALL
    SELECT
        former.status, former.superseded_by, coalesce(former.true_from, f.true_from), former.true_to, f.valid_until,
        former.believed_from, former.believed_to, former.mention_count
    FROM facts AS f
    INNER JOIN former_states AS former ON f.fact_id = former.fact_id
    WHERE f.fact_id = fact_known_at.fact
        AND f.state_since > fact_known_at.believed_at
        AND former.since <= fact_known_at.believed_at
        AND former.until > fact_known_at.believed_at
    OFFSET 0
) AS known;
END;
COMMENT ON FUNCTION fact_known_at IS
'How a fact stood at believed_at, or stands now where that is NULL; no row before it was known. true_to is the earliest '
'end that was known then.';

CREATE OR REPLACE FUNCTION current_version(fact uuid) RETURNS uuid LANGUAGE sql STABLE PARALLEL SAFE
RETURN (
    WITH RECURSIVE versions AS (
        SELECT current_version.fact AS fact_id
        UNION
        SELECT closed.superseded_by
        FROM versions
        CROSS JOIN LATERAL (SELECT * FROM facts WHERE facts.fact_id = versions.fact_id OFFSET 0) AS closed
        WHERE closed.status NOT IN ('active', 'pending_confirmation') AND closed.superseded_by IS NOT NULL
    )
    SELECT versions.fact_id
    FROM versions
    CROSS JOIN LATERAL (SELECT * FROM facts WHERE facts.fact_id = versions.fact_id OFFSET 0) AS last
    WHERE last.status IN ('active', 'pending_confirmation') OR last.superseded_by IS NULL
);
COMMENT ON FUNCTION current_version IS
'The fact itself while it is active or pending, or else what took its place, and so on.';

CREATE OR REPLACE FUNCTION challenged_facts(
    pending_ids uuid []
) RETURNS TABLE (pending_id uuid, fact_id uuid, is_successor boolean) LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
WITH RECURSIVE challenged AS (
    SELECT
        pending.fact_id AS pending_id,
        target.fact_id,
        false AS is_successor
    FROM pending_confirmations AS pending
    CROSS JOIN LATERAL unnest(pending.targets) AS target (fact_id)
    WHERE pending.settled_at IS NULL AND pending.fact_id = ANY(challenged_facts.pending_ids)
    UNION
    SELECT
        challenged.pending_id, old.superseded_by,
        true
    FROM challenged
    CROSS JOIN LATERAL (SELECT * FROM facts WHERE facts.fact_id = challenged.fact_id OFFSET 0) AS old
    WHERE old.status = 'superseded' AND old.believed_to IS NOT NULL AND old.superseded_by <> challenged.pending_id
)
SELECT
    challenged.pending_id, challenged.fact_id,
    bool_and(challenged.is_successor)
FROM challenged
CROSS JOIN LATERAL (SELECT * FROM facts WHERE facts.fact_id = challenged.fact_id OFFSET 0) AS standing
WHERE standing.status IN ('active', 'pending_confirmation')
GROUP BY challenged.pending_id, challenged.fact_id;
END;
COMMENT ON FUNCTION challenged_facts IS
'The open facts that these held overwrites were shown; and, as successors, what those that were merged or corrected have '
'become. A confirmation ends the first, and leaves successors as they are.';

CREATE OR REPLACE FUNCTION user_names(
    tenant text, user_id text, agent_id text, app_id text, run_id text, speaker text, user_words text []
) RETURNS text [] LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
WITH first_speaker AS (
    SELECT (
        SELECT spoken.speaker
        FROM unnest(
            (
                SELECT scopes.speakers
                FROM scopes
                WHERE {{same_scope scopes user_names}}
            ) || user_names.speaker
        ) WITH ORDINALITY AS spoken (speaker, place)
        WHERE lower(spoken.speaker) <> ALL(user_names.user_words)
        ORDER BY spoken.place
        LIMIT 1
    ) AS name
),

known AS (
    SELECT first_speaker.name
    FROM first_speaker
    WHERE first_speaker.name IS NOT NULL
    UNION
    (SELECT facts.value
    FROM facts
    WHERE facts.key IN ('name', 'full_name', 'first_name', 'nickname')
        AND length(facts.value) BETWEEN 1 AND 100
        AND facts.status IN ('active', 'superseded', 'expired', 'retracted')
        AND facts.believed_to IS NULL
        AND {{same_scope facts user_names}}
        AND (
            facts.subject IS NULL
            OR lower(facts.subject) = ANY(user_names.user_words)
            OR lower(facts.subject) = (SELECT lower(first_speaker.name) FROM first_speaker)
        )
    ORDER BY facts.recorded_at DESC, facts.fact_id
    LIMIT 20)
)

SELECT coalesce(array_agg(known.name ORDER BY known.name), '{}')
FROM known
WHERE user_names.user_id <> '';
END;
COMMENT ON FUNCTION user_names IS
'The names of the user of one scope: its first speaker, or else the given one, and the values of facts about the user '
'that are a name, the last 20, also of those that have ended; none for a scope without a user. user_words are subjects '
'that say "the user", in small letters; a speaker of such a word is not named by it.';

CREATE OR REPLACE VIEW overwrites AS
SELECT
    e.event_id,
    e.tenant, e.user_id, e.agent_id, e.app_id, e.run_id,
    e.event, e.decided_at,
    CASE
        WHEN e.event <> 'fact_pending' OR e.model IS NULL THEN e.decided_by
        WHEN starts_with(e.model, 'rules-') THEN 'rule'
        ELSE 'model'
    END AS decided_by,
    e.model, e.prompt_version, e.guard, e.stale, done.carried_out_at, judged.taken_back,
    CASE
        WHEN judged.taken_back IS NOT NULL THEN judged.taken_back
        WHEN done.carried_out_at IS NOT NULL THEN 'kept'
        WHEN held.settled_at IS NULL THEN 'open'
        ELSE 'overtaken'
    END AS result
FROM memory_events AS e
LEFT JOIN pending_confirmations AS held ON e.event_id = held.event_id AND e.fact_id = held.fact_id
CROSS JOIN LATERAL (
    SELECT
        CASE
            WHEN e.event <> 'fact_pending' THEN e.decided_at
            ELSE (
                SELECT min(confirmation.decided_at)
                FROM memory_events AS confirmation
                WHERE confirmation.event = 'pending_confirmed'
                    AND confirmation.fact_id = e.fact_id
                    AND EXISTS (
                        SELECT FROM former_states AS ended
                        WHERE ended.event_id = confirmation.event_id AND ended.fact_id = ANY(confirmation.targets)
                    )
            )
        END AS carried_out_at
) AS done
CROSS JOIN LATERAL (
    SELECT
        CASE
            WHEN EXISTS (SELECT FROM undone WHERE undone.event_id = e.event_id) THEN 'undone'
            WHEN held.settlement = 'rejected' THEN 'rejected'
            WHEN
                e.event = 'fact_pending'
                AND held.settlement IS DISTINCT FROM 'confirmed'
                AND EXISTS (
                    SELECT
                    FROM memory_events AS confirmation
                    INNER JOIN undone ON confirmation.event_id = undone.event_id
                    WHERE confirmation.event = 'pending_confirmed' AND confirmation.fact_id = e.fact_id
                )
                THEN 'undone'
            WHEN
                EXISTS (
                    SELECT
                    FROM former_states AS disbelieved
                    INNER JOIN memory_events AS word ON disbelieved.event_id = word.event_id
                    WHERE disbelieved.fact_id = e.fact_id
                        AND word.decided_by = 'person'
                        AND word.targets @> ARRAY[e.fact_id]
                        AND (
                            (word.event = 'fact_corrected' AND word.payload ->> 'ended_at' IS NULL)
                            OR (
                                word.event IN ('pending_confirmed', 'conflict_resolved')
                                AND word.payload ->> 'action' = 'contradict'
                            )
                        )
                        AND NOT EXISTS (SELECT FROM undone WHERE undone.event_id = word.event_id)
                )
                THEN 'corrected'
        END AS taken_back
) AS judged
WHERE
    e.event IN (
        'facts_merged', 'fact_replaced', 'fact_contradicted', 'fact_retracted', 'fact_expired', 'fact_corrected',
        'fact_pending', 'conflict_resolved'
    )
    AND (
        e.event = 'fact_pending'
        OR EXISTS (
            SELECT
            FROM former_states AS ended
            WHERE ended.event_id = e.event_id
                AND ended.fact_id
                = ANY(CASE WHEN e.payload ->> 'action' = 'keep_old' THEN ARRAY[e.fact_id] ELSE e.targets END)
        )
    );
COMMENT ON VIEW overwrites IS
'Every decision that ended a known fact (also one whose end was announced), and every one that was held back from it '
'(fact_pending). decided_by is who proposed it: of one that was held back the model or rule, whoever settled it, with its '
'prompt_version. carried_out_at is when it first ended the fact, also if that was taken back, NULL where it has not. taken_back says that it was wrong, '
'by whoever knew better: undone (itself, or the confirmation that carried it out), rejected while it was pending, or '
'corrected: a person said that the fact in its place never was true (correct without an end, or a contradiction that a '
'person confirmed or resolved). result is taken_back, or kept, open (held back and not settled), or overtaken (held '
'back, and settled without a decision on it). No overwrites are: the undo of a decision, the rejection of a pending '
'fact, and late news that was history when it came.';

-- Profiles.

CREATE OR REPLACE FUNCTION profile_of_scope(
    tenant text, user_id text, agent_id text, app_id text, run_id text, published_at timestamptz DEFAULT 'infinity'
) RETURNS TABLE (
    sections jsonb,
    recent_changes jsonb
) LANGUAGE sql STABLE PARALLEL SAFE ROWS 1
BEGIN ATOMIC
SELECT
    coalesce(known.sections, '{}'),
    coalesce(changed.recent_changes, '[]')
FROM (
    SELECT jsonb_object_agg(wanted.section, listed.entries) FILTER (WHERE listed.entries IS NOT NULL) AS sections
    FROM unnest(ARRAY[
        'identity', 'hard_preferences', 'soft_preferences', 'current_tasks', 'sensitive_topics', 'work',
        'relationships', 'other'
    ]) AS wanted (section)
    CROSS JOIN LATERAL (
        SELECT jsonb_agg(
            jsonb_build_object(
                'key', first.key,
                'value', first.value,
                'text', first.text,
                'category', first.category,
                'confidence', first.confidence,
                'at', utc_text(first.true_from),
                'valid_until', utc_text(first.valid_until),
                'fact_id', first.fact_id,
                'unresolved', first.unresolved,
                'disputed', first.disputed
            )
        ) AS entries
        FROM ( -- which the aggregate takes in this order
            SELECT
                facts.key, facts.value, facts.text, facts.category, facts.confidence, facts.true_from,
                least(facts.valid_until, facts.true_to) AS valid_until,
                facts.fact_id, facts.unresolved, facts.disputed
            FROM facts
            WHERE facts.status = 'active'
                AND facts.believed_from <= profile_of_scope.published_at
                AND {{same_scope facts profile_of_scope}}
                AND profile_section(facts.category) = wanted.section
            ORDER BY
                facts.confidence DESC,
                facts.true_from DESC,
                facts.recorded_at, facts.ordinal, facts.fact_id
            LIMIT 50
        ) AS first
    ) AS listed
) AS known
CROSS JOIN (
    SELECT
        jsonb_agg(
            jsonb_build_object(
                'event', latest.event,
                'text', latest.text,
                'fact_id', latest.fact_id,
                'at', utc_text(latest.decided_at),
                'old', coalesce(latest.old, '[]')
            ) ORDER BY latest.decided_at DESC, latest.log_offset DESC, latest.ordinal DESC
        ) AS recent_changes
    FROM (
        SELECT
            happened.event, about.text, happened.fact_id, happened.decided_at, happened.log_offset, happened.ordinal,
            ended.old
        FROM (
            SELECT *
            FROM memory_events
            WHERE memory_events.event IN (
                'facts_merged', 'fact_replaced', 'fact_contradicted', 'fact_retracted', 'fact_expired',
                'fact_corrected', 'pending_confirmed', 'conflict_resolved'
            )
            AND memory_events.decided_at <= profile_of_scope.published_at
            AND NOT EXISTS (SELECT FROM undone WHERE undone.event_id = memory_events.event_id)
            AND {{same_scope memory_events profile_of_scope}}
            -- OFFSET 0: the latest are looked at first, until there are ten.
            ORDER BY memory_events.decided_at DESC, memory_events.log_offset DESC, memory_events.ordinal DESC OFFSET 0
        ) AS happened
        CROSS JOIN LATERAL (SELECT * FROM facts WHERE facts.fact_id = happened.fact_id OFFSET 0) AS about
        CROSS JOIN LATERAL (
            SELECT
                count(*) AS facts,
                jsonb_agg(
                    jsonb_build_object('text', old.text, 'fact_id', old.fact_id)
                    ORDER BY old.recorded_at, old.ordinal, old.fact_id
                ) FILTER (WHERE NOT old.is_hidden) AS old
            FROM former_states AS former
            INNER JOIN facts AS old ON former.fact_id = old.fact_id
            WHERE former.event_id = happened.event_id
                AND old.fact_id = ANY(happened.fact_id || happened.targets) -- not one whose end the event moved
                AND (
                    old.fact_id <> happened.fact_id
                    OR happened.event IN ('fact_retracted', 'fact_expired')
                    OR happened.payload ->> 'action' = 'keep_old'
                )
        ) AS ended
        WHERE ended.facts > 0
            AND NOT about.is_hidden
            AND NOT EXISTS ( -- denied since, itself or what it was merged into
                WITH RECURSIVE standing AS (
                    SELECT about.status, about.superseded_by, about.believed_to
                    UNION ALL
                    SELECT whole.status, whole.superseded_by, whole.believed_to
                    FROM standing
                    INNER JOIN facts AS whole ON standing.superseded_by = whole.fact_id
                    WHERE standing.status = 'superseded' AND standing.believed_to IS NOT NULL
                )
                SELECT FROM standing WHERE standing.status = 'archived'
            )
        ORDER BY happened.decided_at DESC, happened.log_offset DESC, happened.ordinal DESC
        LIMIT 10
    ) AS latest
) AS changed;
END;
COMMENT ON FUNCTION profile_of_scope IS
'What may be shown now of exactly one scope: its active facts that were believed at published_at, each in one section by '
'its category, and its last changes up to then; no clock is read. A category without a section of its own is in other. A '
'change is an event in effect that ended facts: what it ended has a former state of the event, and is shown as the old of '
'this change alone. One to a fact that was taken back or denied since is none, and what was taken back is no old one.';

-- Limits of tenants. Both counts of a sum come from one snapshot, that of the calling statement: the functions stay STABLE.

CREATE OR REPLACE VIEW open_reservations AS
SELECT reservations.*
FROM mnemolog_journal.limit_reservations AS reservations
WHERE NOT EXISTS (
    SELECT FROM commits
    WHERE commits.owner = reservations.owner
        AND commits.source_id = reservations.source_id
        AND commits.attempt = reservations.attempt
);
COMMENT ON VIEW open_reservations IS 'What was let through under limits and is not projected yet.';

CREATE OR REPLACE FUNCTION tenant_facts(of_tenant text, but_owner text, but_source text) RETURNS bigint LANGUAGE sql STABLE
RETURN (SELECT coalesce(sum(counted.facts), 0) FROM tenant_facts AS counted WHERE counted.tenant = of_tenant)
    + (
        SELECT coalesce(sum(reserved.facts), 0) FROM open_reservations AS reserved
        WHERE reserved.tenant = of_tenant AND (reserved.owner <> but_owner OR reserved.source_id <> but_source)
    );
COMMENT ON FUNCTION tenant_facts IS
'Active and pending facts of a tenant, with those that sources other than the given one are about to add.';

CREATE OR REPLACE FUNCTION tenant_turns(
    of_tenant text, minute timestamptz, but_owner text, but_source text
) RETURNS bigint LANGUAGE sql STABLE
RETURN (
    SELECT count(*) FROM commits
    WHERE tenant = of_tenant
        AND published_at >= minute
        AND published_at < minute + interval '1 minute'
        AND source_kind = 'turn'
        AND limit_hit IS NULL
) + (
    SELECT count(*) FROM open_reservations AS reserved
    WHERE reserved.tenant = of_tenant
        AND reserved.published_at >= minute
        AND reserved.published_at < minute + interval '1 minute'
        AND (reserved.owner <> but_owner OR reserved.source_id <> but_source)
);
COMMENT ON FUNCTION tenant_turns IS
'Turns of a tenant that were published in a minute, but those refused for a limit.';

CREATE OR REPLACE FUNCTION paid_tokens(
    of_tenant text, of_user text, of_agent text, of_app text, of_run text, day timestamptz
) RETURNS bigint LANGUAGE sql STABLE
RETURN (
    SELECT coalesce(sum(counted.tokens), 0)::bigint FROM daily_tokens AS counted
    WHERE (counted.tenant, counted.user_id, counted.agent_id, counted.app_id, counted.run_id)
        = (of_tenant, of_user, of_agent, of_app, of_run)
        AND counted.day = (paid_tokens.day AT TIME ZONE 'UTC')::date
);
COMMENT ON FUNCTION paid_tokens IS 'Tokens that the sources of a scope, or of a tenant, paid for on a day.';

CREATE OR REPLACE FUNCTION reserved_tokens(
    of_tenant text, day timestamptz, but_owner text, but_source text
) RETURNS bigint LANGUAGE sql STABLE
RETURN (
    SELECT coalesce(sum(reserved.tokens), 0)::bigint FROM open_reservations AS reserved
    WHERE reserved.tenant = of_tenant
        AND reserved.published_at >= reserved_tokens.day
        AND reserved.published_at < reserved_tokens.day + interval '24 hours'
        AND (reserved.owner <> but_owner OR reserved.source_id <> but_source)
);
COMMENT ON FUNCTION reserved_tokens IS
'Tokens that turns of a tenant are about to use on a day, but the given one, until their commits are in the tables.';

-- Entities.

CREATE OR REPLACE VIEW current_entity_twins AS
SELECT
    member.head_id AS entity_id,
    twin.entity_id AS twin_id,
    twin.shown_name IS NOT NULL AS is_shown,
    min(member.recorded_at) AS since
FROM entities AS member
CROSS JOIN LATERAL unnest(member.possible_twins) AS named (entity_id)
INNER JOIN entities AS registered ON named.entity_id = registered.entity_id
INNER JOIN entities AS twin ON registered.head_id = twin.entity_id
WHERE twin.status = 'active' AND twin.entity_id <> member.head_id
GROUP BY member.head_id, twin.entity_id, twin.shown_name;
COMMENT ON VIEW current_entity_twins IS
'The entities that may be the same as another one, as both are now, and whether readers see them.';

CREATE OR REPLACE VIEW merge_proposals AS
SELECT
    proposed.event_id, proposed.owner, proposed.source_id, proposed.entity_ids,
    proposed.tenant, proposed.user_id, proposed.agent_id, proposed.app_id, proposed.run_id,
    merged.entity_id AS merged,
    target.entity_id AS into_id,
    coalesce(merged.shown_name, 'unnamed') AS merged_name,
    coalesce(target.shown_name, 'unnamed') AS into_name,
    proposed.payload -> 'decision' ->> 'by' AS decided_by,
    proposed.payload -> 'decision' ->> 'reason' AS reason,
    proposed.decided_at, proposed.partition, proposed.log_offset, proposed.ordinal,
    proposed.undone_by IS NULL
    AND merged.shown_name IS NOT NULL
    AND target.shown_name IS NOT NULL
    AND merged.entity_id <> target.entity_id
    AND NOT EXISTS (
        SELECT
        FROM entity_changes AS settled
        WHERE settled.entity_ids && proposed.entity_ids
            AND settled.undone_by IS NULL
            AND settled.event IN ('entities_merged', 'merge_rejected')
            AND settled.payload ->> 'proposal' = proposed.event_id::text
    ) AS is_pending
FROM entity_changes AS proposed
INNER JOIN entities AS one ON one.entity_id = (proposed.payload ->> 'merged')::uuid
INNER JOIN entities AS other ON other.entity_id = (proposed.payload ->> 'into')::uuid
INNER JOIN entities AS merged ON one.head_id = merged.entity_id
INNER JOIN entities AS target ON other.head_id = target.entity_id
WHERE proposed.event = 'merge_proposed';
COMMENT ON VIEW merge_proposals IS
'Merges of two entities that a rule proposed, of the entities as they are now. One is pending until a person confirms or '
'rejects it, the turn that it came of is undone, or readers see one of the entities no more.';

CREATE OR REPLACE FUNCTION names_in_change(entity_ids uuid []) RETURNS jsonb LANGUAGE sql STABLE PARALLEL SAFE
RETURN (
    SELECT coalesce(jsonb_object_agg(each.name, each.is_shown), '{}')
    FROM (
        SELECT
            said.name,
            bool_or(
                head.shown_name = said.name
                OR (
                    head.shown_name IS NOT NULL
                    AND EXISTS (
                        SELECT FROM entity_aliases AS a
                        WHERE a.current_id = head.entity_id AND a.shown = said.name
                    )
                )
            ) IS TRUE AS is_shown
        FROM entities AS head
        INNER JOIN entities AS member ON head.entity_id = member.head_id
        CROSS JOIN LATERAL (
            SELECT member.name
            UNION
            SELECT member.registered_name
            UNION
            SELECT a.alias FROM entity_aliases AS a WHERE a.entity_id = member.entity_id
        ) AS said (name)
        WHERE head.entity_id IN (
            SELECT named.head_id FROM entities AS named WHERE named.entity_id = ANY(names_in_change.entity_ids)
        ) AND said.name IS NOT NULL
        GROUP BY said.name
    ) AS each
);
COMMENT ON FUNCTION names_in_change IS
'What the reason of a change of these entities may call them: every name that they have or had, each with whether readers '
'see it.';

CREATE OR REPLACE FUNCTION shown_entity_details(of_entity uuid) RETURNS TABLE (
    entity_id uuid,
    name text,
    type text,
    recorded_at timestamptz,
    names text [],
    ties text [],
    twins uuid []
) LANGUAGE sql STABLE PARALLEL SAFE ROWS 1
BEGIN ATOMIC
SELECT
    e.entity_id, e.shown_name, e.type, e.recorded_at, told.names, told.ties,
    ARRAY(
        SELECT twins.twin_id FROM current_entity_twins AS twins
        WHERE twins.entity_id = e.entity_id AND twins.is_shown
        ORDER BY twins.since, twins.twin_id
    )
FROM entities AS e
CROSS JOIN LATERAL (
    SELECT
        coalesce(
            array_agg(called.name ORDER BY called.name = e.shown_name DESC, called.since, called.place, called.name)
            FILTER (WHERE called.kind = 'name'),
            '{}'
        ) AS names,
        coalesce(
            array_agg(called.name ORDER BY called.since, called.place, called.name)
            FILTER (WHERE called.kind = 'tie' AND called.name IS NOT NULL),
            '{}'
        ) AS ties
    FROM (
        SELECT
            n.kind,
            CASE n.kind
                WHEN 'name' THEN n.shown
                ELSE split_part(n.current_key, ' of ', 1) || ' of ' || (
                    SELECT CASE WHEN EXISTS (
                        SELECT FROM entity_aliases AS own WHERE own.current_id = holder.entity_id AND own.kind = 'user'
                    ) THEN 'the user' ELSE holder.shown_name END
                    FROM entities AS holder
                    WHERE holder.entity_id = holder_of_tie(n.current_key)
                        AND {{same_scope holder n}}
                )
            END AS name,
            min(n.recorded_at) AS since,
            min(n.place) AS place
        FROM entity_aliases AS n
        WHERE n.current_id = e.entity_id AND n.shown IS NOT NULL AND n.kind IN ('name', 'tie')
        GROUP BY 1, 2
    ) AS called
) AS told
WHERE e.entity_id = shown_entity_details.of_entity AND e.shown_name IS NOT NULL;
END;
COMMENT ON FUNCTION shown_entity_details IS
'An entity as readers see it: its names, its own first, what it is to others ("wife of the user"), its possible twins.';

CREATE OR REPLACE FUNCTION summary_of_entity(of_entity uuid) RETURNS TABLE (
    event_id uuid,
    source_id text,
    version integer,
    summary text,
    language text,
    model text,
    prompt_version text,
    fact_ids uuid [],
    left_out integer,
    input_tokens integer,
    output_tokens integer,
    written_at timestamptz,
    changed bigint
) LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
SELECT
    made.event_id, made.source_id,
    (made.payload ->> 'version')::integer AS version,
    made.payload ->> 'text' AS summary,
    made.payload ->> 'language' AS language,
    made.payload #>> '{decision,model}' AS model,
    made.payload #>> '{decision,prompt_version}' AS prompt_version,
    written.fact_ids,
    (made.payload ->> 'left_out')::integer AS left_out,
    (made.payload ->> 'input_tokens')::integer AS input_tokens,
    (made.payload ->> 'output_tokens')::integer AS output_tokens,
    made.decided_at AS written_at,
    (
        SELECT count(DISTINCT fresh.fact_id)
        FROM fact_entities AS link
        INNER JOIN facts AS fresh ON link.fact_id = fresh.fact_id
        WHERE link.current_id = of_entity
            AND fresh.status = 'active'
            AND greatest(fresh.recorded_at, fresh.believed_from) > made.decided_at
            AND fresh.fact_id <> ALL(written.fact_ids)
    ) AS changed
FROM entities AS member
INNER JOIN entity_changes AS made ON member.entity_id = made.entity_ids[1]
CROSS JOIN LATERAL (
    SELECT
        array_agg(shown.fact_id::uuid ORDER BY shown.place) AS fact_ids,
        bool_and(
            coalesce(source.status = 'active' AND NOT source.disputed, false)
            AND EXISTS (
                SELECT FROM fact_entities AS link
                WHERE link.fact_id = source.fact_id AND link.current_id = of_entity
            )
        ) AS is_valid
    FROM jsonb_array_elements_text(made.payload -> 'facts') WITH ORDINALITY AS shown (fact_id, place)
    LEFT JOIN facts AS source ON source.fact_id = shown.fact_id::uuid
) AS written
WHERE member.head_id = of_entity
    AND made.event = 'entity_summarised'
    AND made.undone_by IS NULL
    AND written.is_valid
ORDER BY made.partition DESC, made.log_offset DESC, made.ordinal DESC
LIMIT 1;
END;
COMMENT ON FUNCTION summary_of_entity IS
'The newest summary of an entity that is valid: it was not undone, and each fact that it was written from is active, '
'not disputed, and names the entity. changed counts the facts that are new since.';

-- Relations between entities.

CREATE OR REPLACE VIEW current_evidence AS
SELECT said.relation_id, said.fact_id, said.strength, said.ended_at, said.event_id, said.recorded_at
FROM relationship_evidence AS said
WHERE said.told_by IS NULL OR NOT EXISTS (SELECT FROM undone WHERE undone.event_id = said.told_by);
COMMENT ON VIEW current_evidence IS 'What facts say of relations, without what only a repetition told that was undone.';

CREATE OR REPLACE FUNCTION shown_relations(
    relation_ids uuid [], believed_at timestamptz DEFAULT NULL, true_at timestamptz DEFAULT NULL
) RETURNS TABLE (
    subject_id uuid,
    subject text,
    predicate text,
    object_id uuid,
    object text,
    is_mirror boolean,
    is_active boolean,
    strength double precision,
    since timestamptz,
    until timestamptz,
    recorded_at timestamptz,
    ordinal integer,
    evidence uuid [],
    endings uuid []
) LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
WITH RECURSIVE named AS (
    SELECT
        known.relation_id,
        said.fact_id AS said_by,
        ends.subject_id, known.predicate, ends.object_id, known.inverse, known.recorded_at, known.ordinal
    FROM relationships AS known
    INNER JOIN current_evidence AS said ON known.relation_id = said.relation_id
    CROSS JOIN LATERAL (
        SELECT
            min(now_named.entity_id::text) FILTER (WHERE given.entity_id = known.subject_id)::uuid AS subject_id,
            min(now_named.entity_id::text) FILTER (WHERE given.entity_id = known.object_id)::uuid AS object_id
        FROM unnest(ARRAY[known.subject_id, known.object_id]) AS given (entity_id)
        LEFT JOIN fact_entities AS link
            ON link.fact_id = said.fact_id AND given.entity_id = link.entity_id AND link.moved_to IS NOT NULL
        INNER JOIN entities AS told ON coalesce(link.moved_to, given.entity_id) = told.entity_id
        INNER JOIN entities AS now_named ON told.head_id = now_named.entity_id
        WHERE now_named.status = 'active'
    ) AS ends
    WHERE known.relation_id = ANY(shown_relations.relation_ids) AND ends.subject_id <> ends.object_id
),

directed AS (
    SELECT named.relation_id, named.said_by, named.subject_id, named.predicate, named.object_id, false AS is_mirror,
        named.recorded_at, named.ordinal
    FROM named
    UNION ALL
    SELECT named.relation_id, named.said_by, named.object_id, named.inverse, named.subject_id, true,
        named.recorded_at, named.ordinal
    FROM named
    WHERE named.inverse IS NOT NULL
),

carried AS (
    SELECT said.relation_id, said.fact_id AS said_by, said.fact_id, said.strength, said.ended_at, told.said_at, told.event_time
    FROM current_evidence AS said
    CROSS JOIN LATERAL (
        SELECT facts.said_at, facts.event_time, facts.is_hidden FROM facts WHERE facts.fact_id = said.fact_id OFFSET 0
    ) AS told
    WHERE NOT told.is_hidden
        AND said.relation_id IN (SELECT directed.relation_id FROM directed)
        AND said.recorded_at <= coalesce(shown_relations.believed_at, 'infinity')
    UNION
    SELECT
        carried.relation_id, carried.said_by, old.superseded_by, carried.strength, carried.ended_at, carried.said_at,
        carried.event_time
    FROM carried
    CROSS JOIN LATERAL fact_known_at(carried.fact_id, shown_relations.believed_at) AS old
    WHERE old.status = 'superseded' AND old.believed_to IS NOT NULL
        AND EXISTS (
            SELECT FROM memory_events AS merge
            WHERE merge.fact_id = old.superseded_by AND merge.event = 'facts_merged'
        )
),

said AS (
    SELECT
        directed.subject_id, directed.predicate, directed.object_id, directed.is_mirror, directed.recorded_at,
        directed.ordinal, carried.said_by, carried.strength, carried.ended_at, carried.said_at, carried.event_time,
        fact.true_from, fact.true_to, fact.is_believed,
        coalesce(shown_relations.true_at, shown_relations.believed_at, now()) AS at
    FROM directed
    INNER JOIN carried ON directed.relation_id = carried.relation_id AND directed.said_by = carried.said_by
    CROSS JOIN LATERAL fact_known_at(carried.fact_id, shown_relations.believed_at) AS fact
),

ended AS MATERIALIZED ( -- few of all
    SELECT said.subject_id, said.predicate, said.object_id, said.ended_at, said.said_at
    FROM said
    WHERE said.ended_at IS NOT NULL AND said.is_believed
),

evidence AS (
    SELECT
        said.*,
        CASE said.strength WHEN 'strong' THEN 0.8 WHEN 'medium' THEN 0.6 WHEN 'weak' THEN 0.4 END AS stated,
        ending.ended_at AS over_at,
        coalesce(
            said.strength IS NOT NULL AND said.is_believed
            AND (said.strength = 'medium' OR coalesce(said.true_to > said.at, true))
            AND said.true_from <= said.at AND coalesce(ending.ended_at > said.at, true),
            false
        ) AS counts
    FROM said
    CROSS JOIN LATERAL (
        SELECT min(greatest(over.ended_at, said.true_from)) AS ended_at
        FROM ended AS over
        WHERE over.subject_id = said.subject_id AND over.predicate = said.predicate AND over.object_id = said.object_id
            AND (over.ended_at >= said.true_from OR (said.event_time IS NULL AND over.said_at > said.said_at))
    ) AS ending
)

SELECT
    r.subject_id, subject.shown_name, r.predicate, r.object_id, object.shown_name, r.is_mirror, r.is_active,
    1 - (1 - r.stated) * power(0.75::double precision, greatest(told.times, 1) - 1),
    r.since, r.until, r.recorded_at, r.ordinal, r.evidence, r.endings
FROM (
    SELECT
        found.subject_id, found.predicate, found.object_id,
        bool_and(found.is_mirror) AS is_mirror,
        bool_or(found.counts) AS is_active,
        coalesce(max(found.stated) FILTER (WHERE found.counts), max(found.stated)) AS stated,
        min(found.true_from) FILTER (WHERE found.strength IS NOT NULL AND found.is_believed) AS since,
        CASE WHEN NOT bool_or(found.counts) THEN
            max(coalesce(least(found.over_at, found.true_to), found.over_at, found.true_to))
            FILTER (WHERE found.strength IS NOT NULL AND found.is_believed)
        END AS until,
        min(found.recorded_at) AS recorded_at,
        min(found.ordinal) AS ordinal,
        coalesce(
            array_agg(DISTINCT found.said_by) FILTER (WHERE found.counts),
            array_agg(DISTINCT found.said_by) FILTER (WHERE found.strength IS NOT NULL)
        ) AS evidence,
        coalesce(
            array_agg(DISTINCT found.said_by) FILTER (WHERE found.ended_at IS NOT NULL AND found.is_believed), '{}'
        ) AS endings
    FROM evidence AS found
    GROUP BY found.subject_id, found.predicate, found.object_id
    HAVING bool_or(found.strength IS NOT NULL)
) AS r
CROSS JOIN LATERAL (SELECT * FROM entities WHERE entities.entity_id = r.subject_id OFFSET 0) AS subject
CROSS JOIN LATERAL (SELECT * FROM entities WHERE entities.entity_id = r.object_id OFFSET 0) AS object
CROSS JOIN LATERAL (
    SELECT sum(known.mention_count) AS times
    FROM unnest(r.evidence) AS said_by (fact_id)
    CROSS JOIN LATERAL fact_known_at(said_by.fact_id, shown_relations.believed_at) AS known
) AS told
WHERE subject.shown_name IS NOT NULL AND object.shown_name IS NOT NULL;
END;
COMMENT ON FUNCTION shown_relations IS
'These relations in both directions, each once, with the names of both ends and what was known at believed_at to hold at '
'true_at: NULL is now, and true_at is believed_at where it is NULL. One is active while some fact says so and holds, or '
'names it in passing and is believed, and no other fact says that it is over. An end that was said later ends what was said '
'without a time of its own, whenever it is dated. A fact that was merged counts as what it became, and entities are read '
'through merges and splits as they are now. is_mirror: it was said in the other direction only. Readers see a relation that '
'a fact states which was not taken back since, between entities that they see now. strength is 0.8 where a fact says it, 0.6 '
'in passing, 0.4 where it is suggested (after Arandu), and a quarter nearer to 1 with each further statement.';

CREATE OR REPLACE FUNCTION related_entities(to_entity uuid, most bigint) RETURNS TABLE (
    entity_id uuid,
    predicate text
) LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
SELECT
    other.head_id,
    held.predicate
FROM (
    SELECT
        CASE WHEN member.entity_id = r.subject_id THEN r.object_id ELSE r.subject_id END AS other_id,
        CASE WHEN member.entity_id = r.subject_id THEN r.predicate ELSE r.inverse END AS predicate,
        r.relation_id
    FROM entities AS member
    INNER JOIN relationships AS r
        ON {{same_scope member r}}
        AND member.entity_id IN (r.subject_id, r.object_id)
    WHERE member.head_id = related_entities.to_entity
    ORDER BY r.recorded_at DESC, r.ordinal DESC, r.relation_id
    LIMIT related_entities.most
) AS held
INNER JOIN entities AS other ON held.other_id = other.entity_id
WHERE (
    SELECT bool_or(said.strength IS NOT NULL) AND NOT bool_or(said.ended_at IS NOT NULL)
    FROM current_evidence AS said
    CROSS JOIN LATERAL (SELECT * FROM facts WHERE facts.fact_id = said.fact_id OFFSET 0) AS f
    WHERE said.relation_id = held.relation_id AND f.status = 'active'
);
END;
COMMENT ON FUNCTION related_entities IS
'What an entity is related to, by the newest of its relations that active facts state and none ends: a quick look, which '
'shown_relations is not.';
